//! Why bytes could not be read as a code object: one kind per thing a caller may want to do about it. The `Error` of `rpd_schema` is about a
//! trace.

/// What is wrong with the bytes. The texts do not name a file: whoever read the bytes knows it and adds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes begin like nothing this crate knows.
    #[error("not a code object: neither an ELF file nor an offload bundle; give the output of the compiler")]
    UnknownFormat,
    /// An ELF file, but for another machine.
    #[error("not a code object: an ELF file for machine {machine} (AMDGPU is 224); give the device's part")]
    OtherMachine {
        /// `e_machine` of the file.
        machine: u16,
    },
    /// A host program or library without kernels.
    #[error(
        "no kernels for AMD GPUs: an ELF file of the host without a section .hip_fatbin; give the library that has them"
    )]
    NoDeviceCode,
    /// The file cannot be read.
    #[error("it cannot be read: {why}")]
    Unreadable {
        /// What the system says.
        why: String,
    },
    /// Known and deliberately not read.
    #[error("{what} cannot be read: {advice}")]
    Unsupported {
        /// What was met.
        what: String,
        /// What to do instead.
        advice: &'static str,
    },
    /// A structure points outside of the bytes or contradicts itself.
    #[error("damaged {part}: {why}; build or copy the file again")]
    Malformed {
        /// Which structure.
        part: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// More of something than any real code object has, so that reading it could take all memory.
    #[error("{part} is too large: more than {limit}; the file is damaged or not a code object")]
    TooLarge {
        /// Which structure.
        part: &'static str,
        /// The limit it exceeds, in the unit of `part`.
        limit: usize,
    },
}

impl Error {
    pub(crate) fn unreadable(error: std::io::Error) -> Error {
        Error::Unreadable { why: error.to_string() }
    }

    pub(crate) fn malformed(part: &'static str, why: impl Into<String>) -> Error {
        Error::Malformed { part, why: why.into() }
    }
}
