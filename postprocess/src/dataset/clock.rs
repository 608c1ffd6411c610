//! Nodes and their clocks. Sessions of one boot share a clock, as [`crate::merge`] has it; what is added to its times so that they are ns
//! since 1970 is decided once, by whoever is the first to add a trace of that boot. So times of one node are to each other exactly as
//! they were recorded, and times of two nodes as well as their wall clocks agree.

use std::cell::RefCell;
use std::collections::BTreeMap;

use anyhow::Result;
use rpd_schema::{SessionInfo, session_fact};
use serde::{Deserialize, Serialize};

use super::place::{DatasetPlace, claim, encoded};

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

/// Where it is kept what is said of hosts.
pub(super) trait KnownHosts {
    /// What is known of a host, if anything is.
    ///
    /// # Errors
    /// When it cannot be read.
    fn known(&self, host: &Host) -> Result<Option<HostClock>>;

    /// What is known of a host; where nothing is yet, the host gets `name` if no other has it, and `offset`.
    ///
    /// # Errors
    /// When it cannot be read or written.
    fn agreed(&self, host: &Host, name: &str, offset: Option<i64>) -> Result<HostClock>;
}

/// The names that a host may get, the first that no other has.
fn candidates(name: &str, boot: &str) -> [String; 3] {
    let short: String = boot.chars().take(BOOT_SHOWN).collect();
    [name.to_string(), format!("{name}-{short}"), format!("{name}-{boot}")]
}

/// In the dataset, for all who add to it.
impl KnownHosts for DatasetPlace {
    fn known(&self, host: &Host) -> Result<Option<HostClock>> {
        let Some((file, _)) = host.key() else { return Ok(None) };
        super::place::read(&self.directory.join("_clock").join(format!("{file}.json")))
    }

    fn agreed(&self, host: &Host, name: &str, offset: Option<i64>) -> Result<HostClock> {
        let Some((file, boot)) = host.key() else {
            return Ok(HostClock { node: name.to_string(), realtime_less_monotonic_ns: offset });
        };
        if let Some(clock) = self.known(host)? {
            return Ok(clock);
        }
        let mut node = String::new();
        for candidate in candidates(name, boot) {
            let path = self.directory.join("_node").join(format!("n{}.json", encoded(&candidate)));
            let owner = claim(&path, &NameOf { boot: boot.to_string() })?;
            node = candidate;
            if owner.boot == boot {
                break;
            }
        }
        let path = self.directory.join("_clock").join(format!("{file}.json"));
        claim(&path, &HostClock { node, realtime_less_monotonic_ns: offset })
    }
}

/// In memory, for one trace that is in no dataset.
#[derive(Debug, Default)]
pub(super) struct HostsOfTrace(RefCell<BTreeMap<Host, HostClock>>);

impl KnownHosts for HostsOfTrace {
    fn known(&self, host: &Host) -> Result<Option<HostClock>> {
        Ok(self.0.borrow().get(host).cloned())
    }

    fn agreed(&self, host: &Host, name: &str, offset: Option<i64>) -> Result<HostClock> {
        let mut hosts = self.0.borrow_mut();
        let mut node = name.to_string();
        if let Some((_, boot)) = host.key() {
            if let Some(clock) = hosts.get(host) {
                return Ok(clock.clone());
            }
            let is_free = |name: &String| hosts.values().all(|other| other.node != *name);
            let [.., whole] = candidates(name, boot);
            node = candidates(name, boot).into_iter().find(is_free).unwrap_or(whole);
        }
        let clock = HostClock { node, realtime_less_monotonic_ns: offset };
        if *host != Host::Unknown {
            hosts.insert(host.clone(), clock.clone());
        }
        Ok(clock)
    }
}
