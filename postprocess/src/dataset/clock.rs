//! Nodes and their clocks. Sessions of one boot share a clock, as [`crate::merge`] has it; what is added to its times so that they are ns
//! since 1970 is decided once, by whoever is the first to add a trace of that boot. So times of one node are to each other exactly as
//! they were recorded, and times of two nodes as well as their wall clocks agree.

use anyhow::Result;
use rpd_schema::{SessionInfo, session_fact};
use serde::{Deserialize, Serialize};

use super::place::{Place, claim, encoded};

/// Characters of a boot's id behind the name of a host, where two hosts have one name.
const BOOT_SHOWN: usize = 8;

/// A host, as sessions tell it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Host {
    /// By the id of its boot.
    Boot(String),
    /// By its name.
    Name(String),
    /// The sessions do not say.
    Unknown,
}

impl Host {
    /// The host of a session.
    pub(super) fn of(session: &SessionInfo) -> Host {
        let fact = |key| session.get(key).map(str::trim).filter(|fact| !fact.is_empty()).map(str::to_string);
        match (fact(session_fact::BOOT_ID), fact(session_fact::HOST)) {
            (Some(boot), _) => Host::Boot(boot),
            (None, Some(name)) => Host::Name(name),
            (None, None) => Host::Unknown,
        }
    }

    /// The name of its file, and what it is in others.
    fn key(&self) -> Option<(String, &str)> {
        match self {
            Host::Boot(boot) => Some((format!("boot-{}", encoded(boot)), boot)),
            Host::Name(name) => Some((format!("host-{}", encoded(name)), name)),
            Host::Unknown => None,
        }
    }
}

/// What a dataset says of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HostClock {
    /// Its name in the dataset; empty where nothing says it.
    pub(super) node: String,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, ns; none where nothing says it.
    pub(super) realtime_less_monotonic_ns: Option<i64>,
}

/// Who has a node's name.
#[derive(Debug, Serialize, Deserialize)]
struct NameOf {
    boot: String,
}

/// What the dataset says of a host; where it says nothing yet, the host gets `name` if no other has it, and `offset`.
///
/// # Errors
/// When the dataset cannot be read or written.
pub(super) fn agreed(place: &Place, host: &Host, name: &str, offset: Option<i64>) -> Result<HostClock> {
    let Some((file, boot)) = host.key() else {
        return Ok(HostClock { node: name.to_string(), realtime_less_monotonic_ns: offset });
    };
    if let Some(clock) = known(place, host)? {
        return Ok(clock);
    }
    let short: String = boot.chars().take(BOOT_SHOWN).collect();
    let mut node = String::new();
    for candidate in [name.to_string(), format!("{name}-{short}"), format!("{name}-{boot}")] {
        let path = place.directory.join("_node").join(format!("n{}.json", encoded(&candidate)));
        let owner = claim(&path, &NameOf { boot: boot.to_string() })?;
        node = candidate;
        if owner.boot == boot {
            break;
        }
    }
    let path = place.directory.join("_clock").join(format!("{file}.json"));
    claim(&path, &HostClock { node, realtime_less_monotonic_ns: offset })
}

/// What the dataset says of a host, if it does.
///
/// # Errors
/// When it cannot be read.
pub(super) fn known(place: &Place, host: &Host) -> Result<Option<HostClock>> {
    let Some((file, _)) = host.key() else { return Ok(None) };
    super::place::read(&place.directory.join("_clock").join(format!("{file}.json")))
}
