//! The place of a file that is to be made: the reason why no file can be there. SQLite does not say it.

use crate::error::{Error, ErrorKind};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What SQLite puts behind a file's name for the one beside it that a transaction needs.
const SUFFIX: &str = "-journal";
/// Bytes of a name in a directory, on the file systems that Linux has.
const LONGEST_NAME: usize = 255;
/// Bytes of a path, for SQLite (MAX_PATHNAME in its os_unix.c).
const LONGEST_PATH: usize = 512;
/// Symbolic links that lead to one file at most, as in Linux.
const MOST_LINKS: usize = 40;

/// Whether there can be a trace at `path`, by its name: what is there is not opened.
///
/// # Errors
///
/// [`ErrorKind::NameTooLong`], [`ErrorKind::NotAFile`], [`ErrorKind::NotFound`], [`ErrorKind::LeadsNowhere`] and the like.
pub fn check_name(path: &Path) -> Result<(), Error> {
    obstacle(path).map_or(Ok(()), |kind| Err(Error::new(kind, path)))
}

/// Why there can be no file at `path`; none where nothing is known against it.
pub(crate) fn obstacle(path: &Path) -> Option<ErrorKind> {
    let Ok(absolute) = std::path::absolute(path) else { return Some(ErrorKind::NoWorkingDirectory) };
    let file = behind_links(absolute);
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
        return Some(ErrorKind::NotAFile);
    };
    if name.len() + SUFFIX.len() > LONGEST_NAME || file.as_os_str().len() + SUFFIX.len() > LONGEST_PATH {
        return Some(ErrorKind::NameTooLong);
    }
    match fs::metadata(directory) {
        Ok(found) if !found.is_dir() => return Some(ErrorKind::NotFound),
        Ok(_) => {}
        Err(error) if is_missing(&error) && fs::symlink_metadata(path).is_ok() => {
            return Some(ErrorKind::LeadsNowhere(file.to_string_lossy().escape_debug().to_string()));
        }
        Err(error) => return Some(Error::io(path, error).kind().clone()),
    }
    match fs::metadata(&file) {
        Ok(found) if !found.is_file() => Some(ErrorKind::NotAFile),
        _ => None,
    }
}

/// Why a file at `path`, or the one beside it that a transaction needs, could not be opened a moment ago.
pub(crate) fn why_not_opened(path: &Path) -> ErrorKind {
    obstacle(path).unwrap_or_else(|| match fs::File::open("/dev/null") {
        Err(error) if is_out_of_descriptors(&error) => ErrorKind::TooManyOpenFiles,
        _ => ErrorKind::PermissionDenied,
    })
}

/// Whether the process (EMFILE), or the system (ENFILE), has as many open files as it may: std has no kind for it.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The path behind the symbolic links that `path` itself is.
fn behind_links(mut path: PathBuf) -> PathBuf {
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn obstacles_have_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let long = |bytes: usize| at(&"x".repeat(bytes));
        assert_eq!(obstacle(&at("new.rpd")), None);
        assert_eq!(obstacle(&long(LONGEST_NAME - SUFFIX.len())), None);
        assert_eq!(obstacle(&long(LONGEST_NAME - SUFFIX.len() + 1)), Some(ErrorKind::NameTooLong));
        assert_eq!(obstacle(&long(300)), Some(ErrorKind::NameTooLong));
        assert_eq!(obstacle(&at(&"d/".repeat(260)).join("x")), Some(ErrorKind::NameTooLong));
        assert_eq!(obstacle(directory.path()), Some(ErrorKind::NotAFile));
        assert_eq!(obstacle(Path::new("/")), Some(ErrorKind::NotAFile));
        assert_eq!(obstacle(&at("no/such/x.rpd")), Some(ErrorKind::NotFound));

        symlink("elsewhere/x.rpd", at("link.rpd")).unwrap();
        let leads_to = at("elsewhere/x.rpd").display().to_string();
        assert_eq!(obstacle(&at("link.rpd")), Some(ErrorKind::LeadsNowhere(leads_to)));
        fs::create_dir(at("elsewhere")).unwrap();
        assert_eq!(obstacle(&at("link.rpd")), None, "SQLite makes the file that it leads to");
        fs::write(at("file"), "").unwrap();
        assert_eq!(obstacle(&at("file/x.rpd")), Some(ErrorKind::NotFound));
        symlink("round.rpd", at("round.rpd")).unwrap();
        assert_ne!(obstacle(&at("round.rpd")), Some(ErrorKind::NotFound));
    }
}
