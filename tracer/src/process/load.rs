//! What runs when the library is loaded and when the process ends.

use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicI32, Ordering};

use rpd_preload::environment::{self, is_secure};
use rpd_preload::library::own_path;
use rpd_preload::threads;
use rpd_preload::tools_list;
use rpd_transport::config::Config;
use rpd_transport::env::Env;
use rpd_transport::recorder::{self, Setup};
use rpd_transport::source::Loading;
use rpd_transport::thread;
use rpd_transport::writer;

use super::{exit, finish, fork, report};
use crate::gpu::{code_objects, selection, timing};
use crate::guard::{guard, speak_for_panics};
use crate::sources;

// In the loader's list of constructors: runs before main under LD_PRELOAD, inside dlopen otherwise.
// Only statics are filled here: every helper process that inherits the environment pays for it.
#[used]
// Under Miri, which has not all of the functions that it calls, tests load nothing.
#[cfg_attr(not(miri), unsafe(link_section = ".init_array"))]
static CONSTRUCTOR: extern "C-unwind" fn() = constructor;

// In the loader's list of destructors: after all atexit handlers and static destructors of the program, those by which it gives HIP its
// kernels back among them. The library is linked nodelete, so dlclose never gets here.
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
        let late = is_loaded_by_remote();
        let mut config = configure();
        config.schedule.autostart &= !late;
        let setup = Setup {
            sources: sources::ALL,
            gpus: &sources::KnownGpus,
            demangle: rpd_codeobject::demangle,
            writer: |recorder| {
                exit::watch_return();
                report::records(recorder);
                writer::run(recorder);
            },
        };
        let recorder = recorder::install(config, setup);
        recorder.config.log.apply();
        // Asked before sources add this library to the list.
        let tools = std::env::var_os(tools_list::VARIABLE).unwrap_or_default();
        let by_runtime = own_path().is_some_and(|own| tools_list::has_tool(tools.as_bytes(), own.to_bytes()));
        if !late {
            // By which scripts see that the recorder is there.
            environment::put(c"RPDT_LOADED", c"1");
        }
        thread::prepare();
        fork::watch();
        exit::watch();
        report::loaded(recorder);
        let at = Loading { by_runtime, by_remote: late };
        sources::ALL.iter().for_each(|source| source.loaded(at));
    });
}

/// Reads the environment: what the user asked for, of the recorder and of each source.
fn configure() -> Config {
    let get = |name: &str| std::env::var_os(name);
    let mut env = Env::new(&get);
    let config = Config::read(&mut env, &std::env::current_dir().unwrap_or_default());
    timing::configure(&mut env);
    code_objects::configure(&mut env);
    selection::configure(&mut env);
    sources::ALL.iter().for_each(|source| source.configure(&mut env));
    Config { complaints: env.into_complaints(std::env::vars_os().map(|(name, _)| name)), ..config }
}

/// Whether librpd_remote.so loads this library, on this thread: recording then begins when it says so.
fn is_loaded_by_remote() -> bool {
    // SAFETY: a NUL-terminated name, looked for in what the process has loaded.
    let loader = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"RPD_REMOTE_LOADING".as_ptr()) };
    // SAFETY: null, or librpd_remote.so's atomic of that name, which is never unloaded.
    let loading = unsafe { loader.cast::<AtomicI32>().as_ref() };
    loading.is_some_and(|thread| thread.load(Ordering::Acquire) == threads::id())
}

extern "C-unwind" fn destructor() {
    guard((), finish::process_end);
}
