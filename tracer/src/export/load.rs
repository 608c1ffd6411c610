//! What runs when the library is loaded and when the process ends.

use crate::config::Config;
use crate::guard::{guard, speak_for_panics};
use crate::{environment, finish, fork, recorder, report};

// In the loader's list of constructors: runs before main under LD_PRELOAD, inside dlopen otherwise.
// Only statics are filled here: every helper process that inherits the environment pays for it.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

// In the loader's list of destructors: after all atexit handlers and static destructors of the program and of HIP, and the
// library is linked nodelete, so dlclose never gets here.
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

extern "C" fn constructor() {
    // Unit tests load the library too, and fail by panics that must be read.
    if cfg!(not(test)) {
        speak_for_panics();
    }
    guard((), || {
        // SAFETY: no pointers; AT_SECURE is always in the auxiliary vector.
        if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
            // A set-user-id program must not write files that its caller names.
            return;
        }
        let recorder = recorder::install(Config::from_env());
        crate::log::set_level(recorder.config.log);
        environment::announce();
        fork::watch();
        super::exit::watch_quick_exit();
        report::loaded(recorder);
    });
}

extern "C" fn destructor() {
    guard((), finish::process_end);
}
