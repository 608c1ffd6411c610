//! The processes that the command line means.

use std::collections::{BTreeMap, BTreeSet};

use crate::attach::Process;
use crate::cli::ProcessArguments;
use crate::process;
use crate::refusal::Refusal;

/// A process and its block, or why there is none.
pub(crate) type Attached = (u32, Result<Process, Refusal>);

/// The processes meant, in ascending order, each once.
///
/// # Errors
/// There is none.
pub(crate) fn of(processes: &ProcessArguments) -> anyhow::Result<Vec<Attached>> {
    if processes.all {
        let all = all()?;
        anyhow::ensure!(
            !all.is_empty(),
            "no process of this user can be controlled: start programs with LD_PRELOAD=librpd_remote.so \
             (they can be once they use a GPU)"
        );
        return Ok(all);
    }
    let named: BTreeSet<u32> = processes.pids.iter().copied().collect();
    if !processes.tree {
        return Ok(named.into_iter().map(|pid| (pid, Process::attach(pid))).collect());
    }
    let mut targets = Vec::new();
    for root in named {
        let family: Vec<Attached> =
            family(root)?.into_iter().map(|pid| (pid, Process::attach(pid))).collect();
        let (able, unable): (Vec<_>, Vec<_>) = family.into_iter().partition(|(_, process)| process.is_ok());
        if able.is_empty() {
            // What is wrong with the root is as good a reason as any.
            targets.extend(unable.into_iter().find(|(pid, _)| *pid == root));
        }
        targets.extend(able);
    }
    targets.sort_by_key(|(pid, _)| *pid);
    targets.dedup_by_key(|(pid, _)| *pid);
    Ok(targets)
}

/// This user's processes with a block.
///
/// # Errors
/// /proc cannot be read.
pub(crate) fn all() -> anyhow::Result<Vec<Attached>> {
    let user = process::own_user();
    let own = process::all()?.into_iter().filter(|pid| process::owner(*pid) == Some(user));
    Ok(own.map(|pid| (pid, Process::attach(pid))).filter(|(_, process)| process.is_ok()).collect())
}

/// `root` and its descendants.
fn family(root: u32) -> anyhow::Result<BTreeSet<u32>> {
    let mut children = BTreeMap::<u32, Vec<u32>>::new();
    for pid in process::all()? {
        if let Some(stat) = process::stat(pid) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let (mut family, mut new) = (BTreeSet::from([root]), vec![root]);
    while let Some(pid) = new.pop() {
        new.extend(children.get(&pid).into_iter().flatten().filter(|child| family.insert(**child)));
    }
    Ok(family)
}
