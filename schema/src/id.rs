//! Ids: local to one recording process until they are written.
//!
//! In the file an id is the local one plus the session number times 2^32. A local id that does not fit below 2^32 is
//! refused when its row is added ([`crate::ErrorKind::SessionFull`]): it would be another session's row.

/// How many local ids one session has.
pub(crate) const LOCAL_IDS: u64 = 1 << 32;

/// First local API id of markers; smaller ones are correlation ids of GPU API calls.
const FIRST_MARKER: u64 = 1 << 31;

/// A local id of an API call or marker: a row of `rocpd_api`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiId(u64);

impl ApiId {
    /// The call with this correlation id, below 2^31.
    #[must_use]
    pub const fn call(correlation: u64) -> ApiId {
        // One that reaches the markers' range is kept as one that no session can hold.
        if correlation < FIRST_MARKER { ApiId(correlation) } else { ApiId(u64::MAX) }
    }

    /// The marker, mark or range with this number, counted from 0, below 2^31.
    #[must_use]
    pub const fn marker(number: u64) -> ApiId {
        ApiId(FIRST_MARKER.saturating_add(number))
    }

    /// The local id; 2^32 or more where the session cannot hold it.
    #[must_use]
    pub const fn local(self) -> u64 {
        self.0
    }
}

/// A local id of an op: a row of `rocpd_op`. Counts from 1, below 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u64);

/// A local id of a kernel's code object facts: a row of `rocpd_kernelcodeobject`. Counts from 1, below 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeObjectId(pub u64);

impl CodeObjectId {
    /// Not known; the file has 0 for it, whatever the session.
    pub const UNKNOWN: CodeObjectId = CodeObjectId(0);
}

/// A local id of a code object whose bytes were saved: a row of `ext_codeobject`. Counts from 1, below 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SavedCodeId(pub u64);

/// A local id of a file of the kernel cache: a row of `ext_candidate`. Counts from 1, below 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CandidateId(pub u64);

/// An id of a text in `rocpd_string`, as it is in the file. Comes from [`crate::Appender::intern`] only, and
/// stays valid in later transactions and sessions of the same appender, unless its own transaction is rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringId(pub(crate) i64);

/// From local ids to the file's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offset(i64);

impl Offset {
    /// The offset of session `session`, which is below 2^31.
    pub(crate) fn of_session(session: u32) -> Offset {
        Offset(i64::from(session) << 32)
    }

    /// The file's id of a local one, which is below [`LOCAL_IDS`].
    pub(crate) fn local(self, id: u64) -> i64 {
        debug_assert!(id < LOCAL_IDS, "checked when the row was added");
        self.0 + id as i64
    }

    /// The file's id of an API call.
    pub(crate) fn api(self, id: ApiId) -> i64 {
        self.local(id.0)
    }

    /// The file's id of an op.
    pub(crate) fn op(self, id: OpId) -> i64 {
        self.local(id.0)
    }

    /// The file's id of a code object, 0 where it is not known.
    pub(crate) fn code_object(self, id: CodeObjectId) -> i64 {
        if id == CodeObjectId::UNKNOWN { 0 } else { self.local(id.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_do_not_spill_into_the_markers_nor_markers_into_the_next_session() {
        assert_eq!(ApiId::call(FIRST_MARKER - 1).local(), FIRST_MARKER - 1);
        assert!(ApiId::call(FIRST_MARKER).local() >= LOCAL_IDS);
        assert_eq!(ApiId::marker(0).local(), FIRST_MARKER);
        assert_eq!(ApiId::marker(FIRST_MARKER - 1).local(), LOCAL_IDS - 1);
        assert!(ApiId::marker(FIRST_MARKER).local() >= LOCAL_IDS);
        assert!(ApiId::marker(u64::MAX).local() >= LOCAL_IDS);
    }

    #[test]
    fn an_unknown_code_object_is_zero_in_every_session() {
        assert_eq!(Offset::of_session(7).code_object(CodeObjectId::UNKNOWN), 0);
        assert_eq!(Offset::of_session(7).code_object(CodeObjectId(3)), 7 * (1 << 32) + 3);
    }
}
