//! The operations that the ranges of a marker launched, by GPU and kernel: the columns of rocmProfileData's rpd2table.py, by their names
//! there.
//!
//! A range has the operations of the calls that its thread began while it was open, both ends included. An operation in two ranges of one
//! marker, one inside the other, counts twice, as it does there. Memory grows with the number of kernels and of ranges that are open at
//! once, not of all of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result};
use bytemuck::{Pod, Zeroable};
use rpd_schema::{Processes, Version};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde::Serialize;

use super::gpu_time::{GpuOp, LeftOut, OpName, OpTexts, each_op};
use super::launched::{Launched, Threads};
use super::rank_by::RankBy;
use crate::check::rule::are_sound;
use crate::pass::sorted::Sorter;
use crate::region::Selected;
use crate::text::escape;
use crate::trace::ids::Ids;

/// The table, and what could not be counted.
#[derive(Debug)]
pub struct MarkerTable {
    /// Markers in the order in which they were asked for, GPUs by number, what took most time first.
    pub rows: Vec<MarkerKernel>,
    /// Of the markers that were asked for those that have no range in the part of the trace.
    pub absent: Vec<String>,
    /// Markers with impossible times.
    pub impossible: u64,
    /// Operations that count nowhere; with markers, of those that their threads launched in the time of their ranges.
    pub left_out: LeftOut,
}

/// A kernel on a GPU, in the ranges of a marker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MarkerKernel {
    /// The marker's text; empty of the whole trace.
    pub marker_name: String,
    /// The GPU.
    pub gpuid: i64,
    /// The kernel; of a copy or fill its type.
    pub kernel_name: String,
    /// Ranges that launched it on this GPU; 0 of the whole trace.
    pub marker_count: u64,
    /// How often.
    pub kernel_count: u64,
    /// Sum of the durations, ns.
    pub total_dur: u64,
    /// Mean, ns.
    pub avg_dur: f64,
    /// Shortest, ns.
    pub min_dur: u64,
    /// Longest, ns.
    pub max_dur: u64,
    /// Share of `total_dur` in that of all rows of the marker and the GPU, percent.
    pub kernel_percentage: f64,
}

/// A range that begins, or a launch; thread after thread, in the order of time, and what begins before what is launched at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Event {
    thread: [i64; 3],
    time: i64,
    is_launch: i64,
    /// For a range, its end; for a launch, the operation's duration, ns.
    end_or_duration: i64,
    /// For a range, the number of its marker; for a launch, that of GPU and kernel.
    number: i64,
}

#[derive(Clone, Copy)]
struct Sums {
    ranges: u64,
    calls: u64,
    total_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Sums {
    const NONE: Sums = Sums { ranges: 0, calls: 0, total_ns: 0, min_ns: u64::MAX, max_ns: 0 };

    /// Adds an operation that counts `times` times.
    fn add(&mut self, ns: u64, times: u64) {
        self.calls += times;
        self.total_ns = self.total_ns.saturating_add(ns.saturating_mul(times));
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }
}

/// The ranges of one marker that are open on a thread, and what was launched in them.
#[derive(Default)]
struct Open {
    /// End, and a number that makes it unique; with how many launches there had been when it began.
    ranges: BTreeMap<(i64, u64), u64>,
    begun: u64,
    launches: u64,
    /// The last launch of each kernel, and the kernels by their last launch.
    last: HashMap<i64, u64>,
    by_last: BTreeMap<u64, i64>,
}

impl Open {
    fn begin(&mut self, end: i64) {
        self.begun += 1;
        self.ranges.insert((end, self.begun), self.launches);
    }

    /// Ends the ranges that end before `time`, and counts them for what was launched in them.
    fn end_before(&mut self, time: i64, sums: &mut HashMap<i64, Sums>) {
        while let Some(range) = self.ranges.first_entry().filter(|range| range.key().0 < time) {
            let launches = range.remove();
            self.close(launches, sums);
        }
    }

    /// Ends all of them: the thread has no more.
    fn end_all(mut self, sums: &mut HashMap<i64, Sums>) {
        while let Some((_, launches)) = self.ranges.pop_first() {
            self.close(launches, sums);
        }
    }

    fn close(&self, launches: u64, sums: &mut HashMap<i64, Sums>) {
        for kernel in self.by_last.range(launches..).map(|(_, kernel)| kernel) {
            sums.entry(*kernel).or_insert(Sums::NONE).ranges += 1;
        }
    }

    fn launch(&mut self, kernel: i64, ns: u64, sums: &mut HashMap<i64, Sums>) {
        if self.ranges.is_empty() {
            return;
        }
        if let Some(last) = self.last.insert(kernel, self.launches) {
            self.by_last.remove(&last);
        }
        self.by_last.insert(self.launches, kernel);
        self.launches += 1;
        sums.entry(kernel).or_insert(Sums::NONE).add(ns, self.ranges.len() as u64);
    }
}

/// GPUs with names of operations, numbered. Sessions have texts of their own: one name may have several ids.
struct Kernels<'trace> {
    texts: OpTexts<'trace>,
    known: HashMap<(i64, OpName), i64>,
    numbers: HashMap<(i64, String), i64>,
}

impl Kernels<'_> {
    fn number(&mut self, op: &GpuOp) -> rusqlite::Result<i64> {
        if let Some(number) = self.known.get(&(op.gpu, op.name)) {
            return Ok(*number);
        }
        let next = self.numbers.len() as i64;
        let number = *self.numbers.entry((op.gpu, self.texts.name(op.name)?)).or_insert(next);
        self.known.insert((op.gpu, op.name), number);
        Ok(number)
    }
}

impl MarkerTable {
    /// Reads what ranges of the `markers` (whole texts) in a part of a trace launched; of no markers, all that the part has.
    ///
    /// # Errors
    /// When no marker has such a text, or the trace, or a temporary file, cannot be read.
    pub fn of(
        (trace, version): (&Connection, Version),
        markers: &[String],
        selected: &Selected,
    ) -> Result<MarkerTable> {
        let mut table =
            MarkerTable { rows: Vec::new(), absent: Vec::new(), impossible: 0, left_out: LeftOut::default() };
        let texts = OpTexts::of(trace)?;
        let mut kernels = Kernels { texts, known: HashMap::new(), numbers: HashMap::new() };
        if markers.is_empty() {
            let mut sums = HashMap::new();
            table.left_out = each_op(trace, selected, "", |op| {
                sums.entry(kernels.number(&op)?).or_insert(Sums::NONE).add(op.end.abs_diff(op.start), 1);
                Ok(())
            })?;
            table.rows = rows("", &sums, &kernels);
            return Ok(table);
        }
        let mut events = Sorter::new();
        let threads = table.ranges((trace, version), markers, selected, &mut events)?;
        let launched = Launched::by(trace, &threads)?;
        table.left_out = launched.each(trace, selected, |op, call| {
            let (number, end_or_duration) = (kernels.number(op)?, op.end - op.start);
            events.push(Event {
                thread: call.thread,
                time: call.start,
                is_launch: 1,
                end_or_duration,
                number,
            })
        })?;
        let mut events = events.sorted()?;
        let mut thread = None;
        let mut sums: Vec<HashMap<i64, Sums>> = markers.iter().map(|_| HashMap::new()).collect();
        let mut open: Vec<Open> = markers.iter().map(|_| Open::default()).collect();
        while let Some(event) = events.next()? {
            if thread.replace(event.thread).is_some_and(|thread| thread != event.thread) {
                for (open, sums) in open.iter_mut().zip(&mut sums) {
                    std::mem::take(open).end_all(sums);
                }
            }
            if event.is_launch == 0 {
                open[event.number as usize].begin(event.end_or_duration);
                continue;
            }
            for (open, sums) in open.iter_mut().zip(&mut sums) {
                open.end_before(event.time, sums);
                open.launch(event.number, event.end_or_duration.unsigned_abs(), sums);
            }
        }
        for (open, sums) in open.into_iter().zip(&mut sums) {
            open.end_all(sums);
        }
        for (marker, sums) in markers.iter().zip(sums) {
            table.rows.extend(rows(marker, &sums, &kernels));
        }
        Ok(table)
    }

    /// The ranges of markers with these texts, and the time that each thread has them in.
    fn ranges(
        &mut self,
        (trace, version): (&Connection, Version),
        markers: &[String],
        selected: &Selected,
        events: &mut Sorter<Event>,
    ) -> Result<Threads> {
        let ids = |table: &str, text: &str| {
            Ids::of(trace, &format!("SELECT id FROM {table} WHERE string = ?1"), [text])
        };
        let wanted: Vec<(Ids, Ids)> = markers
            .iter()
            .map(|text| Ok((ids(RankBy::Marker.texts(version), text)?, ids("rocpd_string", text)?)))
            .collect::<rusqlite::Result<_>>()?;
        let processes = Processes::of(trace)?;
        let (mut threads, mut found) = (Threads::default(), vec![false; markers.len()]);
        let ids = |of: fn(&(Ids, Ids)) -> &Ids, column| -> String {
            let near: Vec<String> = wanted.iter().map(|wanted| of(wanted).near(column)).collect();
            near.join(" OR ")
        };
        let may_be =
            format!("({} OR {})", ids(|(texts, _)| texts, "args_id"), ids(|(_, of)| of, "apiName_id"));
        let mut rows = trace.prepare(&RankBy::Marker.query(&may_be, false))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let number = |column| row.get_ref(column).map(|value| value.as_i64().unwrap_or(0));
            let (text, function, id) = (number(2)?, number(3)?, number(4)?);
            let is_asked = |(texts, functions): &(Ids, Ids)| {
                if text == 0 { functions.has(function) } else { texts.has(text) }
            };
            if !wanted.iter().any(is_asked) || !selected.has_call(id) {
                continue;
            }
            let times = match (row.get_ref(0)?, row.get_ref(1)?) {
                (ValueRef::Integer(start), ValueRef::Integer(end)) => Some((start, end)),
                _ => None,
            };
            let Some((start, end)) = times.filter(|times| are_sound(*times)) else {
                self.impossible += 1;
                continue;
            };
            let thread = [processes.of_row(id), number(5)?, number(6)?];
            threads.add(thread, (start, end));
            for (at, _) in wanted.iter().enumerate().filter(|(_, wanted)| is_asked(wanted)) {
                found[at] = true;
                events.push(Event {
                    thread,
                    time: start,
                    is_launch: 0,
                    end_or_duration: end,
                    number: at as i64,
                })?;
            }
        }
        self.absent =
            markers.iter().zip(&found).filter(|(_, found)| !**found).map(|(text, _)| text.clone()).collect();
        found.contains(&true).then_some(threads).with_context(|| {
            let texts: Vec<String> = markers.iter().map(|text| escape(text).into_owned()).collect();
            format!("no marker has the text {}; rpd markers shows those there are", texts.join(" or "))
        })
    }
}

/// The rows of one marker.
fn rows(marker: &str, sums: &HashMap<i64, Sums>, kernels: &Kernels<'_>) -> Vec<MarkerKernel> {
    let named = || kernels.numbers.iter().filter_map(|(place, number)| Some((place, sums.get(number)?)));
    let mut by_gpu: HashMap<i64, f64> = HashMap::new();
    for ((gpu, _), sums) in named() {
        *by_gpu.entry(*gpu).or_default() += sums.total_ns as f64;
    }
    let mut rows: Vec<MarkerKernel> = named()
        .map(|((gpuid, kernel_name), sums)| {
            let all = by_gpu[gpuid];
            MarkerKernel {
                marker_name: marker.to_string(),
                gpuid: *gpuid,
                kernel_name: kernel_name.clone(),
                marker_count: sums.ranges,
                kernel_count: sums.calls,
                total_dur: sums.total_ns,
                avg_dur: sums.total_ns as f64 / sums.calls as f64,
                min_dur: sums.min_ns,
                max_dur: sums.max_ns,
                kernel_percentage: if all > 0.0 { 100.0 * sums.total_ns as f64 / all } else { 0.0 },
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        (a.gpuid, Reverse(a.total_dur), &a.kernel_name).cmp(&(b.gpuid, Reverse(b.total_dur), &b.kernel_name))
    });
    rows
}
