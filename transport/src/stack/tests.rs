//! Real stacks of this test program, whose functions, the tests themselves too, must not be part of others.

use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::sync::Mutex;

use super::loader::DynamicLoader;
use super::symbol::Symbols;
use super::*;

/// The names on the stack, nearest first. Nothing here is the recorder's own.
fn names(stacks: &Stacks) -> Vec<String> {
    let mut words = [0; MOST];
    let words = frames(stacks, &mut words);
    let mut symbols = Symbols::default();
    symbols.name(stacks, words.to_vec());
    words.iter().flat_map(|word| symbols.get(*word).unwrap().iter().cloned()).collect()
}

fn stacks() -> Stacks {
    Stacks::with(DynamicLoader::new(), 0, rpd_codeobject::demangle)
}

/// Where the first name that contains this is.
#[track_caller]
fn place(names: &[String], part: &str) -> usize {
    names.iter().position(|name| name.contains(part)).unwrap_or_else(|| panic!("{part}: {names:#?}"))
}

#[inline(never)]
fn the_inner_one(stacks: &Stacks) -> Vec<String> {
    black_box(names(black_box(stacks)))
}

#[inline(never)]
fn the_outer_one(stacks: &Stacks) -> Vec<String> {
    black_box(the_inner_one(black_box(stacks)))
}

#[test]
#[inline(never)]
fn callers_come_in_order_by_either_loader() {
    for loader in [DynamicLoader::new(), DynamicLoader::old()] {
        let stacks = Stacks::with(loader, 0, rpd_codeobject::demangle);
        let names = the_outer_one(&stacks);
        assert!(place(&names, "the_inner_one") < place(&names, "the_outer_one"), "{names:#?}");
        assert!(place(&names, "the_outer_one") < place(&names, "callers_come_in_order"), "{names:#?}");
        assert!(names.len() > 10 && names.len() < MOST, "to the beginning of the thread: {names:#?}");
        assert_eq!(the_outer_one(&stacks), names, "again, from the tables made the first time");
        assert_eq!(stacks.without(), 0);
    }
}

#[test]
fn the_recorders_own_frames_are_left_out() {
    // This test program is the recorder: what is left are the C library's frames at the beginning of the thread.
    let names = the_outer_one(&Stacks::new(rpd_codeobject::demangle));
    assert!(!names.is_empty() && names.len() <= 3, "{names:#?}");
    assert!(!names.iter().any(|name| name.contains("rpd_tracer")), "{names:#?}");
}

#[inline(never)]
fn count(stacks: &Stacks) -> usize {
    frames(stacks, &mut [0; MOST]).len()
}

#[inline(never)]
fn deep(stacks: &Stacks, levels: u32) -> usize {
    match levels {
        0 => count(stacks),
        _ => black_box(deep(black_box(stacks), black_box(levels - 1))),
    }
}

#[test]
fn a_deep_stack_is_cut_and_a_small_one_left_alone() {
    let stacks = stacks();
    let on_stack_of = |bytes: usize, levels: u32| {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(bytes);
            thread.spawn_scoped(scope, || deep(&stacks, levels)).unwrap().join().unwrap()
        })
    };
    assert_eq!(on_stack_of(8 << 20, 10_000), MOST);
    assert_eq!(on_stack_of(32 << 10, 0), 0, "too small to walk in");
    assert_eq!(stacks.without(), 1);
    assert!(on_stack_of(1 << 20, 3) > 4);
}

/// What a signal handler saw.
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

extern "C" fn handler(_: c_int) {
    *SEEN.lock().unwrap() = names(&stacks());
}

/// Has `handler` called for a signal, on the stack that `flags` say.
fn signalled(flags: c_int, act: impl FnOnce()) -> Vec<String> {
    // SAFETY: a handler for a signal that nothing else in this program uses.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(c_int) as usize;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(libc::SIGURG, &action, std::ptr::null_mut()), 0);
    }
    act();
    std::mem::take(&mut *SEEN.lock().unwrap())
}

#[inline(never)]
fn the_interrupted_one() {
    // SAFETY: to this thread, which has a handler for it.
    black_box(unsafe { libc::raise(libc::SIGURG) });
}

#[test]
#[inline(never)]
fn a_walk_goes_on_behind_a_signal_handler_and_stops_on_other_stacks() {
    let names = signalled(0, the_interrupted_one);
    assert!(place(&names, "handler") < place(&names, "the_interrupted_one"), "{names:#?}");
    assert!(place(&names, "the_interrupted_one") < place(&names, "a_walk_goes_on"), "{names:#?}");

    let mut room = vec![0u8; 256 << 10];
    let set = |sp: *mut u8, flags: c_int| {
        let stack = libc::stack_t { ss_sp: sp.cast(), ss_flags: flags, ss_size: 256 << 10 };
        // SAFETY: the room outlives its use: it is given up below.
        assert_eq!(unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) }, 0);
    };
    set(room.as_mut_ptr(), 0);
    let names = signalled(libc::SA_ONSTACK, the_interrupted_one);
    set(std::ptr::null_mut(), libc::SS_DISABLE);
    assert_eq!(names, Vec::<String>::new(), "nobody knows where that stack ends");
}

unsafe extern "C" fn compared(one: *const c_void, _: *const c_void) -> c_int {
    let mut seen = SEEN_INSIDE.lock().unwrap();
    if seen.is_empty() {
        *seen = names(&stacks());
    }
    // SAFETY: bsearch passes its key, a number.
    unsafe { one.cast::<i32>().read() }
}

static SEEN_INSIDE: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
#[inline(never)]
fn frames_of_a_library_between_are_there() {
    let (key, all) = (0, [1; 4]);
    // SAFETY: numbers of that size, and a comparison that reads the key.
    unsafe { libc::bsearch((&raw const key).cast(), all.as_ptr().cast(), 4, 4, Some(compared)) };
    let names = std::mem::take(&mut *SEEN_INSIDE.lock().unwrap());
    let (inside, here) = (place(&names, "compared"), place(&names, "frames_of_a_library"));
    // By its exported name, or the one that the C library's debug information has.
    assert!(names[inside..here].iter().any(|name| name.contains("bsearch")), "{names:#?}");
}

#[test]
fn code_made_at_run_time_is_an_address() {
    // push rbp; mov rbp, rsp; sub rsp, 48; call rdi; leave; ret - and the same without a frame pointer's upkeep.
    let with_pointer: &[u8] = &[0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x30, 0xff, 0xd7, 0xc9, 0xc3];
    let without: &[u8] = &[0x48, 0x83, 0xec, 0x38, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x38, 0xc3];
    static STACKS: Mutex<Option<Vec<u64>>> = Mutex::new(None);
    extern "C" fn from_made_code() {
        let stacks = Stacks::with(DynamicLoader::new(), 0, rpd_codeobject::demangle);
        let mut words = [0; MOST];
        *STACKS.lock().unwrap() = Some(frames(&stacks, &mut words).to_vec());
    }
    for (code, goes_on) in [(with_pointer, true), (without, false)] {
        // SAFETY: a fresh mapping, filled with whole instructions, called as what they are.
        let (page, run) = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
            let page = libc::mmap(
                std::ptr::null_mut(),
                4096,
                access,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(page, libc::MAP_FAILED);
            page.cast::<u8>().copy_from(code.as_ptr(), code.len());
            let run: extern "C" fn(extern "C" fn()) = std::mem::transmute(page);
            (page, run)
        };
        run(from_made_code);
        let words = STACKS.lock().unwrap().take().unwrap();
        let made = (page as u64)..(page as u64 + 4096);
        let at = words.iter().position(|word| made.contains(word)).expect("the frame of the made code");
        assert!(at > 0);
        if goes_on {
            assert!(words.len() > at + 5, "the caller's frames follow: {words:x?}");
        }
    }
}
