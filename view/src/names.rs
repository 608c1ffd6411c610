//! Names of events: a number for each text, and what kind of thing has it.

use std::hash::BuildHasher;

use anyhow::Result;
use rpd_postprocess::trace::Strings;
use rpd_postprocess::trace::op_kind::OpKind;
use rpd_schema::Version;
use rusqlite::Connection;
use rustc_hash::{FxBuildHasher, FxHashMap};

/// What an event is, for its colour. The page knows them by these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// A kernel that computes.
    Kernel = 0,
    /// A copy.
    Copy = 1,
    /// Memory is filled.
    Fill = 2,
    /// A kernel by which GPUs exchange what they have.
    Collective = 3,
    /// Another operation of a queue: a barrier.
    Barrier = 4,
    /// A call.
    Call = 5,
    /// A call that waits for the GPU.
    Wait = 6,
    /// A range or mark of the program.
    Marker = 7,
}

impl EventKind {
    /// What they are called on the page, by number.
    pub const WORDS: [&'static str; 8] =
        ["kernel", "copy", "fill", "collective", "barrier", "call", "wait", "marker"];

    /// What it is called on the page.
    pub fn word(self) -> &'static str {
        EventKind::WORDS[self as usize]
    }

    fn of_op(op_type: &str, name: &str) -> EventKind {
        match OpKind::of(op_type) {
            OpKind::Kernel if ["nccl", "rccl", "msccl"].iter().any(|word| name.contains(word)) => {
                EventKind::Collective
            }
            OpKind::Kernel if name.starts_with("__amd_rocclr_copy") => EventKind::Copy,
            OpKind::Kernel if name.starts_with("__amd_rocclr_fill") => EventKind::Fill,
            OpKind::Kernel => EventKind::Kernel,
            OpKind::Copy => EventKind::Copy,
            OpKind::Fill => EventKind::Fill,
            OpKind::Other => EventKind::Barrier,
        }
    }

    fn of_call(function: &str) -> EventKind {
        if function.contains("Synchronize") || function.contains("_wait_") {
            EventKind::Wait
        } else {
            EventKind::Call
        }
    }
}

/// A name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// As the trace has it; very long ones are cut and say so.
    pub text: Box<str>,
    /// What has it.
    pub kind: EventKind,
}

/// The names of a trace while its rows are read.
pub struct NameReader<'trace> {
    texts: Strings<'trace>,
    arguments: Strings<'trace>,
    names: Vec<Name>,
    number_of: FxHashMap<u64, u32>,
    ops: FxHashMap<(i64, i64), u32>,
    /// By function; none for markers, whose name is in their arguments.
    calls: FxHashMap<i64, Option<u32>>,
    markers: FxHashMap<i64, u32>,
}

impl<'trace> NameReader<'trace> {
    /// Those of a trace with this version of the schema.
    ///
    /// # Errors
    /// When it has no texts.
    pub fn of(trace: &'trace Connection, version: Version) -> Result<NameReader<'trace>> {
        let arguments = arguments_table(version);
        Ok(NameReader {
            texts: Strings::of(trace)?,
            arguments: Strings::in_table(trace, arguments)?,
            names: Vec::new(),
            number_of: FxHashMap::default(),
            ops: FxHashMap::default(),
            calls: FxHashMap::default(),
            markers: FxHashMap::default(),
        })
    }

    /// The name of an operation: what it is described as, otherwise its type.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn of_op(&mut self, description: i64, op_type: i64) -> Result<u32> {
        if let Some(number) = self.ops.get(&(description, op_type)) {
            return Ok(*number);
        }
        let described = self.texts.get(description)?.unwrap_or_default();
        let op_type_text = self.texts.get(op_type)?.unwrap_or_default();
        let kind = EventKind::of_op(&op_type_text, &described);
        let number = self.number(if described.is_empty() { op_type_text } else { described }, kind);
        self.ops.insert((description, op_type), number);
        Ok(number)
    }

    /// The name of a call: its function; of a marker its text.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn of_call(&mut self, function: i64, arguments: i64) -> Result<u32> {
        let known = match self.calls.get(&function) {
            Some(known) => *known,
            None => {
                let text = self.texts.get(function)?.unwrap_or_default();
                let kind = EventKind::of_call(&text);
                let known = (text != "UserMarker").then(|| self.number(text, kind));
                self.calls.insert(function, known);
                known
            }
        };
        if let Some(number) = known {
            return Ok(number);
        }
        if let Some(number) = self.markers.get(&arguments) {
            return Ok(*number);
        }
        let text = self.arguments.get(arguments)?.unwrap_or_default();
        let number = self.number(text, EventKind::Marker);
        self.markers.insert(arguments, number);
        Ok(number)
    }

    /// The number of a name: one for each text of a kind, however often the trace has it.
    fn number(&mut self, text: String, kind: EventKind) -> u32 {
        // A text is kept once, among the names: its place is found by a hash, that of another one with the same hash behind it.
        let mut hash = FxBuildHasher.hash_one((&text, kind));
        loop {
            match self.number_of.get(&hash) {
                Some(number) => {
                    let name = &self.names[*number as usize];
                    if *name.text == *text && name.kind == kind {
                        return *number;
                    }
                    hash = hash.wrapping_add(1);
                }
                None => {
                    let number = self.names.len() as u32;
                    self.number_of.insert(hash, number);
                    self.names.push(Name { text: text.into(), kind });
                    return number;
                }
            }
        }
    }

    /// Adds the names that `known`, which has the first ones by their numbers, has not.
    pub fn add_to(&self, known: &mut Vec<Name>) {
        known.extend_from_slice(&self.names[known.len()..]);
    }
}

/// The table with the texts of arguments.
pub fn arguments_table(version: Version) -> &'static str {
    if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" }
}
