//! Whatever the bytes are: an answer or an error, never a panic, and never more memory than the bytes warrant.

use std::fs;
use std::path::PathBuf;

use rpd_codeobject::{CodeObject, Error, demangle, functions, loadable};

#[path = "hostile/count.rs"]
mod count;
#[path = "hostile/read.rs"]
mod read;
use count::count;
use read::read;

const FILES: [&str; 13] = [
    "gfx900-v3.co",
    "gfx906-v4.co",
    "gfx908-v4.co",
    "gfx90a-v5.co",
    "gfx1030-v5.co",
    "named-v2.co",
    "named-v5.co",
    "linked-v4.co",
    "two_units.so",
    "compressed-v2.bundle",
    "compressed-v3.bundle",
    "lines-dwarf4.co",
    "lines-dwarf5.co",
];

fn bytes(file: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "data", file].iter().collect();
    fs::read(path).expect(file)
}

/// Numbers that look random and are the same in every run.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn truncated_anywhere() {
    for file in FILES {
        let bytes = bytes(file);
        for end in (0..bytes.len()).step_by(if bytes.len() > 20_000 { 37 } else { 1 }) {
            read(&bytes[..end]);
        }
    }
}

#[test]
fn tables_that_are_not_in_the_file() {
    let whole = bytes("gfx906-v4.co");
    let why = |bytes: &[u8]| functions(bytes).unwrap_err().to_string();
    let with = |at: usize, value: u64| {
        let mut bytes = whole.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    assert!(why(&whole[..63]).starts_with("damaged ELF header: it reaches beyond the end of the file;"));
    // Where the header says that they begin.
    for (at, part) in [(32, "program"), (40, "section")] {
        for begin in [whole.len() as u64 - 100, whole.len() as u64, u64::MAX - 8, u64::MAX] {
            let expected = format!("damaged ELF {part} headers: they reach beyond the end of the file;");
            let why = why(&with(at, begin));
            assert!(why.starts_with(&expected), "{begin:#x}: {why}");
        }
    }
    // The size of the dynamic symbols, which are the first ones.
    let sections = u64::from_le_bytes(whole[40..48].try_into().unwrap()) as usize;
    let symbols = (sections..).step_by(64).find(|at| whole[at + 4..at + 8] == [11, 0, 0, 0]).unwrap();
    for (size, expected) in [(0, "it is empty"), (u64::MAX, "it reaches beyond the end of the file")] {
        let why = why(&with(symbols + 32, size));
        assert!(why.starts_with(&format!("damaged ELF symbol table: {expected};")), "{size:#x}: {why}");
    }
}

#[test]
fn bytes_lie_anywhere_in_memory() {
    for file in FILES {
        let whole = bytes(file);
        let moved = [b"\0", &*whole].concat();
        assert_eq!(loadable(&moved[1..]), loadable(&whole), "{file}");
        assert_eq!(functions(&moved[1..]), functions(&whole), "{file}");
    }
}

#[test]
fn changed_bytes() {
    let values = [0, 1, 0x7f, 0x80, 0xff, 0xdc, 0xdd, 0xde, 0xdf, 0xc6];
    // 1,000,000 in all.
    let rounds = if std::env::var_os("RPD_SOAK").is_some() { 62_500 } else { 1000 };
    let mut random = Sequence(1);
    let mut originals: Vec<Vec<u8>> = FILES.map(bytes).to_vec();
    // Once more with the note hidden, so that the descriptors are read.
    for index in [0, 3, 4] {
        let mut hidden = originals[index].clone();
        let kind = hidden.windows(11).position(|at| at == b"\x20\0\0\0AMDGPU\0").unwrap();
        hidden[kind] = 0x7f;
        originals.push(hidden);
    }
    for original in &originals {
        // Half of the changes go where the structures are: the headers, the note, the section table.
        let note = original.windows(7).position(|at| at == b"AMDGPU\0").unwrap_or(0);
        for round in 0..rounds {
            let mut bytes = original.clone();
            for _ in 0..=random.below(4) {
                let at = match round % 4 {
                    0 => random.below(64 + 8 * 56),
                    1 => note + random.below(3000.min(bytes.len() - note)),
                    2 => bytes.len() - 1 - random.below(1500),
                    _ => random.below(bytes.len()),
                };
                bytes[at] = match random.below(3) {
                    0 => values[random.below(values.len())],
                    1 => bytes[at] ^ 1 << random.below(8),
                    _ => random.below(256) as u8,
                };
            }
            read(&bytes);
        }
    }
}

/// Objects whose kernels count, with changes in their code and in their tables.
#[test]
fn changed_code() {
    // 100,000 in all.
    let rounds = if std::env::var_os("RPD_SOAK").is_some() { 16_000 } else { 300 };
    let mut random = Sequence(3);
    // Words that mean much: s_getpc, s_add of a literal, s_setpc, s_swappc, s_branch, s_cbranch, s_set_gpr_idx_on, s_endpgm, no instruction.
    let words: [u32; 9] = [
        0xbe84_1c00,
        0x8004_ff04,
        0xbe80_1d04,
        0xbe9e_1e04,
        0xbf82_fff0,
        0xbf84_0007,
        0xbf11_0001,
        0xbf81_0000,
        0xffff_ffff,
    ];
    let (mut refused, mut counted) = (0, 0);
    for file in [
        "counting-gfx906-o2.co",
        "counting-gfx900-o2.co",
        "gfx908-v4.co",
        "counting-gfx90a-o2.co",
        "counting-gfx942-o2.co",
        "linked-v4.co",
        "counting-gfx906-o0.co",
    ] {
        let original = bytes(file);
        let code: Vec<(usize, usize)> = functions(&original)
            .expect(file)
            .iter()
            .map(|function| {
                (function.code.as_ptr() as usize - original.as_ptr() as usize, function.code.len() / 4)
            })
            .collect();
        let rounds = if original.len() > 50_000 { rounds / 4 } else { rounds };
        for round in 0..rounds {
            let mut bytes = original.clone();
            for _ in 0..=random.below(4) {
                match random.below(8) {
                    0 => {
                        let at = [
                            random.below(64 + 8 * 56),
                            bytes.len() - 1 - random.below(1500),
                            random.below(bytes.len()),
                        ];
                        bytes[at[random.below(3)]] = random.below(256) as u8;
                    }
                    _ => {
                        let (start, length) = code[random.below(code.len())];
                        let at = start + 4 * random.below(length.max(1));
                        let Some(place) = bytes.get_mut(at..at + 4) else { continue };
                        match random.below(3) {
                            0 => place.copy_from_slice(&words[random.below(words.len())].to_le_bytes()),
                            1 => place[random.below(4)] ^= 1 << random.below(8),
                            _ => place[random.below(4)] = random.below(256) as u8,
                        }
                    }
                }
            }
            match count(&bytes, round) {
                Some(_) => refused += 1,
                None => counted += 1,
            }
        }
    }
    assert!(refused > 10 && counted > 500, "{refused} refused, {counted} count");
}

#[test]
fn changed_names() {
    let mut random = Sequence(2);
    for line in include_str!("data/names.tsv").lines() {
        let name = line.split('\t').next().unwrap();
        for _ in 0..250 {
            let mut name = name.as_bytes().to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(name.len());
                match random.below(3) {
                    0 => name[at] = b"0123456789EINSTZ_LXJPRKF"[random.below(24)],
                    1 => drop(name.remove(at)),
                    _ => name.insert(at, b"0123456789EINSTZ_LXJPRKF"[random.below(24)]),
                }
            }
            demangle(std::str::from_utf8(&name).unwrap());
        }
    }
}

/// A code object with this as its metadata, and nothing else.
fn with_metadata(metadata: &[u8]) -> Result<CodeObject, Error> {
    let mut bytes = bytes("gfx906-v4.co")[..64].to_vec();
    bytes[40..48].fill(0); // no sections
    bytes[56] = 1; // one program header: a note
    let size = (20 + metadata.len()) as u64;
    bytes.extend(4u32.to_le_bytes());
    bytes.extend(4u32.to_le_bytes());
    for field in [120, 120, 120, size, size, 4u64] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend([7u32, metadata.len() as u32, 32].map(u32::to_le_bytes).concat());
    bytes.extend(b"AMDGPU\0\0");
    bytes.extend(metadata);
    CodeObject::parse(&bytes)
}

/// `{"amdhsa.kernels": [kernels]}`, the number of kernels in 32 bits.
fn kernels(count: u32, kernels: &[u8]) -> Vec<u8> {
    let mut metadata = vec![0x81, 0xae];
    metadata.extend(b"amdhsa.kernels\xdd");
    metadata.extend(count.to_be_bytes());
    metadata.extend(kernels);
    metadata
}

#[test]
fn smallest_metadata() {
    let object = with_metadata(&kernels(1, b"\x81\xa7.symbol\xa4f.kd")).unwrap();
    assert_eq!((object.kernels[0].symbol.as_str(), object.kernels[0].name.as_str()), ("f.kd", "f"));
    assert_eq!(with_metadata(&[0x80]).unwrap().kernels, []);
    // Keys and values of newer compilers, and keys that are no text.
    let newer = b"\x84\xa7.symbol\xa4f.kd\xa4.new\x91\x81\x01\x02\x05\xc0\xa5.args\x90";
    assert_eq!(with_metadata(&kernels(1, newer)).unwrap().kernels.len(), 1);
}

#[test]
fn every_kind_of_value_can_be_passed_over() {
    let values: [&[u8]; 30] = [
        b"\x00",
        b"\xff",
        b"\xc0",
        b"\xc2",
        b"\xc3",
        b"\xcc\x01",
        b"\xcd\0\x01",
        b"\xce\0\0\0\x01",
        b"\xcf\0\0\0\0\0\0\0\x01",
        b"\xd0\x01",
        b"\xd1\0\x01",
        b"\xd2\0\0\0\x01",
        b"\xd3\0\0\0\0\0\0\0\x01",
        b"\xca\0\0\0\0",
        b"\xcb\0\0\0\0\0\0\0\0",
        b"\xa2ab",
        b"\xd9\x02ab",
        b"\xda\0\x02ab",
        b"\xdb\0\0\0\x02ab",
        b"\xc4\x02ab",
        b"\xc5\0\x02ab",
        b"\xc6\0\0\0\x02ab",
        b"\xd4\x01a",
        b"\xd5\x01ab",
        b"\xc7\x02\x01ab",
        b"\xc8\0\x02\x01ab",
        b"\x92\x01\x91\x02",
        b"\xdc\0\x02\x01\x02",
        b"\x81\x01\x91\x02",
        b"\xde\0\x01\x01\x02",
    ];
    for value in values {
        // Beside the kernels, and inside of one.
        let mut metadata = b"\x82\xa5other".to_vec();
        metadata.extend(value);
        let inside = [&b"\x82\xa4.new"[..], value, b"\xa7.symbol\xa4f.kd"].concat();
        metadata.extend(&kernels(1, &inside)[1..]);
        let object = with_metadata(&metadata).unwrap_or_else(|error| panic!("{value:?}: {error}"));
        assert_eq!(object.kernels[0].symbol, "f.kd", "{value:?}");
        assert!(with_metadata(&metadata[..7 + value.len() - 1]).is_err(), "{value:?} without its last byte");
    }
    assert!(with_metadata(b"\x81\xa5other\xc1").is_err(), "the reserved byte is no value");
}

#[test]
fn lengths_that_promise_too_much() {
    for metadata in [
        kernels(u32::MAX, b""),
        kernels(u32::MAX, b"\x81\xa7.symbol\xa4f.kd"),
        kernels(1, b"\xdf\xff\xff\xff\xff"),
        kernels(1, b"\x81\xa5.args\xdd\xff\xff\xff\xff"),
        kernels(1, b"\x81\xa7.symbol\xdb\xff\xff\xff\xff"),
        b"\xdf\xff\xff\xff\xff".to_vec(),
        b"\x81\xdb\xff\xff\xff\xff".to_vec(),
        b"\xdd\xff\xff\xff\xff".to_vec(),
        b"".to_vec(),
    ] {
        let error = with_metadata(&metadata).unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
    }
}

#[test]
fn nesting_without_end() {
    for opening in [&b"\x91"[..], b"\x81\x01", b"\xdc\0\x01", b"\xdf\0\0\0\x01\xa1a"] {
        let deep = opening.repeat(100_000);
        let inside_a_kernel = [&b"\x81\xa5.args"[..], &deep].concat();
        let beside = [&b"\x81\xa5other"[..], &deep].concat();
        for metadata in [kernels(1, &inside_a_kernel), kernels(1, &deep), deep, beside] {
            with_metadata(&metadata).unwrap_err();
        }
    }
}

#[test]
fn kernels_larger_than_any() {
    let name = vec![b'a'; 2 << 20];
    let mut kernel = b"\x81\xa7.symbol\xdb".to_vec();
    kernel.extend((name.len() as u32).to_be_bytes());
    kernel.extend(&name);
    assert!(matches!(with_metadata(&kernels(1, &kernel)), Err(Error::TooLarge { .. })));
}

#[test]
fn fields_of_the_wrong_kind_are_named() {
    let cases: [(&[u8], &str); 7] = [
        (b"\x81\xa7.symbol\x05", ".symbol is not text"),
        (b"\x81\xa7.symbol\xa2\xff\xfe", ".symbol is not text"),
        (b"\x81\xab.vgpr_count\xa1x", ".vgpr_count is not a number"),
        (b"\x81\xab.vgpr_count\xff", ".vgpr_count is not a number"),
        (b"\x81\xab.vgpr_count\xcf\0\0\0\x01\0\0\0\0", ".vgpr_count is not a number"),
        (b"\x81\xa5.args\x91\x80", "no .value_kind"),
        (b"\x80", "no .symbol"),
    ];
    for (kernel, text) in cases {
        let error = with_metadata(&kernels(1, kernel)).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn what_compilers_make_can_be_loaded() {
    for file in FILES.into_iter().filter(|file| file.ends_with(".co") && !file.contains("v2")) {
        let bytes = bytes(file);
        let code = loadable(&bytes).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(code, CodeObject::parse(&bytes).expect(file));
    }
}

/// One byte at a time, at each place that leads somewhere: what is left still says where everything is.
#[test]
fn what_the_runtime_would_follow_outside_is_refused() {
    let good = bytes("gfx906-v4.co");
    let word = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().expect("eight bytes"));
    let (programs, sections) = (word(32) as usize, word(40) as usize);
    let (program_count, section_count) = (usize::from(good[56]), usize::from(good[60]));
    let loads = (0..program_count).map(|n| programs + n * 56).filter(|at| good[*at] == 1);
    let mut refused = 0;
    // Offset, address and sizes of what is loaded; link and offset of all sections but the first.
    let places = loads.flat_map(|at| [at + 8, at + 32, at + 40]);
    let places =
        places.chain((1..section_count).map(|n| sections + n * 64).flat_map(|at| [at + 24, at + 39]));
    for place in places {
        let mut bad = good.clone();
        bad[place + 4] = 0x7f;
        refused += usize::from(loadable(&bad).is_err());
        assert!(loadable(&bad).is_err(), "byte {place:#x}");
    }
    assert!(refused > 20, "{refused}");
    // Kernel descriptors in a section that is not loaded.
    let rodata = (1..section_count).map(|n| sections + n * 64).find(|at| {
        let (kind, flags) = (good[at + 4], good[at + 8]);
        kind == 1 && flags & 6 == 2
    });
    let mut bad = good.clone();
    bad[rodata.expect("read-only data") + 8] = 0x80;
    assert!(loadable(&bad).is_err_and(|error| error.to_string().contains("is not loaded")));
}
