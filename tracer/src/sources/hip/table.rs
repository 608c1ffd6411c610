//! HIP's dispatch table, as rocprofiler-register hands it over (HIP 6.2 and later). Nothing here may call HIP: it is inside
//! the initialisation of that very table.

use std::ffi::c_void;

use rpd_transport::log;

use super::config;
use super::state::{self, HipEvent};
use super::wrapper::{OriginalsOf, Wrapper};
use crate::sized_table::SizedTable;

/// Place, offset in bytes and name of each entry of HipDispatchTable, which only ever grows at its end: hip_api_trace.hpp of ROCm/clr
/// f9f995c6 (October 2024), with the static assertions of its hip_api_trace.cpp and of rocprofiler-sdk's hip/abi.cpp.
static ENTRIES: &str = include_str!("description/dispatch.txt");

/// Puts wrappers into the table of copy number `instance`, of all functions that are to be recorded.
///
/// # Safety
/// `table` is the live dispatch table of a HIP library, which offers it to tools at this moment.
pub(super) unsafe fn patch(instance: u64, table: *mut c_void) {
    let target = match instance {
        0 => OriginalsOf::FirstTable,
        1 => OriginalsOf::SecondTable,
        _ => return log::problem("a third copy of HIP in this process: its calls are not recorded"),
    };
    // SAFETY: the caller's promise.
    let table = unsafe { SizedTable::new(table) };
    let mut replaced = 0;
    for (offset, name) in entries() {
        let Some(wrapper) = Wrapper::of(name, target) else { continue };
        if !config::get().apis.contains(wrapper.recorded_as) {
            continue;
        }
        // SAFETY: the wrapper has the type of this entry.
        let done = unsafe { table.replace(offset, wrapper.address, |original| wrapper.keep(original)) };
        replaced += u32::from(done);
    }
    if replaced > 0 {
        state::apply(HipEvent::TableTaken);
    }
    log::info(|| format!("HIP offers its table: {replaced} of its functions are recorded"));
}

fn entries() -> impl Iterator<Item = (usize, &'static str)> {
    ENTRIES.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?.parse().ok()?, words.next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_behind_the_size_without_gaps() {
        let offsets: Vec<usize> = entries().map(|(offset, _)| offset).collect();
        assert_eq!(offsets, (1..=463).map(|entry| 8 * entry).collect::<Vec<_>>());
        let find = |wanted: &str| entries().find(|(_, name)| *name == wanted).map(|(offset, _)| offset);
        // Some of the offsets that CLR's own assertions name.
        for (name, offset) in
            [("hipMalloc", 1728), ("hipModuleLaunchKernel", 2472), ("hipExtHostAlloc", 3696)]
        {
            assert_eq!(find(name), Some(offset));
        }
    }
}
