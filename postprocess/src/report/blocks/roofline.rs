//! How fast a kernel with counted blocks computes and moves data, for a roofline: what it executed in the time that its dispatches took.
//!
//! A dispatch that counts is slower than one that does not. So the time is that of uncounted dispatches of the same kernel, GPU and grid, where
//! each grid has some, and that of the counted ones themselves otherwise.

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use rpd_schema::text::{shown, text_of};
use rusqlite::Connection;
use serde::Serialize;

use super::{ANALYZER, KernelBlocks, Mode, SessionModes};
use crate::check::rule::are_sound;
use crate::region::Selected;
use crate::trace::has_table;
use crate::trace::launch::{LaunchJoin, SIZES};

/// What the hardware can do at most, as far as the user has said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Peaks {
    /// 1e9 floating-point operations per second.
    pub gflops: Option<f64>,
    /// 1e9 bytes of memory per second.
    pub gbytes: Option<f64>,
}

/// Where a kernel lies below the roof. It is not known of a kernel whose code objects or times are not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Roofline {
    /// How long all dispatches that were counted take, ns.
    pub time_ns: f64,
    /// Whose times these are: `uncounted` dispatches', on average, or the `counted` ones' own.
    pub time_of: &'static str,
    /// 1e9 floating-point operations per second.
    pub gflops_per_s: f64,
    /// 1e9 bytes per second that instructions ask for, before any cache.
    pub gbytes_per_s: f64,
    /// Per cent of what the roof allows at this arithmetic intensity: of the nearer peak. None without peaks.
    pub roof_percent: Option<f64>,
    /// Which peak is nearer: `memory` or `arithmetic`. None without both.
    pub bound: Option<&'static str>,
}

impl Roofline {
    fn new((flops, bytes): (u64, u64), time_ns: f64, time_of: &'static str, peaks: &Peaks) -> Roofline {
        let (gflops_per_s, gbytes_per_s) = (flops as f64 / time_ns, bytes as f64 / time_ns);
        let arithmetic = peaks.gflops.map(|peak| gflops_per_s / peak);
        let memory = peaks.gbytes.map(|peak| gbytes_per_s / peak);
        let nearer = match (arithmetic, memory) {
            (Some(arithmetic), Some(memory)) => Some(arithmetic.max(memory)),
            (one, other) => one.or(other),
        };
        let bound = arithmetic.zip(memory).map(|(arithmetic, memory)| match memory >= arithmetic {
            true => "memory",
            false => "arithmetic",
        });
        let roof_percent = nearer.map(|part| 100.0 * part);
        Roofline { time_ns, time_of, gflops_per_s, gbytes_per_s, roof_percent, bound }
    }
}

/// GPU, grid and workgroup.
type Grid = (i64, [Option<i64>; SIZES.len()]);

/// Dispatches of one kernel, GPU and grid: how many, and how long all of them took.
#[derive(Default)]
struct Dispatches {
    counted: BTreeMap<Mode, (u64, f64)>,
    uncounted: (u64, f64),
}

/// Says of kernels how fast they are, in a part of the trace.
///
/// # Errors
/// When the trace cannot be read.
pub fn add_rooflines(
    (trace, selected): (&Connection, &Selected),
    kernels: &mut [KernelBlocks],
    peaks: &Peaks,
) -> Result<()> {
    if kernels.is_empty() {
        return Ok(());
    }
    let times = times(trace, selected)?;
    for kernel in kernels {
        // Work of other dispatches than those whose times are known says nothing of a rate.
        let work = kernel.flops.zip(kernel.memory_bytes).filter(|_| kernel.counts_of == kernel.dispatches);
        let Some(work) = work else { continue };
        let Some(grids) = times.get(&kernel.kernel) else { continue };
        let counted =
            || grids.iter().filter_map(|grid| Some((grid.counted.get(&kernel.mode)?, grid.uncounted)));
        let has_others = counted().all(|(_, uncounted)| uncounted.0 > 0);
        let time_of = |(counted, uncounted): (&(u64, f64), (u64, f64))| match (has_others, uncounted) {
            (true, (count, time)) => counted.0 as f64 * time / count as f64,
            (false, _) => counted.1,
        };
        let time_ns: f64 = counted().map(time_of).sum();
        if time_ns > 0.0 {
            let whose = if has_others { "uncounted" } else { "counted" };
            kernel.roofline = Some(Roofline::new(work, time_ns, whose, peaks));
        }
    }
    Ok(())
}

/// By kernel, the dispatches of each GPU and grid.
fn times(trace: &Connection, selected: &Selected) -> Result<HashMap<String, Vec<Dispatches>>> {
    let (sizes, join) = match LaunchJoin::of(trace)? {
        Some(launch) => (launch.columns(&SIZES), launch.join()),
        None => (["NULL"; SIZES.len()].join(", "), ""),
    };
    let is_in = selected.op_condition(trace, "O.id")?;
    let modes = SessionModes::of(trace)?;
    // Dispatches with other analyzers ran neither the program's own kernel nor one that counts. Those that ran another kernel without any
    // are of a program that was killed before their counters were read.
    let replaced =
        if has_table(trace, "ext_replacement")? { "SELECT op_id FROM ext_replacement" } else { "NULL" };
    let query = format!(
        "SELECT {}, O.gpuId, O.start, O.end, C.id, {sizes}
         FROM rocpd_op O JOIN rocpd_string S ON S.id = O.description_id
             LEFT JOIN (SELECT op_id, min(id) AS id FROM ext_instrumentation WHERE analyzer = '{ANALYZER}' GROUP BY op_id) C ON C.op_id = O.id
             {join}
         WHERE {is_in} AND S.string IN (SELECT N.string FROM ext_instrumentation I JOIN rocpd_string N ON N.id = I.kernelName_id)
             AND (C.op_id IS NOT NULL OR O.id NOT IN (SELECT op_id FROM ext_instrumentation WHERE op_id IS NOT NULL UNION {replaced}))",
        shown("S.string")
    );
    let mut grids: HashMap<String, HashMap<Grid, Dispatches>> = HashMap::new();
    let mut statement = trace.prepare(&query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let number = |column: usize| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_i64().ok());
        let (Some(gpu), counting) = (number(1)?, number(4)?) else { continue };
        let times = number(2)?.zip(number(3)?).filter(|times| are_sound(*times));
        let time = match times {
            Some((start, end)) => (end - start) as f64,
            // Its work is there.
            None if counting.is_some() => f64::NAN,
            None => continue,
        };
        let mut sizes = [None; SIZES.len()];
        for (place, size) in sizes.iter_mut().enumerate() {
            *size = number(5 + place)?;
        }
        let of_kernel = grids.entry(text_of(row.get_ref(0)?).into_owned()).or_default();
        let grid = of_kernel.entry((gpu, sizes)).or_default();
        let (count, sum) = match counting.map(|id| modes.get(id)) {
            Some(Some(mode)) => grid.counted.entry(mode).or_default(),
            // Nobody knows what its session counted.
            Some(None) => continue,
            None => &mut grid.uncounted,
        };
        (*count, *sum) = (*count + 1, *sum + time);
    }
    Ok(grids.into_iter().map(|(kernel, grids)| (kernel, grids.into_values().collect())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The roof at an intensity is the lower of the peak and of what the memory feeds.
    #[test]
    fn the_nearer_peak_is_the_bound() {
        let peaks = Peaks { gflops: Some(1000.0), gbytes: Some(100.0) };
        for (flops, bytes) in [(1000, 1), (50, 10), (10, 1), (7, 900), (0, 5), (5, 0)] {
            let roofline = Roofline::new((flops, bytes), 20.0, "counted", &peaks);
            let (gflops, intensity) = (flops as f64 / 20.0, flops as f64 / bytes as f64);
            let roof = 1000f64.min(intensity * 100.0);
            if flops > 0 {
                let percent = roofline.roof_percent.unwrap();
                assert!((percent - 100.0 * gflops / roof).abs() < 1e-9, "{flops} {bytes}: {percent}");
            }
            assert_eq!(roofline.bound == Some("memory"), intensity <= 10.0, "{flops} {bytes}");
        }
        let one = Peaks { gflops: None, gbytes: Some(100.0) };
        let roofline = Roofline::new((50, 1000), 20.0, "counted", &one);
        assert_eq!((roofline.roof_percent, roofline.bound), (Some(50.0), None));
        assert_eq!(Roofline::new((50, 1000), 20.0, "counted", &Peaks::default()).roof_percent, None);
    }
}
