//! The state of the file, for whoever asks while recording goes on.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use rpd_preload::lock::lock;
use rpd_schema::Appender;

/// Written by the writer after each commit.
pub struct FileProgress {
    /// -1 before there is a file.
    session: AtomicI64,
    events: AtomicU64,
    launches_without_op: AtomicU64,
    file: Mutex<PathBuf>,
}

impl Default for FileProgress {
    fn default() -> FileProgress {
        let (events, launches_without_op) = (AtomicU64::new(0), AtomicU64::new(0));
        FileProgress { session: AtomicI64::new(-1), events, launches_without_op, file: Mutex::default() }
    }
}

impl FileProgress {
    /// A commit: what is in the file by now.
    pub(crate) fn committed(&self, appender: &Appender, events: u64, launches_without_op: u64) {
        let session = i64::from(appender.session());
        let mut file = lock(&self.file);
        if *file != appender.path() {
            *file = appender.path().to_path_buf();
        }
        self.session.store(session, Ordering::Relaxed);
        self.events.store(events, Ordering::Relaxed);
        self.launches_without_op.store(launches_without_op, Ordering::Relaxed);
    }

    /// The next commit is to another file.
    pub(crate) fn left(&self) {
        let _file = lock(&self.file);
        self.session.store(-1, Ordering::Relaxed);
    }

    /// Launches in the file whose kernels have not completed.
    pub fn launches_without_op(&self) -> u64 {
        self.launches_without_op.load(Ordering::Relaxed)
    }

    /// Session, events and path of the file, once there is one.
    pub fn get(&self) -> Option<(i64, u64, PathBuf)> {
        let file = lock(&self.file);
        let session = self.session.load(Ordering::Relaxed);
        (session >= 0).then(|| (session, self.events.load(Ordering::Relaxed), file.clone()))
    }
}
