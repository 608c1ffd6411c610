//! The files of the kernel cache: all `*.hsaco` below a directory, and when they appear, change or vanish.
//!
//! The kernel tells of changes (inotify, by the `notify` crate). Where it cannot, because the limit of watches is reached or the
//! directory is not there yet, the tree is looked through every second.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::candidate::DESCRIPTION;

/// Time between two looks through a tree that nobody tells of.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// Files that a cache may have; those beyond are not looked at.
const MOST_FILES: usize = 100_000;
/// Directories inside each other.
const DEEPEST: usize = 64;
/// What candidates are called.
const EXTENSION: &str = "hsaco";

/// The state of a candidate, and of what Triton says of it in a file beside it.
type Stamps = (Stamp, Option<Stamp>);

/// Which file a path leads to, and whether it was written since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Of a file.
    pub(super) fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// What happened to files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// There are new bytes at these paths.
    pub(super) new: Vec<PathBuf>,
    /// There is nothing any more, or something else.
    pub(super) gone: Vec<PathBuf>,
    /// Directories that cannot be read, and why.
    pub(super) unreadable: Vec<(PathBuf, String)>,
}

/// What the kernel told of.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Something happened to these files.
    pub(super) paths: BTreeSet<PathBuf>,
    /// The whole tree is to be looked through.
    pub(super) everything: bool,
}

impl News {
    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.everything
    }

    /// Adds what an event says.
    pub(super) fn add(&mut self, event: notify::Result<notify::Event>) {
        let Ok(event) = event else {
            self.everything = true;
            return;
        };
        let is_news = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
            EventKind::Modify(ModifyKind::Name(_)) | EventKind::Remove(_) => true,
            EventKind::Create(CreateKind::Folder) => true,
            // A file that is being written is not complete; a link is.
            EventKind::Create(_) => event.paths.iter().any(|path| is_link(path)),
            // Access to a directory may have been given.
            EventKind::Modify(ModifyKind::Metadata(_)) => event.paths.iter().any(|path| path.is_dir()),
            _ => false,
        };
        self.everything |= event.need_rescan();
        if !is_news {
            return;
        }
        for path in event.paths {
            if is_candidate(&path) {
                self.paths.insert(path);
            } else if path.extension() == Some(OsStr::new(DESCRIPTION)) {
                self.paths.insert(path.with_extension(EXTENSION));
            } else {
                self.everything = true;
            }
        }
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink() || found.nlink() > 1)
}

fn is_candidate(path: &Path) -> bool {
    path.extension() == Some(OsStr::new(EXTENSION))
}

pub(super) struct Tree {
    root: PathBuf,
    files: BTreeMap<PathBuf, Stamps>,
    watcher: Option<RecommendedWatcher>,
    /// Files whose stamp has just changed, where nobody tells when they are complete.
    unsettled: BTreeMap<PathBuf, Stamps>,
}

impl Tree {
    /// Nothing is known of it yet.
    pub(super) fn new(root: PathBuf) -> Tree {
        Tree { root, files: BTreeMap::new(), watcher: None, unsettled: BTreeMap::new() }
    }

    /// Has the kernel tell of changes from now on, to `told`.
    ///
    /// # Errors
    /// It cannot; the tree is to be looked through every [`LOOK`].
    pub(super) fn watch(
        &mut self,
        notified: impl FnMut(notify::Result<notify::Event>) + Send + 'static,
    ) -> notify::Result<()> {
        let mut watcher = notify::recommended_watcher(notified)?;
        watcher.watch(&self.root, RecursiveMode::Recursive)?;
        self.watcher = Some(watcher);
        Ok(())
    }

    /// Whether the kernel tells of changes.
    pub(super) fn is_watched(&self) -> bool {
        self.watcher.is_some()
    }

    /// What is different since the last look. `first`: files that are there are complete, whoever tells of them.
    pub(super) fn look(&mut self, news: &News, first: bool) -> Changes {
        let mut changes = Changes::default();
        if news.everything || !self.is_watched() {
            let mut found = BTreeMap::new();
            self.walk(&mut found, &mut changes);
            let paths: BTreeSet<PathBuf> = self.files.keys().chain(found.keys()).cloned().collect();
            for path in paths {
                let stamps = found.remove(&path);
                self.found(path, stamps, first, &mut changes);
            }
        } else {
            for path in &news.paths {
                let stamps = stamp(path).map(|stamp| (stamp, beside(path)));
                self.found(path.clone(), stamps, first, &mut changes);
            }
        }
        changes
    }

    fn found(&mut self, path: PathBuf, stamps: Option<Stamps>, first: bool, changes: &mut Changes) {
        let known = self.files.get(&path).copied();
        if known == stamps {
            self.unsettled.remove(&path);
            return;
        }
        if known.is_some() {
            self.files.remove(&path);
            changes.gone.push(path.clone());
        }
        let Some(stamps) = stamps else { return };
        // Nobody says when a writer is through with it: it is, when a second look finds it as it was.
        if !first && !self.is_watched() && self.unsettled.insert(path.clone(), stamps) != Some(stamps) {
            return;
        }
        self.unsettled.remove(&path);
        self.files.insert(path.clone(), stamps);
        changes.new.push(path);
    }

    fn walk(&self, found: &mut BTreeMap<PathBuf, Stamps>, changes: &mut Changes) {
        let mut directories = vec![(self.root.clone(), 0)];
        let mut visited = HashSet::new();
        while let Some((directory, depth)) = directories.pop() {
            // Links may lead around in a circle.
            let Ok(metadata) = fs::metadata(&directory) else { continue };
            if depth > DEEPEST || !visited.insert((metadata.dev(), metadata.ino())) {
                continue;
            }
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                // It went just now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    changes.unreadable.push((directory, error.to_string()));
                    continue;
                }
            };
            for path in entries.flatten().map(|entry| entry.path()) {
                match fs::metadata(&path) {
                    Ok(metadata) if metadata.is_dir() => directories.push((path, depth + 1)),
                    Ok(metadata) if is_candidate(&path) && found.len() < MOST_FILES => {
                        let beside = beside(&path);
                        found.insert(path, (Stamp::of(&metadata), beside));
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Of what Triton says of a candidate.
fn beside(path: &Path) -> Option<Stamp> {
    stamp(&path.with_extension(DESCRIPTION))
}

fn stamp(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().filter(|metadata| !metadata.is_dir()).map(|metadata| Stamp::of(&metadata))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[PathBuf]) -> Vec<String> {
        paths.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    const ALL: News = News { paths: BTreeSet::new(), everything: true };

    #[test]
    fn files_appear_change_and_vanish() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir_all(path("inner/deep")).unwrap();
        for name in ["a.hsaco", "inner/deep/b.hsaco", "other.txt"] {
            fs::write(path(name), "1").unwrap();
        }
        std::os::unix::fs::symlink(directory.path(), path("inner/loop")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("broken.hsaco")).unwrap();
        let mut tree = Tree::new(directory.path().into());
        assert_eq!(names(&tree.look(&ALL, true).new), ["a.hsaco", "b.hsaco"]);
        assert_eq!(tree.look(&ALL, false), Changes::default());

        fs::write(path("next"), "22").unwrap();
        fs::rename(path("next"), path("a.hsaco")).unwrap();
        fs::remove_file(path("inner/deep/b.hsaco")).unwrap();
        let changes = tree.look(&ALL, false);
        assert_eq!(names(&changes.gone), ["a.hsaco", "b.hsaco"]);
        assert_eq!(changes.new, Vec::<PathBuf>::new(), "it may not be complete");
        assert_eq!(names(&tree.look(&ALL, false).new), ["a.hsaco"]);

        // What Triton says of it is a part of it.
        fs::write(path("a.json"), "{}").unwrap();
        assert_eq!(names(&tree.look(&ALL, false).gone), ["a.hsaco"]);
        assert_eq!(names(&tree.look(&ALL, false).new), ["a.hsaco"]);
    }

    #[test]
    fn a_directory_that_goes_meanwhile_is_no_fault() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("inner");
        let mut tree = Tree::new(directory.path().into());
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    fs::create_dir(&inner).unwrap();
                    fs::remove_dir(&inner).unwrap();
                }
            });
            let faults = (0..20_000).flat_map(|_| tree.look(&ALL, false).unreadable).next();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(faults, None);
        });
    }

    #[test]
    fn the_kernel_tells_of_complete_files() {
        let event = |kind, path: &str| Ok(notify::Event::new(kind).add_path(path.into()));
        let news = |event| {
            let mut news = News::default();
            news.add(event);
            (news.paths.len(), news.everything)
        };
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        assert_eq!(news(event(closed, "/nowhere/a.hsaco")), (1, false));
        assert_eq!(news(event(closed, "/nowhere/a.json")), (1, false));
        assert_eq!(news(event(EventKind::Create(CreateKind::File), "/nowhere/a.hsaco")), (0, false));
        assert_eq!(news(event(EventKind::Create(CreateKind::Folder), "/nowhere/inner")), (0, true));
        assert_eq!(news(Err(notify::Error::generic("no room"))), (0, true));
    }
}
