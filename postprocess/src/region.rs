//! A part of a trace as people name it: by time, GPU, queue, stream, process, thread, session, rank, node, marker or kernel.
//!
//! Rules, the same for every verb that reads a region:
//! - A call is in it if it *starts* in the range of time, and its process, thread, session, rank and node are among those named.
//! - An operation is in it with the call that caused it, whenever it ran. One that no call caused is in it if it starts in the range
//!   of time; it belongs to no process, thread or stream, so it is out where one of these is named.
//! - GPUs, queues, streams and kernels are about operations. Where one of them is named, calls are in it that caused such an operation,
//!   and markers, which cause none themselves.
//! - A marker is a range of time for each of its occurrences, for all threads of the process that pushed it.

mod intervals;
mod selected;

use anyhow::{Context, Result, bail};
use regex::Regex;
use rpd_schema::{Processes, Version};
use rusqlite::Connection;

use crate::moment::{TimeRange, matching_texts, named};
use crate::text::escape;
use crate::trace::layout::Layout;
use crate::trace::strides::Strides;
use crate::trim::window::Window;
use intervals::MarkerRanges;
pub(crate) use selected::IS_KNOWN;
pub use selected::Selected;
use selected::{CallChoice, OpChoice};

/// A part of a trace, as it was named. What was not named leaves nothing out.
#[derive(Debug, Clone, Default)]
pub struct Region {
    /// From when to when.
    pub time: TimeRange,
    /// And from when to when, where both must hold.
    pub during: TimeRange,
    /// GPUs: `gpuId`.
    pub gpus: Vec<i64>,
    /// Queues: `queueId`.
    pub queues: Vec<i64>,
    /// Streams, as the trace has them: `0x55d0c8a0`.
    pub streams: Vec<String>,
    /// Process ids.
    pub pids: Vec<i64>,
    /// Thread ids.
    pub tids: Vec<i64>,
    /// Sessions.
    pub sessions: Vec<i64>,
    /// Ranks, as the sessions have them.
    pub ranks: Vec<String>,
    /// Nodes of a merged trace.
    pub nodes: Vec<i64>,
    /// The text of a marker; with `:n` behind it the n-th.
    pub within: Option<String>,
    /// What is found in the names of operations, or in the types of those that have no name.
    pub kernel: Option<Regex>,
}

impl Region {
    /// Whether it is all of a trace.
    pub fn is_everything(&self) -> bool {
        let Region { time, during, pids, tids, sessions, ranks, nodes, within, .. } = self;
        [time, during].iter().all(|range| range.start.is_none() && range.end.is_none())
            && pids.is_empty()
            && tids.is_empty()
            && sessions.is_empty()
            && ranks.is_empty()
            && nodes.is_empty()
            && within.is_none()
            && !self.is_about_operations()
    }

    /// The same, whatever operations it is about.
    #[must_use]
    pub fn of_all_operations(&self) -> Region {
        Region { gpus: Vec::new(), queues: Vec::new(), streams: Vec::new(), kernel: None, ..self.clone() }
    }

    /// Whether it names GPUs, queues, streams or kernels.
    pub fn is_about_operations(&self) -> bool {
        let Region { gpus, queues, streams, kernel, .. } = self;
        !gpus.is_empty() || !queues.is_empty() || !streams.is_empty() || kernel.is_some()
    }

    /// What of `trace` is in the region. Scans its calls, links and operations; memory is a bit or so for each.
    ///
    /// # Errors
    /// When a moment or a marker is not in the trace, or the trace cannot be read.
    pub fn select(&self, trace: &Connection, version: Version) -> Result<Selected> {
        if self.is_everything() {
            return Ok(Selected::everything());
        }
        let mut window = Window { start_ns: i64::MIN, end_ns: i64::MAX };
        for range in [&self.time, &self.during] {
            let named = Window::of(trace, version, range)?;
            window.start_ns = window.start_ns.max(named.start_ns);
            window.end_ns = window.end_ns.min(named.end_ns);
        }
        let processes = Processes::of(trace)?;
        let within = match &self.within {
            Some(name) => Some(MarkerRanges::of(trace, &processes, &named(trace, version, name)?)?),
            None => None,
        };
        let strides = match self.nodes.is_empty() {
            true => None,
            false => Some(
                Strides::of(trace, &Layout::of(trace)?)?
                    .context("the trace has no nodes: rpd merge makes such of traces of several hosts")?,
            ),
        };
        let calls = CallChoice {
            window,
            pids: &self.pids,
            tids: &self.tids,
            sessions: &self.sessions,
            of_ranks: self.of_ranks(trace)?,
            nodes: strides.map(|strides| (self.nodes.as_slice(), strides)),
            within: within.as_ref().map(|ranges| (ranges, &processes)),
        };
        let ops = OpChoice {
            gpus: &self.gpus,
            queues: &self.queues,
            streams: &self.streams,
            kernels: self.kernel.as_ref().map(|pattern| matching_texts(trace, pattern)).transpose()?,
            is_any: self.is_about_operations(),
        };
        Selected::of(trace, version, &calls, &ops)
    }

    /// The sessions of the ranks that are named; none where none is.
    fn of_ranks(&self, trace: &Connection) -> Result<Option<Vec<i64>>> {
        if self.ranks.is_empty() {
            return Ok(None);
        }
        let sessions = rpd_schema::sessions(trace)?;
        for rank in &self.ranks {
            if !sessions.iter().any(|session| session.rank() == Some(rank)) {
                bail!("no session has the rank {}; rpd info shows those there are", escape(rank));
            }
        }
        let of_rank = |rank: &str| self.ranks.iter().any(|asked| asked == rank);
        let found = sessions.iter().filter(|session| session.rank().is_some_and(of_rank));
        Ok(Some(found.map(|session| i64::from(session.session)).collect()))
    }
}
