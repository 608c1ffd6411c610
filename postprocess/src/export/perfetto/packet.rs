//! Packets of a Perfetto trace, and what they name by numbers.
//!
//! Each name is in the trace once for each maker of events, which to Perfetto is a sequence of packets with names of its own.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::field::{annotation, event, interned, packet};
use super::message::{content, message, number};

/// Names that have numbers; others are in their events.
const INTERNED: usize = 1 << 16;

/// A packet is the only field of a trace.
const PACKET: u32 = 1;

/// What is in a packet's flags: the names of its sequence begin here; it needs them.
const CLEARED: u64 = 1;
const NEEDS_NAMES: u64 = 2;

/// Categories, by their number less 1.
const CATEGORIES: [&str; 12] = [
    "marker_api",
    "hip_api",
    "hsa_api",
    "cuda_api",
    "api",
    "kernel_dispatch",
    "memory_copy",
    "memory_fill",
    "gpu_operation",
    "marker_frame",
    "graph",
    "other",
];

/// Names of arguments, by their number less 1: rocprofv3's.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    Desc = 1,
    CorrId,
    Agent,
    Queue,
    Pid,
    Tid,
    Grid,
    Workgroup,
    GridSize,
    WorkgroupSize,
    Lds,
    Scratch,
    Vgprs,
    Sgprs,
    Graph,
    GraphNode,
    Cluster,
    CopyBytes,
    Stream,
    StreamId,
    Kernels,
    Ops,
}

/// Texts of [`Key`].
const KEYS: [&str; 22] = [
    "desc",
    "corr_id",
    "agent",
    "queue",
    "pid",
    "tid",
    "grid",
    "workgroup",
    "grid_size",
    "workgroup_size",
    "LDS_Block_Size",
    "Scratch_Size",
    "VGPR_Count",
    "SGPR_Count",
    "graph",
    "graph_node",
    "cluster",
    "copy_bytes",
    "stream",
    "stream_ID",
    "kernels",
    "ops",
];

/// A text that events are named by. Names and arguments of calls may be in tables with ids of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum EventName {
    /// Of a function, kernel or type.
    Name(i64),
    /// What a marker says.
    Argument(i64),
}

/// The packets of one sequence, and the names in it.
pub(super) struct Sequence {
    /// Never 0, and no other sequence has it.
    id: u64,
    has_begun: bool,
    /// Numbers of event names and of texts in arguments, by id in the trace.
    names: FxHashMap<EventName, u64>,
    texts: FxHashMap<i64, u64>,
    /// Names that the packet that is being made brings.
    new: Vec<u8>,
}

impl Sequence {
    pub(super) fn new(id: u64) -> Sequence {
        Sequence {
            id,
            has_begun: false,
            names: FxHashMap::default(),
            texts: FxHashMap::default(),
            new: Vec::new(),
        }
    }

    /// Appends an event's name to it: the text with this id.
    pub(super) fn name(&mut self, into: &mut Vec<u8>, id: EventName, text: &[u8]) {
        match intern(&mut self.names, id) {
            Some((iid, is_new)) => {
                number(into, event::NAME_IID, iid);
                if is_new {
                    define(&mut self.new, interned::EVENT_NAMES, iid, text);
                }
            }
            None => content(into, event::NAME, text),
        }
    }

    /// Appends an argument with one of the texts of which there are few.
    pub(super) fn known_text(&mut self, into: &mut Vec<u8>, key: Key, id: i64, text: &[u8]) {
        let known = intern(&mut self.texts, id);
        message(into, event::DEBUG_ANNOTATIONS, |bytes| {
            number(bytes, annotation::NAME_IID, key as u64);
            match known {
                Some((iid, _)) => number(bytes, annotation::STRING_IID, iid),
                None => content(bytes, annotation::STRING, text),
            }
        });
        if let Some((iid, true)) = known {
            define(&mut self.new, interned::STRING_VALUES, iid, text);
        }
    }

    /// Appends a packet with an event; `needs_names` if it has numbers of names.
    pub(super) fn event(&mut self, bytes: &mut Vec<u8>, time_ns: i64, needs_names: bool, of_event: &[u8]) {
        message(bytes, PACKET, |bytes| {
            number(bytes, packet::TIMESTAMP, time_ns as u64);
            number(bytes, packet::SEQUENCE_ID, self.id);
            if needs_names {
                let begins = !std::mem::replace(&mut self.has_begun, true);
                number(
                    bytes,
                    packet::SEQUENCE_FLAGS,
                    if begins { CLEARED | NEEDS_NAMES } else { NEEDS_NAMES },
                );
                if begins {
                    for (field, names) in [
                        (interned::EVENT_CATEGORIES, &CATEGORIES[..]),
                        (interned::DEBUG_ANNOTATION_NAMES, &KEYS[..]),
                    ] {
                        for (name, iid) in names.iter().zip(1..) {
                            define(&mut self.new, field, iid, name.as_bytes());
                        }
                    }
                }
                if !self.new.is_empty() {
                    content(bytes, packet::INTERNED_DATA, &self.new);
                    self.new.clear();
                }
            }
            content(bytes, packet::TRACK_EVENT, of_event);
        });
    }

    /// Appends a packet with one message that is no event.
    pub(super) fn other(&self, bytes: &mut Vec<u8>, field: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        message(bytes, PACKET, |bytes| {
            number(bytes, packet::SEQUENCE_ID, self.id);
            message(bytes, field, fill);
        });
    }
}

/// The number of the text with this id, and whether it is new; none if there are too many.
fn intern<T: Eq + Hash>(numbers: &mut FxHashMap<T, u64>, id: T) -> Option<(u64, bool)> {
    let next = numbers.len() as u64 + 1;
    match numbers.get(&id) {
        Some(iid) => Some((*iid, false)),
        None if numbers.len() == INTERNED => None,
        None => {
            numbers.insert(id, next);
            Some((next, true))
        }
    }
}

fn define(bytes: &mut Vec<u8>, field: u32, iid: u64, text: &[u8]) {
    message(bytes, field, |bytes| {
        number(bytes, interned::IID, iid);
        content(bytes, interned::TEXT, text);
    });
}

/// Appends the number of a category.
pub(super) fn category(bytes: &mut Vec<u8>, name: &str) {
    let place = CATEGORIES.iter().position(|known| *known == name).unwrap_or(CATEGORIES.len() - 1);
    number(bytes, event::CATEGORY_IIDS, place as u64 + 1);
}

/// Appends an argument that is a number.
pub(super) fn argument(bytes: &mut Vec<u8>, key: Key, value: i64) {
    message(bytes, event::DEBUG_ANNOTATIONS, |bytes| {
        number(bytes, annotation::NAME_IID, key as u64);
        number(bytes, annotation::INT, value as u64);
    });
}

/// Appends an argument that is a text.
pub(super) fn text(bytes: &mut Vec<u8>, key: Key, text: &[u8]) {
    message(bytes, event::DEBUG_ANNOTATIONS, |bytes| {
        number(bytes, annotation::NAME_IID, key as u64);
        content(bytes, annotation::STRING, text);
    });
}

/// Appends an argument that is three numbers.
pub(super) fn dimensions(bytes: &mut Vec<u8>, key: Key, sizes: [i64; 3]) {
    message(bytes, event::DEBUG_ANNOTATIONS, |bytes| {
        number(bytes, annotation::NAME_IID, key as u64);
        for size in sizes {
            message(bytes, annotation::ARRAY, |bytes| number(bytes, annotation::INT, size as u64));
        }
    });
}
