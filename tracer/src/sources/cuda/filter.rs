//! The functions of CUDA's runtime and driver that are recorded: RPDT_CUDA_APIS.

use std::collections::{BTreeSet, HashSet};

/// Recorded unless left out: what gives the GPU work, waits for it, or takes and returns memory. Their names go on so behind `cuda` or `cu`.
/// PyTorch makes 3.3 calls per kernel, most of which ask for something.
const TAKEN: [&str; 16] = [
    "Launch",
    "GraphLaunch",
    "GraphInstantiate",
    "StreamBeginCapture",
    "StreamEndCapture",
    "Memcpy",
    "Memset",
    "MemPrefetch",
    "Malloc",
    "MemAlloc",
    "HostAlloc",
    "MemHostAlloc",
    "Free",
    "MemFree",
    "ModuleLoad",
    "LibraryLoad",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CudaFilter {
    /// Arguments are recorded.
    pub(super) has_arguments: bool,
    others: Others,
    /// Those for which the contrary holds.
    except: HashSet<String>,
    /// Those that were asked for one by one, whether or not that changes anything.
    named: BTreeSet<String>,
}

/// Functions that are not named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Others {
    #[default]
    Usual,
    All,
    None,
}

impl Default for CudaFilter {
    fn default() -> CudaFilter {
        CudaFilter {
            has_arguments: false,
            others: Others::Usual,
            except: HashSet::new(),
            named: BTreeSet::new(),
        }
    }
}

impl CudaFilter {
    /// Reads `all`, `none`, or a list of `+name` and `-name`, which may begin with one of the two and otherwise changes the default; `args`
    /// anywhere in it. Words that are none of that are left out of it and given back. Which functions there are, CUPTI alone knows, later.
    pub(super) fn read(text: &str) -> (CudaFilter, Vec<String>) {
        let mut filter = CudaFilter::default();
        let mut wrong = Vec::new();
        let mut is_first = true;
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if word == "args" {
                filter.has_arguments = true;
                continue;
            }
            match (std::mem::take(&mut is_first), word) {
                (true, "all") => filter.others = Others::All,
                (true, "none") => filter.others = Others::None,
                _ => match (word.strip_prefix('+'), word.strip_prefix('-')) {
                    (Some(name), _) if name.starts_with("cu") => filter.put(name, true),
                    (_, Some(name)) if name.starts_with("cu") => filter.put(name, false),
                    _ => wrong.push(word.to_string()),
                },
            }
        }
        (filter, wrong)
    }

    fn put(&mut self, name: &str, recorded: bool) {
        self.named.insert(name.to_string());
        self.except.remove(name);
        if self.contains(name) != recorded {
            self.except.insert(name.to_string());
        }
    }

    /// Whether calls of `name` are recorded.
    pub(super) fn contains(&self, name: &str) -> bool {
        let by_default = match self.others {
            Others::Usual => is_usual(name),
            Others::All => true,
            Others::None => false,
        };
        by_default != self.except.contains(name)
    }

    /// The names that were asked for one by one.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(String::as_str)
    }
}

fn is_usual(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("cuda").or_else(|| name.strip_prefix("cu")) else { return false };
    TAKEN.iter().any(|start| rest.starts_with(start)) || rest.contains("Synchronize")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(text: &str) -> CudaFilter {
        let (filter, wrong) = CudaFilter::read(text);
        assert_eq!(wrong, Vec::<String>::new());
        filter
    }

    #[test]
    fn what_gives_work_is_recorded_and_what_asks_is_not() {
        let usual = CudaFilter::default();
        for name in [
            "cudaLaunchKernel",
            "cudaLaunchKernelExC_ptsz",
            "cuLaunchKernel",
            "cudaGraphLaunch",
            "cudaMemcpyAsync",
            "cuMemcpyHtoD_v2",
            "cuMemAlloc_v2",
            "cudaMallocAsync",
            "cudaDeviceSynchronize",
            "cuCtxSynchronize",
        ] {
            assert!(usual.contains(name), "{name}");
        }
        for name in ["cudaGetDevice", "cudaEventQuery", "cuCtxGetCurrent", "cudaStreamIsCapturing", "INVALID"]
        {
            assert!(!usual.contains(name) && filter("all").contains(name), "{name}");
        }
    }

    #[test]
    fn lists() {
        let none = filter("none");
        assert!(!none.contains("cudaLaunchKernel"));
        let one = filter("none,+cudaMalloc");
        assert!(one.contains("cudaMalloc") && !one.contains("cudaFree"));
        assert!(!filter("-cudaMalloc").contains("cudaMalloc"));
        assert!(filter("+cudaEventQuery").contains("cudaEventQuery"));
        assert!(filter("-cudaMalloc,+cudaMalloc").contains("cudaMalloc"));
        // One that changes nothing may be misspelt all the same.
        assert_eq!(
            filter("+cuLaunchKernle,-cuX,+cudaFree").named().collect::<Vec<_>>(),
            ["cuLaunchKernle", "cuX", "cudaFree"]
        );
        assert_eq!(filter("+cudaEventQuery").named().collect::<Vec<_>>(), ["cudaEventQuery"]);
        assert!(filter("none,args,+cudaMalloc").has_arguments && filter("args").contains("cudaLaunchKernel"));
        assert!(!filter("args,-cudaMalloc").contains("cudaMalloc") && !filter("all").has_arguments);
        assert!(filter("args,all").contains("cudaEventQuery") && filter("args,all").has_arguments);
        assert_eq!(CudaFilter::read("cudaFree,all").1, ["cudaFree", "all"]);
    }
}
