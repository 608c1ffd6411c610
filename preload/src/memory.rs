//! Memory of this process that may not be there any more.

use std::ffi::c_void;

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// All of it was copied.
    All,
    /// Not all of that memory is mapped and readable.
    NotThere,
    /// The system does not say: it forbids to ask.
    Unknown,
}

/// Copies what is at `address` into `to`, by way of the kernel: memory that is not there is an answer, not a fault. A system call.
pub fn copy(address: usize, to: &mut [u8]) -> Copied {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: to.len() };
    // SAFETY: the kernel writes into `to` at most its own length; it checks the other side itself.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    match usize::try_from(copied) {
        Ok(bytes) if bytes == to.len() => Copied::All,
        Ok(_) => Copied::NotThere,
        Err(_) => match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EFAULT) => Copied::NotThere,
            _ => Copied::Unknown,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_copied_and_what_is_not_is_known() {
        let (from, mut to) = ([1u8, 2, 3], [0u8; 3]);
        assert_eq!((copy(from.as_ptr() as usize, &mut to), to), (Copied::All, from));
        assert_eq!(copy(0, &mut to), Copied::NotThere);
        assert_eq!(copy(usize::MAX - 8, &mut to), Copied::NotThere);
    }
}
