//! Processes below a process, as /proc has them.

use std::fs;
use std::path::Path;

use super::signals;

/// A process below another one, or that one itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descendant {
    pub(crate) pid: u32,
    parent: u32,
    group: u32,
}

/// `root` and the processes below it, parents first.
pub(crate) fn of(root: u32) -> Vec<Descendant> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    below(root, &processes.filter_map(|process| process_at(&process.path())).collect::<Vec<_>>())
}

/// Sends a signal to all of `root` that rpd has started: to the processes of its group, and to leaders of groups of their own (`timeout`),
/// which pass it on to these as they think right.
pub(crate) fn reach(root: u32, signal: i32) {
    let tree = of(root);
    let Some(own) = tree.first().map(|first| first.group) else { return };
    let is_own = |pid: u32| tree.iter().any(|process| process.pid == pid && process.group == own);
    for process in &tree {
        if process.pid == root || is_own(process.parent) {
            signals::send(process.pid, signal);
        }
    }
}

fn below(root: u32, processes: &[Descendant]) -> Vec<Descendant> {
    let mut tree: Vec<Descendant> = processes.iter().copied().filter(|process| process.pid == root).collect();
    let mut next = 0;
    while let Some(parent) = tree.get(next).map(|process| process.pid) {
        tree.extend(processes.iter().filter(|process| process.parent == parent));
        next += 1;
    }
    tree
}

/// What the kernel says of a process in `/proc/PID/stat`.
fn process_at(directory: &Path) -> Option<Descendant> {
    let pid = directory.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read(directory.join("stat")).ok()?;
    // Its name may have blanks and brackets.
    let behind = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(stat.get(behind + 1..)?).ok()?.split_whitespace().skip(1);
    Some(Descendant { pid, parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::process::{self, Command, Stdio};

    use super::*;

    #[test]
    fn a_tree_has_the_processes_below_a_process_alone() {
        let process = |(pid, parent)| Descendant { pid, parent, group: 1 };
        let all = [(9, 7), (7, 5), (8, 5), (5, 1), (6, 1), (10, 9)].map(process);
        assert_eq!(below(5, &all).iter().map(|process| process.pid).collect::<Vec<_>>(), [5, 7, 8, 9, 10]);
        assert!(below(11, &all).is_empty());
    }

    #[test]
    fn a_child_is_below_this_process() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let found = of(process::id()).into_iter().find(|process| process.pid == child.id()).unwrap();
        let own = of(process::id())[0];
        assert_eq!((found.parent, found.group), (process::id(), own.group));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
