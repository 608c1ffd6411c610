//! The directory of a dataset: names in it, and files that appear whole.
//!
//! Many hosts add to one dataset at the same time, and no file system that they share has locks to rely on. So a file gets its name when
//! it is complete, a name that begins with a dot until then, and what all must agree on is written by whoever is first: the others read it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::hexadecimal;
use crate::text;

/// The file that says that a directory is a dataset.
const DATASET: &str = "_dataset.json";

/// What [`Format::format`] says.
const FORMAT: &str = "rpd dataset";

/// Version of the layout: of folders, tables, columns and manifests.
const VERSION: u32 = 1;

/// All but letters, digits and `._-` is percent-coded in names: neither a shell, a glob nor a URI gives these a meaning.
const CODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// The longest name that is written out, bytes: file systems take 255, with what is in front of and behind it.
const LONGEST: usize = 200;

/// Temporary files begin with this, and so does no file of the dataset: Spark, DuckDB and pyarrow leave such files out.
pub(super) const TEMPORARY: &str = ".part-";

/// A process of another host that has not written for so long was killed.
const LONG: Duration = Duration::from_secs(3600);

/// A text as a part of a file's name.
pub(super) fn encoded(text: &str) -> String {
    let whole = utf8_percent_encode(text, CODED).to_string();
    if whole.len() <= LONGEST {
        return whole;
    }
    let start: String = text.chars().take(LONGEST / 12).collect();
    let digest = hexadecimal(&Sha256::digest(text)[..8]);
    format!("{}-{digest}", utf8_percent_encode(&start, CODED))
}

/// What is true of the whole dataset.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Format {
    format: String,
    version: u32,
    /// Length of a time slice, ns; 0 where there is one slice.
    slice_ns: i64,
}

/// An open dataset.
#[derive(Debug)]
pub(super) struct DatasetPlace {
    pub(super) directory: PathBuf,
    /// Length of a time slice, ns; 0 where there is one slice.
    pub(super) slice_ns: i64,
}

impl DatasetPlace {
    /// The dataset that is there.
    ///
    /// # Errors
    /// When there is none, or it is of another version.
    pub(super) fn open(directory: &Path) -> Result<DatasetPlace> {
        let shown = text::escape_path(directory);
        let Some(format) = read::<Format>(&directory.join(DATASET))? else {
            bail!("{shown} is no dataset: it has no {DATASET}; rpd dataset DIR FILE... makes one");
        };
        DatasetPlace::of(directory, format, &shown)
    }

    fn of(directory: &Path, format: Format, shown: &str) -> Result<DatasetPlace> {
        if format.format != FORMAT || format.version != VERSION {
            bail!(
                "{shown} is a dataset of another version of rpd: use that, or make the dataset anew elsewhere"
            );
        }
        Ok(DatasetPlace { directory: directory.to_path_buf(), slice_ns: format.slice_ns.max(0) })
    }

    /// The dataset to which traces are to be added: a new one, or with `append` the one that is there.
    ///
    /// # Errors
    /// When there is something else, or a dataset with other slices.
    pub(super) fn prepare(directory: &Path, append: bool, slice_ns: Option<i64>) -> Result<DatasetPlace> {
        let shown = text::escape_path(directory);
        let cannot = || format!("cannot make the dataset {shown}");
        fs::create_dir_all(directory).with_context(cannot)?;
        let about = directory.join(DATASET);
        let is_there = about.exists();
        if is_there && !append {
            bail!("{shown} is a dataset already: add to it with --append");
        }
        // Others may be making it at this moment: what they make begins with a dot or with _.
        let is_foreign = |entry: &fs::DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
        let mut entries = fs::read_dir(directory).with_context(cannot)?.filter_map(Result::ok);
        if !is_there && entries.any(|entry| is_foreign(&entry)) && !about.exists() {
            bail!("{shown} has other files, and is no dataset: name a new directory");
        }
        let format = Format { format: FORMAT.to_string(), version: VERSION, slice_ns: slice_ns.unwrap_or(0) };
        let format = claim(&about, &format)?;
        let place = DatasetPlace::of(directory, format, &shown)?;
        match slice_ns.filter(|wanted| *wanted != place.slice_ns) {
            Some(_) if place.slice_ns == 0 => {
                bail!("{shown} has no time slices: leave --slice out, or make another dataset")
            }
            Some(_) => bail!(
                "{shown} has slices of {} ns: leave --slice out, or make another dataset",
                place.slice_ns
            ),
            None => Ok(place),
        }
    }

    /// Its directory as a word of a shell's line.
    pub(super) fn in_shell(&self) -> String {
        text::escape(&text::in_shell(&self.directory.to_string_lossy())).into_owned()
    }

    /// A path as it is from the dataset's directory on.
    pub(super) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.directory).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// A file in `folder`, which is made if it is not there, that has no name of its own yet; it goes away unless it gets one.
///
/// # Errors
/// When it cannot be made.
pub(super) fn temporary(folder: &Path, name: &str) -> io::Result<NamedTempFile> {
    fs::create_dir_all(folder)?;
    let process = std::process::id();
    tempfile::Builder::new()
        .prefix(&format!("{TEMPORARY}{name}-{}-{process}-", host()))
        .make_in(folder, |path| File::options().write(true).create_new(true).mode(0o666).open(path))
}

/// This host in the names of temporary files. Containers of one host have names, and process ids, of their own.
fn host() -> String {
    encoded(fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim())
}

/// Whether whoever was writing a temporary file was killed: a process of this host that is there no more, or one of another that has
/// not written for a long time.
pub(super) fn is_abandoned(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // What is random in it is behind the host and the process.
    let mut parts = name.rsplitn(3, '-').skip(1);
    let (process, before) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_of_this_host = before.ends_with(&format!("-{}", host()));
    if is_of_this_host {
        return !Path::new("/proc").join(process).exists();
    }
    let written = fs::metadata(path).and_then(|there| there.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > LONG))
}

/// Writes a value as JSON; the file has all of it or is as it was.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write(path: &Path, value: &impl Serialize) -> Result<()> {
    let file = written(path, value)?;
    file.persist(path).map_err(|error| error.error).with_context(|| cannot_write(path))?;
    Ok(())
}

/// Writes a value as JSON unless somebody else has written one, and says which is there.
///
/// # Errors
/// When it can be neither written nor read.
pub(super) fn claim<T: Serialize + DeserializeOwned>(path: &Path, value: &T) -> Result<T> {
    if read::<T>(path)?.is_none() {
        match written(path, value)?.persist_noclobber(path) {
            Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error.error).with_context(|| cannot_write(path));
            }
            _ => {}
        }
    }
    read(path)?.with_context(|| format!("{} went away", text::escape_path(path)))
}

/// A file with the value that has no name yet.
fn written(path: &Path, value: &impl Serialize) -> Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<NamedTempFile> {
        let mut file = temporary(folder, "json")?;
        serde_json::to_writer_pretty(&mut file, value)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    write().with_context(|| cannot_write(path))
}

/// How many bytes a file has.
///
/// # Errors
/// When it cannot be looked at, or is a directory, a pipe or the like, which might never end.
pub(super) fn length(path: &Path) -> io::Result<u64> {
    let metadata = fs::metadata(path)?;
    match metadata.is_file() {
        true => Ok(metadata.len()),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// The value in a file; none where there is no file.
///
/// # Errors
/// When it cannot be read, or is no such value.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let bytes = match length(path).and_then(|_| fs::read(path)) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", text::escape_path(path))),
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .with_context(|| format!("{} is damaged", text::escape_path(path)))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", text::escape_path(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_distinct() {
        assert_eq!(encoded("node-1.rack_2"), "node-1.rack_2");
        assert_eq!(encoded("a/b=c %\u{e9}"), "a%2Fb%3Dc%20%25%C3%A9");
        let long = ["x".repeat(5000) + "1", "x".repeat(5000) + "2", "\u{1f680}".repeat(5000)];
        let names = long.map(|name| encoded(&name));
        assert!(names.iter().all(|name| name.len() <= LONGEST + 17), "{names:?}");
        assert_ne!(names[0], names[1]);
    }
}
