//! The place from which the program had the bytes of a code object: a file, or only memory.

use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// A place, and how many bytes are there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CodeLocation {
    place: FilePlace,
    size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum FilePlace {
    /// A file, and the first byte in it.
    File(PathBuf, u64),
    /// Memory of the process with this number.
    Memory(u32, u64),
}

/// All that ROCr encodes in its own (amd_hsa_loader.cpp, EncodePathname).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

impl CodeLocation {
    /// The place of bytes in memory. They may be a file's, which a library was loaded from or which somebody has mapped.
    pub(crate) fn of_memory(bytes: &[u8]) -> CodeLocation {
        let (start, size) = (bytes.as_ptr() as u64, bytes.len() as u64);
        let maps = fs::read("/proc/self/maps").unwrap_or_default();
        let file = mapped(&maps, start..start + size).filter(|(path, _)| path.is_file());
        let place = match file {
            Some((path, offset)) => FilePlace::File(path, offset),
            None => FilePlace::Memory(std::process::id(), start),
        };
        CodeLocation { place, size }
    }

    /// Of an open file's bytes, all `size` of them. One without a name has the one that the kernel shows: `/memfd:code (deleted)`.
    pub(crate) fn of_descriptor(file: BorrowedFd<'_>, size: u64) -> CodeLocation {
        let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default();
        CodeLocation::of_file(path, 0, size)
    }

    /// Of `size` bytes of a file, from byte `offset` on.
    pub(crate) fn of_file(path: PathBuf, offset: u64, size: u64) -> CodeLocation {
        CodeLocation { place: FilePlace::File(path, offset), size }
    }

    /// The file, where there is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.place {
            FilePlace::File(path, _) => Some(path),
            FilePlace::Memory(..) => None,
        }
    }

    /// As the runtime's loader writes it (hsa_ven_amd_loader.h), always with the range.
    pub(crate) fn uri(&self) -> String {
        let size = self.size;
        match &self.place {
            FilePlace::File(path, offset) => {
                let path = percent_encode(path.as_os_str().as_bytes(), ENCODED);
                format!("file://{path}#offset={offset}&size={size}")
            }
            FilePlace::Memory(pid, address) => format!("memory://{pid}#offset=0x{address:x}&size={size}"),
        }
    }
}

/// One line of /proc/PID/maps.
struct Mapping<'a> {
    range: Range<u64>,
    /// Of its first byte in the file.
    offset: u64,
    /// The device and the inode, as text.
    file: [&'a [u8]; 2],
    path: &'a [u8],
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a [u8]) -> Option<Mapping<'a>> {
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let mut word = || words.next();
        let (range, _, offset, file) = (word()?, word()?, word()?, [word()?, word()?]);
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = str::from_utf8(range).ok()?.split_once('-')?;
        Some(Mapping {
            range: number(start)?..number(end)?,
            offset: number(str::from_utf8(offset).ok()?)?,
            file,
            // Spaces are in front of it.
            path: word()?.trim_ascii_start(),
        })
    }
}

/// The file that memory was mapped from by these lines of /proc/PID/maps, and the place of the first byte in it. It may have been cut
/// into several mappings of one file, which have to lie as in the file.
fn mapped(maps: &[u8], wanted: Range<u64>) -> Option<(PathBuf, u64)> {
    let mut found: Option<(Mapping<'_>, u64)> = None;
    for mapping in maps.split(|byte| *byte == b'\n').filter_map(Mapping::parse) {
        found = match found {
            None if mapping.range.contains(&wanted.start) => {
                let end = mapping.range.end;
                Some((mapping, end))
            }
            None => continue,
            Some((first, end)) => {
                let follows = mapping.range.start == end
                    && mapping.file == first.file
                    && mapping.offset == first.offset + (end - first.range.start);
                if !follows {
                    return None;
                }
                Some((first, mapping.range.end))
            }
        };
        if let Some((first, _)) = found.take_if(|(_, end)| *end >= wanted.end) {
            // Others are in brackets: `[heap]`.
            let is_file = first.path.starts_with(b"/");
            let offset = first.offset + (wanted.start - first.range.start);
            return is_file.then(|| (unescaped(first.path), offset));
        }
    }
    None
}

/// The path as it is: the kernel writes a newline as `\012`, and nothing else so.
fn unescaped(path: &[u8]) -> PathBuf {
    let mut rest = path;
    let mut out = Vec::with_capacity(path.len());
    while let [byte, after @ ..] = rest {
        let newline = rest.strip_prefix(br"\012");
        out.push(if newline.is_some() { b'\n' } else { *byte });
        rest = newline.unwrap_or(after);
    }
    PathBuf::from(OsStr::from_bytes(&out))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    const MAPS: &[u8] = b"\
55d0c000-55d0d000 r--p 00000000 08:01 42                                 /opt/a program
55d0d000-55d0f000 r-xp 00001000 08:01 42                                 /opt/a program
55d0f000-55d10000 r--p 00005000 08:01 42                                 /opt/a program
6000-7000 rw-p 00000000 00:00 0                                          [heap]
7000-8000 rw-p 00000000 00:00 0
8000-9000 r--p 00002000 00:1f 7                                          /tmp/two\\012lines
";

    #[test]
    fn memory_of_a_file_is_found_in_it() {
        let program = PathBuf::from("/opt/a program");
        assert_eq!(mapped(MAPS, 0x55d0_c010..0x55d0_c020), Some((program.clone(), 0x10)));
        assert_eq!(mapped(MAPS, 0x55d0_cff0..0x55d0_efff), Some((program.clone(), 0xff0)), "two mappings");
        assert_eq!(mapped(MAPS, 0x55d0_f000..0x55d1_0000), Some((program, 0x5000)));
        assert_eq!(mapped(MAPS, 0x55d0_eff0..0x55d0_f010), None, "elsewhere in the file");
        assert_eq!(mapped(MAPS, 0x6000..0x6010), None);
        assert_eq!(mapped(MAPS, 0x7000..0x7010), None);
        assert_eq!(mapped(MAPS, 0x6ff0..0x7010), None);
        assert_eq!(mapped(MAPS, 0x8010..0x9010), None, "goes on beyond it");
        assert_eq!(mapped(MAPS, 0x9000..0x9010), None);
        assert_eq!(mapped(MAPS, 0x8010..0x8011), Some(("/tmp/two\nlines".into(), 0x2010)));
        for damaged in [&b""[..], b"\n", b"-", b"zz-yy r--p 0 0 0 /x", b"0-1"] {
            assert_eq!(mapped(damaged, 0..1), None);
        }
    }

    #[test]
    fn of_this_process() {
        let here = CodeLocation::of_memory(MAPS);
        assert_eq!(
            here.path(),
            Some(std::env::current_exe().unwrap().as_path()),
            "a constant of the program"
        );
        let offset: u64 =
            here.uri().split_once("#offset=").unwrap().1.split('&').next().unwrap().parse().unwrap();
        let program = fs::read(here.path().unwrap()).unwrap();
        assert!(program[offset as usize..].starts_with(MAPS));
        let heap = MAPS.to_vec();
        let expected = format!(
            "memory://{}#offset=0x{:x}&size={}",
            std::process::id(),
            heap.as_ptr() as u64,
            heap.len()
        );
        assert_eq!(CodeLocation::of_memory(&heap).uri(), expected);
    }

    #[test]
    fn names_are_encoded_as_the_runtime_does() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a b#~é.co");
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(b"12345").unwrap();
        let origin = CodeLocation::of_descriptor(file.as_fd(), 5);
        let expected = format!("file://{}/a%20b%23~%C3%A9.co#offset=0&size=5", directory.path().display());
        assert_eq!((origin.uri(), origin.path()), (expected, Some(path.as_path())));
        fs::remove_file(&path).unwrap();
        let gone = CodeLocation::of_descriptor(file.as_fd(), 5).uri();
        assert!(gone.ends_with("/a%20b%23~%C3%A9.co%20%28deleted%29#offset=0&size=5"), "{gone}");
    }
}
