//! The system calls of the SQLite inside this library, replaced where its usual ones are not safe inside a host.
//!
//! - Locks: SQLite takes POSIX locks, which a process loses as soon as *anything* in it closes the file - a Python program that
//!   looks into its own trace, say. Locks of the open file description (fcntl(2), F_OFD_SETLK) have no such owner, exclude
//!   POSIX locks of everybody else, and are otherwise the same.
//! - Descriptors: a host may close all descriptors it does not know, or put another file in place of one. SQLite would write
//!   a page of the trace into that file. Each descriptor is remembered with the file it was opened for, and asked before use.
//!
//! The copy of SQLite in here is ours alone, and one thread uses it with one connection.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, Once};

use rusqlite::ffi;

use crate::sync::lock;

/// (descriptor, device, inode) of the files that SQLite has open.
static OPEN: Mutex<Vec<(c_int, u64, u64)>> = Mutex::new(Vec::new());

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

/// Whether every descriptor of SQLite's still is the file it was opened for.
pub(super) fn descriptors_are_ours() -> bool {
    lock(&OPEN).iter().all(|(descriptor, device, inode)| identity(*descriptor) == Some((*device, *inode)))
}

/// In a forked child, where no SQLite call is running: the parent's files are not this process's.
pub(super) fn close_inherited() {
    for (descriptor, device, inode) in std::mem::take(&mut *lock(&OPEN)) {
        if identity(descriptor) == Some((device, inode)) {
            // SAFETY: still the parent's file, and nobody in this process uses it. Locks of an open file description stay with
            // the parent's descriptor.
            unsafe { libc::close(descriptor) };
        }
    }
}

fn identity(descriptor: c_int) -> Option<(u64, u64)> {
    // SAFETY: all-zero is a valid stat to be overwritten.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a valid place; a descriptor that is not open is an error.
    (unsafe { libc::fstat(descriptor, &mut stat) } == 0).then_some((stat.st_dev, stat.st_ino))
}

/// Whether `descriptor` is what it was; otherwise errno says that it is not open.
fn is_ours(descriptor: c_int) -> bool {
    let known =
        lock(&OPEN).iter().find(|(open, ..)| *open == descriptor).map(|(_, device, inode)| (*device, *inode));
    let ours = known.is_some() && identity(descriptor) == known;
    if !ours {
        // SAFETY: this thread's own errno.
        unsafe { *libc::__errno_location() = libc::EBADF };
    }
    ours
}

unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: SQLite's arguments.
    let descriptor = unsafe { libc::open(path, flags, mode) };
    if let Some((device, inode)) = identity(descriptor) {
        lock(&OPEN).push((descriptor, device, inode));
    }
    descriptor
}

unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    let ours = is_ours(descriptor);
    lock(&OPEN).retain(|(open, ..)| *open != descriptor);
    // SAFETY: closed only while it is SQLite's own.
    if ours { unsafe { libc::close(descriptor) } } else { 0 }
}

/// A quota that is used up is a full disk, and a file that may not grow as well; SQLite knows them by ENOSPC alone.
fn full(written: isize) -> isize {
    replace_errno(written == -1, libc::EDQUOT, libc::ENOSPC);
    replace_errno(written == -1, libc::EFBIG, libc::ENOSPC);
    written
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
