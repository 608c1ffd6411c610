//! Ready-made questions to a trace. Each runs as it stands in the `sqlite3` shell: `sqlite3 trace.rpd < FILE`.

/// A ready-made query.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Short name: the file's name without `.sql`.
    pub name: &'static str,
    /// The statement, headed by a comment that says what it answers.
    pub text: &'static str,
}

/// Every ready-made query, in the order in which people tend to ask.
pub const ALL: [Query; 13] = [
    Query { name: "top_kernels", text: include_str!("../queries/top_kernels.sql") },
    Query { name: "busy", text: include_str!("../queries/busy.sql") },
    Query { name: "copies", text: include_str!("../queries/copies.sql") },
    Query { name: "longest_gaps", text: include_str!("../queries/longest_gaps.sql") },
    Query { name: "launchers", text: include_str!("../queries/launchers.sql") },
    Query { name: "launch_delay", text: include_str!("../queries/launch_delay.sql") },
    Query { name: "top_apis", text: include_str!("../queries/top_apis.sql") },
    Query { name: "markers", text: include_str!("../queries/markers.sql") },
    Query { name: "ktop", text: include_str!("../queries/ktop.sql") },
    Query { name: "topEx", text: include_str!("../queries/topEx.sql") },
    Query { name: "topDiff", text: include_str!("../queries/topDiff.sql") },
    Query { name: "binOpByDuration", text: include_str!("../queries/binOpByDuration.sql") },
    Query { name: "kernelKernelDelay", text: include_str!("../queries/kernelKernelDelay.sql") },
];
