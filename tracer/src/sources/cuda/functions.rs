//! Functions of CUDA, by CUPTI's numbers of them. CUPTI itself says how they are called, so there is no list of them here.

use std::ffi::CStr;
use std::ptr;

use super::abi::{self, status};
use super::arguments::{self, Argument};
use super::filter::CudaFilter;
use super::library::Cupti;

/// This source's number in records.
pub(super) const SOURCE: u8 = 6;
/// What an operation of no call in the file is named by.
pub(super) const OPERATION: u16 = u16::MAX;
/// Beside a number: it is the driver's.
const DRIVER: u16 = 1 << 15;
/// Functions of whose calls CUPTI records what they allocate or free.
const DETAILED: [&str; 6] = ["Malloc", "MemAlloc", "HostAlloc", "MemHostAlloc", "Free", "MemFree"];
/// Numbers that are asked for: CUPTI 13.5 has fewer than 900 of either.
const MOST: u32 = 4096;

/// What is known of a function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CudaFunction {
    /// Without the version that CUPTI puts behind names of the runtime's.
    pub(super) name: &'static str,
    /// Its calls are recorded.
    pub(super) is_recorded: bool,
    /// It launches one kernel, unless its stream is being captured.
    pub(super) launches_kernel: bool,
    /// It launches a graph.
    pub(super) launches_graph: bool,
    /// What its calls have to do with the capture of launches.
    pub(super) capture: Option<Capture>,
    /// More is to come of it than CUPTI's record of the call: its arguments, or what it allocates, frees or waits for.
    pub(super) has_detail: bool,
    /// What is kept of its arguments, where they are asked for.
    pub(super) arguments: Option<&'static [Argument]>,
    /// What it waits for, where that is asked for as it returns.
    pub(super) waits_for: Option<WaitsFor>,
}

/// See [`CudaFunction::waits_for`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// The stream that is its first argument, where `per_thread` says which one null is.
    Stream { per_thread: bool },
    /// All that its thread's context has.
    Context,
}

/// See [`CudaFunction::capture`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capture {
    Begins,
    Ends,
}

/// Functions of the driver and of the runtime, each at the place of its number.
#[derive(Debug, Default)]
pub(super) struct Functions([Vec<CudaFunction>; 2]);

impl Functions {
    /// All that `cupti` knows, of which `filter` says what is recorded. Names that the filter has and CUPTI does not are given back.
    pub(super) fn ask(cupti: &Cupti, filter: &CudaFilter) -> (Functions, Vec<String>) {
        let functions = Functions(abi::DOMAINS.map(|domain| {
            (0..MOST)
                .map_while(|cbid| name(cupti, domain, cbid))
                .map(|name| CudaFunction::new(name, filter))
                .map(|function| match filter.has_arguments {
                    true => CudaFunction {
                        has_detail: function.has_detail || function.arguments.is_some(),
                        ..function
                    },
                    false => CudaFunction { arguments: None, ..function },
                })
                .collect()
        }));
        let is_known = |name: &str| functions.0.iter().flatten().any(|function| function.name == name);
        let unknown = filter.named().filter(|name| !is_known(name)).map(str::to_string).collect();
        (functions, unknown)
    }

    /// The function of that number.
    pub(super) fn get(&self, is_driver: bool, cbid: u32) -> Option<&CudaFunction> {
        self.0[usize::from(!is_driver)].get(cbid as usize)
    }

    /// The function by its number in records.
    pub(super) fn by_index(&self, index: u16) -> Option<&CudaFunction> {
        self.get(index & DRIVER != 0, u32::from(index & !DRIVER))
    }

    /// Whether any function is recorded.
    pub(super) fn has_any(&self) -> bool {
        self.0.iter().flatten().any(|function| function.is_recorded)
    }

    /// Numbers of the functions of the driver, and of the runtime, of whose calls CUPTI is to tell: those that are recorded, and if any is those
    /// by which it is known what was captured.
    pub(super) fn enabled(&self) -> [Vec<u32>; 2] {
        let has_any = self.has_any();
        self.numbers(|function| function.is_recorded || has_any && function.capture.is_some())
    }

    /// Of these, the ones that are looked at as they return.
    pub(super) fn looked_at(&self) -> [Vec<u32>; 2] {
        self.numbers(|function| {
            function.is_recorded && (function.arguments.is_some() || function.waits_for.is_some())
        })
    }

    fn numbers(&self, are: impl Fn(&CudaFunction) -> bool) -> [Vec<u32>; 2] {
        [0, 1].map(|domain| {
            let numbered = (0..).zip(&self.0[domain]);
            numbered.filter(|(_, function)| are(function)).map(|(cbid, _)| cbid).collect()
        })
    }
}

impl CudaFunction {
    pub(super) fn new(name: &'static str, filter: &CudaFilter) -> CudaFunction {
        let plain = name.strip_prefix("cuda").or_else(|| name.strip_prefix("cu")).unwrap_or_default();
        let waits_for = match plain {
            "StreamSynchronize" => Some(WaitsFor::Stream { per_thread: false }),
            "StreamSynchronize_ptsz" => Some(WaitsFor::Stream { per_thread: true }),
            "DeviceSynchronize" | "ThreadSynchronize" | "CtxSynchronize" => Some(WaitsFor::Context),
            _ => None,
        };
        let waits = plain.contains("Synchronize") || plain.starts_with("StreamWaitEvent");
        let launches =
            ["LaunchKernel", "LaunchCooperativeKernel"].iter().any(|start| plain.starts_with(start));
        CudaFunction {
            name,
            is_recorded: name != "INVALID" && filter.contains(name),
            launches_kernel: launches && !plain.contains("MultiDevice"),
            launches_graph: plain.starts_with("GraphLaunch"),
            capture: match plain {
                _ if plain.starts_with("StreamBeginCapture") => Some(Capture::Begins),
                _ if plain.starts_with("StreamEndCapture") => Some(Capture::Ends),
                _ => None,
            },
            has_detail: DETAILED.iter().any(|start| plain.starts_with(start))
                || waits_for.is_some()
                || filter.has_arguments && waits,
            arguments: arguments::of(name),
            waits_for,
        }
    }
}

/// The number in records of the function that CUPTI calls `cbid`.
pub(super) fn index(is_driver: bool, cbid: u32) -> u16 {
    cbid as u16 & !DRIVER | if is_driver { DRIVER } else { 0 }
}

fn name(cupti: &Cupti, domain: u32, cbid: u32) -> Option<&'static str> {
    let mut name = ptr::null();
    // SAFETY: a place for a text; any number may be asked for.
    let answer = unsafe { (cupti.callback_name)(domain, cbid, &raw mut name) };
    if answer != status::SUCCESS {
        return None;
    }
    // SAFETY: a literal of CUPTI's, which is never unloaded.
    let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
    Some(without_version(name.to_str().unwrap_or_default()))
}

/// `cudaLaunchKernel` of `cudaLaunchKernel_v7000`. What the driver's functions have behind their names, as in `cuMemAlloc_v2`, belongs to them.
fn without_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((plain, version)) if version.len() >= 4 && version.bytes().all(|byte| byte.is_ascii_digit()) => {
            plain
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_the_version_of_the_runtime_alone() {
        assert_eq!(without_version("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel_ptsz");
        assert_eq!(without_version("cudaMemcpyBatchAsync_v12080"), "cudaMemcpyBatchAsync");
        assert_eq!(without_version("cuMemAlloc_v2"), "cuMemAlloc_v2");
    }

    #[test]
    fn what_launches() {
        let function = |name| CudaFunction::new(name, &CudaFilter::default());
        assert!(
            function("cudaLaunchKernel_ptsz").launches_kernel && function("cuLaunchKernelEx").launches_kernel
        );
        assert!(!function("cudaLaunchHostFunc").launches_kernel && !function("cudaMemcpy").launches_kernel);
        assert!(function("cuGraphLaunch").launches_graph && !function("INVALID").is_recorded);
    }

    #[test]
    fn what_waits() {
        let (with_arguments, _) = CudaFilter::read("args");
        let usual = |name| CudaFunction::new(name, &CudaFilter::default());
        for (name, waits_for) in [
            ("cuStreamSynchronize", Some(WaitsFor::Stream { per_thread: false })),
            ("cudaStreamSynchronize_ptsz", Some(WaitsFor::Stream { per_thread: true })),
            ("cudaDeviceSynchronize", Some(WaitsFor::Context)),
            ("cuCtxSynchronize", Some(WaitsFor::Context)),
            ("cudaEventSynchronize", None),
        ] {
            assert_eq!(usual(name).waits_for, waits_for, "{name}");
            assert_eq!(usual(name).has_detail, waits_for.is_some(), "{name}");
            assert!(CudaFunction::new(name, &with_arguments).has_detail, "{name}");
        }
    }

    #[test]
    fn captures_are_known_wherever_anything_is_recorded() {
        let enabled = |list: &str| {
            let (filter, _) = CudaFilter::read(list);
            let named = |name| CudaFunction::new(name, &filter);
            let driver = ["INVALID", "cuLaunchKernel", "cuStreamBeginCapture_v2", "cuStreamEndCapture"];
            Functions([driver.map(named).to_vec(), vec![]]).enabled()
        };
        assert_eq!(enabled("none,+cuLaunchKernel"), [vec![1, 2, 3], vec![]]);
        assert_eq!(enabled("none"), [Vec::<u32>::new(), Vec::new()]);
    }

    #[test]
    fn numbers_of_both_kinds_differ() {
        let named = |name| CudaFunction::new(name, &CudaFilter::default());
        let functions =
            Functions([vec![named("INVALID"), named("cuInit")], vec![named("INVALID"), named("cudaFree")]]);
        let name = |index| functions.by_index(index).map(|function| function.name);
        assert_eq!([name(index(true, 1)), name(index(false, 1))], [Some("cuInit"), Some("cudaFree")]);
        assert_eq!([name(OPERATION), name(index(false, 2))], [None, None]);
        assert_eq!(functions.enabled(), [vec![], vec![1]]);
        assert!(functions.has_any());
    }
}
