//! What the page draws, as bytes: tiles of 512 buckets of one row and level each.
//!
//! All numbers are little endian. A header of eight u32: magic `rpdt`, version 1, level, rows, tiles of each row, runs, low and high half of the number
//! of the first tile. Then u32 numbers of the rows, u32 runs of each tile (those of the first row first), and the runs in columns: u32 event,
//! u32 number of the name, u32 events that begin in it, u16 first bucket of the tile, u16 buckets, u8 busy share in 255ths.

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

/// The tiles that are asked for.
pub fn tiles(timeline: &Timeline, asked: &Asked) -> Vec<u8> {
    let mut counts: Vec<u32> = Vec::new();
    let mut runs: Vec<(u64, Run)> = Vec::new();
    for row in &asked.rows {
        for tile in asked.first..asked.first + u64::from(asked.tiles) {
            let from = tile * BUCKETS;
            let before = runs.len();
            for run in timeline.runs(*row, asked.level, from..from + BUCKETS) {
                match runs[before..].last_mut() {
                    // What one event has in buckets beside each other is drawn as one.
                    Some((_, last)) if last.event == run.event && last.end() == run.first => {
                        last.length += run.length;
                        last.busy = last.busy.saturating_add(run.busy);
                        last.count = last.count.saturating_add(run.count);
                    }
                    _ => runs.push((from, run)),
                }
            }
            counts.push((runs.len() - before) as u32);
        }
    }
    let mut bytes = Vec::with_capacity(32 + 4 * (asked.rows.len() + counts.len()) + 17 * runs.len());
    let header = [
        MAGIC,
        VERSION,
        u32::from(asked.level),
        asked.rows.len() as u32,
        asked.tiles,
        runs.len() as u32,
        asked.first as u32,
        (asked.first >> 32) as u32,
    ];
    let words = header.iter().chain(&asked.rows).chain(&counts);
    words.for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    let mut word = |of: &dyn Fn(&Run) -> u32| {
        runs.iter().for_each(|(_, run)| bytes.extend_from_slice(&of(run).to_le_bytes()));
    };
    word(&|run| run.event);
    word(&|run| timeline.columns.name(run.event));
    word(&|run| run.count);
    runs.iter().for_each(|(from, run)| bytes.extend_from_slice(&((run.first - from) as u16).to_le_bytes()));
    runs.iter().for_each(|(_, run)| bytes.extend_from_slice(&(run.length as u16).to_le_bytes()));
    bytes.extend(runs.iter().map(|(_, run)| share(run, asked.level)));
    bytes
}

/// The busy share of a run in 255ths; never none where there is something.
fn share(run: &Run, level: u8) -> u8 {
    let whole = u128::from(run.length) << level;
    let share = (u128::from(run.busy) * 255 + whole / 2) / whole;
    share.clamp(1, 255) as u8
}
