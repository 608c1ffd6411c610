//! Instructions and basic blocks: as text, as JSON, as a graph for Graphviz.

use std::io::{self, Write};

use rpd_escape::json;
use rpd_postprocess::code::{BasicBlock, Candidate, KernelArgument, ListedEdge, ListedInstruction, Listing};
use rpd_postprocess::text::{counted, escape};
use serde::Serialize;

use super::rows::argument_line;

/// What is written of a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListingParts {
    /// The arguments of kernels.
    pub(super) arguments: bool,
    /// The instructions.
    pub(super) instructions: bool,
    /// The basic blocks.
    pub(super) blocks: bool,
}

/// How functions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListingForm {
    /// For people.
    Text,
    /// A JSON array of objects, one per line.
    Json,
    /// A graph in the language of Graphviz's `dot`.
    Dot,
}

/// Where functions are written, and how.
pub(super) struct Listings<'a, W> {
    out: &'a mut W,
    form: ListingForm,
    parts: ListingParts,
    written: usize,
}

/// Where functions are from, beyond what was asked for.
#[derive(Debug, Serialize)]
pub(super) struct Origin<'a> {
    /// For a directory: the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<&'a str>,
    /// For a trace: what ran in the place of the program's kernels.
    #[serde(flatten)]
    pub(super) candidate: Option<&'a Candidate>,
    /// For people, behind the function's name: ` in a.co`.
    #[serde(skip)]
    pub(super) words: String,
}

/// A function as `--json` has it: without the parts that were not asked for.
#[derive(Serialize)]
struct ListedFunction<'a> {
    function: &'a str,
    symbol: &'a str,
    target: &'a str,
    is_kernel: bool,
    address: u64,
    #[serde(flatten)]
    origin: &'a Origin<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a [KernelArgument]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a [ListedInstruction]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<&'a [BasicBlock]>,
}

impl<'a, W: Write> Listings<'a, W> {
    pub(super) fn begin(out: &'a mut W, form: ListingForm, parts: ListingParts) -> io::Result<Self> {
        match form {
            ListingForm::Text => {}
            ListingForm::Json => write!(out, "[")?,
            ListingForm::Dot => writeln!(out, "digraph code {{\n  node [shape=box, fontname=monospace];")?,
        }
        Ok(Listings { out, form, parts, written: 0 })
    }

    pub(super) fn function(&mut self, listing: &Listing, origin: &Origin<'_>) -> io::Result<()> {
        let number = self.written;
        self.written += 1;
        match self.form {
            ListingForm::Json => {
                let separator = if number == 0 { "\n" } else { ",\n" };
                let object = ListedFunction {
                    function: &listing.function,
                    symbol: &listing.symbol,
                    target: &listing.target,
                    is_kernel: listing.is_kernel,
                    address: listing.address,
                    origin,
                    arguments: listing.arguments.as_deref().filter(|_| self.parts.arguments),
                    instructions: self.parts.instructions.then_some(listing.instructions.as_slice()),
                    blocks: self.parts.blocks.then_some(listing.blocks.as_slice()),
                };
                write!(self.out, "{separator}{}", json(serde_json::to_string(&object)?))
            }
            ListingForm::Dot => self.graph(number, listing, origin),
            ListingForm::Text => {
                if number > 0 {
                    writeln!(self.out)?;
                }
                self.text(listing, origin)
            }
        }
    }

    fn text(&mut self, listing: &Listing, origin: &Origin<'_>) -> io::Result<()> {
        let instructions = counted(listing.instructions.len() as u64, "instruction", "instructions");
        let blocks = counted(listing.blocks.len() as u64, "block", "blocks");
        let (name, target, origin) =
            (escape(&listing.function), escape(&listing.target), escape(&origin.words));
        writeln!(self.out, "{target} {name}{origin}: {instructions}, {blocks}")?;
        for argument in listing.arguments.iter().flatten().filter(|_| self.parts.arguments) {
            writeln!(self.out, "  {}", escape(&argument_line(argument)))?;
        }
        let mut source = None;
        for (number, block) in listing.blocks.iter().enumerate() {
            let instructions = &listing.instructions[block.first..block.first + block.instructions];
            if self.parts.blocks {
                let count = counted(block.instructions as u64, "instruction", "instructions");
                let line = instructions.first().and_then(line_of);
                let line = line.map_or(String::new(), |line| format!("  {line}"));
                writeln!(self.out, "L{number}  {:x}..{:x}  {count}{line}", block.address, block.end)?;
            } else if is_target(listing, number) {
                writeln!(self.out, "L{number}:")?;
            }
            if self.parts.instructions {
                for (place, instruction) in instructions.iter().enumerate() {
                    let line = line_of(instruction);
                    if line.is_some() && line != source {
                        writeln!(self.out, "; {}", line.as_deref().unwrap_or_default())?;
                    }
                    source = line.or(source);
                    let is_last = place + 1 == instructions.len();
                    let to = is_last.then(|| block.edges.iter().find_map(leads_away)).flatten();
                    let to = to.map_or(String::new(), |to| format!("  ; {to}"));
                    let ListedInstruction { address, bytes, text, .. } = instruction;
                    writeln!(self.out, "{address:>8x}  {bytes:<26}  {}{to}", escape(text))?;
                }
            }
            if self.parts.blocks {
                for edge in &block.edges {
                    writeln!(self.out, "    {}", edge_text(edge))?;
                }
            }
        }
        Ok(())
    }

    /// A cluster of its own for each function.
    fn graph(&mut self, number: usize, listing: &Listing, origin: &Origin<'_>) -> io::Result<()> {
        let out = &mut *self.out;
        let title = format!("{} {}{}", listing.target, listing.function, origin.words);
        writeln!(out, "  subgraph cluster_{number} {{\n    label={};", quoted(&[title]))?;
        for (place, block) in listing.blocks.iter().enumerate() {
            let instructions = &listing.instructions[block.first..block.first + block.instructions];
            let count = counted(block.instructions as u64, "instruction", "instructions");
            let mut lines = vec![format!("L{place} {:x}..{:x}: {count}", block.address, block.end)];
            lines.extend(instructions.first().and_then(line_of));
            if self.parts.instructions {
                lines.extend(instructions.iter().map(|instruction| instruction.text.clone()));
            }
            writeln!(out, "    f{number}b{place} [label={}];", quoted(&lines))?;
        }
        writeln!(out, "  }}")?;
        for (place, block) in listing.blocks.iter().enumerate() {
            for (at, edge) in block.edges.iter().enumerate() {
                let style = style(edge.kind);
                match edge.block {
                    Some(to) => writeln!(out, "  f{number}b{place} -> f{number}b{to} [{style}];")?,
                    // What is outside gets a node of its own for each edge.
                    None => {
                        let outside = format!("f{number}b{place}x{at}");
                        let label = quoted(&[outside_of(edge)]);
                        writeln!(out, "  {outside} [shape=plaintext, label={label}];")?;
                        writeln!(out, "  f{number}b{place} -> {outside} [{style}];")?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn end(self) -> io::Result<()> {
        match self.form {
            ListingForm::Text => Ok(()),
            ListingForm::Json => writeln!(self.out, "\n]"),
            ListingForm::Dot => writeln!(self.out, "}}"),
        }
    }
}

/// `vadd.hip:7`.
fn line_of(instruction: &ListedInstruction) -> Option<String> {
    let (file, line) = instruction.file.as_ref().zip(instruction.line)?;
    Some(format!("{}:{line}", escape(file)))
}

/// Whether something branches to the block: what only runs into it needs no label.
fn is_target(listing: &Listing, number: usize) -> bool {
    let leads =
        |edge: &ListedEdge| edge.block == Some(number) && ["branch", "taken", "call"].contains(&edge.kind);
    listing.blocks.iter().any(|block| block.edges.iter().any(leads))
}

/// Where the branch that an edge stands for leads, if it is one to a known place.
fn leads_away(edge: &ListedEdge) -> Option<String> {
    ["branch", "taken", "call"].contains(&edge.kind).then(|| place(edge))
}

fn place(edge: &ListedEdge) -> String {
    match (edge.block, edge.address, &edge.function) {
        (Some(block), ..) => format!("L{block}"),
        (None, Some(address), Some(function)) => format!("{address:x} {}", escape(function)),
        (None, Some(address), None) => format!("{address:x}"),
        (None, None, _) => String::new(),
    }
}

fn edge_text(edge: &ListedEdge) -> String {
    format!("{:<13} {}", edge.kind, place(edge)).trim_end().to_string()
}

/// What the node of a place outside of the function is called.
fn outside_of(edge: &ListedEdge) -> String {
    match (edge.address, &edge.function) {
        (Some(address), Some(function)) => format!("{address:x} {function}"),
        (Some(address), None) => format!("{address:x}"),
        (None, _) if edge.kind == "end" => "end".to_string(),
        (None, _) => "?".to_string(),
    }
}

/// How an edge is drawn: each kind has its label, and what is easily confused its own line.
fn style(kind: &str) -> String {
    let line = match kind {
        "fallthrough" | "return" => "style=dotted",
        "not-taken" => "style=dashed",
        "call" | "indirect-call" => "color=blue",
        "indirect" => "color=red",
        "taken" => "color=darkgreen",
        _ => "style=solid",
    };
    format!("label=\"{kind}\", {line}")
}

/// Lines, each at the left, as a string of Graphviz. Backslashes begin its own escapes.
fn quoted(lines: &[String]) -> String {
    let line = |line: &String| escape(line).replace('\\', "\\\\").replace('"', "\\\"") + "\\l";
    format!("\"{}\"", lines.iter().map(line).collect::<String>())
}
