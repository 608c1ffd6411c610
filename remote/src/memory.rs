//! The memfd that holds this process's block.

use std::fs::File;
use std::io::Read;

use rpd_remote_block::{NAME, SIZE, SharedBlock};

/// The least number the descriptor may have: programs take the lowest free one, and must find the same as without us.
const DESCRIPTORS: [libc::c_int; 3] = [1000, 200, 10];

/// A block and the descriptor by which commands find it.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// Mapped for good: signal handlers and the thread may hold it at any time.
    pub(crate) block: &'static SharedBlock,
    descriptor: libc::c_int,
    /// Device and inode: a program may close the descriptor, and put a file of its own in its place.
    identity: (u64, u64),
}

impl Memory {
    /// A new block, filled with what identifies this process; not yet published.
    pub(crate) fn new() -> std::io::Result<Memory> {
        let descriptor = create()?;
        let memory = map(descriptor);
        if memory.is_err() {
            // SAFETY: a descriptor made above that nobody else knows of.
            unsafe { libc::close(descriptor) };
        }
        memory
    }

    /// Whether the descriptor still is the block's.
    pub(crate) fn is_open(&self) -> bool {
        identity(self.descriptor).is_ok_and(|identity| identity == self.identity)
    }

    /// Closes the descriptor, if it still is the block's.
    pub(crate) fn close(&self) {
        if self.is_open() {
            // SAFETY: the descriptor is ours, as just asked.
            unsafe { libc::close(self.descriptor) };
        }
    }
}

fn create() -> std::io::Result<libc::c_int> {
    let usual = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Kernels before 6.3 do not know that the memory can be said not to hold programs; later ones may insist on it.
    let first = [usual | libc::MFD_NOEXEC_SEAL, usual].into_iter().find_map(|flags| {
        // SAFETY: a NUL-terminated name.
        let descriptor = unsafe { libc::memfd_create(NAME.as_ptr(), flags) };
        (descriptor >= 0).then_some(descriptor)
    });
    let first = first.ok_or_else(std::io::Error::last_os_error)?;
    for least in DESCRIPTORS {
        // SAFETY: plain calls on a descriptor made above.
        let high = unsafe { libc::fcntl(first, libc::F_DUPFD_CLOEXEC, least) };
        if high >= 0 {
            // SAFETY: as above; `high` is used from here on.
            unsafe { libc::close(first) };
            return Ok(high);
        }
    }
    Ok(first)
}

fn map(descriptor: libc::c_int) -> std::io::Result<Memory> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: plain calls on a descriptor of ours. Nobody can shrink the file any more, so that the mapping cannot fault.
    unsafe {
        checked(libc::ftruncate(descriptor, SIZE as libc::off_t))?;
        checked(libc::fcntl(descriptor, libc::F_ADD_SEALS, seals))?;
        checked(libc::fchmod(descriptor, 0o600))?;
    }
    let (read_write, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping of a file of that size, wherever there is room.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), SIZE, read_write, shared, descriptor, 0) };
    if address == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: mapped, page-aligned, large enough (asserted where SharedBlock is), never unmapped; all of SharedBlock is atomics, for which
    // any bytes are a value.
    let block = unsafe { &*address.cast::<SharedBlock>() };
    block.belongs_to(std::process::id(), start_time().unwrap_or(0));
    Ok(Memory { block, descriptor, identity: identity(descriptor)? })
}

fn checked(result: libc::c_int) -> std::io::Result<()> {
    if result == -1 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

fn identity(descriptor: libc::c_int) -> std::io::Result<(u64, u64)> {
    // SAFETY: all-zero is a valid stat to be overwritten.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is writable; a descriptor that is not open is an error.
    checked(unsafe { libc::fstat(descriptor, &mut stat) })?;
    Ok((stat.st_dev, stat.st_ino))
}

/// When this process started, in clock ticks since boot.
fn start_time() -> Option<u64> {
    let mut text = Vec::new();
    File::open("/proc/self/stat").ok()?.read_to_end(&mut text).ok()?;
    // Fields count from 1, the name (field 2) is in parentheses and may hold anything, and this is field 22.
    let text = String::from_utf8_lossy(&text);
    text.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()
}
