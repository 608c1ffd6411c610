//! The functions that the wanted kernels reach, and groups of those that have a copy of their own. A kernel is a group by itself: what it calls takes
//! no registers from others. Where that would make too many copies of functions, the kernels that call the same ones share a copy. A call by a
//! pointer may reach each function that is no kernel.

use std::collections::BTreeMap;

use super::Refusal;
use crate::Function;
use crate::blocks::{FunctionBlocks, Step, blocks};
use crate::instruction::{Control, Registers};

/// Functions that a pointer may lead to: a call by one looks for its target among them.
const MOST_POINTED: usize = 1000;
/// How many times the code of kernels that call the same functions may be copied, before they share the copies.
const MOST_COPIES: usize = 4;
/// The pair of scalar registers in which functions get the address that they return to (LLVM's calling convention).
const RETURN_ADDRESS: u8 = 30;

/// The reached functions, each by its place among those of the object.
pub(super) struct Program {
    bodies: BTreeMap<usize, Body>,
    /// Kernels that can count.
    pub(super) kernels: Vec<usize>,
    /// Functions that can count and that a pointer may lead to; none where no kernel calls by a pointer.
    pointed: Vec<usize>,
    /// Kernels that cannot count.
    pub(super) refused: Vec<(String, Refusal)>,
}

struct Body {
    code: FunctionBlocks,
    calls: Vec<usize>,
    /// It calls functions that only registers name.
    has_pointer_calls: bool,
    /// It does, or a function that it calls.
    calls_by_pointer: bool,
}

/// Functions that belong together.
pub(super) struct Group<'p> {
    /// By their places, with their code.
    pub(super) functions: Vec<(usize, &'p FunctionBlocks)>,
    /// Which of them are wanted kernels, and whether they call by pointers.
    pub(super) kernels: Vec<(usize, bool)>,
    /// The registers that their code names.
    pub(super) registers: Registers,
    /// Whether any calls by pointers.
    pub(super) calls_by_pointer: bool,
    /// Those of the functions that calls by pointers look for.
    pub(super) pointed: Vec<usize>,
}

impl Group<'_> {
    /// Instructions.
    fn size(&self) -> usize {
        self.functions.iter().map(|(_, code)| code.steps.len()).sum()
    }
}

impl Program {
    pub(super) fn of(functions: &[Function<'_>], by_lanes: bool, wanted: &dyn Fn(&str) -> bool) -> Program {
        let is_wanted = |function: &Function<'_>| function.descriptor.is_some() && wanted(function.name);
        let kernels: Vec<usize> =
            (0..functions.len()).filter(|place| is_wanted(&functions[*place])).collect();
        let mut found: BTreeMap<usize, Result<Body, Refusal>> = BTreeMap::new();
        let reach = |from: &[usize], found: &mut BTreeMap<usize, Result<Body, Refusal>>| {
            let mut open = from.to_vec();
            while let Some(place) = open.pop() {
                if found.contains_key(&place) {
                    continue;
                }
                let body = Body::of(functions, place, by_lanes);
                if let Ok(body) = &body {
                    open.extend(&body.calls);
                }
                found.insert(place, body);
            }
        };
        reach(&kernels, &mut found);
        let mut pointed = Vec::new();
        if found.values().flatten().any(|body| body.has_pointer_calls) {
            pointed = (0..functions.len()).filter(|place| functions[*place].descriptor.is_none()).collect();
            if pointed.len() > MOST_POINTED {
                pointed.clear();
            }
            reach(&pointed, &mut found);
        }
        // What a function cannot or does, those that call it cannot or do too.
        let mut callers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, body) in &found {
            for callee in body.iter().flat_map(|body| &body.calls) {
                callers.entry(*callee).or_default().push(*place);
            }
        }
        let spread = |from: Vec<usize>, is_new: &mut dyn FnMut(usize, usize) -> bool| {
            let mut open = from;
            while let Some(callee) = open.pop() {
                for caller in callers.get(&callee).into_iter().flatten() {
                    if is_new(*caller, callee) {
                        open.push(*caller);
                    }
                }
            }
        };
        let mut refused: BTreeMap<usize, Refusal> = BTreeMap::new();
        let mut bodies: BTreeMap<usize, Body> = BTreeMap::new();
        for (place, body) in found {
            match body {
                Ok(body) => drop(bodies.insert(place, body)),
                Err(refusal) => drop(refused.insert(place, refusal)),
            }
        }
        spread(refused.keys().copied().collect(), &mut |caller, callee| {
            let is_new = !refused.contains_key(&caller);
            if is_new && let Some(refusal) = refused.get(&callee).cloned() {
                refused.insert(caller, refusal);
            }
            is_new
        });
        let by_pointer = bodies.iter().filter(|(_, body)| body.calls_by_pointer).map(|(place, _)| *place);
        spread(by_pointer.collect(), &mut |caller, _| match bodies.get_mut(&caller) {
            Some(body) => !std::mem::replace(&mut body.calls_by_pointer, true),
            None => false,
        });
        bodies.retain(|place, _| !refused.contains_key(place));
        let named = |place: &usize| Some((functions[*place].name.to_string(), refused.get(place)?.clone()));
        let named: Vec<(String, Refusal)> = kernels.iter().filter_map(named).collect();
        let kernels = kernels.into_iter().filter(|place| bodies.contains_key(place)).collect();
        // One that only the scalar unit could count runs as it is: it would keep all others from the vector unit.
        let is_followed =
            |place: &usize| bodies.get(place).is_some_and(|body| !body.code.has_indexed_block());
        pointed.retain(is_followed);
        Program { bodies, kernels, pointed, refused: named }
    }

    /// The groups of these kernels, in the order of their addresses; with the functions that pointers may lead to, or without.
    pub(super) fn groups(&self, kernels: &[usize], follows_pointers: bool) -> Vec<Group<'_>> {
        let connected = self.connected(kernels, follows_pointers).into_iter();
        connected.flat_map(|group| self.apart(group, follows_pointers)).collect()
    }

    /// A group for each kernel of `group`, or `group` itself where that would make too many copies of functions.
    fn apart<'p>(&'p self, group: Group<'p>, follows_pointers: bool) -> Vec<Group<'p>> {
        if group.kernels.len() == 1 {
            return vec![group];
        }
        let most = group.size().saturating_mul(MOST_COPIES);
        let (mut size, mut all) = (0, Vec::with_capacity(group.kernels.len()));
        for (kernel, _) in &group.kernels {
            all.extend(self.connected(&[*kernel], follows_pointers));
            size = all.last().map_or(size, |last| size + last.size());
            if size > most {
                return vec![group];
            }
        }
        all
    }

    /// These kernels and the functions that they reach; those that reach the same function are one group.
    fn connected(&self, kernels: &[usize], follows_pointers: bool) -> Vec<Group<'_>> {
        let pointed: &[usize] = if follows_pointers { &self.pointed } else { &[] };
        let mut parents: BTreeMap<usize, usize> = BTreeMap::new();
        let mut open = kernels.to_vec();
        parents.extend(kernels.iter().map(|place| (*place, *place)));
        while let Some(place) = open.pop() {
            let body = &self.bodies[&place];
            let by_pointer = if body.has_pointer_calls { pointed } else { &[] };
            for callee in body.calls.iter().chain(by_pointer) {
                if !parents.contains_key(callee) {
                    parents.insert(*callee, *callee);
                    open.push(*callee);
                }
                let (one, other) = (root(&mut parents, place), root(&mut parents, *callee));
                parents.insert(one.max(other), one.min(other));
            }
        }
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for place in parents.keys().copied().collect::<Vec<_>>() {
            members.entry(root(&mut parents, place)).or_default().push(place);
        }
        members
            .into_values()
            .map(|places| {
                let bodies = || places.iter().map(|place| (*place, &self.bodies[place]));
                let steps = bodies().flat_map(|(_, body)| &body.code.steps);
                let named =
                    steps.fold(Registers::default(), |all, step| all.and(step.instruction.registers()));
                let calls_by_pointer = bodies().any(|(_, body)| body.calls_by_pointer);
                let is_kernel = |place: &usize| kernels.binary_search(place).is_ok();
                let has_pointer_calls = bodies().any(|(_, body)| body.has_pointer_calls);
                Group {
                    kernels: bodies()
                        .filter(|(place, _)| is_kernel(place))
                        .map(|(place, body)| (place, body.calls_by_pointer))
                        .collect(),
                    registers: named,
                    calls_by_pointer,
                    pointed: if has_pointer_calls { pointed.to_vec() } else { Vec::new() },
                    functions: bodies().map(|(place, body)| (place, &body.code)).collect(),
                }
            })
            .collect()
    }
}

/// The smallest member of what `place` belongs to.
fn root(parents: &mut BTreeMap<usize, usize>, place: usize) -> usize {
    let mut root = place;
    while parents[&root] != root {
        root = parents[&root];
    }
    let mut at = place;
    while at != root {
        at = parents.insert(at, root).unwrap_or(root);
    }
    root
}

impl Body {
    fn of(functions: &[Function<'_>], place: usize, by_lanes: bool) -> Result<Body, Refusal> {
        let function = &functions[place];
        let named = || function.name.to_string();
        let code = blocks(function).map_err(|obstacle| Refusal::Code { function: named(), obstacle })?;
        let code = if by_lanes { code.by_lanes() } else { code };
        let mut body = Body { code, calls: Vec::new(), has_pointer_calls: false, calls_by_pointer: false };
        for step in &body.code.steps {
            let is_call = match step.instruction.control() {
                Control::Call { .. } => true,
                Control::Jump(_) if step.target.is_some() || is_last_call(step) => false,
                _ => continue,
            };
            match step.target.map(|target| callee(functions, place, &body.code, target)) {
                Some(Some(Callee::Here)) => {}
                Some(Some(Callee::Function(callee))) => body.calls.push(callee),
                _ if is_call || function.descriptor.is_none() => body.has_pointer_calls = true,
                _ => return Err(Refusal::JumpOutside { function: named(), address: step.address }),
            }
        }
        body.calls_by_pointer = body.has_pointer_calls;
        body.calls.sort_unstable();
        body.calls.dedup();
        Ok(body)
    }
}

/// Whether a jump of a function, to where only registers say, is a call that comes last: what is no return.
pub(super) fn is_last_call(step: &Step) -> bool {
    matches!(step.instruction.control(), Control::Jump(pair) if pair != RETURN_ADDRESS)
}

/// What a known address of a jump or call is.
pub(super) enum Callee {
    /// An instruction of the same function.
    Here,
    /// The begin of another one.
    Function(usize),
}

/// What the address is that the function at `place` jumps to or calls; `None` for the middle of another one, and for no code.
pub(super) fn callee(
    functions: &[Function<'_>],
    place: usize,
    code: &FunctionBlocks,
    target: u64,
) -> Option<Callee> {
    if code.steps.binary_search_by_key(&target, |step| step.address).is_ok() {
        return Some(Callee::Here);
    }
    let found = functions.binary_search_by_key(&target, |function| function.address).ok();
    found.filter(|found| *found != place).map(Callee::Function)
}
