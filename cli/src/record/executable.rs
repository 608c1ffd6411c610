//! The command's file: where the shell would find it, and whether the dynamic loader would put a
//! preloaded library into it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::elf::{ELFMAG, EM_AARCH64, EM_X86_64, FileHeader64, PT_INTERP, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, pod};

use crate::system::capabilities;

/// Where execvp(3) looks when PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// As much of a file as is looked at: headers are at its beginning.
const LOOKED_AT: u64 = 64 * 1024;
/// How the numbers of programs that this machine runs are stored.
const LE: LittleEndian = LittleEndian;
/// How many `#!` lines are followed, as many as Linux does.
const INTERPRETERS: usize = 4;

/// Why a command cannot be run, in a shell's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotRunnable {
    /// There is no such file: 127.
    Missing,
    /// There is, but what it names to be run with is not there: 127.
    NoInterpreter,
    /// There is, but it may not be executed: 126.
    Denied,
}

/// The file that `name` stands for: itself if it contains a slash, otherwise the first executable file of
/// that name in the directories of `path` (the value of PATH).
///
/// # Errors
/// What a shell would say.
pub(crate) fn resolve(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, NotRunnable> {
    if name.as_bytes().contains(&b'/') {
        let file = PathBuf::from(name);
        return match fs::metadata(&file) {
            Ok(metadata) if may_execute(&metadata) => with_interpreter(file),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(NotRunnable::Missing)
            }
            _ => Err(NotRunnable::Denied),
        };
    }
    let mut why = NotRunnable::Missing;
    if name.is_empty() {
        return Err(why);
    }
    for directory in path.unwrap_or(OsStr::new(DEFAULT_PATH)).as_bytes().split(|byte| *byte == b':') {
        let directory = if directory.is_empty() { b"." } else { directory };
        let file = Path::new(OsStr::from_bytes(directory)).join(name);
        match fs::metadata(&file) {
            Ok(metadata) if may_execute(&metadata) => return with_interpreter(file),
            Ok(metadata) if metadata.is_file() => why = NotRunnable::Denied,
            _ => {}
        }
    }
    Err(why)
}

/// `file`, if what the kernel runs it with is there: the programs of `#!` lines, one after the other, and a dynamic loader. What cannot be read
/// is left to the kernel.
fn with_interpreter(file: PathBuf) -> Result<PathBuf, NotRunnable> {
    let mut program = file.clone();
    // The kernel follows one line more.
    for _ in 0..=INTERPRETERS {
        let head = read_head(&program).unwrap_or_default();
        let Some(interpreter) = first_word(&head) else {
            let is_there = loader(&head).is_none_or(|loader| find(&loader).is_ok());
            return if is_there { Ok(file) } else { Err(NotRunnable::NoInterpreter) };
        };
        find(&interpreter)?;
        program = interpreter;
    }
    Err(NotRunnable::Denied)
}

/// Whether what a program names may be executed.
fn find(interpreter: &Path) -> Result<(), NotRunnable> {
    match fs::metadata(interpreter) {
        Ok(metadata) if may_execute(&metadata) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(NotRunnable::NoInterpreter),
        _ => Err(NotRunnable::Denied),
    }
}

fn may_execute(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.mode() & 0o111 != 0
}

/// What keeps the dynamic loader from putting the recorder into `file`, in words, following a script to
/// its interpreter. None where nothing is known to.
pub(crate) fn obstacle_to_preloading(file: &Path) -> Option<String> {
    let mut file = file.to_path_buf();
    for _ in 0..INTERPRETERS {
        let head = read_head(&file).ok()?;
        match interpreter(&head) {
            Some(next) => file = next,
            None => return obstacle_in_program(&file, &head),
        }
    }
    None
}

/// Whether `file` is a text without a `#!` line: the kernel does not know what to run it with, and execvp takes /bin/sh.
pub(crate) fn is_script_for_the_shell(file: &Path) -> bool {
    let Ok(head) = read_head(file) else { return false };
    !head.is_empty() && !head.starts_with(b"#!") && !head.contains(&0)
}

fn read_head(file: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(file)?.take(LOOKED_AT).read_to_end(&mut head)?;
    Ok(head)
}

/// The program of a script's `#!` line.
fn first_word(head: &[u8]) -> Option<PathBuf> {
    words(head)?.next().map(|word| OsString::from_vec(word.to_vec()).into())
}

/// The words of the `#!` line of `file`, none where it has no such line.
pub(crate) fn interpreter_words(file: &Path) -> Vec<Vec<u8>> {
    let head = read_head(file).unwrap_or_default();
    words(&head).into_iter().flatten().map(<[u8]>::to_vec).collect()
}

/// What stands in a script's `#!` line, for the kernel: the end of a line of Windows is a part of its last word.
fn words(head: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(line.split(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty()))
}

/// The dynamic loader that a program names. Programs of other machines are run by an emulator, which knows where theirs is.
fn loader(head: &[u8]) -> Option<PathBuf> {
    let header = header(head).filter(|header| is_this_machine(header))?;
    let name = named_loader(header.program_headers(LE, head).ok()?)?.data(LE, head).ok()?;
    let name = name.split(|byte| *byte == 0).next()?;
    Some(OsString::from_vec(name.to_vec()).into())
}

/// The program of a script's `#!` line; through env, the program that env looks for.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let mut words = words(head)?;
    let program = PathBuf::from(OsString::from_vec(words.next()?.to_vec()));
    if program.file_name() == Some(OsStr::new("env"))
        && let Some(name) = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))
    {
        return resolve(OsStr::from_bytes(name), std::env::var_os("PATH").as_deref()).ok();
    }
    Some(program)
}

fn obstacle_in_program(file: &Path, head: &[u8]) -> Option<String> {
    let name = file.display();
    let metadata = fs::metadata(file).ok()?;
    let (user, group) = capabilities::user_and_group();
    if metadata.mode() & libc::S_ISUID != 0 && metadata.uid() != user {
        return Some(format!("{name} is a setuid program, for which the dynamic loader ignores LD_PRELOAD"));
    }
    if metadata.mode() & libc::S_ISGID != 0 && metadata.gid() != group {
        return Some(format!("{name} is a setgid program, for which the dynamic loader ignores LD_PRELOAD"));
    }
    if capabilities::has_capabilities(file) {
        return Some(format!(
            "{name} has file capabilities, for which the dynamic loader ignores LD_PRELOAD; \
             remove them with 'setcap -r' on a copy"
        ));
    }
    let header = header(head)?;
    if !is_this_machine(header) {
        return Some(format!("{name} is a program for another kind of machine than the recorder"));
    }
    let Some(loader) = named_loader(header.program_headers(LE, head).ok()?) else {
        return Some(format!(
            "{name} is statically linked, and the recorder can only be loaded into a dynamically linked program"
        ));
    };
    let loader = String::from_utf8_lossy(loader.data(LE, head).ok()?);
    loader
        .contains("ld-musl")
        .then(|| format!("{name} uses the C library musl, and the recorder is built for glibc"))
}

/// The header of an ELF file. For another class or byte order only its first bytes mean what they say.
fn header(head: &[u8]) -> Option<&FileHeader64<LittleEndian>> {
    let (header, _) = pod::from_bytes::<FileHeader64<LittleEndian>>(head).ok()?;
    (header.e_ident.magic == ELFMAG).then_some(header)
}

/// Whether a program is for the class and processor that this one was built for.
fn is_this_machine(header: &FileHeader64<LittleEndian>) -> bool {
    let machine = if cfg!(target_arch = "aarch64") { EM_AARCH64 } else { EM_X86_64 };
    header.is_class_64() && header.is_little_endian() && header.e_machine(LE) == machine
}

/// The segment with the name of the dynamic loader.
fn named_loader(segments: &[ProgramHeader64<LittleEndian>]) -> Option<&ProgramHeader64<LittleEndian>> {
    segments.iter().find(|segment| segment.p_type(LE) == PT_INTERP)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_path_is_searched_as_a_shell_does() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        for at in [&first, &second] {
            fs::create_dir(at).unwrap();
            fs::write(at.join("tool"), "").unwrap();
        }
        let path = std::env::join_paths([&first, &second]).unwrap();
        let found = || resolve(OsStr::new("tool"), Some(&path));
        assert_eq!(found(), Err(NotRunnable::Denied));
        fs::set_permissions(second.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(found(), Ok(second.join("tool")));
        assert_eq!(resolve(OsStr::new("no-such-tool"), Some(&path)), Err(NotRunnable::Missing));
        assert_eq!(resolve(OsStr::new(""), Some(&path)), Err(NotRunnable::Missing));
        assert_eq!(resolve(first.as_os_str(), None), Err(NotRunnable::Denied));
        assert_eq!(resolve(first.join("tool/x").as_os_str(), None), Err(NotRunnable::Missing));
        assert!(resolve(OsStr::new("sh"), None).is_ok());
        fs::write(second.join("tool"), "#! /no/such/interpreter -x\n").unwrap();
        assert_eq!(found(), Err(NotRunnable::NoInterpreter));
        let tool = second.join("tool");
        let script = |text: &str| fs::write(&tool, text).unwrap();
        script("#!/bin/sh\r\n");
        assert_eq!(found(), Err(NotRunnable::NoInterpreter));
        script("#!/etc/passwd\n");
        assert_eq!(found(), Err(NotRunnable::Denied));
        // Through another script.
        fs::write(first.join("tool"), "#!/no/such/interpreter\n").unwrap();
        fs::set_permissions(first.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        let through = format!("#!{}\n", first.join("tool").display());
        script(&through);
        let resolved = || resolve(tool.as_os_str(), None);
        assert_eq!(resolved(), Err(NotRunnable::NoInterpreter));
        fs::write(first.join("tool"), format!("#!{}\n", tool.display())).unwrap();
        assert_eq!(resolved(), Err(NotRunnable::Denied));
        fs::write(first.join("tool"), "#!/bin/sh\n").unwrap();
        assert_eq!(resolved(), Ok(tool.clone()));
    }

    #[test]
    fn a_script_is_followed_to_its_interpreter() {
        assert_eq!(interpreter(b"#! /bin/sh -e\nexit"), Some(PathBuf::from("/bin/sh")));
        let through_env = interpreter(b"#!/usr/bin/env -S LANG=C sh -x\n").unwrap();
        assert_eq!(through_env.file_name(), Some(OsStr::new("sh")));
        assert_eq!(interpreter(b"\x7fELF"), None);
        assert_eq!(interpreter(b"#!"), None);
    }

    #[test]
    fn the_loader_that_a_program_names_is_looked_for() {
        let head = read_head(Path::new("/proc/self/exe")).unwrap();
        let loader = loader(&head).unwrap();
        assert!(loader.is_absolute() && loader.exists(), "{loader:?}");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("foreign");
        let name = loader.to_str().unwrap().as_bytes();
        let at = head.windows(name.len()).position(|bytes| bytes == name).unwrap();
        let mut head = head;
        head[at..at + 5].copy_from_slice(b"/none");
        fs::write(&file, &head).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(resolve(file.as_os_str(), None), Err(NotRunnable::NoInterpreter));
        // The machine.
        head[18] ^= 1;
        fs::write(&file, &head).unwrap();
        assert_eq!(resolve(file.as_os_str(), None), Ok(file));
    }

    #[test]
    fn ordinary_programs_and_nonsense_have_no_obstacle() {
        assert_eq!(obstacle_to_preloading(Path::new("/bin/sh")), None);
        assert_eq!(obstacle_to_preloading(Path::new("/no/such/file")), None);
        let dir = tempfile::tempdir().unwrap();
        let broken = dir.path().join("broken");
        fs::write(&broken, b"\x7fELF\x02\x01\x01 and no more").unwrap();
        assert_eq!(obstacle_to_preloading(&broken), None);
    }
}
