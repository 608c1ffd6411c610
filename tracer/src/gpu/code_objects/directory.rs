//! The directory that code objects are saved in: a file for each content, `SHA256.hsaco` or `SHA256.cubin`. Many processes may save there at once.

use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::Builder;

/// Has the bytes in the directory, under the name of their hash. A file of that name appears whole or not at all.
///
/// # Errors
/// Those of the file system.
pub(super) fn save(directory: &Path, sha256: &str, bytes: &[u8]) -> io::Result<()> {
    let extension = if rpd_codeobject::cubin::is_cubin(bytes) { "cubin" } else { "hsaco" };
    let path = directory.join(format!("{sha256}.{extension}"));
    if has(&path, bytes) {
        return Ok(());
    }
    fs::create_dir_all(directory)?;
    let mut file = Builder::new()
        .prefix(".rpd-")
        .suffix(".part")
        // As for any file that a program makes: less what the user's mask takes.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.persist(&path)?;
    Ok(())
}

/// Whether the file has these bytes. One that was cut off when the machine went down has not.
fn has(path: &Path, bytes: &[u8]) -> bool {
    let is_as_long = |file: &fs::Metadata| file.is_file() && file.len() == bytes.len() as u64;
    if !fs::symlink_metadata(path).is_ok_and(|file| is_as_long(&file)) {
        return false;
    }
    let Ok(file) = File::open(path) else { return false };
    let mut file = BufReader::with_capacity(1 << 16, file).take(bytes.len() as u64);
    let mut piece = [0; 1 << 14];
    let mut rest = bytes;
    while !rest.is_empty() {
        match file.read(&mut piece) {
            Ok(length) if length > 0 && rest.starts_with(&piece[..length]) => rest = &rest[length..],
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_good_file_stays_and_a_bad_one_is_replaced() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("not/yet/there");
        let bytes: Vec<u8> = (0..100_000u32).map(|number| (number * 7) as u8).collect();
        save(&directory, "abc", &bytes).unwrap();
        let path = directory.join("abc.hsaco");
        assert_eq!(fs::read(&path).unwrap(), bytes);
        let stamp = || fs::metadata(&path).unwrap().modified().unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o600, 0o600);
        let before = stamp();
        save(&directory, "abc", &bytes).unwrap();
        assert_eq!(stamp(), before, "written once");

        let mut other = bytes.clone();
        other[99_999] ^= 1;
        for damaged in [&bytes[..10], &[][..], &other] {
            fs::write(&path, damaged).unwrap();
            save(&directory, "abc", &bytes).unwrap();
            assert!(fs::read(&path).unwrap() == bytes, "{} bytes", damaged.len());
        }
        assert_eq!(names(&directory), ["abc.hsaco"], "nothing else is left");
    }

    #[test]
    fn what_a_killed_process_left_is_in_nobodys_way() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(".rpd-x1.part"), "half").unwrap();
        save(directory.path(), "abc", b"whole").unwrap();
        assert_eq!(names(directory.path()), [".rpd-x1.part", "abc.hsaco"]);
    }

    #[test]
    fn where_nothing_can_be_written_nothing_appears() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("file");
        fs::write(&directory, "a file").unwrap();
        assert!(save(&directory, "abc", b"bytes").is_err());
        assert_eq!(fs::read(&directory).unwrap(), b"a file");
        // A directory in the place of the file.
        let directory = parent.path().join("directory");
        fs::create_dir_all(directory.join("abc.hsaco")).unwrap();
        assert!(save(&directory, "abc", b"bytes").is_err());
        assert_eq!(names(&directory), ["abc.hsaco"]);
    }

    #[test]
    fn many_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let bytes = vec![5; 1 << 20];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..20).for_each(|_| save(directory.path(), "abc", &bytes).unwrap()));
            }
        });
        assert_eq!(names(directory.path()), ["abc.hsaco"]);
        assert!(fs::read(directory.path().join("abc.hsaco")).unwrap() == bytes);
    }
}
