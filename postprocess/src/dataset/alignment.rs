//! Clocks of a job's hosts by a marker that all of them set at one moment, in place of their wall clocks.
//!
//! Hosts add their traces at any time and in any order. So whoever is first says when the marker begins, by the clock of its own host;
//! the clocks of others become such that theirs begins then. What is said of a host's clock once stays: see [`super::clock`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::clock::{Host, HostClock};
use super::place::{DatasetPlace, claim, encoded, read};
use super::source::TraceSource;
use crate::moment;
use crate::text;

/// Ranks of one host may leave a barrier so long after each other, ns.
const NEAR_NS: u64 = 1_000_000;

/// The marker of a job, and when it begins on all of its hosts.
#[derive(Debug, Serialize, Deserialize)]
struct JobMarker {
    marker: String,
    at_ns: i64,
}

/// How a trace that is added is aligned.
pub(super) struct Alignment<'a> {
    place: &'a DatasetPlace,
    marker: &'a str,
    job: String,
    trace: String,
    /// Where the first such marker of each host begins, ns on the clock of the trace.
    begins: BTreeMap<Host, i64>,
}

impl<'a> Alignment<'a> {
    /// Looks for the marker in a trace of `job`, or else of the job that its sessions say.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of(
        place: &'a DatasetPlace,
        marker: &'a str,
        source: &TraceSource,
        job: Option<&str>,
    ) -> Result<Alignment<'a>> {
        let trace = text::escape_path(&source.path);
        let found = moment::markers(&source.trace, source.version, marker);
        let mut begins = BTreeMap::new();
        for (id, span) in found.with_context(|| format!("cannot read {trace}"))? {
            // They come in the order in which they begin.
            begins.entry(source.host_of(id >> 32)).or_insert(span.start_ns);
        }
        Ok(Alignment {
            place,
            marker,
            job: job.or_else(|| source.job()).unwrap_or_default().to_string(),
            trace,
            begins,
        })
    }

    /// What is to be added to the times of a host, ns: `known` is what the dataset says of its clock, and `said` what its sessions say of
    /// their wall clock.
    ///
    /// # Errors
    /// When the host has no such marker and nothing is known of its clock, or the job has another marker.
    pub(super) fn offset(
        &self,
        host: &Host,
        known: Option<&HostClock>,
        said: Option<i64>,
    ) -> Result<Option<i64>> {
        let own = known.map_or(said, |known| known.realtime_less_monotonic_ns);
        let Some(begin) = self.begins.get(host) else {
            // A clock that is known needs no marker.
            if known.is_some() {
                return Ok(own);
            }
            bail!(
                "no marker has the text {} in {}: add a trace of its host that has it first, or leave --align out",
                text::escape(self.marker),
                self.trace
            );
        };
        let bounds = || format!("{}: the clock of a session is out of all bounds", self.trace);
        let at_ns = begin.checked_add(own.unwrap_or(0)).with_context(bounds)?;
        let reference = claim(&self.path(), &JobMarker { marker: self.marker.to_string(), at_ns })?;
        if reference.marker != self.marker {
            bail!(
                "the ranks of job {} are aligned by marker:{}: name that one, or leave --align out",
                text::escape(&self.job),
                text::escape(&reference.marker)
            );
        }
        reference.at_ns.checked_sub(*begin).with_context(bounds).map(Some)
    }

    /// How much later than in the rest of the job the marker begins on a host, by the clock that it has in the dataset; none where that
    /// is less than markers of ranks of one host may differ.
    ///
    /// # Errors
    /// When the job's marker cannot be read.
    pub(super) fn lateness_ns(&self, host: &Host, clock: &HostClock) -> Result<Option<i64>> {
        let (Some(begin), Some(offset)) = (self.begins.get(host), clock.realtime_less_monotonic_ns) else {
            return Ok(None);
        };
        let late = read::<JobMarker>(&self.path())?
            .map(|reference| begin.saturating_add(offset).saturating_sub(reference.at_ns));
        Ok(late.filter(|late| late.unsigned_abs() > NEAR_NS))
    }

    fn path(&self) -> PathBuf {
        self.place.directory.join("_align").join(format!("job=j{}.json", encoded(&self.job)))
    }
}
