//! HIP in this process: how its calls are observed, and the library once it was found.
//!
//! Calls can be observed in three ways: by HIP's dispatch table, by wrappers of its symbols, by its own callbacks. One is active at a time.
//! A nested call that another one shows is part of the outer call.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

use super::description::Api;
use super::library::LoadedHip;

/// How calls are observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum HipState {
    /// It is not decided yet.
    Unknown,
    /// It is decided that wrappers of symbols are not used.
    NotBySymbols,
    /// By the dispatch table that rocprofiler-register hands over.
    Table,
    /// By wrappers of HIP's symbols.
    Symbols,
    /// By HIP's callbacks.
    Callbacks,
    /// By wrappers of symbols, since another profiler has taken the callbacks.
    DisplacedToSymbols,
    /// Not any more, since another profiler has taken the callbacks.
    Displaced,
    /// Not at all.
    NotObserved,
}

use HipState::*;

const ALL: [HipState; 8] =
    [Unknown, NotBySymbols, Table, Symbols, Callbacks, DisplacedToSymbols, Displaced, NotObserved];

/// What changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HipEvent {
    /// HIP has offered its table, and wrappers are in it.
    TableTaken,
    /// Whether wrappers of symbols are used.
    SymbolsDecided(bool),
    /// HIP was found. Whether its callbacks tell of calls.
    Found(bool),
    /// Another profiler has taken the callbacks. Whether wrappers of symbols are there.
    CallbacksTaken(bool),
}

impl HipState {
    /// The table of transitions; what it does not list changes nothing.
    fn next(self, event: HipEvent) -> HipState {
        match (self, event) {
            (_, HipEvent::TableTaken) => Table,
            (Unknown, HipEvent::SymbolsDecided(true)) => Symbols,
            (Unknown, HipEvent::SymbolsDecided(false)) => NotBySymbols,
            (Unknown | NotBySymbols, HipEvent::Found(true)) => Callbacks,
            (Unknown | NotBySymbols, HipEvent::Found(false)) => NotObserved,
            (Callbacks, HipEvent::CallbacksTaken(true)) => DisplacedToSymbols,
            (Callbacks, HipEvent::CallbacksTaken(false)) => Displaced,
            (state, _) => state,
        }
    }

    /// Whether another profiler has HIP's callbacks.
    pub(super) fn is_displaced(self) -> bool {
        matches!(self, DisplacedToSymbols | Displaced)
    }

    /// Whether calls are observed.
    pub(super) fn is_observed(self) -> bool {
        matches!(self, Table | Symbols | Callbacks | DisplacedToSymbols)
    }

    /// As the file has it, key `hip_door`.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Unknown | NotBySymbols | NotObserved => None,
            Table => Some("table"),
            Symbols => Some("symbols"),
            Callbacks => Some("callbacks"),
            DisplacedToSymbols => Some("callbacks,symbols"),
            Displaced => Some("callbacks,none"),
        }
    }
}

static STATE: AtomicU8 = AtomicU8::new(Unknown as u8);

/// How calls are observed now.
#[inline]
pub(super) fn current() -> HipState {
    of(STATE.load(Ordering::Relaxed))
}

#[inline]
fn of(number: u8) -> HipState {
    ALL[usize::from(number) % ALL.len()]
}

/// Something has happened. The state before and after it.
pub(super) fn apply(event: HipEvent) -> (HipState, HipState) {
    let next = |number| Some(of(number).next(event) as u8);
    let (Ok(before) | Err(before)) = STATE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    (of(before), of(before).next(event))
}

/// Whether calls of HIP's functions by their symbols are recorded.
#[inline]
pub(super) fn is_by_symbols() -> bool {
    matches!(current(), Symbols | DisplacedToSymbols)
}

/// HIP's library as this process has it. Never freed: callbacks may come at any time.
pub(super) struct HipLibrary {
    pub(super) library: LoadedHip,
    /// By HIP's own id: place in the description, where the function is to be recorded.
    pub(super) apis: Vec<Option<(u16, &'static Api)>>,
    pub(super) version: &'static str,
    /// sizeof(hip_api_data_t) there.
    pub(super) data_size: usize,
    /// Times come from HIP's commands.
    pub(super) times_commands: bool,
}

static LIBRARY: AtomicPtr<HipLibrary> = AtomicPtr::new(std::ptr::null_mut());
/// There is nothing more to find out: HIP is there, and what can be had of it is.
static COMPLETE: AtomicBool = AtomicBool::new(false);

/// The library, once it was found.
pub(super) fn get() -> Option<&'static HipLibrary> {
    // SAFETY: null or a leaked box.
    unsafe { LIBRARY.load(Ordering::Acquire).as_ref() }
}

/// The library is this one.
pub(super) fn found(library: HipLibrary) -> &'static HipLibrary {
    let library: &'static HipLibrary = Box::leak(Box::new(library));
    LIBRARY.store(std::ptr::from_ref(library).cast_mut(), Ordering::Release);
    library
}

/// Whether all is done that finding HIP brings with it.
pub(super) fn is_complete() -> bool {
    COMPLETE.load(Ordering::Relaxed)
}

/// All of it is done.
pub(super) fn complete() {
    COMPLETE.store(true, Ordering::Relaxed);
}

impl HipLibrary {
    /// The function with HIP's number `id`, if it is to be recorded.
    #[inline]
    pub(super) fn api(&self, id: u32) -> Option<(u16, &'static Api)> {
        self.apis.get(id as usize).copied().flatten()
    }

    /// HIP's numbers of all functions that are to be recorded.
    pub(super) fn recorded_ids(&self) -> impl Iterator<Item = u32> {
        let known = self.apis.iter().enumerate();
        known.filter(|(_, api)| api.is_some()).map(|(id, _)| id as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_stored_as_its_place() {
        for state in ALL {
            assert_eq!(of(state as u8), state);
        }
    }

    #[test]
    fn what_was_decided_first_stays_unless_a_table_comes() {
        let after = |events: &[HipEvent]| events.iter().fold(Unknown, |state, event| state.next(*event));
        use HipEvent::*;
        assert_eq!(after(&[SymbolsDecided(false), Found(true)]), Callbacks);
        assert_eq!(after(&[SymbolsDecided(true), Found(true)]), Symbols);
        assert_eq!(after(&[SymbolsDecided(false), Found(false), SymbolsDecided(true)]), NotObserved);
        assert_eq!(after(&[SymbolsDecided(true), TableTaken, SymbolsDecided(true)]), Table);
        assert_eq!(after(&[Found(true), CallbacksTaken(true)]), DisplacedToSymbols);
        assert_eq!(after(&[Found(true), CallbacksTaken(false)]), Displaced);
        assert_eq!(after(&[SymbolsDecided(true), CallbacksTaken(false)]), Symbols);
        assert!(after(&[Found(true), CallbacksTaken(false)]).is_displaced());
    }
}
