//! The tree of calls of a part of the trace: the stacks that `rpd export collapsed` writes, added up.

use anyhow::Result;
use rpd_postprocess::export::call_tree::{TreeOptions, Width};
use rpd_postprocess::export::collapsed;
use rpd_postprocess::region::Region;
use rpd_schema::Version;
use rusqlite::Connection;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::console::Silent;

/// A frame with less than this part of all time is left out.
const LEAST_PART: u64 = 4000;

/// What the width of a frame is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    /// Time of the threads.
    #[default]
    Cpu,
    /// Durations of the operations that were launched.
    Gpu,
}

/// A frame: all calls with this path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Place of its name.
    pub name: u32,
    /// The frame around it.
    pub parent: Option<u32>,
    /// How many are around it.
    pub depth: u32,
    /// Time in it and in what it called, ns.
    pub total_ns: u64,
    /// Time in it alone, ns.
    pub own_ns: u64,
}

/// A tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tree {
    /// Names of frames.
    pub names: Vec<String>,
    /// The frames: parents before their children, of one parent those with the most time first.
    pub nodes: Vec<Node>,
    /// Time of all frames without one around them, ns.
    pub total_ns: u64,
    /// Frames that are too small to be seen and left out.
    pub left_out: u64,
}

/// A frame while times are added up.
#[derive(Default)]
struct Growing {
    own_ns: u64,
    children: FxHashMap<u32, u32>,
}

/// The tree of what begins in a region.
///
/// # Errors
/// When the trace cannot be read.
pub fn tree(trace: (&Connection, Version), region: Region, of: Of) -> Result<Tree> {
    let width = match of {
        Of::Cpu => Width::Cpu,
        Of::Gpu => Width::Gpu,
    };
    let mut lines = Vec::new();
    let options = TreeOptions { width, exact: false, region };
    collapsed::export(trace, &options, false, &Silent, &mut lines)?;
    Ok(of_lines(&String::from_utf8_lossy(&lines)))
}

/// The tree of lines `outer;inner ns`.
fn of_lines(lines: &str) -> Tree {
    let mut names: Vec<&str> = Vec::new();
    let mut number_of: FxHashMap<&str, u32> = FxHashMap::default();
    let mut frames = vec![Growing::default()];
    for line in lines.lines() {
        let Some((stack, ns)) = line.rsplit_once(' ') else { continue };
        let Ok(ns) = ns.parse::<u64>() else { continue };
        let mut at = 0;
        for name in stack.split(';') {
            let number = *number_of.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() as u32 - 1
            });
            let next = frames.len() as u32;
            let child = *frames[at].children.entry(number).or_insert(next);
            if child == next {
                frames.push(Growing::default());
            }
            at = child as usize;
        }
        frames[at].own_ns = frames[at].own_ns.saturating_add(ns);
    }
    // A child's place is behind its parent's.
    let mut totals: Vec<u64> = frames.iter().map(|frame| frame.own_ns).collect();
    for at in (0..frames.len()).rev() {
        let of_children: u64 = frames[at].children.values().map(|child| totals[*child as usize]).sum();
        totals[at] = totals[at].saturating_add(of_children);
    }
    let mut tree = Tree { total_ns: totals[0], ..Tree::default() };
    let least = totals[0] / LEAST_PART;
    let mut known: FxHashMap<u32, u32> = FxHashMap::default();
    // Place among the frames, name, place of the parent in the tree, depth.
    let mut open: Vec<(u32, u32, Option<u32>, u32)> = Vec::new();
    let push = |open: &mut Vec<_>, left_out: &mut u64, at: u32, parent: Option<u32>, depth: u32| {
        let mut children: Vec<(u32, u32)> = Vec::new();
        for (name, child) in &frames[at as usize].children {
            if totals[*child as usize] >= least.max(1) {
                children.push((*name, *child));
            } else {
                *left_out += 1;
            }
        }
        children
            .sort_by_key(|(name, child)| (totals[*child as usize], std::cmp::Reverse(names[*name as usize])));
        open.extend(children.into_iter().map(|(name, child)| (child, name, parent, depth)));
    };
    push(&mut open, &mut tree.left_out, 0, None, 0);
    while let Some((at, name, parent, depth)) = open.pop() {
        let name = *known.entry(name).or_insert_with(|| {
            tree.names.push(names[name as usize].to_string());
            tree.names.len() as u32 - 1
        });
        let own_ns = frames[at as usize].own_ns;
        let place = tree.nodes.len() as u32;
        tree.nodes.push(Node { name, parent, depth, total_ns: totals[at as usize], own_ns });
        push(&mut open, &mut tree.left_out, at, Some(place), depth + 1);
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_and_the_widest_comes_first() {
        let tree = of_lines("a;b 5\na;c 30\na 10\nd 7\nwrong\na;b;e 1\n");
        let shown: Vec<_> = tree
            .nodes
            .iter()
            .map(|node| {
                (tree.names[node.name as usize].as_str(), node.parent, node.depth, node.total_ns, node.own_ns)
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("a", None, 0, 46, 10),
                ("c", Some(0), 1, 30, 30),
                ("b", Some(0), 1, 6, 5),
                ("e", Some(2), 2, 1, 1),
                ("d", None, 0, 7, 7)
            ]
        );
        assert_eq!((tree.total_ns, tree.left_out), (53, 0));
    }

    #[test]
    fn what_is_too_small_to_be_seen_is_counted() {
        let tree = of_lines("a 100000\nb 1\nc;d 2\n");
        assert_eq!((tree.nodes.len(), tree.left_out), (1, 2));
    }
}
