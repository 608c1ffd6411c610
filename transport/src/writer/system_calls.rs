//! The system calls of the SQLite inside this library, replaced where its usual ones are not safe inside a host.
//!
//! - Locks: SQLite takes POSIX locks, which a process loses as soon as *anything* in it closes the file - a Python program that
//!   looks into its own trace, say. Locks of the open file description (fcntl(2), F_OFD_SETLK) have no such owner, exclude
//!   POSIX locks of everybody else, and are otherwise the same.
//! - Descriptors: a host may close all descriptors it does not know, or put another file in place of one. SQLite would write
//!   a page of the trace into that file. Each descriptor is remembered with the file it was opened for, and asked before use.
//!
//! The copy of SQLite in here is ours alone, and one thread uses it with one connection.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io::{Error, Result};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rpd_preload::descriptors;
use rusqlite::ffi;

/// A descriptor of ours, and the file it was opened for.
pub(super) struct OpenFile {
    /// [`NONE`]: the place is free.
    descriptor: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

/// No descriptor.
const NONE: c_int = -1;

/// The files that SQLite has open: trace, journal, and those of a look at it, so there is room for many more. Without a lock: one
/// thread changes it, and a child may be forked while it does.
static OPEN: [OpenFile; 64] = [const { OpenFile::none() }; 64];
/// The duration log, while a thread of ours has it open.
pub(super) static LOG: OpenFile = OpenFile::none();

impl OpenFile {
    const fn none() -> OpenFile {
        OpenFile { descriptor: AtomicI32::new(NONE), device: AtomicU64::new(0), inode: AtomicU64::new(0) }
    }

    /// Those of all descriptors of SQLite's.
    fn all() -> impl Iterator<Item = &'static OpenFile> {
        OPEN.iter().filter(|open| open.descriptor() != NONE)
    }

    fn find(descriptor: c_int) -> Option<&'static OpenFile> {
        OPEN.iter().find(|open| open.descriptor() == descriptor)
    }

    fn descriptor(&self) -> c_int {
        self.descriptor.load(Ordering::Acquire)
    }

    fn file(&self) -> (u64, u64) {
        (self.device.load(Ordering::Relaxed), self.inode.load(Ordering::Relaxed))
    }

    /// The descriptor is that of the file (device, inode).
    pub(super) fn put(&self, descriptor: c_int, (device, inode): (u64, u64)) {
        self.device.store(device, Ordering::Relaxed);
        self.inode.store(inode, Ordering::Relaxed);
        self.descriptor.store(descriptor, Ordering::Release);
    }

    /// Whether the descriptor still is the file it was opened for.
    pub(super) fn is_ours(&self) -> bool {
        identity(self.descriptor()) == Some(self.file())
    }

    pub(super) fn forget(&self) {
        self.descriptor.store(NONE, Ordering::Release);
    }

    /// Closes it, unless it is the program's by now; whether it did.
    fn close(&self) -> bool {
        let ours = self.is_ours();
        if ours {
            // SAFETY: still the file that it was opened for, and nobody else uses the descriptor.
            unsafe { libc::close(self.descriptor()) };
        }
        self.forget();
        ours
    }
}

/// Puts the replacements in. Before SQLite opens its first file.
pub(super) fn replace() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: null asks for the default VFS, which always exists and lives as long as the process.
        let Some(vfs) = (unsafe { ffi::sqlite3_vfs_find(std::ptr::null()).as_mut() }) else { return };
        let Some(set) = vfs.xSetSystemCall else { return };
        for (name, call) in [
            (c"open", open as *const () as usize),
            (c"close", close as *const () as usize),
            (c"fcntl", fcntl as *const () as usize),
            (c"write", write as *const () as usize),
            (c"pwrite", pwrite as *const () as usize),
            (c"pwrite64", pwrite as *const () as usize),
            (c"ftruncate", ftruncate as *const () as usize),
        ] {
            // SAFETY: each function has the type that SQLite calls under that name (sqlite3.c, aSyscall); variadic ones
            // are called with the arguments in the places where a fixed argument list has them (x86-64 System V ABI).
            unsafe {
                let call = std::mem::transmute::<usize, ffi::sqlite3_syscall_ptr>(call);
                set(vfs, name.as_ptr(), call);
            }
        }
    });
}

/// Whether SQLite has that (device, inode) open.
pub(super) fn has_open(file: Option<(u64, u64)>) -> bool {
    file.is_some() && OpenFile::all().any(|open| Some(open.file()) == file)
}

/// The byte of the trace by which recorders take turns, behind those that SQLite locks (sqlite3.c, PENDING_BYTE to SHARED_SIZE).
const TURN: libc::off_t = 0x4000_0000 + 2 + 510;

/// The trace that this process writes: device, inode.
static TRACE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// The file that SQLite has just opened at `path` is the trace that [`take_turn`] is about.
pub(super) fn is_trace(path: &Path) {
    let (device, inode) = std::fs::metadata(path).map_or((0, 0), |file| (file.dev(), file.ino()));
    set_trace_file([device, inode]);
}

/// Which file that is.
pub(super) fn trace_file() -> [u64; 2] {
    [0, 1].map(|place| TRACE[place].load(Ordering::Relaxed))
}

/// [`take_turn`] is about that file, which [`trace_file`] has returned.
pub(super) fn set_trace_file(file: [u64; 2]) {
    (0..2).for_each(|place| TRACE[place].store(file[place], Ordering::Relaxed));
}

/// Whether SQLite has the trace open.
pub(super) fn has_trace() -> bool {
    trace().is_some()
}

fn trace() -> Option<&'static OpenFile> {
    let [device, inode] = trace_file();
    OpenFile::all().find(|open| open.file() == (device, inode)).filter(|open| open.is_ours())
}

/// Whether the trace has no name any more, or nothing in it. Where its descriptor was lost nobody knows.
pub(super) fn trace_is_gone() -> bool {
    let stat = trace().and_then(|open| stat(open.descriptor()));
    stat.is_some_and(|stat| stat.st_nlink == 0 || stat.st_size == 0)
}

/// A number that changes when somebody writes the trace.
pub(super) fn trace_state() -> u64 {
    let stat = trace().and_then(|open| stat(open.descriptor()));
    stat.map_or(0, |stat| {
        (stat.st_mtime as u64) << 32 ^ stat.st_mtime_nsec as u64 ^ (stat.st_size as u64) << 20
    })
}

/// Takes the lock on that byte of the trace. False: another process has it. SQLite gives it up together
/// with its own last lock on the file.
pub(super) fn take_turn() -> bool {
    lock_turn(libc::F_WRLCK) || !is_anothers_lock()
}

/// Whether a lock could not be had because somebody else has it.
fn is_anothers_lock() -> bool {
    matches!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EAGAIN | libc::EACCES))
}

/// Gives that lock up, if this process has it.
pub(super) fn leave_turn() {
    lock_turn(libc::F_UNLCK);
}

fn lock_turn(kind: c_int) -> bool {
    trace().is_none_or(|open| lock_byte(open, kind, TURN))
}

fn lock_byte(open: &OpenFile, kind: c_int, place: libc::off_t) -> bool {
    // SAFETY: all-zero is a valid flock, of no lock.
    let mut byte: libc::flock = unsafe { std::mem::zeroed() };
    (byte.l_type, byte.l_whence) = (kind as i16, libc::SEEK_SET as i16);
    (byte.l_start, byte.l_len) = (place, 1);
    // SAFETY: a descriptor of ours, and a live flock.
    unsafe { fcntl(open.descriptor(), libc::F_SETLK, (&raw mut byte).cast()) == 0 }
}

/// A descriptor of the trace that has the locks of [`claim_sensors`]: SQLite gives up all locks of its own with each transaction.
static SENSORS: OpenFile = OpenFile::none();
/// The byte of the sensors of the first GPU, behind that of [`TURN`]; those of the others follow.
const FIRST_SENSORS: libc::off_t = TURN + 1;
/// More GPUs than any node has; those beyond share the last byte.
const MOST_GPUS: u32 = 256;

/// Whether this process is the one that records the sensors of that GPU into the trace: it is as long as it lives and nobody else
/// was before. Also where the file system has no such locks. For the thread that writes.
pub(super) fn claim_sensors(gpu: u32) -> bool {
    let Some(trace) = trace() else { return false };
    if SENSORS.file() != trace.file() || !SENSORS.is_ours() {
        leave_sensors();
        let Some(descriptor) = open_again(trace.descriptor()) else { return true };
        SENSORS.put(descriptor, trace.file());
    }
    let byte = FIRST_SENSORS + libc::off_t::from(gpu.min(MOST_GPUS - 1));
    lock_byte(&SENSORS, libc::F_WRLCK, byte) || !is_anothers_lock()
}

/// Leaves the sensors of all GPUs to other processes.
pub(super) fn leave_sensors() {
    SENSORS.close();
}

/// Another open file of the same one.
fn open_again(descriptor: c_int) -> Option<c_int> {
    let path = CString::new(format!("/proc/self/fd/{descriptor}")).ok()?;
    // SAFETY: a NUL-terminated path.
    let opened = unsafe { open_with_room(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC, 0) };
    above_standard_streams(opened)
}

/// A descriptor that was opened just now, or what takes its place; -1: it was not.
fn above_standard_streams(opened: c_int) -> Option<c_int> {
    if opened == -1 || opened > libc::STDERR_FILENO {
        return (opened != -1).then_some(opened);
    }
    // The host has closed a standard stream, and expects nothing there.
    // SAFETY: the descriptor that was opened above, known to nobody.
    let moved = unsafe {
        let moved = libc::fcntl(opened, libc::F_DUPFD_CLOEXEC, libc::STDERR_FILENO + 1);
        libc::close(opened);
        moved
    };
    (moved != -1).then_some(moved)
}

/// Whether every descriptor of SQLite's still is the file it was opened for.
pub(super) fn descriptors_are_ours() -> bool {
    OpenFile::all().all(OpenFile::is_ours)
}

/// In a forked child, which has no thread that uses SQLite or writes the duration log: the parent's files are not this process's. A lock of an open file ends
/// with the last descriptor, so the child must have none when the parent ends.
pub(super) fn close_inherited() {
    for open in OpenFile::all().chain([&LOG, &SENSORS, &RESERVE]) {
        // Nobody in this process uses it. Its locks stay with the parent's descriptor: closing one of two gives none of them up.
        open.close();
    }
}

fn identity(descriptor: c_int) -> Option<(u64, u64)> {
    stat(descriptor).map(|stat| (stat.st_dev, stat.st_ino))
}

fn stat(descriptor: c_int) -> Option<libc::stat> {
    // SAFETY: all-zero is a valid stat to be overwritten.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a valid place; a descriptor that is not open is an error.
    (unsafe { libc::fstat(descriptor, &mut stat) } == 0).then_some(stat)
}

/// Whether `descriptor` is what it was; otherwise errno says that it is not open.
fn is_ours(descriptor: c_int) -> bool {
    let ours = OpenFile::find(descriptor).is_some_and(OpenFile::is_ours);
    if !ours {
        set_errno(libc::EBADF);
    }
    ours
}

/// A descriptor that is there to be given up: where the program uses up all that it may have, the next transaction still has one for its
/// journal.
static RESERVE: OpenFile = OpenFile::none();

/// Takes the descriptor to be given up, unless it is there or none can be had.
fn take_reserve() {
    if RESERVE.is_ours() {
        return;
    }
    // A file that no descriptor of the program's is for.
    // SAFETY: a NUL-terminated name.
    let opened = unsafe { libc::memfd_create(c"rpd".as_ptr(), libc::MFD_CLOEXEC) };
    match above_standard_streams(opened) {
        Some(descriptor) => RESERVE.put(descriptor, identity(descriptor).unwrap_or_default()),
        None => RESERVE.forget(),
    }
}

/// Runs `open` where the program may have used up its descriptors.
pub(super) fn with_room<T>(mut open: impl FnMut() -> Result<T>) -> Result<T> {
    match descriptors::with_room(&mut open) {
        Err(error) if error.raw_os_error() == Some(libc::EMFILE) && RESERVE.close() => open(),
        done => done,
    }
}

/// open(2), by [`with_room`].
///
/// # Safety
/// As for open.
unsafe fn open_with_room(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let opened = with_room(|| {
        // SAFETY: the caller's promise.
        let descriptor = unsafe { libc::open(path, flags, mode) };
        if descriptor == -1 { Err(Error::last_os_error()) } else { Ok(descriptor) }
    });
    opened.unwrap_or_else(|error| {
        set_errno(error.raw_os_error().unwrap_or(libc::EIO));
        -1
    })
}

unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: SQLite's arguments.
    let descriptor = unsafe { open_with_room(path, flags, mode) };
    let Some((device, inode)) = identity(descriptor) else { return descriptor };
    let Some(free) = OpenFile::find(NONE) else {
        // SAFETY: opened above, and known to nobody.
        unsafe { libc::close(descriptor) };
        set_errno(libc::EMFILE);
        return -1;
    };
    free.put(descriptor, (device, inode));
    take_reserve();
    descriptor
}

unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    let ours = is_ours(descriptor);
    // A child that is forked in between has its descriptor closed by the number that still stands here.
    // SAFETY: closed only while it is SQLite's own.
    let closed = if ours { unsafe { libc::close(descriptor) } } else { 0 };
    if let Some(open) = OpenFile::find(descriptor) {
        open.forget();
    }
    take_reserve();
    closed
}

/// A quota that is used up is a full disk, and a file that may not grow as well; SQLite knows them by ENOSPC alone.
fn full(written: isize) -> isize {
    replace_errno(written == -1, libc::EDQUOT, libc::ENOSPC);
    replace_errno(written == -1, libc::EFBIG, libc::ENOSPC);
    written
}

fn set_errno(value: c_int) {
    // SAFETY: this thread's own errno.
    unsafe { *libc::__errno_location() = value };
}

fn replace_errno(failed: bool, from: c_int, to: c_int) {
    // SAFETY: this thread's own errno.
    let errno = unsafe { &mut *libc::__errno_location() };
    if failed && *errno == from {
        *errno = to;
    }
}

unsafe extern "C" fn write(descriptor: c_int, bytes: *const c_void, count: usize) -> isize {
    // SAFETY: SQLite's arguments, and its own file.
    full(if is_ours(descriptor) { unsafe { libc::write(descriptor, bytes, count) } } else { -1 })
}

unsafe extern "C" fn pwrite(
    descriptor: c_int,
    bytes: *const c_void,
    count: usize,
    offset: libc::off_t,
) -> isize {
    // SAFETY: SQLite's arguments, and its own file.
    full(if is_ours(descriptor) { unsafe { libc::pwrite(descriptor, bytes, count, offset) } } else { -1 })
}

unsafe extern "C" fn ftruncate(descriptor: c_int, length: libc::off_t) -> c_int {
    // SAFETY: SQLite's arguments, and its own file.
    if is_ours(descriptor) { unsafe { libc::ftruncate(descriptor, length) } } else { -1 }
}

unsafe extern "C" fn fcntl(descriptor: c_int, command: c_int, argument: *mut c_void) -> c_int {
    let description = match command {
        libc::F_SETLK => libc::F_OFD_SETLK,
        libc::F_SETLKW => libc::F_OFD_SETLKW,
        libc::F_GETLK => libc::F_OFD_GETLK,
        // SAFETY: SQLite's arguments, passed on.
        _ => return unsafe { libc::fcntl(descriptor, command, argument) },
    };
    // SAFETY: all locking commands take a struct flock. For locks of the description l_pid must be 0.
    let mut result = unsafe {
        (*argument.cast::<libc::flock>()).l_pid = 0;
        libc::fcntl(descriptor, description, argument)
    };
    // SAFETY: this thread's own errno.
    if result != 0 && unsafe { *libc::__errno_location() } == libc::EINVAL {
        // A file system that does not know them.
        // SAFETY: as above.
        result = unsafe { libc::fcntl(descriptor, command, argument) };
    }
    // SQLite takes this for a lock of somebody else's, which goes away.
    replace_errno(result != 0, libc::ENOLCK, libc::ENOSYS);
    result
}
