//! The instructions of a function as text, with the lines of the source and the basic blocks.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::process::Command;

use anyhow::{Context, Result};
use rpd_codeobject::flow::{self, FlowBlock, FlowStep, FlowTarget};
use rpd_codeobject::{CodeObject, Function, SourceLines, cubin, demangle, functions};
use rpd_disassembly::Disassembler;
use serde::Serialize;

use super::file::FoundObject;
use super::kernel::KernelArgument;

/// A function: a kernel, or what kernels call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listing {
    /// Its name with parameters.
    pub function: String,
    /// Its mangled name.
    pub symbol: String,
    /// The processor and the features that it is for.
    pub target: String,
    /// Whether it can be launched.
    pub is_kernel: bool,
    /// Where it begins, in the code object's own addresses.
    pub address: u64,
    /// Of a kernel.
    pub arguments: Option<Vec<KernelArgument>>,
    /// In order.
    pub instructions: Vec<ListedInstruction>,
    /// In the order of their addresses.
    pub blocks: Vec<BasicBlock>,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListedInstruction {
    /// In the code object's own addresses.
    pub address: u64,
    /// Its bytes, as words of four in hexadecimal digits: `c0020242 00000004`.
    pub bytes: String,
    /// In LLVM's syntax.
    pub text: String,
    /// The file of the source, where debug information says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Instructions that are executed one after the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BasicBlock {
    /// Address of the first instruction.
    pub address: u64,
    /// Address behind the last one.
    pub end: u64,
    /// Place of the first instruction among those of the function.
    pub first: usize,
    /// How many.
    pub instructions: usize,
    /// Where control goes on.
    pub edges: Vec<ListedEdge>,
}

/// An edge from a block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListedEdge {
    /// `fallthrough`, `branch`, `taken`, `not-taken`, `call`, `return`, `indirect`, `indirect-call`, `end`, `runs-out`.
    pub kind: &'static str,
    /// Place of the block that it leads to, if that is one of the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<usize>,
    /// The address that it leads to, if that is elsewhere and known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// What is there: `helper(int)`, `helper(int)+0x10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

/// Makes listings, with a disassembler for each processor.
pub struct Lister {
    command: fn() -> io::Result<Command>,
    named: Option<OsString>,
    by_processor: HashMap<String, Result<Disassembler, String>>,
}

/// An object could not be disassembled for want of an LLVM that knows its processor.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoListing(String);

impl Lister {
    /// `command` makes the command that calls [`rpd_disassembly::serve`]. `named` is the LLVM to use; without it, the newest installed.
    pub fn new(command: fn() -> io::Result<Command>, named: Option<OsString>) -> Lister {
        Lister { command, named, by_processor: HashMap::new() }
    }

    fn disassembler(&mut self, processor: &str) -> Result<&mut Disassembler, NoListing> {
        let start = || {
            let command = (self.command)().map_err(rpd_disassembly::NoDisassembly::NotStarted)?;
            Disassembler::start(command, processor, self.named.as_deref())
        };
        let found = self.by_processor.entry(processor.to_string());
        let found = found.or_insert_with(|| start().map_err(|error| error.to_string()));
        found.as_mut().map_err(|why| NoListing(why.clone()))
    }

    /// Instructions that LLVM did not survive, and that are listed as data.
    pub fn failures(&self) -> u64 {
        let of_one = |disassembler: &Disassembler| u64::from(disassembler.deaths());
        self.by_processor.values().flatten().map(of_one).sum()
    }

    /// The instructions of stretches of gfx9's code: of each its first address and its bytes, none for one that is in no function.
    ///
    /// # Errors
    /// [`NoListing`] in the chain, when no LLVM serves; when the object is damaged.
    pub fn stretches(
        &mut self,
        object: &FoundObject,
        stretches: impl IntoIterator<Item = (u64, u64)>,
    ) -> Result<Vec<Vec<ListedInstruction>>> {
        let place = || object.place.clone();
        let CodeObject { target, .. } = CodeObject::parse(&object.bytes).with_context(place)?;
        let functions = functions(&object.bytes).with_context(place)?;
        let lines = SourceLines::of(&object.bytes).with_context(place)?;
        let disassembler = self.disassembler(&target.processor)?;
        let mut all = Vec::new();
        for (address, size) in stretches {
            let behind = functions.partition_point(|function| function.address <= address);
            let code = behind.checked_sub(1).and_then(|last| {
                let into = usize::try_from(address - functions[last].address).ok()?;
                functions[last].code.get(into..into.checked_add(usize::try_from(size).ok()?)?)
            });
            all.push(code.map_or_else(Vec::new, |code| listed(disassembler, code, address, 64, &lines)));
        }
        Ok(all)
    }

    /// Hands each function of the object that `is_wanted` (by its name with parameters and its mangled one) to `visit`, in the order of
    /// their addresses.
    ///
    /// # Errors
    /// [`NoListing`] in the chain, when no LLVM serves; when the object is damaged; and those of `visit`.
    pub fn each_function(
        &mut self,
        object: &FoundObject,
        mut is_wanted: impl FnMut(&str, &str) -> bool,
        mut visit: impl FnMut(Listing) -> Result<()>,
    ) -> Result<()> {
        let place = || object.place.clone();
        if cubin::is_cubin(&object.bytes) {
            let why = format!(
                "{}: code for NVIDIA's GPUs is disassembled from a file of its own: rpd code --disasm FILE.cubin",
                crate::text::escape(&object.place)
            );
            return Err(NoListing(why).into());
        }
        let CodeObject { target, kernels, .. } = CodeObject::parse(&object.bytes).with_context(place)?;
        let functions = functions(&object.bytes).with_context(place)?;
        let wanted: Vec<(&Function<'_>, String)> = functions
            .iter()
            .map(|function| (function, demangle(function.name)))
            .filter(|(function, name)| is_wanted(name, function.name))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let lines = SourceLines::of(&object.bytes).with_context(place)?;
        let disassembler = self.disassembler(&target.processor)?;
        // Functions that kernels call run in waves of the kernels' size, which are those of one compilation.
        let of_kernels = functions.iter().find_map(|function| Some(function.descriptor?.wavefront_size));
        for (function, name) in wanted {
            let own = function.descriptor.map(|descriptor| descriptor.wavefront_size);
            let wavefront_size = own.or(of_kernels).unwrap_or(64);
            let instructions = listed(disassembler, function.code, function.address, wavefront_size, &lines);
            let blocks = blocks(&instructions, function, &functions);
            let kernel =
                kernels.iter().find(|kernel| kernel.symbol.strip_suffix(".kd") == Some(function.name));
            visit(Listing {
                function: name,
                symbol: function.name.to_string(),
                target: target.to_string(),
                is_kernel: function.descriptor.is_some(),
                address: function.address,
                arguments: kernel.map(KernelArgument::all),
                instructions,
                blocks,
            })?;
        }
        Ok(())
    }
}

/// The instructions of some code, which lies at `address`.
fn listed(
    disassembler: &mut Disassembler,
    code: &[u8],
    mut address: u64,
    wavefront_size: u32,
    lines: &SourceLines,
) -> Vec<ListedInstruction> {
    let found = disassembler.function(code, address, wavefront_size);
    let mut rest = code;
    let mut instructions = Vec::with_capacity(found.len());
    for instruction in found {
        let (bytes, behind) = rest.split_at(instruction.length);
        let source = lines.at(address);
        instructions.push(ListedInstruction {
            address,
            bytes: words(bytes),
            text: instruction.text,
            file: source.map(|(file, _)| file.to_string()),
            line: source.map(|(_, line)| line),
        });
        address = address.wrapping_add(bytes.len() as u64);
        rest = behind;
    }
    instructions
}

/// Bytes as little-endian words, as the ISA documents show encodings.
fn words(bytes: &[u8]) -> String {
    let word = |word: &[u8]| word.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(4).map(word).collect::<Vec<_>>().join(" ")
}

fn blocks(
    instructions: &[ListedInstruction],
    function: &Function<'_>,
    all: &[Function<'_>],
) -> Vec<BasicBlock> {
    let offset = |address: u64| address.wrapping_sub(function.address) as usize;
    let ends = instructions.iter().skip(1).map(|next| offset(next.address)).chain([function.code.len()]);
    let steps: Vec<FlowStep<'_>> = instructions
        .iter()
        .zip(ends)
        .map(|(instruction, end)| {
            let start = offset(instruction.address);
            let word = function.code[start..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
            let length = (end - start) as u32;
            FlowStep { address: instruction.address, length, word, text: &instruction.text }
        })
        .collect();
    let edge = |edge: &flow::FlowEdge| {
        let (block, address) = match edge.to {
            FlowTarget::Block(block) => (Some(block), None),
            FlowTarget::Address(address) => (None, Some(address)),
            FlowTarget::Unknown => (None, None),
        };
        let function = address.and_then(|address| place_of(address, all));
        ListedEdge { kind: edge.kind.name(), block, address, function }
    };
    let block = |block: &FlowBlock| {
        let last = &steps[block.steps.end - 1];
        BasicBlock {
            address: steps[block.steps.start].address,
            end: last.address.wrapping_add(last.length.into()),
            first: block.steps.start,
            instructions: block.steps.len(),
            edges: block.edges.iter().map(edge).collect(),
        }
    };
    flow::blocks(&steps).iter().map(block).collect()
}

/// The function that an address lies in, and how far behind its beginning.
fn place_of(address: u64, all: &[Function<'_>]) -> Option<String> {
    let behind = all.partition_point(|function| function.address <= address);
    let function = all.get(behind.checked_sub(1)?)?;
    let distance = address - function.address;
    if distance >= function.code.len() as u64 {
        return None;
    }
    let name = demangle(function.name);
    Some(if distance == 0 { name } else { format!("{name}+{distance:#x}") })
}
