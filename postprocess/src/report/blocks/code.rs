//! What a code object says of the blocks of its kernels: what they compute, move and wait for, and where control goes from them.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result};
use rpd_codeobject::blocks::{FunctionBlocks, blocks};
use rpd_codeobject::instruction::{Control, InstructionSet, Wait, Work};
use rpd_codeobject::{CodeObject, functions};
use rpd_schema::table::Block;

use super::flow::Node;
use crate::code::FoundObject;

/// A block of the code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BlockCode {
    /// What its instructions compute and move, once.
    pub(super) work: Work,
    /// What they wait for.
    pub(super) waits: BTreeSet<Wait>,
    /// Where the branch or call at its end leads, where that is known.
    pub(super) target: Option<u64>,
}

/// A function, whose blocks are named by their addresses.
#[derive(Debug, Default)]
pub(super) struct FunctionCode {
    /// The addresses and sizes of the blocks, in order.
    pub(super) places: Vec<(u64, u64)>,
    /// Of each, what is said of it, and the node of [`super::flow`] without its count. Where the node has two successors, the first
    /// one follows where a branch is taken.
    pub(super) blocks: Vec<(BlockCode, Node)>,
}

/// The functions of gfx9 in the object that have a block at one of the addresses `starts`: by their control, and where more blocks begin
/// there also as they are counted by lanes.
///
/// # Errors
/// When it is damaged.
pub(super) fn functions_with(object: &FoundObject, starts: &BTreeSet<u64>) -> Result<Vec<FunctionCode>> {
    let all = functions(&object.bytes).with_context(|| object.place.clone())?;
    let parsed = CodeObject::parse(&object.bytes).with_context(|| object.place.clone())?;
    let set = InstructionSet::of(&parsed.target.processor);
    let has_some =
        |address: u64, size: usize| starts.range(address..address.saturating_add(size as u64)).next();
    let wanted = all.iter().filter(|function| has_some(function.address, function.code.len()).is_some());
    Ok(wanted
        .filter_map(|function| blocks(function).ok())
        .flat_map(|found| {
            let by_lanes = found.clone().by_lanes();
            let is_by_lanes = by_lanes.blocks.len() > found.blocks.len()
                && by_lanes.blocks.iter().any(|block| {
                    starts.contains(&by_lanes.steps[block.start].address)
                        && found.blocks.binary_search_by_key(&block.start, |other| other.start).is_err()
                });
            [Some(found), is_by_lanes.then_some(by_lanes)]
        })
        .flatten()
        .filter(|found| found.blocks.len() <= Block::MOST as usize)
        .map(|found| function_code(&found, set))
        .collect())
}

fn function_code(found: &FunctionBlocks, set: InstructionSet) -> FunctionCode {
    let starts: Vec<u64> = found.blocks.iter().map(|block| found.steps[block.start].address).collect();
    let places: HashMap<u64, usize> =
        starts.iter().enumerate().map(|(place, start)| (*start, place)).collect();
    let ends = found.blocks.iter().map(|block| found.steps[block.end - 1].next());
    let sizes = starts.iter().zip(ends).map(|(start, end)| (*start, end - start)).collect();
    let mut code = FunctionCode { places: sizes, blocks: Vec::with_capacity(found.blocks.len()) };
    let mut called = Vec::new();
    for block in &found.blocks {
        let steps = &found.steps[block.clone()];
        let mut of_block = BlockCode::default();
        for step in steps {
            of_block.work = of_block.work.and(step.instruction.work(set));
            of_block.waits.extend(step.instruction.waits());
        }
        let mut node = Node::default();
        if let Some(last) = steps.last() {
            of_block.target = last.target;
            let (target, next) =
                (last.target.and_then(|target| places.get(&target)), places.get(&last.next()));
            let successors: &[Option<&usize>] = match last.instruction.control() {
                Control::Next => &[next],
                Control::Branch(_) | Control::Jump(_) => &[target],
                Control::Conditional(_) => &[target, next],
                // It comes back.
                Control::Call { .. } => {
                    called.extend(target.copied());
                    &[next]
                }
                Control::End | Control::Unfollowed(_) => &[],
            };
            node.successors = successors.iter().filter_map(|successor| successor.copied()).collect();
            node.is_exit = node.successors.len() < successors.len().max(1);
        }
        code.blocks.push((of_block, node));
    }
    if let Some((_, first)) = code.blocks.first_mut() {
        first.is_entry = true;
    }
    for place in called {
        code.blocks[place].1.is_entry = true;
    }
    code
}
