//! The code objects that the process loads, by their numbers: what the file says of each, and their bytes, saved in a directory
//! (RPDT_SAVE_CODE).
//!
//! - [`origin`]: where the program had the bytes; `directory`: the files
//!
//! The program may free the bytes when the function that loads them has returned, so they are copied there. A thread of ours hashes and
//! writes them. Nothing here is done unless it was asked for.

mod directory;
pub(crate) mod origin;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use rpd_preload::clock::{self, Clock};
use rpd_preload::errands::Errands;
use rpd_preload::lock::lock;
use rpd_schema::session_fact;
use rpd_transport::config::Template;
use rpd_transport::env::Env;
use rpd_transport::log;
use rpd_transport::recorder;
use rpd_transport::source::CodeObjectText;
use sha2::{Digest, Sha256};

use origin::CodeLocation;

/// Number of a code object among those that the process has loaded. Several may have one row in the file.
pub(crate) type CodeNumber = u32;

/// The directory, where one was named.
static DIRECTORY: OnceLock<Template> = OnceLock::new();
/// What this process has saved. A forked child, which has not its parent's thread, begins anew.
static STORE: AtomicPtr<CodeStore> = AtomicPtr::new(std::ptr::null_mut());

/// Bytes that are to be saved.
struct SaveJob {
    number: CodeNumber,
    bytes: Vec<u8>,
    uri: String,
    target: String,
}

struct CodeStore {
    pid: u32,
    directory: PathBuf,
    jobs: Errands<Arc<SaveJob>>,
    known: Mutex<KnownCode>,
    /// It was said that the directory takes nothing.
    said: AtomicBool,
}

/// What is known of the code objects.
#[derive(Default)]
struct KnownCode {
    rows: Vec<CodeObjectText>,
    /// Places of rows, by hash and URI.
    places: HashMap<(String, String), usize>,
    /// Place of the row of each number; nothing before it is known.
    numbers: Vec<Option<usize>>,
    /// What may wait still.
    jobs: Vec<Weak<SaveJob>>,
    /// How many there was no room for.
    missed: u64,
}

impl KnownCode {
    /// The code object of that number turned out to be this.
    fn put(&mut self, number: CodeNumber, text: CodeObjectText) {
        let key = (text.sha256.clone(), text.uri.clone());
        let place = *self.places.entry(key).or_insert(self.rows.len());
        if place == self.rows.len() {
            self.rows.push(text);
        }
        self.numbers[number as usize] = Some(place);
    }
}

/// Reads RPDT_SAVE_CODE.
pub(crate) fn configure(env: &mut Env<'_>) {
    if let Some(directory) = env.file_name("RPDT_SAVE_CODE") {
        let _ = DIRECTORY.set(Template::new(&directory));
    }
}

/// Whether code objects are to be saved.
pub(crate) fn are_saved() -> bool {
    DIRECTORY.get().is_some()
}

/// What the session says of it.
pub(crate) fn facts(add: &mut dyn FnMut(&str, &str)) {
    if let Some(directory) = DIRECTORY.get() {
        add(session_fact::SAVED_CODE, &directory.expanded().to_string_lossy());
    }
}

/// What this process has saved so far.
fn existing() -> Option<&'static CodeStore> {
    // SAFETY: null or a leaked box.
    let store = unsafe { STORE.load(Ordering::Acquire).as_ref() };
    store.filter(|store| store.pid == std::process::id())
}

fn store() -> Option<&'static CodeStore> {
    let directory = DIRECTORY.get()?;
    if let Some(store) = existing() {
        return Some(store);
    }
    let recorder = recorder::get()?;
    recorder.buffers.fit_into_memory();
    let before = STORE.load(Ordering::Acquire);
    let mine = Box::into_raw(Box::new(CodeStore {
        pid: std::process::id(),
        directory: directory.expanded(),
        jobs: Errands::new(c"rpd-code", recorder.buffers.bytes(), save),
        known: Mutex::default(),
        said: AtomicBool::new(false),
    }));
    if STORE.compare_exchange(before, mine, Ordering::AcqRel, Ordering::Acquire).is_err() {
        // SAFETY: made above, and nobody else has it.
        drop(unsafe { Box::from_raw(mine) });
    }
    existing()
}

/// The process has loaded a code object: has a copy of its bytes saved, and gives it a number. Nothing where none are saved.
pub(crate) fn loaded(bytes: &[u8], origin: &CodeLocation, target: String) -> Option<CodeNumber> {
    let store = store()?;
    let uri = origin.uri();
    let mut known = lock(&store.known);
    known.jobs.retain(|job| job.strong_count() > 0);
    // Each GPU is given the same bytes, one after the other.
    let same = known.jobs.iter().filter_map(Weak::upgrade).find(|job| job.uri == uri && job.bytes == bytes);
    if let Some(same) = same {
        return Some(same.number);
    }
    let number = known.numbers.len() as CodeNumber;
    known.numbers.push(None);
    let mut copy = Vec::new();
    if !store.jobs.wait_for_room(bytes.len(), Duration::ZERO) || copy.try_reserve_exact(bytes.len()).is_err()
    {
        known.missed += 1;
        let text = CodeObjectText { sha256: String::new(), uri, target, size: bytes.len() as u64 };
        known.put(number, text);
        return Some(number);
    }
    copy.extend_from_slice(bytes);
    let job = Arc::new(SaveJob { number, bytes: copy, uri, target });
    known.jobs.push(Arc::downgrade(&job));
    if !store.jobs.add(Arc::clone(&job), bytes.len()) {
        known.missed += 1;
        known.put(number, job.text(String::new()));
    }
    Some(number)
}

impl SaveJob {
    fn text(&self, sha256: String) -> CodeObjectText {
        let (uri, target) = (self.uri.clone(), self.target.clone());
        CodeObjectText { sha256, uri, target, size: self.bytes.len() as u64 }
    }
}

/// On the thread of ours.
fn save(jobs: Vec<Arc<SaveJob>>) {
    let (Some(store), Some(recorder)) = (existing(), recorder::get()) else { return };
    for job in jobs {
        let before = clock::read(Clock::ThreadCpu);
        let sha256 = sha256(&job.bytes);
        if let Err(error) = directory::save(&store.directory, &sha256, &job.bytes)
            && !store.said.swap(true, Ordering::Relaxed)
        {
            let directory = store.directory.display();
            log::problem(&format!("{directory}: code objects cannot be saved ({error}); recording goes on"));
        }
        lock(&store.known).put(job.number, job.text(sha256));
        let spent = clock::read(Clock::ThreadCpu) - before;
        recorder.counters.cpu_ns.fetch_add(spent, Ordering::Relaxed);
    }
}

/// SHA-256, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Those whose bytes have been dealt with, from row `from` on, counted from 0.
pub(crate) fn rows(from: usize) -> Vec<CodeObjectText> {
    let Some(store) = existing() else { return Vec::new() };
    lock(&store.known).rows.get(from..).unwrap_or_default().to_vec()
}

/// The row of a code object; nothing before its bytes have been dealt with.
pub(crate) fn row(number: CodeNumber) -> Option<usize> {
    *lock(&existing()?.known).numbers.get(number as usize)?
}

/// The process ends: what waits is saved within `patience`.
pub(crate) fn finish(patience: Duration) {
    let Some(store) = existing() else { return };
    let directory = store.directory.display();
    if !store.jobs.finish(patience) {
        log::problem(&format!("{directory}: not all code objects could be saved within RPDT_EXIT_MS"));
    }
    let missed = lock(&store.known).missed;
    if missed > 0 {
        log::problem(&format!(
            "{directory}: code objects that were not saved, because more than RPDT_BUFFER_MB would have had to wait: {missed}"
        ));
    }
}
