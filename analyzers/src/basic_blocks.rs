//! How often waves enter each basic block, and how long they stay: up to the next block of the same wave.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rpd_dh_comms::message::{Message, MessageKind};
use rpd_schema::Finding;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::analysis::{Subject, quoted};

/// Waves whose last block is known.
const MOST_WAVES: usize = 1 << 20;
/// Blocks that are counted, each on its own on each compute unit.
const MOST_BLOCKS: usize = 1 << 16;
/// Times that are kept for percentiles.
const MOST_TIMES: usize = 1 << 22;

/// A block of the kernel: its number, and where it is in the source.
type Block = (u32, u64, u32);

/// Stays in a block.
#[derive(Default)]
struct Stays {
    count: u64,
    lanes: u64,
    times: Vec<u64>,
    timed: u64,
    total: u64,
    min: u64,
    max: u64,
}

impl Stays {
    fn add(&mut self, time: u64, keeps: bool) {
        self.min = if self.timed == 0 { time } else { self.min.min(time) };
        self.max = self.max.max(time);
        self.total = self.total.saturating_add(time);
        self.timed += 1;
        if keeps {
            self.times.push(time);
        }
    }

    fn branchiness(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => 1.0 - self.lanes as f64 / (count as f64 * 64.0),
        }
    }

    /// The shortest time that so many percent of the kept ones do not exceed.
    fn percentile(&mut self, percent: usize) -> u64 {
        self.times.sort_unstable();
        let rank = (self.times.len() * percent).div_ceil(100);
        self.times.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }
}

#[derive(Default)]
pub(crate) struct BasicBlocks {
    blocks: BTreeMap<(Block, Option<u32>), Stays>,
    /// The block that each wave is in, and since when.
    waves: FxHashMap<([u16; 3], u32), (Block, u32, u64)>,
    kept: usize,
    left_out: u64,
}

impl BasicBlocks {
    pub(crate) fn message(&mut self, message: &Message<'_>) {
        let MessageKind::Block(number) = message.kind() else { return };
        let header = &message.header;
        let line = if header.line == u32::MAX { 0 } else { header.line };
        let (block, [_, se, cu]) = ((number, header.file, line), message.place());
        let unit = se << 4 | cu;
        let wave = (header.block, message.wave());
        if let Some((before, unit, since)) = self.waves.remove(&wave) {
            let time = header.timestamp.saturating_sub(since);
            let keeps = self.kept < MOST_TIMES;
            for key in [(before, None), (before, Some(unit))] {
                if let Some(stays) = self.blocks.get_mut(&key) {
                    stays.add(time, keeps);
                    self.kept += usize::from(keeps);
                }
            }
        }
        let is_known = self.blocks.contains_key(&(block, Some(unit)));
        if (!is_known && self.blocks.len() + 2 > MOST_BLOCKS) || self.waves.len() >= MOST_WAVES {
            self.left_out += 1;
            return;
        }
        for key in [(block, None), (block, Some(unit))] {
            let stays = self.blocks.entry(key).or_default();
            stays.count += 1;
            stays.lanes += u64::from(header.lanes);
        }
        self.waves.insert(wave, (block, unit, header.timestamp));
    }

    pub(crate) fn reason(&self, subject: &Subject<'_>) -> Option<String> {
        let mut reasons = Vec::new();
        if self.left_out > 0 {
            reasons.push(format!(
                "{} entries of more blocks or waves than there is room for are not counted",
                self.left_out
            ));
        }
        if self.kept >= MOST_TIMES {
            reasons.push(format!("percentiles are of the first {MOST_TIMES} times"));
        }
        if !self.blocks.is_empty() && subject.blocks.iter().any(|count| *count > 1 << 16) {
            reasons.push(
                "workgroups whose numbers differ by 65536 are taken for one: messages have 16 bits of them"
                    .into(),
            );
        }
        if !self.blocks.is_empty() && subject.waves > 16 {
            reasons.push(
                "waves whose numbers differ by 16 are taken for one: messages have 4 bits of them".into(),
            );
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    pub(crate) fn findings(&mut self, subject: &Subject<'_>) -> Vec<Finding> {
        let finding =
            |(((block, file, line), cu), stays): (&(Block, Option<u32>), &mut Stays)| Finding::BasicBlock {
                block: *block,
                cu: *cu,
                file: subject.file(*file),
                line: *line,
                count: stays.count,
                timed: stays.timed,
                total: stays.total,
                min: stays.min,
                p50: stays.percentile(50),
                p90: stays.percentile(90),
                p99: stays.percentile(99),
                max: stays.max,
                branchiness: stays.branchiness(),
            };
        self.blocks.iter_mut().map(finding).collect()
    }

    fn together(&self) -> impl Iterator<Item = (&Block, &Stays)> {
        self.blocks.iter().filter(|((_, cu), _)| cu.is_none()).map(|((block, _), stays)| (block, stays))
    }

    /// Of the whole kernel.
    fn branchiness(&self) -> f64 {
        let (count, lanes) = self
            .together()
            .fold((0, 0), |(count, lanes), (_, stays)| (count + stays.count, lanes + stays.lanes));
        Stays { count, lanes, ..Stays::default() }.branchiness()
    }

    pub(crate) fn text(&self, subject: &Subject<'_>) -> String {
        let mut text = format!(
            "Kernel: {}\nDispatch: {}\nBranchiness: {:.4}\n",
            subject.kernel,
            subject.dispatch,
            self.branchiness()
        );
        text.push_str("Block,Start Line,Duration,FileName,Branchiness,Count\n");
        for ((block, file, line), stays) in self.together() {
            let file = quoted(&subject.file(*file));
            let _ = writeln!(
                text,
                "{block},{line},{},{file},{:.4},{}",
                stays.total,
                stays.branchiness(),
                stays.count
            );
        }
        text
    }

    pub(crate) fn json(&self, subject: &Subject<'_>) -> Value {
        let block = |((block, file, line), stays): (&Block, &Stays)| {
            json!({
                "block": block,
                "block_file_name": subject.file(*file),
                "block_start_line": line,
                "block_duration": stays.total,
                "block_branchiness": stays.branchiness(),
                "block_count": stays.count,
            })
        };
        let blocks: Vec<Value> = self.together().map(block).collect();
        json!({
            "kernel": subject.kernel,
            "dispatch_id": subject.dispatch,
            "kernel_branchiness": self.branchiness(),
            "blocks": blocks,
        })
    }
}
