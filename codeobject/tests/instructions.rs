//! Instructions and blocks as this crate decodes them, against LLVM's disassembler. With RPD_SOAK_OBJECTS, a directory of code objects,
//! against those too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSegment};
use rpd_codeobject::blocks::blocks;
use rpd_codeobject::counting::{Options, Variant, rewrite};
use rpd_codeobject::flow::{self, FlowStep, FlowTarget};
use rpd_codeobject::functions;
use rpd_codeobject::instruction::{Instruction, InstructionClass, InstructionSet};

const OBJECTS: [&str; 13] = [
    "counting-asm.co",
    "counting-gfx900-o2.co",
    "counting-gfx906-o2.co",
    "counting-gfx906-o0.co",
    "counting-gfx90a-o2.co",
    "counting-gfx942-o2.co",
    "gfx900-v3.co",
    "gfx906-v4.co",
    "gfx908-v4.co",
    "gfx90a-v5.co",
    "lines-dwarf4.co",
    "linked-v4.co",
    "named-v5.co",
];

/// An instruction as LLVM shows it.
struct Shown {
    text: String,
    words: Vec<u32>,
}

fn data(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", file].iter().collect()
}

/// What LLVM 15 calls the processor of an object whose name says it.
fn processor(path: &Path) -> &'static str {
    let name = path.file_name().expect("a name").to_string_lossy();
    let all = [("gfx900", "gfx900"), ("gfx908", "gfx908"), ("gfx90a", "gfx90a"), ("gfx94", "gfx940")];
    all.iter().find(|(part, _)| name.contains(part)).map_or("gfx906", |(_, processor)| processor)
}

/// By address.
fn disassembled(path: &Path, processor: &str) -> BTreeMap<u64, Shown> {
    let copy = tempfile::NamedTempFile::new().expect("a file");
    let mut bytes = fs::read(path).expect("an object");
    // LLVM 15 does not know the number of gfx942.
    if bytes[48] == 0x4c {
        bytes[48] = 0x40;
    }
    fs::write(copy.path(), bytes).expect("as before");
    let mut command = Command::new("llvm-objdump-15");
    let output = command.arg("-d").arg(format!("--mcpu={processor}")).arg(copy.path()).output();
    let output = output
        .unwrap_or_else(|error| panic!("cannot run llvm-objdump-15 ({error}); install the package llvm-15"));
    let mut shown = BTreeMap::new();
    for line in String::from_utf8(output.stdout).expect("text").lines() {
        let Some((text, comment)) = line.split_once("//") else { continue };
        let Some((address, words)) = comment.trim().split_once(": ") else { continue };
        let words = words.split(" <").next().unwrap_or_default().split_ascii_whitespace();
        let words = words.map_while(|word| u32::from_str_radix(word, 16).ok()).collect();
        let address = u64::from_str_radix(address, 16).expect("an address");
        shown.insert(address, Shown { text: text.trim().to_string(), words });
    }
    assert!(!shown.is_empty(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    shown
}

/// One more than the highest scalar and the highest vector register that a text names.
fn named(text: &str) -> (u32, u32) {
    let mut highest = (0, 0);
    for word in text.split([' ', ',', '|', '-', '(', ')', ':']).filter(|word| !word.is_empty()) {
        let (kind, number) = word.split_at(1);
        let number = number.trim_start_matches('[').trim_end_matches(']');
        let Ok(number) = number.parse::<u32>() else { continue };
        match kind {
            "s" => highest.0 = highest.0.max(number + 1),
            "v" => highest.1 = highest.1.max(number + 1),
            _ => {}
        }
    }
    // The second number of a range has been split from its letter.
    for range in text.split('[').skip(1) {
        let before = &text[..range.as_ptr() as usize - text.as_ptr() as usize - 1];
        let last = range
            .split(']')
            .next()
            .and_then(|range| range.split_once(':'))
            .and_then(|range| range.1.parse::<u32>().ok());
        match (before.chars().next_back(), last) {
            (Some('s'), Some(last)) => highest.0 = highest.0.max(last + 1),
            (Some('v'), Some(last)) => highest.1 = highest.1.max(last + 1),
            _ => {}
        }
    }
    highest
}

fn class(text: &str) -> InstructionClass {
    let name = text.split(' ').next().unwrap_or_default();
    let begins = |begins: &[&str]| begins.iter().any(|begin| name.starts_with(begin));
    if begins(&["v_mfma", "v_smfmac"]) {
        InstructionClass::Mfma
    } else if begins(&["s_load", "s_buffer", "s_store", "s_scratch", "s_atomic", "s_dcache", "s_mem"]) {
        InstructionClass::Smem
    } else if begins(&["s_branch", "s_cbranch", "s_setpc", "s_swappc"]) {
        InstructionClass::Branch
    } else if begins(&[
        "s_nop",
        "s_endpgm",
        "s_waitcnt",
        "s_barrier",
        "s_set_gpr_idx_off",
        "s_sleep",
        "s_sendmsg",
        "s_trap",
        "s_setprio",
        "s_icache",
    ]) {
        InstructionClass::Other
    } else if begins(&["s_"]) {
        InstructionClass::Salu
    } else if begins(&["v_"]) {
        InstructionClass::Valu
    } else if begins(&["ds_"]) {
        InstructionClass::Lds
    } else {
        InstructionClass::Vmem
    }
}

fn objects() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = OBJECTS.map(data).to_vec();
    if let Some(more) = std::env::var_os("RPD_SOAK_OBJECTS") {
        paths.extend(fs::read_dir(more).expect("a directory").flatten().map(|entry| entry.path()));
    }
    paths
}

#[test]
fn instructions_are_what_llvm_disassembles() {
    let (mut compared, mut wider) = (0, 0);
    for path in objects() {
        let object = fs::read(&path).expect("an object");
        let shown = disassembled(&path, processor(&path));
        for function in functions(&object).expect("functions") {
            let end = function.address + function.code.len() as u64;
            for (address, Shown { text, words }) in shown.range(function.address..end) {
                let place = format!("{} {address:#x}: {text}", path.display());
                if text.starts_with(".long") {
                    continue;
                }
                let instruction = Instruction::decode(words[0], words.get(1).copied())
                    .unwrap_or_else(|| panic!("{place}: unknown"));
                assert_eq!(instruction.length as usize, words.len() * 4, "{place}");
                assert_eq!(instruction.class(), class(text), "{place}");
                let (scalar, vector) = named(text);
                let registers = instruction.registers();
                assert!(registers.scalar >= scalar, "{place}: {registers:?}");
                assert!(registers.vector >= vector || registers.is_vector_open, "{place}: {registers:?}");
                compared += 1;
                wider += usize::from(registers.scalar > scalar || registers.vector > vector);
            }
        }
    }
    println!("{compared} instructions, of {wider} more registers are taken than LLVM names");
    assert!(compared > 8000, "{compared}");
    assert!(wider * 20 < compared, "{wider} of {compared}: of so many the registers are overestimated");
}

#[test]
fn blocks_are_those_of_the_text() {
    let mut compared = 0;
    for path in objects() {
        let object = fs::read(&path).expect("an object");
        let shown = disassembled(&path, processor(&path));
        for function in functions(&object).expect("functions") {
            let end = function.address + function.code.len() as u64;
            let steps: Vec<FlowStep<'_>> = shown
                .range(function.address..end)
                .map(|(address, shown)| FlowStep {
                    address: *address,
                    length: shown.words.len() as u32 * 4,
                    word: shown.words[0],
                    text: &shown.text,
                })
                .collect();
            let Ok(found) = blocks(&function) else { continue };
            let text = flow::blocks(&steps);
            // What nothing leads to is there in the text alone.
            let mut reached = vec![false; text.len()];
            let mut open = vec![0];
            while let Some(block) = open.pop() {
                if std::mem::replace(&mut reached[block], true) {
                    continue;
                }
                open.extend(text[block].edges.iter().filter_map(|edge| match edge.to {
                    FlowTarget::Block(block) => Some(block),
                    _ => None,
                }));
            }
            let of_text: Vec<(u64, usize)> = text
                .iter()
                .zip(&reached)
                .filter(|(_, reached)| **reached)
                .map(|(block, _)| (steps[block.steps.start].address, block.steps.len()))
                .collect();
            let of_bytes: Vec<(u64, usize)> =
                found.blocks.iter().map(|block| (found.steps[block.start].address, block.len())).collect();
            assert_eq!(of_bytes, of_text, "{} {}", path.display(), function.name);
            compared += of_bytes.len();
        }
    }
    assert!(compared > 300, "{compared}");
}

/// The words as LLVM shows them, from address 0 on.
fn disassembled_words(words: &[u8], processor: &str) -> BTreeMap<u64, Shown> {
    let directory = tempfile::tempdir().expect("a directory");
    let (source, object) = (directory.path().join("words.s"), directory.path().join("words.o"));
    let line = |word: &[u8]| format!(".long {}\n", u32::from_le_bytes(word.try_into().expect("a word")));
    fs::write(&source, words.chunks_exact(4).map(line).collect::<String>()).expect("a file");
    let mut assembler = Command::new("llvm-mc-15");
    assembler.args(["-triple=amdgcn-amd-amdhsa", "-filetype=obj", "-o"]).arg(&object).arg(&source);
    let status = assembler.arg(format!("-mcpu={processor}")).status();
    assert!(status.expect("llvm-mc-15, of the package llvm-15").success());
    disassembled(&object, processor)
}

#[test]
fn what_is_made_can_be_disassembled() {
    let mut compared = 0;
    for path in objects() {
        let object = fs::read(&path).expect("an object");
        for (variant, scalar_first, branch_limit) in [
            (Variant::Waves, false, 1 << 15),
            (Variant::Waves, true, 50),
            (Variant::Lanes, false, 50),
            (Variant::Time, false, 50),
            (Variant::Time, true, 50),
        ] {
            let options = Options { variant, scalar_first, branch_limit, slots: 2 };
            let made = rewrite(&object, &options, &|_| true).expect("counting kernels");
            let place = |address: u64| format!("{} {variant:?} {address:#x}", path.display());
            let elf = ElfFile64::<LittleEndian>::parse(&*made.object).expect("an ELF file");
            let load = elf.segments().last().expect("a segment");
            let processor = processor(&path);
            let first = made.map.stretches().next().expect("code").0 & !0xff;
            let code = &load.data().expect("bytes")[(first - load.address()) as usize..];
            let shown = disassembled_words(&code[..code.len() / 4 * 4], processor);
            let highest =
                made.kernels.iter().map(|kernel| (kernel.registers.sgprs - 6, kernel.registers.vgprs));
            let highest =
                highest.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1))).expect("kernels");
            for (new, length, _) in made.map.stretches() {
                assert!(shown.contains_key(&(new - first)), "{}: no instruction begins", place(new));
                for (address, new) in shown.range(new - first..new + length - first) {
                    assert!(!new.text.starts_with(".long"), "{}: {}", place(*address), new.text);
                    let (scalar, vector) = named(&new.text);
                    assert!(scalar <= highest.0 && vector <= highest.1, "{}: {}", place(*address), new.text);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
}

/// Floating-point operations and bytes of one instruction, by LLVM's text alone: of a lane, of a wave, of a lane, of a wave.
fn work_of(text: &str) -> [u64; 4] {
    let name = text.split(' ').next().unwrap_or_default();
    let name = name.trim_end_matches("_e32").trim_end_matches("_e64");
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if let Some((kind, shape)) =
        name.strip_prefix("v_mfma_").or(name.strip_prefix("v_smfmac_")).and_then(|rest| rest.split_once('_'))
    {
        if kind == "i32" {
            return [0; 4];
        }
        let shape = shape.split(|c: char| !c.is_ascii_digit() && c != 'x').next().unwrap_or_default();
        let sizes: Vec<u64> = shape.split('x').map(|size| size.parse().expect("a size")).collect();
        // All blocks of the result are in the registers of 64 lanes.
        let (first, last) =
            text.split(['[', ']']).nth(1).and_then(|range| range.split_once(':')).expect("a range");
        let registers = last.parse::<u64>().expect("a number") - first.parse::<u64>().expect("a number") + 1;
        let results = registers * 64 / if kind == "f64" { 2 } else { 1 };
        return [0, 2 * results * sizes[2], 0, 0];
    }
    let is_float = name.ends_with("_f16") || name.ends_with("_f32") || name.ends_with("_f64");
    let is_no_arithmetic =
        has(&["cvt", "cmp", "interp", "mfma", "div_scale", "div_fixup", "pk_max", "pk_min"]);
    if name.starts_with("v_") && !is_no_arithmetic {
        let packed = if has(&["_pk_", "_dot2"]) { 2 } else { 1 };
        let begins = |begins: &[&str]| {
            let rest = name.trim_start_matches("v_").trim_start_matches("pk_");
            begins.iter().any(|begin| rest.starts_with(begin))
        };
        let one =
            ["add_", "sub_", "subrev_", "mul_", "exp_", "log_", "rcp_", "rsq_", "sqrt_", "sin_", "cos_"];
        let two = [
            "mac_",
            "fmac_",
            "mad_",
            "fma_",
            "madmk_",
            "madak_",
            "fmamk_",
            "fmaak_",
            "div_fmas_",
            "dot2_f32",
            "dot2c_f32",
            "mad_mix",
        ];
        let each = match () {
            _ if !is_float => 0,
            _ if begins(&two) => 2,
            _ if begins(&one) => 1,
            _ => 0,
        };
        return [packed * each, 0, 0, 0];
    }
    let is_memory = ["flat_", "global_", "buffer_", "tbuffer_"].iter().any(|begin| name.starts_with(begin));
    let words = |name: &str| match name.rsplit('_').next().unwrap_or_default() {
        "dwordx2" | "xy" => 2,
        "dwordx3" | "xyz" => 3,
        "dwordx4" | "xyzw" => 4,
        "dwordx8" => 8,
        "dwordx16" => 16,
        _ => 1,
    };
    // What a store from LDS moves, its text does not tell.
    if is_memory && has(&["load", "store"]) && !has(&["store_lds"]) {
        let size = if has(&["byte"]) {
            1
        } else if has(&["short", "d16"]) {
            2
        } else {
            4
        };
        return [0, 0, size * words(name), 0];
    }
    if is_memory && has(&["atomic"]) {
        return [0, 0, if name.ends_with("_x2") || name.ends_with("_f64") { 16 } else { 8 }, 0];
    }
    if name.starts_with("s_") && has(&["_load_dword", "_store_dword"]) {
        return [0, 0, 0, 4 * words(name)];
    }
    if name.starts_with("s_") && has(&["_atomic_"]) {
        return [0, 0, 0, if name.ends_with("_x2") { 16 } else { 8 }];
    }
    [0; 4]
}

/// Every opcode that LLVM knows.
#[test]
fn what_instructions_compute_and_move() {
    let mut all: Vec<[u32; 2]> = Vec::new();
    all.extend((0..62).map(|op| [op << 25 | 0x100, 0]));
    all.extend((0..256).map(|op| [0x3f << 25 | op << 9 | 0x100, 0]));
    all.extend((0..1024).map(|op| [0x34 << 26 | op << 16, 0x0402_0100]));
    all.extend((0..128).map(|op| [0x1a7 << 23 | op << 16 | 0x4000, 0x1c0a_0501]));
    all.extend((0..128).map(|op| [0x37 << 26 | op << 18 | 0x8000, 0x007f_0000]));
    all.extend((0..128).map(|op| [0x38 << 26 | op << 18, 0x8000_0000]));
    all.extend((0..16).map(|op| [0x3a << 26 | op << 15 | 4 << 19, 0x8000_0000]));
    all.extend((0..256).map(|op| [0x30 << 26 | op << 18 | 1 << 17, 0]));
    const NOP: u32 = 0xbf80_0000;
    let bytes: Vec<u8> =
        all.iter().flat_map(|words| [words[0], words[1], NOP, NOP]).flat_map(u32::to_le_bytes).collect();
    let mut compared = 0;
    for processor in ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx940"] {
        let shown = disassembled_words(&bytes, processor);
        for (place, words) in all.iter().enumerate() {
            let Some(Shown { text, words: own }) = shown.get(&(place as u64 * 16)) else { continue };
            let Some(instruction) = Instruction::decode(words[0], Some(words[1])) else { continue };
            // Of a long form that LLVM does not know it shows the words.
            if text.starts_with(".long") || own.len() * 4 != instruction.length as usize {
                continue;
            }
            let work = instruction.work(InstructionSet::of(processor));
            let work = [work.lane_flops, work.wave_flops, work.lane_bytes, work.wave_bytes];
            assert_eq!(work, work_of(text), "{processor}: {text}");
            compared += usize::from(work != [0; 4]);
        }
    }
    assert!(compared > 600, "{compared}");
}

#[test]
fn what_waves_wait_for() {
    let waits = |word: u32| -> Vec<&str> {
        Instruction::decode(word, None).expect("an instruction").waits().map(|wait| wait.name()).collect()
    };
    // s_waitcnt vmcnt(0), lgkmcnt(0), vmcnt(16) lgkmcnt(3), none at all; s_barrier, s_sleep, s_nop.
    assert_eq!(waits(0xbf8c_0f70), ["VMEM"]);
    assert_eq!(waits(0xbf8c_c07f), ["LDS/SMEM"]);
    assert_eq!(waits(0xbf8c_4370), ["VMEM", "LDS/SMEM"]);
    assert_eq!(waits(0xbf8c_cf7f), [""; 0]);
    assert_eq!(
        (waits(0xbf8a_0000), waits(0xbf8e_0001), waits(0xbf80_0000)),
        (vec!["barrier"], vec!["sleep"], vec![])
    );
}
