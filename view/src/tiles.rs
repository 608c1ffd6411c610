//! The bytes that the page draws from: tiles of 512 buckets of one row and level each.
//!
//! All numbers are little endian. A header of eight u32: magic `rpdt`, version 1, level, rows, tiles of each row, runs, low and high half of the number
//! of the first tile. Then u32 numbers of the rows, u32 runs of each tile (those of the first row first), and the runs in columns: u32 event,
//! u32 number of the name, u32 events that begin in it, u16 first bucket of the tile, u16 buckets, u8 busy share in 255ths. Those of a counter
//! have in place of the first two f32 least value and f32 greatest value.

use crate::counters::Band;
use crate::pyramid::{Run, TOP_LEVEL};
use crate::timeline::Timeline;

/// Buckets of a tile.
pub const BUCKETS: u64 = 512;

/// Tiles of one answer.
pub const MOST_TILES: usize = 8192;

const MAGIC: u32 = u32::from_le_bytes(*b"rpdt");
const VERSION: u32 = 1;

/// Which tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// An even number up to [`TOP_LEVEL`].
    pub level: u8,
    /// The first tile.
    pub first: u64,
    /// How many tiles of each row.
    pub tiles: u32,
    /// The rows, by number.
    pub rows: Vec<u32>,
}

impl Asked {
    /// What is wrong with the question, if anything.
    pub fn fault(&self) -> Option<&'static str> {
        let end = self.first.checked_add(u64::from(self.tiles)).and_then(|end| end.checked_mul(BUCKETS));
        let is_beyond = end.is_none_or(|end| end > 1 << (63 - self.level.min(TOP_LEVEL)));
        match () {
            () if self.level > TOP_LEVEL || self.level % 2 == 1 => Some("no such level"),
            () if is_beyond => Some("no such tile"),
            () if self.rows.len().saturating_mul(self.tiles as usize) > MOST_TILES => Some("too many tiles"),
            () => None,
        }
    }
}

/// A run as it is sent.
struct Sent {
    one: u32,
    two: u32,
    count: u32,
    first: u16,
    length: u16,
    busy: u8,
}

/// The tiles that are asked for.
pub fn tiles(timeline: &Timeline, asked: &Asked) -> Vec<u8> {
    let mut counts: Vec<u32> = Vec::new();
    let mut sent: Vec<Sent> = Vec::new();
    for row in &asked.rows {
        let counter = timeline.counter(*row);
        for tile in asked.first..asked.first + u64::from(asked.tiles) {
            let buckets = tile * BUCKETS..(tile + 1) * BUCKETS;
            let before = sent.len();
            match counter {
                Some(counter) => {
                    send_bands(counter.bands(asked.level, buckets.clone()), buckets.start, &mut sent)
                }
                None => {
                    let runs = timeline.runs(*row, asked.level, buckets.clone());
                    send_runs(timeline, runs, (asked.level, buckets.start), &mut sent);
                }
            }
            counts.push((sent.len() - before) as u32);
        }
    }
    let mut bytes = Vec::with_capacity(32 + 4 * (asked.rows.len() + counts.len()) + 17 * sent.len());
    let header = [
        MAGIC,
        VERSION,
        u32::from(asked.level),
        asked.rows.len() as u32,
        asked.tiles,
        sent.len() as u32,
        asked.first as u32,
        (asked.first >> 32) as u32,
    ];
    let words = header.iter().chain(&asked.rows).chain(&counts);
    words.for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    let mut word = |of: &dyn Fn(&Sent) -> u32| {
        sent.iter().for_each(|run| bytes.extend_from_slice(&of(run).to_le_bytes()));
    };
    word(&|run| run.one);
    word(&|run| run.two);
    word(&|run| run.count);
    sent.iter().for_each(|run| bytes.extend_from_slice(&run.first.to_le_bytes()));
    sent.iter().for_each(|run| bytes.extend_from_slice(&run.length.to_le_bytes()));
    bytes.extend(sent.iter().map(|run| run.busy));
    bytes
}

/// What one event has in buckets beside each other is sent as one.
fn send_runs(timeline: &Timeline, runs: Vec<Run>, (level, base): (u8, u64), sent: &mut Vec<Sent>) {
    let mut joined: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.event == run.event && last.end() == run.first => {
                last.length += run.length;
                last.busy = last.busy.saturating_add(run.busy);
                last.count = last.count.saturating_add(run.count);
            }
            _ => joined.push(run),
        }
    }
    sent.extend(joined.iter().map(|run| Sent {
        one: run.event,
        two: timeline.columns.name(run.event),
        count: run.count,
        first: (run.first - base) as u16,
        length: run.length as u16,
        busy: share(run, level),
    }));
}

/// Buckets beside each other that look the same are sent as one.
fn send_bands(bands: Vec<Band>, base: u64, sent: &mut Vec<Sent>) {
    let mut end = 0;
    let from = sent.len();
    for band in bands {
        let (one, two) = ((band.least as f32).to_bits(), (band.greatest as f32).to_bits());
        match sent[from..].last_mut() {
            Some(last) if (last.one, last.two) == (one, two) && end == band.first => {
                last.length += band.length as u16;
                last.count = last.count.saturating_add(band.count);
            }
            _ => sent.push(Sent {
                one,
                two,
                count: band.count,
                first: (band.first - base) as u16,
                length: band.length as u16,
                busy: u8::MAX,
            }),
        }
        end = band.end();
    }
}

/// The busy share of a run in 255ths; never none where there is something.
pub(crate) fn share(run: &Run, level: u8) -> u8 {
    let whole = u128::from(run.length) << level;
    let share = (u128::from(run.busy) * 255 + whole / 2) / whole;
    share.clamp(1, 255) as u8
}
