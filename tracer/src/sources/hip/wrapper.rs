//! Functions in the place of HIP's own, in a registered table and by symbol interposition. Each notes the call and its arguments where HIP's
//! callbacks would have been given them, and calls the original with the same arguments. They are generated from the description of the API.
//!
//! Cost: that of HIP's callbacks. A call that is not recorded costs one look at the switch, and passing the arguments on.

use std::mem::{MaybeUninit, transmute};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::call::CallPlace;
use super::description::{self, StreamPlace};
use super::{call, state};
use crate::guard::{guard, guard_without_points};

/// dim3.
#[derive(Clone, Copy)]
#[repr(C)]
struct HipDim3([u32; 3]);
/// hipExtent.
#[derive(Clone, Copy)]
#[repr(C)]
struct Extent([usize; 3]);
/// A structure of `8 * N` bytes that is passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
struct Bytes<const N: usize>([u64; N]);

/// Whose originals a wrapper calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum OriginalsOf {
    /// The registered table of the first copy of HIP in the process.
    FirstTable,
    /// That of the second copy.
    SecondTable,
    /// Symbol interposition.
    Symbols,
}
const TARGETS: usize = 3;
const FIRST: usize = OriginalsOf::FirstTable as usize;
const SECOND: usize = OriginalsOf::SecondTable as usize;
const SYMBOLS: usize = OriginalsOf::Symbols as usize;

/// hipErrorNotInitialized: what a function answers that has no original, which does not happen.
const NO_ORIGINAL: i32 = 3;
/// Wrappers from here on are those of `hipMemcpy_spt` and the like, see build/wrappers.rs. The description is shorter.
const PER_THREAD_STREAM: u16 = 1024;
const MOST: usize = 2 * PER_THREAD_STREAM as usize;

static ORIGINALS: [[AtomicUsize; MOST]; TARGETS] = [const { [const { AtomicUsize::new(0) }; MOST] }; TARGETS];

/// One function that is in the place of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wrapper {
    slot: u16,
    target: OriginalsOf,
    /// Its address.
    pub(super) address: usize,
    /// The name under which its calls are recorded.
    pub(super) recorded_as: &'static str,
}

impl Wrapper {
    /// The one for the function `name`; nothing for functions that are not described, and for the few that return no status.
    pub(super) fn of(name: &str, target: OriginalsOf) -> Option<Wrapper> {
        let description = description::get();
        let other = || Some(PER_THREAD_STREAM + description.newest(name.strip_suffix("_spt")?)?);
        let slot = description.newest(name).or_else(other)?;
        let address = match target {
            OriginalsOf::FirstTable => address::<FIRST>(slot),
            OriginalsOf::SecondTable => address::<SECOND>(slot),
            OriginalsOf::Symbols => address::<SYMBOLS>(slot),
        };
        let recorded_as = description.apis[usize::from(slot % PER_THREAD_STREAM)].name;
        Some(Wrapper { slot, target, address: address?, recorded_as })
    }

    /// What it is to call.
    pub(super) fn keep(&self, original: usize) {
        ORIGINALS[self.target as usize][self.slot as usize].store(original, Ordering::Release);
    }
}

/// A call begins. Where its arguments are wanted, and [`exit`] must follow; null when it is not recorded.
#[inline]
fn enter<const TARGET: usize>(place: u16, data: *mut u8, size: usize) -> *mut u8 {
    if TARGET == SYMBOLS && !state::is_by_symbols() {
        return ptr::null_mut();
    }
    guard_without_points(ptr::null_mut(), || {
        call::enter(place, &description::get().apis[place as usize], CallPlace::Data(data, size))
    })
}

/// Its arguments are there. HIP up to 5.2 does not say which kernels it times.
#[inline]
fn filled(place: u16) {
    let api = &description::get().apis[place as usize];
    if matches!(api.stream, Some(StreamPlace::Config(_))) {
        guard_without_points((), call::stands);
    }
    if api.is_launch() && state::get().is_some_and(|hip| hip.times_commands) {
        guard((), call::find_kernel);
    }
}

#[inline]
fn exit(place: u16, data: *const u8) {
    guard_without_points((), || call::exit(place, data));
}

macro_rules! wrappers {
    ($($slot:literal $place:literal $name:ident [$words:literal] ($($argument:ident: $type:ty = $offset:literal,)*);)*) => {
        fn address<const TARGET: usize>(slot: u16) -> Option<usize> {
            match slot {
                $($slot => Some(functions::$name::<TARGET> as *const () as usize),)*
                _ => None,
            }
        }

        #[allow(non_snake_case, clippy::too_many_arguments, reason = "HIP's names and parameters")]
        mod functions {
            use super::*;
            $(
                pub(super) unsafe extern "C-unwind" fn $name<const TARGET: usize>($($argument: $type),*) -> i32 {
                    type Original = unsafe extern "C-unwind" fn($($type),*) -> i32;
                    // SAFETY: null or what was in this function's place, of this type.
                    let original = unsafe {
                        transmute::<usize, Option<Original>>(ORIGINALS[TARGET][$slot].load(Ordering::Acquire))
                    };
                    let Some(original) = original else { return NO_ORIGINAL };
                    let mut data = MaybeUninit::<[u64; $words]>::uninit();
                    let data = data.as_mut_ptr().cast::<u8>();
                    let place = enter::<TARGET>($place, data, 8 * $words);
                    if !place.is_null() {
                        const { assert!($words <= call::ROOM) };
                        // SAFETY: the words reach behind the last argument, and there is as much room elsewhere.
                        $(unsafe { place.add($offset).cast::<$type>().write_unaligned($argument) };)*
                        filled($place);
                    }
                    // SAFETY: the caller's arguments, passed on.
                    let status = unsafe { original($($argument),*) };
                    if !place.is_null() {
                        exit($place, data);
                    }
                    status
                }
            )*
        }
    };
}
include!(concat!(env!("OUT_DIR"), "/hip_wrappers.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_that_returns_a_status_has_a_wrapper() {
        assert!(description::get().apis.len() < PER_THREAD_STREAM.into());
        let all = [OriginalsOf::FirstTable, OriginalsOf::SecondTable, OriginalsOf::Symbols];
        let has = |name: &&str| all.iter().all(|target| Wrapper::of(name, *target).is_some());
        let without: Vec<&str> = description::get().names().filter(|name| !has(name)).collect();
        assert_eq!(without, ["hipGetErrorString"]);
        assert!(Wrapper::of("hipNoSuchFunction_spt", OriginalsOf::Symbols).is_none());
    }

    #[test]
    fn each_has_an_original_of_its_own() {
        let of = |name| Wrapper::of(name, OriginalsOf::Symbols).unwrap();
        let (one, other) = (of("hipMemcpyAsync"), of("hipMemcpyAsync_spt"));
        assert!(one.slot != other.slot && one.address != other.address);
        assert_eq!(of("hipEventRecord_spt").recorded_as, "hipEventRecord", "which is left out by default");
    }
}
