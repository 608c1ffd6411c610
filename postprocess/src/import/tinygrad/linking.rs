//! Finds the launch of each operation. A profile does not say it, and times do not either: the clocks of devices differ too much from the host's.
//!
//! The n-th launch of a kernel on a device launched the n-th range of that kernel there. Likewise the n-th launch of a graph with so many
//! operations belongs to the n-th graph with as many, and the n-th launch of a copy to the n-th copy between the same places. If there are more
//! launches than ranges, or fewer, none of these ranges has a launch.

use std::collections::BTreeMap;

use super::device::{HOST, device_and_queue, ends_of_copy, is_gpu};
use super::{Graph, Launch, Range};

/// An operation, and the place of its launch among all launches.
pub(super) type Linked<'a> = (&'a Range, Option<usize>);

/// From and to where a copy goes.
type Ends<'a> = (&'a str, &'a str);

/// The length at which tinygrad cuts names of devices in launches of copies.
const CUT: usize = 7;

/// The operations of ranges and graphs with their launches. All three lists are in the order of time.
pub(super) fn linked<'a>(
    launches: &'a [Launch],
    ranges: &'a [Range],
    graphs: &'a [Graph],
) -> Vec<Linked<'a>> {
    let launches = Launches::of(launches);
    let mut linked = Vec::new();
    let mut by_size: BTreeMap<usize, Vec<&Graph>> = BTreeMap::new();
    for graph in graphs {
        by_size.entry(graph.ops.len()).or_default().push(graph);
    }
    let mut single: Vec<&Range> = ranges.iter().collect();
    for (size, graphs) in by_size {
        match launches.graphs.get(&size) {
            Some(launches) => link_graphs(&graphs, launches, &mut linked),
            // Some devices launch the kernels of a graph one by one.
            None => single.extend(graphs.iter().flat_map(|graph| &graph.ops)),
        }
    }
    single.sort_by_key(|range| range.start);
    let mut copies: BTreeMap<Ends<'a>, Vec<&Range>> = BTreeMap::new();
    let mut kernels: BTreeMap<(&str, &str), Vec<&Range>> = BTreeMap::new();
    for range in single {
        match ends_of_copy(&range.name) {
            Some(ends) => copies.entry(ends).or_default().push(range),
            None => {
                let device = device_and_queue(&range.device).0;
                kernels.entry((device, &range.name)).or_default().push(range);
            }
        }
    }
    for (kernel, ranges) in kernels {
        link(&ranges, launches.kernels.get(&kernel).map_or(&[], Vec::as_slice), &mut linked);
    }
    for (ends, ranges) in copies {
        link(&ranges, &launches.of_copy(ends), &mut linked);
    }
    linked
}

/// The n-th one with the n-th one, if there are as many.
fn link<'a>(ranges: &[&'a Range], launches: &[usize], linked: &mut Vec<Linked<'a>>) {
    let are_known = ranges.len() == launches.len();
    for (place, range) in ranges.iter().enumerate() {
        linked.push((range, launches.get(place).copied().filter(|_| are_known)));
    }
}

/// The same of graphs of one size. tinygrad reads the times of a graph when it launches it the next time, so that those of the last time may be
/// missing: where there is only one graph, they are.
fn link_graphs<'a>(graphs: &[&'a Graph], launches: &[usize], linked: &mut Vec<Linked<'a>>) {
    let is_same = |pair: &[&Graph]| {
        let [one, other] = [&pair[0].ops, &pair[1].ops].map(|ops| ops.iter().map(|op| &op.name));
        one.eq(other)
    };
    let lacks_last = launches.len() > graphs.len() && graphs.windows(2).all(is_same);
    let are_known = launches.len() == graphs.len() || lacks_last;
    for (place, graph) in graphs.iter().enumerate() {
        let launch = launches.get(place).copied().filter(|_| are_known);
        linked.extend(graph.ops.iter().map(|op| (op, launch)));
    }
}

/// Launches by what they launch.
#[derive(Default)]
struct Launches<'a> {
    /// By device and name.
    kernels: BTreeMap<(&'a str, &'a str), Vec<usize>>,
    /// By the number of their operations.
    graphs: BTreeMap<usize, Vec<usize>>,
    copies: Vec<(usize, Ends<'a>)>,
}

impl<'a> Launches<'a> {
    fn of(launches: &'a [Launch]) -> Launches<'a> {
        let mut by_kind = Launches::default();
        for (place, launch) in launches.iter().enumerate() {
            let size = launch.name.strip_prefix("batched ").and_then(|size| size.parse().ok());
            if let Some(ends) = ends_of_copy(&launch.name) {
                by_kind.copies.push((place, ends));
            } else if let Some(size) = size {
                by_kind.graphs.entry(size).or_default().push(place);
            } else {
                let device = device_and_queue(&launch.device).0;
                by_kind.kernels.entry((device, &launch.name)).or_default().push(place);
            }
        }
        by_kind
    }

    /// Those of copies that ran between these places.
    fn of_copy(&self, ran: Ends<'_>) -> Vec<usize> {
        let between = |is_host: fn(&str) -> bool| -> Vec<usize> {
            let of_range = self.copies.iter().filter(|(_, launched)| is_copy_of(ran, *launched, is_host));
            of_range.map(|(place, _)| *place).collect()
        };
        let with_host = between(|place| !is_gpu(place));
        // Between two devices a copy may go through the host's memory.
        if with_host.is_empty() { between(|_| true) } else { with_host }
    }
}

/// Whether a copy that ran between two places may be one that was launched between these. `is_host`: for which of them the host's memory may
/// stand.
fn is_copy_of(ran: Ends<'_>, launched: Ends<'_>, is_host: fn(&str) -> bool) -> bool {
    let may_be = |ran: &str, launched: &str| match ran {
        HOST => is_host(launched),
        ran => ran == launched || (launched.len() == CUT && ran.starts_with(launched)),
    };
    ran != (HOST, HOST) && may_be(ran.0, launched.0) && may_be(ran.1, launched.1)
}
