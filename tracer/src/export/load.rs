//! What runs when the library is loaded and when the process ends.

use std::sync::atomic::{AtomicI32, Ordering};

use rpd_preload::environment::is_secure;

use crate::config::Config;
use crate::guard::{guard, speak_for_panics};
use crate::{environment, finish, fork, hip, recorder, report, roctx, thread};

// In the loader's list of constructors: runs before main under LD_PRELOAD, inside dlopen otherwise.
// Only statics are filled here: every helper process that inherits the environment pays for it.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C-unwind" fn() = constructor;

// In the loader's list of destructors: after all atexit handlers and static destructors of the program and of HIP, and the
// library is linked nodelete, so dlclose never gets here.
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C-unwind" fn() = destructor;

extern "C-unwind" fn constructor() {
    // Unit tests load the library too, and fail by panics that must be read.
    if cfg!(not(test)) {
        speak_for_panics();
    }
    guard((), || {
        if is_secure() {
            return;
        }
        let mut config = Config::from_env();
        let late = is_loaded_by_remote();
        config.autostart &= !late;
        let recorder = recorder::install(config);
        crate::log::set_level(recorder.config.log);
        let is_tool = environment::names_this_tool();
        // Children of a process that somebody looks into for a while are not to be recorded by themselves.
        if !late {
            environment::announce();
        }
        thread::prepare();
        fork::watch();
        super::exit::watch();
        roctx::arrived();
        report::loaded(recorder);
        // A runtime that is told to load this library does so while it is initialised, and offers its tables next.
        if !is_tool {
            hip::loaded();
        }
    });
}

/// Whether librpd_remote.so loads this library, on this thread: recording then begins when it says so.
fn is_loaded_by_remote() -> bool {
    // SAFETY: a NUL-terminated name, looked for in what the process has loaded.
    let loader = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"RPD_REMOTE_LOADING".as_ptr()) };
    // SAFETY: null, or librpd_remote.so's atomic of that name, which is never unloaded.
    let loading = unsafe { loader.cast::<AtomicI32>().as_ref() };
    // SAFETY: no arguments, cannot fail.
    loading.is_some_and(|thread| thread.load(Ordering::Acquire) == unsafe { libc::gettid() })
}

extern "C-unwind" fn destructor() {
    guard((), finish::process_end);
}
