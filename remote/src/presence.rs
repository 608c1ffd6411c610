//! The block and the thread of this process, once it uses a GPU.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use rpd_preload::{lock, stderr};
use rpd_remote_block::{Reading, SharedBlock};

use crate::memory::Memory;
use crate::{fork, settings, signal, thread};

static MEMORY: AtomicPtr<Memory> = AtomicPtr::new(std::ptr::null_mut());
/// The process that all of this is about: a child made by vfork or clone shares it, or has a copy, and is another one.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Somebody is in [`appear`].
static APPEARING: AtomicBool = AtomicBool::new(false);
/// The thread runs.
static SERVED: AtomicBool = AtomicBool::new(false);

fn memory() -> Option<&'static Memory> {
    // SAFETY: null or a leaked box.
    unsafe { MEMORY.load(Ordering::Acquire).as_ref() }
}

/// The block of this process, once there is one.
pub(crate) fn block() -> Option<&'static SharedBlock> {
    memory().map(|memory| memory.block)
}

/// The library is loaded.
pub(crate) fn begin() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

/// Whether the caller is the process that the library was loaded into, or a fork of it. May be asked in a signal handler.
pub(crate) fn is_own_process() -> bool {
    std::process::id() == PROCESS.load(Ordering::Relaxed)
}

/// From here on commands find this process. Called again, it sees to it that they still do: a program that became a daemon may
/// have closed the block's descriptor.
pub(crate) fn appear() {
    let Some(_appearing) = lock::take(&APPEARING) else { return };
    if !memory().is_some_and(Memory::is_open)
        && let Err(error) = make()
    {
        complain(&format!("this process cannot be controlled: {error}"));
    }
}

fn make() -> std::io::Result<()> {
    let settings = settings::get();
    let memory = Memory::new()?;
    memory.block.takes_requests.store(settings.flag.into(), Ordering::Relaxed);
    let known = block().and_then(|block| block.status.read()).unwrap_or_else(Reading::nothing);
    memory.block.status.write(&Reading { signals: signal::owners(), ..known });
    let old = block();
    MEMORY.store(Box::into_raw(Box::new(memory)), Ordering::Release);
    // A thread that sleeps on the old block moves over.
    if let Some(old) = old {
        old.ring();
    }
    if !SERVED.swap(true, Ordering::Relaxed) {
        for line in &settings.complaints {
            complain(line);
        }
        fork::watch();
        if let Err(error) = thread::start() {
            SERVED.store(false, Ordering::Relaxed);
            MEMORY.store(std::ptr::null_mut(), Ordering::Release);
            memory.close();
            return Err(error);
        }
    }
    memory.block.publish();
    Ok(())
}

/// In a forked child: a block and a thread of its own, if the parent had one.
pub(crate) fn inherit() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    APPEARING.store(false, Ordering::Relaxed);
    let Some(parents) = memory() else { return };
    parents.close();
    SERVED.store(false, Ordering::Relaxed);
    appear();
}

/// One line on standard error.
fn complain(message: &str) {
    stderr::write_line("rpd_remote", message);
}
