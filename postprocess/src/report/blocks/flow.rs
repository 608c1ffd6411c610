//! How often each branch was taken and how often loops turned, of how often each block was entered.
//!
//! What enters a block leaves it: the counts of the edges into a block add up to its own, and so do those of the edges out of it. So where
//! all edges but one are known the last one follows, until nothing follows any more. Counts are of waves that have ended.

/// A block, and where control goes from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// Waves that entered it.
    pub(super) count: u64,
    /// Places of the blocks that it leads to. Of a conditional branch the target, then the next block.
    pub(super) successors: Vec<usize>,
    /// Something else than the blocks of the function leads here: a launch or a call.
    pub(super) is_entry: bool,
    /// It also leads out of the function: a wave ends, or returns.
    pub(super) is_exit: bool,
}

/// What follows for a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EdgeCounts {
    /// How often each of its successors followed it, where that can be told.
    pub(super) edges: Vec<Option<u64>>,
    /// Where it is the head of a loop: how often the loop was entered, where that can be told. Each time it turned the block's count by
    /// this many times.
    pub(super) loop_entries: Option<u64>,
}

/// One term of a sum, by its number: an edge between blocks, or what enters the function or leaves it at a block.
type Term = usize;

/// Works it out for the blocks of a function, of which the first one is entered first.
pub(super) fn edge_counts(nodes: &[Node]) -> Vec<EdgeCounts> {
    let mut first_edge = Vec::with_capacity(nodes.len());
    let mut terms = 0;
    for node in nodes {
        first_edge.push(terms);
        terms += node.successors.len();
    }
    let mut into: Vec<Vec<Term>> = vec![Vec::new(); nodes.len()];
    let mut out: Vec<Vec<Term>> = vec![Vec::new(); nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        for (edge, successor) in node.successors.iter().enumerate() {
            out[place].push(first_edge[place] + edge);
            into[*successor].push(first_edge[place] + edge);
        }
        for (is_open, side) in [(node.is_entry, &mut into), (node.is_exit, &mut out)] {
            if is_open {
                side[place].push(terms);
                terms += 1;
            }
        }
    }
    let mut sums: Vec<(u64, Vec<Term>)> = Vec::with_capacity(2 * nodes.len());
    for (node, (into, out)) in nodes.iter().zip(into.into_iter().zip(out)) {
        sums.extend([(node.count, into), (node.count, out)]);
    }
    let values = solved(sums, terms);
    let heads = loop_heads(nodes);
    let of_block = |place: usize| {
        let node = &nodes[place];
        let known = |edge: usize| values[edge];
        let loop_entries = heads[place].as_ref().and_then(|back| {
            let edge_to = |from: usize| {
                let edges = nodes[from].successors.iter().enumerate();
                edges.filter(|(_, to)| **to == place).map(move |(edge, _)| (from, edge)).collect::<Vec<_>>()
            };
            let turns = back.iter().flat_map(|from| edge_to(*from));
            let turns: Option<u64> = turns.map(|(from, edge)| known(first_edge[from] + edge)).sum();
            node.count.checked_sub(turns?)
        });
        EdgeCounts {
            edges: (0..node.successors.len()).map(|edge| known(first_edge[place] + edge)).collect(),
            loop_entries,
        }
    };
    (0..nodes.len()).map(of_block).collect()
}

/// A sum of terms, some of whose values are not known yet.
struct Sum {
    terms: Vec<Term>,
    /// Terms whose value is not known.
    unknown: usize,
    /// What these add up to.
    rest: u64,
}

/// The values of terms that sums tell. Nothing where the sums contradict each other.
fn solved(sums: Vec<(u64, Vec<Term>)>, terms: usize) -> Vec<Option<u64>> {
    let mut values: Vec<Option<u64>> = vec![None; terms];
    let mut of_term: Vec<Vec<usize>> = vec![Vec::new(); terms];
    for (place, (_, terms)) in sums.iter().enumerate() {
        for term in terms {
            of_term[*term].push(place);
        }
    }
    let sum = |(rest, terms): (u64, Vec<Term>)| Sum { unknown: terms.len(), terms, rest };
    let mut sums: Vec<Sum> = sums.into_iter().map(sum).collect();
    let mut open: Vec<usize> = (0..sums.len()).collect();
    while let Some(place) = open.pop() {
        let Sum { terms, unknown, rest } = &sums[place];
        // Nothing went where nothing was.
        if *unknown == 0 || *unknown > 1 && *rest > 0 {
            continue;
        }
        let value = *rest;
        for term in terms.iter().copied().filter(|term| values[*term].is_none()).collect::<Vec<_>>() {
            values[term] = Some(value);
            for of in of_term[term].iter().copied() {
                let sum = &mut sums[of];
                let Some(rest) = sum.rest.checked_sub(value) else { return vec![None; values.len()] };
                (sum.rest, sum.unknown) = (rest, sum.unknown - 1);
                if of != place && (sum.unknown == 1 || rest == 0) {
                    open.push(of);
                }
            }
        }
    }
    match sums.iter().any(|sum| sum.unknown == 0 && sum.rest > 0) {
        true => vec![None; values.len()],
        false => values,
    }
}

/// Of each block that is the head of a loop the blocks that lead back to it: those that are not reached but through it.
fn loop_heads(nodes: &[Node]) -> Vec<Option<Vec<usize>>> {
    let order = order(nodes);
    let mut number = vec![usize::MAX; nodes.len()];
    for (place, node) in order.iter().enumerate() {
        number[*node] = place;
    }
    let mut sources: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for node in &order {
        for to in &nodes[*node].successors {
            sources[*to].push(*node);
        }
    }
    // The last block before each that every path to it leads through (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm").
    let mut before: Vec<Option<usize>> = vec![None; nodes.len()];
    let roots: Vec<usize> = order.iter().copied().filter(|node| is_root(nodes, *node)).collect();
    let [root] = roots[..] else { return vec![None; nodes.len()] };
    before[root] = Some(root);
    loop {
        let mut is_changed = false;
        for node in order.iter().copied().filter(|node| *node != root) {
            let known = sources[node].iter().copied().filter(|source| before[*source].is_some());
            let common = known.reduce(|mut one, mut other| {
                while one != other {
                    let later = if number[one] > number[other] { &mut one } else { &mut other };
                    *later = before[*later].unwrap_or(root);
                }
                one
            });
            if common.is_some() && before[node] != common {
                before[node] = common;
                is_changed = true;
            }
        }
        if !is_changed {
            break;
        }
    }
    let leads_through = |head: usize, mut node: usize| {
        while number[node] > number[head] {
            node = before[node].unwrap_or(root);
        }
        node == head
    };
    let mut heads: Vec<Option<Vec<usize>>> = vec![None; nodes.len()];
    for node in &order {
        for to in &nodes[*node].successors {
            if leads_through(*to, *node) {
                let back = heads[*to].get_or_insert_default();
                if !back.contains(node) {
                    back.push(*node);
                }
            }
        }
    }
    heads
}

fn is_root(nodes: &[Node], node: usize) -> bool {
    node == 0 || nodes[node].is_entry
}

/// The blocks that can be reached, each behind one that leads to it where there is no loop.
fn order(nodes: &[Node]) -> Vec<usize> {
    let mut order = Vec::with_capacity(nodes.len());
    let mut is_seen = vec![false; nodes.len()];
    for root in (0..nodes.len()).filter(|node| is_root(nodes, *node)) {
        let mut open = vec![(root, 0)];
        if std::mem::replace(&mut is_seen[root], true) {
            continue;
        }
        while let Some((node, edge)) = open.pop() {
            match nodes[node].successors.get(edge) {
                Some(next) => {
                    open.push((node, edge + 1));
                    if !std::mem::replace(&mut is_seen[*next], true) {
                        open.push((*next, 0));
                    }
                }
                None => order.push(node),
            }
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(count: u64, successors: &[usize]) -> Node {
        Node { count, successors: successors.to_vec(), is_entry: false, is_exit: successors.is_empty() }
    }

    fn function(mut nodes: Vec<Node>) -> Vec<EdgeCounts> {
        nodes[0].is_entry = true;
        edge_counts(&nodes)
    }

    #[test]
    fn a_branch_and_what_is_behind_it() {
        // 0 branches over 1 to 2.
        let found = function(vec![node(10, &[2, 1]), node(4, &[2]), node(10, &[])]);
        assert_eq!(found[0].edges, [Some(6), Some(4)]);
        assert_eq!(found[1].edges, [Some(4)]);
        assert!(found.iter().all(|counts| counts.loop_entries.is_none()));
    }

    #[test]
    fn loops_in_loops() {
        // 1 is the outer head, 2 the inner one, a loop of itself.
        let found =
            function(vec![node(3, &[1]), node(12, &[2]), node(60, &[2, 3]), node(12, &[1, 4]), node(3, &[])]);
        assert_eq!((found[1].loop_entries, found[2].loop_entries), (Some(3), Some(12)));
        assert_eq!(found[2].edges, [Some(48), Some(12)]);
        assert_eq!(found[3].edges, [Some(9), Some(3)]);
    }

    #[test]
    fn what_was_not_executed_was_not_branched_to() {
        let found = function(vec![node(5, &[2, 1]), node(0, &[3, 2]), node(5, &[3]), node(5, &[])]);
        assert_eq!(found[0].edges, [Some(5), Some(0)]);
        assert_eq!(found[1].edges, [Some(0), Some(0)]);
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        // Two branches that both lead to 2 and 3: one wave more here is one less there.
        let both = vec![node(9, &[1, 4]), node(4, &[2, 3]), node(5, &[]), node(4, &[]), node(5, &[2, 3])];
        let found = function(both);
        assert_eq!((&found[0].edges[..], &found[1].edges[..]), (&[Some(4), Some(5)][..], &[None, None][..]));
        // Counts that are not those of one run.
        let wrong = function(vec![node(5, &[1]), node(7, &[])]);
        assert_eq!(wrong[0].edges, [None]);
        assert_eq!(edge_counts(&[]), []);
    }

    #[test]
    fn an_entry_in_the_middle_of_a_loop_makes_it_none() {
        let mut nodes = vec![node(1, &[1]), node(6, &[2]), node(7, &[1, 3]), node(2, &[])];
        nodes[0].is_entry = true;
        nodes[2].is_entry = true;
        assert!(edge_counts(&nodes).iter().all(|counts| counts.loop_entries.is_none()));
    }

    #[test]
    fn a_function_of_many_blocks_takes_no_time() {
        let count = 60_000;
        let mut nodes: Vec<Node> = (0..count).map(|place| node(2, &[place + 1])).collect();
        nodes.push(node(2, &[]));
        let found = function(nodes);
        assert!(found[..count].iter().all(|counts| counts.edges == [Some(2)]));
    }
}
