//! The objects met on stacks so far, with what it takes to unwind through them.
//!
//! A table never changes: a thread that meets an object it does not hold makes a new one, which the others take when they next
//! look. Objects come and go with dlopen and dlclose, so what a table says of an address holds only once the loader has confirmed
//! the object; from then on it stays, because its code is on the stack of the thread that asks.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use framehop::x86_64::UnwinderX86_64;
use framehop::{MustNotAllocateDuringUnwind, Unwinder};

use rpd_preload::lock::{lock, lock_within};

use super::loader::{DynamicLoader, LoadedObject};
use super::module::{Module, ObjectParts, Sign};

/// Finds the caller of a frame.
pub(super) type FrameUnwinder = UnwinderX86_64<&'static [u8], MustNotAllocateDuringUnwind>;

/// How long a thread waits for another one that makes a table.
const PATIENCE: Duration = Duration::from_millis(50);

/// An object in a table.
#[derive(Clone)]
pub(super) struct KnownObject {
    object: LoadedObject,
    sign: Arc<Sign>,
    /// Place in the list of modules, from 1.
    pub(super) id: u16,
    /// Between the application and the recorder: the recorder itself, or HIP.
    pub(super) between: bool,
    /// Where its code lies.
    pub(super) text: Arc<[Range<u64>]>,
}

impl KnownObject {
    /// Address in this process minus address in the file.
    pub(super) fn bias(&self) -> u64 {
        self.object.bias as u64
    }
}

pub(super) struct ObjectTable {
    generation: u32,
    /// By address.
    entries: Vec<KnownObject>,
    pub(super) frames: FrameUnwinder,
}

impl ObjectTable {
    /// The entry of `object`, as it is loaded now.
    ///
    /// # Safety
    /// The object is loaded, and stays so during the call.
    pub(super) unsafe fn get(&self, object: &LoadedObject) -> Option<&KnownObject> {
        let place = self.entries.binary_search_by_key(&object.start, |entry| entry.object.start).ok()?;
        let entry = &self.entries[place];
        // SAFETY: the caller's promise.
        (entry.object == *object && unsafe { entry.sign.is_of(object) }).then_some(entry)
    }
}

struct KnownObjects {
    current: Arc<ObjectTable>,
    /// Tables that threads may still hold. They are freed here and nowhere else, so that no thread frees memory in a hook.
    retired: Vec<Arc<ObjectTable>>,
    modules: Vec<Arc<Module>>,
}

/// From a mangled C++ name to the one in the source.
pub type Demangle = fn(&str) -> String;

/// The stacks of one process.
pub struct Stacks {
    pub(super) loader: DynamicLoader,
    /// An address inside the recorder.
    own: usize,
    pub(super) demangle: Demangle,
    generation: AtomicU32,
    known: Mutex<KnownObjects>,
    /// Calls recorded without frames.
    without: AtomicU64,
}

impl Stacks {
    /// Nothing is known yet. C++ names are worked out by `demangle`.
    pub fn new(demangle: Demangle) -> Stacks {
        Stacks::with(DynamicLoader::new(), Stacks::new as *const () as usize, demangle)
    }

    /// For a forked child, in which the loader had better not be asked for anything new.
    pub fn inherited(&self) -> Stacks {
        Stacks::with(self.loader, self.own, self.demangle)
    }

    /// For a recorder that `own` lies in.
    pub(super) fn with(loader: DynamicLoader, own: usize, demangle: Demangle) -> Stacks {
        let current = Arc::new(ObjectTable { generation: 0, entries: vec![], frames: FrameUnwinder::new() });
        let known = Mutex::new(KnownObjects { current, retired: vec![], modules: vec![] });
        Stacks { loader, own, demangle, generation: AtomicU32::new(0), known, without: AtomicU64::new(0) }
    }

    /// Brings `table` up to date, unless another thread is busy with that.
    #[inline]
    pub(super) fn refresh(&self, table: &mut Arc<ObjectTable>) {
        if table.generation != self.generation.load(Ordering::Acquire)
            && let Some(known) = lock_within(&self.known, Duration::ZERO)
        {
            *table = known.current.clone();
        }
    }

    /// The newest table; for a thread that has none yet.
    pub(super) fn table(&self) -> Option<Arc<ObjectTable>> {
        lock_within(&self.known, PATIENCE).map(|known| known.current.clone())
    }

    /// A table with `object` in it. None: another thread took too long, or there is no number left for it.
    ///
    /// # Safety
    /// The object is loaded and stays so: its code is on the calling thread's stack.
    #[cold]
    pub(super) unsafe fn learn(&self, object: &LoadedObject) -> Option<Arc<ObjectTable>> {
        let mut known = lock_within(&self.known, PATIENCE)?;
        // SAFETY: the caller's promise.
        if unsafe { known.current.get(object) }.is_none() {
            // SAFETY: the caller's promise.
            let (parts, path) = unsafe { (ObjectParts::of(object), object.path()) };
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let between = (object.start..object.end).contains(&self.own)
                || ["libamdhip64.so", "librpd_hip.so"].iter().any(|name| file.starts_with(name));
            let module = framehop::Module::new(
                String::new(),
                object.start as u64..object.end as u64,
                object.start as u64,
                parts.unwind,
            );
            let id = known.number(Module { path, identity: parts.identity })?;
            let (sign, text) = (parts.sign.into(), parts.text.into());
            let entry = KnownObject { object: *object, sign, id, between, text };
            let next = known.current.with(entry, module, self.loader);
            self.generation.store(next.generation, Ordering::Release);
            known.replace(next);
        }
        Some(known.current.clone())
    }

    /// The module of that number.
    pub(super) fn module(&self, id: u16) -> Option<Arc<Module>> {
        lock(&self.known).modules.get(usize::from(id).checked_sub(1)?).cloned()
    }

    /// `calls` have no frames in the file.
    pub fn count_without(&self, calls: u64) {
        self.without.fetch_add(calls, Ordering::Relaxed);
    }

    /// How many calls have no frames in the file.
    pub fn without(&self) -> u64 {
        self.without.load(Ordering::Relaxed)
    }
}

impl ObjectTable {
    /// This table with one object more, and without those that are gone.
    fn with(
        &self,
        entry: KnownObject,
        module: framehop::Module<&'static [u8]>,
        loader: DynamicLoader,
    ) -> ObjectTable {
        let mut frames = self.frames.clone();
        let (mut entries, gone): (Vec<_>, Vec<_>) = self.entries.iter().cloned().partition(|old| {
            old.object.start != entry.object.start && loader.find(old.object.start) == Some(old.object)
        });
        for old in gone {
            frames.remove_module(old.object.start as u64);
        }
        frames.add_module(module);
        let place = entries.partition_point(|other| other.object.start < entry.object.start);
        entries.insert(place, entry);
        ObjectTable { generation: self.generation.wrapping_add(1), entries, frames }
    }
}

impl KnownObjects {
    /// The number of a module: the one it had when it was loaded before, also at another address.
    fn number(&mut self, module: Module) -> Option<u16> {
        let place = self.modules.iter().position(|known| **known == module);
        let place = place.unwrap_or(self.modules.len());
        let id = u16::try_from(place + 1).ok()?;
        if place == self.modules.len() {
            self.modules.push(Arc::new(module));
        }
        Some(id)
    }

    fn replace(&mut self, next: ObjectTable) {
        let old = std::mem::replace(&mut self.current, Arc::new(next));
        self.retired.push(old);
        self.retired.retain(|table| Arc::strong_count(table) > 1);
    }
}
