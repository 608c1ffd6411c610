//! What is ranked, and the rows that it is found in.

use rpd_schema::Version;

use crate::trace::marker::{is_marker, is_text};
use crate::trace::op_kind::KERNEL_TYPES;

/// What is ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankBy {
    /// Everything that GPUs did.
    Operation,
    /// Kernels, by name.
    Kernel,
    /// Calls, by function.
    Api,
    /// Copies and fills, by direction.
    Copy,
    /// Markers, by text.
    Marker,
    /// Operations, by the stream of the call that caused them.
    Stream,
    /// Operations, by queue.
    Queue,
    /// Operations, by GPU.
    Gpu,
    /// Operations, by the rank of the process that recorded them.
    Rank,
    /// Operations, by the session that recorded them.
    Session,
    /// Operations, by the thread that launched them.
    Thread,
}

impl RankBy {
    /// One of them and several, for messages.
    pub fn noun(self) -> (&'static str, &'static str) {
        match self {
            RankBy::Kernel => ("kernel", "kernels"),
            RankBy::Api => ("call", "calls"),
            RankBy::Copy => ("copy", "copies"),
            RankBy::Marker => ("marker", "markers"),
            _ => ("operation", "GPU operations"),
        }
    }

    /// Whether one may be inside another, on the same thread.
    pub fn nests(self) -> bool {
        matches!(self, RankBy::Api | RankBy::Marker)
    }

    /// Whether instrumented kernels may be among them.
    pub(super) fn has_instrumented(self) -> bool {
        !matches!(self, RankBy::Api | RankBy::Marker | RankBy::Copy)
    }

    /// Whether operations are put together by where they ran or who launched them, not by name.
    pub fn is_place(self) -> bool {
        matches!(
            self,
            RankBy::Stream | RankBy::Queue | RankBy::Gpu | RankBy::Rank | RankBy::Session | RankBy::Thread
        )
    }

    /// Start, end and two ids of texts of each row for which `counts` (SQL) is true; the name is the first text that is not empty. Of
    /// what nests the id and the thread too, of others the id where it is asked for.
    pub(super) fn query(self, counts: &str, with_id: bool) -> String {
        let id = if with_id { ", id" } else { "" };
        let ops =
            format!(r#"SELECT start, "end", description_id, opType_id{id} FROM rocpd_op WHERE {counts}"#);
        let of_type =
            |which: &str| format!("{ops} AND opType_id IN (SELECT id FROM rocpd_string WHERE {which})");
        let marker = is_marker("");
        let calls = |text: &str, which: &str| {
            format!(
                r#"SELECT start, "end", {text}, apiName_id, id, pid, tid FROM rocpd_api WHERE {counts} AND {which}"#
            )
        };
        match self {
            RankBy::Kernel => of_type(&format!("string IN ({KERNEL_TYPES})")),
            RankBy::Copy => of_type("string GLOB 'Copy*' OR string GLOB 'Fill*'"),
            RankBy::Api => calls("0", &format!("NOT {marker}")),
            RankBy::Marker => calls(&format!("iif({}, args_id, 0)", is_text("")), &marker),
            _ => ops,
        }
    }

    /// Where the first text is.
    pub(super) fn texts(self, version: Version) -> &'static str {
        if self == RankBy::Marker && version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" }
    }
}
