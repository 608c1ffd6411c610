//! Cache lines that waves touch against those that would have been enough, and conflicts of LDS banks, by line of the source.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rpd_dh_comms::message::{Access, Message, MessageKind, Space};
use rpd_schema::Finding;
use serde_json::{Value, json};

use crate::analysis::Subject;

/// Places in the source that are counted.
const MOST: usize = 1 << 16;
/// Banks of LDS, each a word wide.
const BANKS: usize = 32;

/// Which lanes access LDS at the same time, by the bytes of an access: lanes of other sets do not conflict (CDNA ISA guides: LDS; the
/// sets are omniprobe's).
fn conflict_sets(size: u32) -> &'static [&'static [u32]] {
    const WORDS: [&[u32]; 2] = [
        &[
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
            27, 28, 29, 30, 31,
        ],
        &[
            32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55,
            56, 57, 58, 59, 60, 61, 62, 63,
        ],
    ];
    const LONGS: [&[u32]; 4] = [
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        &[16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31],
        &[32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47],
        &[48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63],
    ];
    const QUADS: [&[u32]; 8] = [
        &[0, 1, 2, 3, 20, 21, 22, 23],
        &[4, 5, 6, 7, 16, 17, 18, 19],
        &[8, 9, 10, 11, 28, 29, 30, 31],
        &[12, 13, 14, 15, 24, 25, 26, 27],
        &[32, 33, 34, 35, 52, 53, 54, 55],
        &[36, 37, 38, 39, 48, 49, 50, 51],
        &[40, 41, 42, 43, 60, 61, 62, 63],
        &[44, 45, 46, 47, 56, 57, 58, 59],
    ];
    match size {
        1 | 2 | 4 => &WORDS,
        8 => &LONGS,
        16 => &QUADS,
        _ => &[],
    }
}

/// Conflicts of one access of a wave: of each set of lanes, how many more words of the fullest bank there are than one.
fn conflicts(size: u32, addresses: &[(u32, u64)]) -> u64 {
    let mut all = 0;
    for set in conflict_sets(size) {
        let mut words: [Vec<u64>; BANKS] = [const { Vec::new() }; BANKS];
        for (_, address) in addresses.iter().filter(|(lane, _)| set.contains(lane)) {
            let (word, bank) = (address / 4, (address / 4) as usize % BANKS);
            if !words[bank].contains(&word) {
                words[bank].push(word);
            }
        }
        all += words.iter().map(Vec::len).max().unwrap_or(0).saturating_sub(1) as u64;
    }
    all
}

/// A place in the source, and what is done there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    file: u64,
    line: u32,
    column: u32,
    access: Access,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    accesses: u64,
    needed: u64,
    used: u64,
    conflicts: u64,
}

pub(crate) struct MemoryAnalysis {
    line_size: u64,
    counts: BTreeMap<Place, Counts>,
    left_out: u64,
    odd: u64,
    lines: Vec<u64>,
    addresses: Vec<(u32, u64)>,
}

impl MemoryAnalysis {
    pub(crate) fn new(subject: &Subject<'_>) -> MemoryAnalysis {
        MemoryAnalysis {
            line_size: line_size(subject.target),
            counts: BTreeMap::new(),
            left_out: 0,
            odd: 0,
            lines: Vec::new(),
            addresses: Vec::new(),
        }
    }

    pub(crate) fn message(&mut self, message: &Message<'_>) {
        let MessageKind::Address(access) = message.kind() else { return };
        let header = &message.header;
        let known = |number: u32| if number == u32::MAX { 0 } else { number };
        let place =
            Place { file: header.file, line: known(header.line), column: known(header.column), access };
        if self.counts.len() >= MOST && !self.counts.contains_key(&place) {
            self.left_out += 1;
            return;
        }
        self.addresses.clear();
        self.addresses.extend(message.addresses());
        let counts = self.counts.entry(place).or_default();
        counts.accesses += 1;
        match access.space {
            Space::Shared => {
                counts.conflicts += conflicts(access.size, &self.addresses);
                self.odd += u64::from(conflict_sets(access.size).is_empty());
            }
            Space::Gds | Space::Scratch => {}
            _ => {
                let size = u64::from(access.size.max(1));
                self.lines.clear();
                for (_, address) in &self.addresses {
                    let last = address.saturating_add(size - 1) / self.line_size;
                    self.lines.extend(address / self.line_size..=last);
                }
                self.lines.sort_unstable();
                self.lines.dedup();
                let used = self.lines.len() as u64;
                // Lanes that access the same bytes need no more than the lines that have them.
                counts.needed += (self.addresses.len() as u64 * size).div_ceil(self.line_size).min(used);
                counts.used += used;
            }
        }
    }

    pub(crate) fn reason(&self) -> Option<String> {
        let left_out = (self.left_out > 0).then(|| {
            format!("{} accesses from more than {MOST} places in the source are not counted", self.left_out)
        });
        let odd = (self.odd > 0).then(|| {
            format!(
                "{} accesses to LDS are of another size than 1, 2, 4, 8 or 16 bytes: conflicts are not known",
                self.odd
            )
        });
        let reasons: Vec<String> = left_out.into_iter().chain(odd).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    pub(crate) fn findings(&self, subject: &Subject<'_>) -> Vec<Finding> {
        let finding = |(place, counts): (&Place, &Counts)| Finding::MemoryAccess {
            file: subject.file(place.file),
            line: place.line,
            column: place.column,
            kind: place.access.kind.into(),
            space: place.access.space.name().into(),
            size: place.access.size,
            accesses: counts.accesses,
            lines_needed: counts.needed,
            lines_used: counts.used,
            conflicts: counts.conflicts,
        };
        self.counts.iter().map(finding).collect()
    }

    fn of_lds(&self, wanted: bool) -> impl Iterator<Item = (&Place, &Counts)> {
        self.counts.iter().filter(move |(place, _)| (place.access.space == Space::Shared) == wanted)
    }

    pub(crate) fn text(&self, subject: &Subject<'_>) -> String {
        let mut text = format!("=== L2 cache line use report ({}[{}])\n", subject.kernel, subject.dispatch);
        let at = |place: &Place| format!("{}:{}:{}", subject.file(place.file), place.line, place.column);
        for (place, counts) in self.of_lds(false) {
            let Access { kind, size, .. } = place.access;
            let _ = writeln!(
                text,
                "{}\t{kind} of {size} bytes: {} times, {} L2 cache lines needed, {} used",
                at(place),
                counts.accesses,
                counts.needed,
                counts.used
            );
        }
        let _ = writeln!(text, "=== Bank conflicts report ({}[{}])", subject.kernel, subject.dispatch);
        for (place, counts) in self.of_lds(true) {
            let Access { kind, size, .. } = place.access;
            let _ = writeln!(
                text,
                "{}\t{kind} of {size} bytes: {} times, {} bank conflicts",
                at(place),
                counts.accesses,
                counts.conflicts
            );
        }
        text
    }

    pub(crate) fn json(&self, subject: &Subject<'_>) -> Value {
        let location = |place: &Place| json!({"file": subject.file(place.file), "line": place.line, "column": place.column});
        let lines: Vec<Value> = self
            .of_lds(false)
            .map(|(place, counts)| {
                json!({
                    "source_location": location(place),
                    "access_info": {
                        "type": place.access.kind,
                        "execution_count": counts.accesses,
                        "ir_bytes": place.access.size,
                        "cache_lines": {"needed": counts.needed, "used": counts.used},
                    },
                })
            })
            .collect();
        let banks: Vec<Value> = self
            .of_lds(true)
            .map(|(place, counts)| {
                json!({
                    "source_location": location(place),
                    "access_info": {
                        "type": place.access.kind,
                        "execution_count": counts.accesses,
                        "ir_bytes": place.access.size,
                    },
                    "total_conflicts": counts.conflicts,
                })
            })
            .collect();
        json!({
            "kernel_analysis": {
                "kernel_info": {"name": subject.kernel, "dispatch_id": subject.dispatch},
                "cache_analysis": {"accesses": lines},
                "bank_conflicts": {"accesses": banks},
            },
            "metadata": {
                "version": env!("CARGO_PKG_VERSION"),
                "gpu_info": {"architecture": subject.target, "cache_line_size": self.line_size},
            },
        })
    }
}

/// Bytes of a line of the L2 cache: 64 up to gfx908 (Vega and CDNA 1), 128 from gfx90a and gfx10 on (AMD's CDNA and RDNA white papers).
fn line_size(target: &str) -> u64 {
    if ["gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90c"].contains(&target) {
        64
    } else {
        128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(address: impl Fn(u64) -> u64) -> Vec<(u32, u64)> {
        (0..64).map(|lane| (lane as u32, address(lane))).collect()
    }

    #[test]
    fn banks() {
        assert_eq!(conflicts(4, &lanes(|lane| 4 * lane)), 0);
        assert_eq!(conflicts(4, &lanes(|_| 128)), 0, "all lanes read one word");
        assert_eq!(conflicts(4, &lanes(|lane| 128 * lane)), 2 * 31, "all in one bank");
        assert_eq!(conflicts(4, &lanes(|lane| 8 * lane)), 2, "each bank has two words");
        assert_eq!(conflicts(8, &lanes(|lane| 8 * lane)), 0);
        assert_eq!(conflicts(16, &lanes(|lane| 16 * lane)), 0);
        assert_eq!(conflicts(8, &lanes(|lane| 256 * lane)), 4 * 15);
        assert_eq!(conflicts(12, &lanes(|lane| 128 * lane)), 0, "not known");
    }

    #[test]
    fn every_lane_is_in_one_set() {
        for size in [1, 2, 4, 8, 16] {
            let mut all: Vec<u32> = conflict_sets(size).concat();
            all.sort_unstable();
            assert_eq!(all, (0..64).collect::<Vec<_>>(), "{size}");
        }
    }
}
