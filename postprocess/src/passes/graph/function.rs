//! The functions that capture, make and launch graphs, by their names in a trace: HIP's, and CUDA's with the suffixes that CUPTI
//! gives them.

use crate::trace::arguments;

/// What a call does to graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GraphFunction {
    /// A stream begins to record what is launched on it.
    BeginCapture,
    /// It ends; a graph comes out.
    EndCapture,
    /// An empty graph.
    Create,
    /// A kernel put into a graph by hand.
    AddKernelNode,
    /// A graph becomes one that can be launched.
    Instantiate,
    /// It is launched.
    Launch,
}

/// Beginnings of the names of all of them.
pub(crate) const PREFIXES: [&str; 6] = [
    "hipGraph",
    "cudaGraph",
    "hipStreamBeginCapture",
    "cudaStreamBeginCapture",
    "hipStreamEndCapture",
    "cudaStreamEndCapture",
];

impl GraphFunction {
    /// The function of this name, if it is one of them.
    pub(crate) fn of(name: &str) -> Option<GraphFunction> {
        let plain = name.strip_prefix("hip").or_else(|| name.strip_prefix("cuda"))?;
        let plain = match plain.rsplit_once("_v") {
            Some((plain, version)) if version.bytes().all(|digit| digit.is_ascii_digit()) => plain,
            _ => plain,
        };
        let plain = plain.strip_suffix("_ptsz").or_else(|| plain.strip_suffix("_spt")).unwrap_or(plain);
        Some(match plain {
            "StreamBeginCapture" => GraphFunction::BeginCapture,
            "StreamEndCapture" => GraphFunction::EndCapture,
            "GraphCreate" => GraphFunction::Create,
            "GraphAddKernelNode" => GraphFunction::AddKernelNode,
            "GraphInstantiate" | "GraphInstantiateWithFlags" | "GraphInstantiateWithParams" => {
                GraphFunction::Instantiate
            }
            "GraphLaunch" => GraphFunction::Launch,
            _ => return None,
        })
    }

    /// Whether its calls are of the subclass `graph`.
    pub(crate) fn is_of_capture(self) -> bool {
        matches!(self, GraphFunction::BeginCapture | GraphFunction::EndCapture | GraphFunction::Instantiate)
    }
}

/// The stream of a launch of a graph, as its arguments say it; None of another function.
pub(crate) fn stream_of_launch<'a>(function: &str, arguments: &'a str) -> Option<&'a str> {
    (GraphFunction::of(function) == Some(GraphFunction::Launch)).then(|| launch_stream(arguments)).flatten()
}

/// The same of what is known to be such a launch.
pub(crate) fn launch_stream(arguments: &str) -> Option<&str> {
    arguments::value(arguments, "stream")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_version_are_known() {
        for (name, function) in [
            ("hipStreamBeginCapture", Some(GraphFunction::BeginCapture)),
            ("hipStreamBeginCapture_spt", Some(GraphFunction::BeginCapture)),
            ("cudaStreamBeginCapture_v10000", Some(GraphFunction::BeginCapture)),
            ("cudaStreamEndCapture_ptsz_v10000", Some(GraphFunction::EndCapture)),
            ("hipGraphInstantiate", Some(GraphFunction::Instantiate)),
            ("cudaGraphInstantiateWithFlags_v11040", Some(GraphFunction::Instantiate)),
            ("cudaGraphInstantiate_v12000", Some(GraphFunction::Instantiate)),
            ("cudaGraphLaunch_ptsz_v10000", Some(GraphFunction::Launch)),
            ("hipGraphLaunch_spt", Some(GraphFunction::Launch)),
            ("hipGraphAddKernelNode", Some(GraphFunction::AddKernelNode)),
            ("hipGraphLaunchX", None),
            ("cudaGraphLaunch_vX", None),
            ("hipGraphExecDestroy", None),
            ("GraphLaunch", None),
            ("", None),
        ] {
            assert_eq!(GraphFunction::of(name), function, "{name}");
        }
    }

    #[test]
    fn every_function_has_one_of_the_prefixes() {
        for name in [
            "hipStreamBeginCapture",
            "cudaStreamEndCapture_v10000",
            "hipGraphCreate",
            "cudaGraphAddKernelNode_v10000",
            "hipGraphInstantiate",
            "cudaGraphLaunch_v10000",
        ] {
            assert!(GraphFunction::of(name).is_some());
            assert!(PREFIXES.iter().any(|prefix| name.starts_with(prefix)), "{name}");
        }
    }
}
