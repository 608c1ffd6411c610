//! The place of the bytes of a code object that a trace names: saved by the recorder, or still in the file that the program had them
//! from.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use percent_encoding::percent_decode_str;
use rpd_codeobject::container::ReadAt;
use sha2::{Digest, Sha256};

use super::file::{FoundObject, open};
use crate::text::escape;

/// Bytes of the largest code object that is read.
const MAX_SIZE: u64 = 2 << 30;

/// A code object as a row of `ext_codeobject` names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SavedObject {
    /// Of its bytes, in hexadecimal digits.
    pub(super) sha256: String,
    /// Where the program had it.
    pub(super) uri: String,
    /// The processor and the features that it is for.
    pub(super) target: String,
    pub(super) size: i64,
}

impl SavedObject {
    /// Its bytes, from one of `folders` (`<sha256>.hsaco`, `<sha256>.cubin`) or from the program's own file.
    ///
    /// # Errors
    /// In words, where they are not, or are not the same any more.
    pub(super) fn find(&self, folders: &[PathBuf]) -> Result<FoundObject, String> {
        self.search(folders).map_err(|error| {
            let begin: String = self.sha256.chars().take(12).collect();
            format!("code object {} for {}: {error:#}", escape(&begin), escape(&self.target))
        })
    }

    fn search(&self, folders: &[PathBuf]) -> Result<FoundObject> {
        let is_digest = self.sha256.len() == 64 && self.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_digest {
            bail!("its sha256 is none: {}", escape(&self.sha256));
        }
        for folder in folders {
            let named = |extension| folder.join(format!("{}.{extension}", self.sha256));
            if let Some(path) = ["hsaco", "cubin"].map(named).into_iter().find(|path| path.exists()) {
                let bytes = read(&path, None)?;
                if is_digest_of(&self.sha256, &bytes) {
                    return Ok(FoundObject { place: path.display().to_string(), bytes });
                }
                bail!("{} has other bytes than its name says", path.display());
            }
        }
        let Some((path, place)) = file_of(&self.uri) else {
            bail!("it was in the program's memory ({}), and was not saved", escape(&self.uri));
        };
        let bytes = read(&path, place)?;
        if !is_digest_of(&self.sha256, &bytes) {
            bail!("{} has changed since the recording", path.display());
        }
        Ok(FoundObject { place: escape(&self.uri).into_owned(), bytes })
    }
}

/// Whether the file has the bytes with this SHA-256.
pub(super) fn is_content(path: &Path, sha256: &str) -> bool {
    read(path, None).is_ok_and(|bytes| is_digest_of(sha256, &bytes))
}

fn is_digest_of(sha256: &str, bytes: &[u8]) -> bool {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>() == sha256.to_ascii_lowercase()
}

/// The folders that are looked into for a trace: the one that was named, or the trace's own (`rpd record --save-code`), those that its
/// sessions have `recorded` into, and those beside it.
pub(super) fn folders(trace: &Path, named: Option<&Path>, recorded: Vec<PathBuf>) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named.to_path_buf()];
    }
    let beside = trace.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut own = trace.as_os_str().to_os_string();
    own.push(".code");
    let mut folders = vec![PathBuf::from(own)];
    folders.extend(recorded);
    folders.extend([beside.join("code"), beside.to_path_buf()]);
    folders
}

/// The bytes of a file, or of a part of it.
fn read(path: &Path, place: Option<(u64, u64)>) -> Result<Vec<u8>> {
    let shown = path.display();
    let path = fs::canonicalize(path).with_context(|| format!("cannot open {shown}"))?;
    let file = open(&path)?;
    let whole = file.size();
    let (offset, size) = place.unwrap_or((0, whole));
    let is_inside = offset.checked_add(size).is_some_and(|end| end <= whole);
    if !is_inside || size > MAX_SIZE {
        bail!("{shown} has changed since the recording: it is too short");
    }
    let bytes = file.read(offset, size as usize).with_context(|| format!("cannot read {shown}"))?;
    Ok(bytes.into_owned())
}

/// The file of a `file://` URI, and the offset and size of the part that it names.
fn file_of(uri: &str) -> Option<(PathBuf, Option<(u64, u64)>)> {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let rest = uri.strip_prefix("file://")?;
    let (path, query) = rest.split_at(rest.find(['#', '?']).unwrap_or(rest.len()));
    let path = PathBuf::from(OsString::from_vec(percent_decode_str(path).collect()));
    let number = |key: &str| {
        let fields = query.get(1..)?.split('&');
        fields.filter_map(|field| field.split_once('=')).find(|(name, _)| *name == key)?.1.parse::<u64>().ok()
    };
    let place = if query.is_empty() { None } else { Some((number("offset")?, number("size")?)) };
    path.is_absolute().then_some((path, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_of_files() {
        let of = |uri: &str| file_of(uri).map(|(path, place)| (path.to_str().unwrap().to_string(), place));
        assert_eq!(
            of("file:///usr/lib/libx.so#offset=4096&size=17"),
            Some(("/usr/lib/libx.so".into(), Some((4096, 17))))
        );
        assert_eq!(of("file:///a%20b%23?offset=1&size=2"), Some(("/a b#".into(), Some((1, 2)))));
        assert_eq!(of("file:///a.hsaco"), Some(("/a.hsaco".into(), None)));
        for other in [
            "memory://17#offset=0x7f&size=9",
            "file://relative",
            "file:///a#offset=1",
            "file:///a#offset=x&size=1",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn folders_beside_the_trace() {
        let shown = |trace: &str| {
            folders(Path::new(trace), None, vec!["/saved".into()])
                .into_iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(shown("/a/b.rpd"), ["/a/b.rpd.code", "/saved", "/a/code", "/a"]);
        assert_eq!(shown("b.rpd"), ["b.rpd.code", "/saved", "./code", "."]);
        assert_eq!(
            folders(Path::new("b.rpd"), Some(Path::new("/c")), vec!["/saved".into()]),
            [PathBuf::from("/c")]
        );
    }
}
