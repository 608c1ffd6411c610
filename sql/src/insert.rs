//! The column lists of every table a recorder writes, and the INSERT statements made of them.

/// A table and the columns that a row of it fills, in the order in which they are bound.
#[derive(Clone, Copy, Debug)]
pub struct Insert {
    /// Name of the table.
    pub table: &'static str,
    /// Names of the columns; parameters are bound in this order. The first is the primary key, except in [`METADATA`].
    pub columns: &'static [&'static str],
}

impl Insert {
    /// The text of one INSERT of `rows` rows, with one `?` per column and row, row after row.
    #[must_use]
    pub fn statement(&self, rows: usize) -> String {
        let row = format!("({})", vec!["?"; self.columns.len()].join(","));
        format!("INSERT INTO \"{}\" ({}) VALUES {}", self.table, self.names(), vec![row; rows].join(","))
    }

    /// The text of an INSERT of all rows of the table of the same name in `database`. `alike`: both have these columns, in this
    /// order, and no others; only then SQLite can copy a row without looking at its values.
    #[must_use]
    pub fn copy(&self, database: &str, alike: bool) -> String {
        let table = self.table;
        if alike {
            return format!("INSERT INTO main.\"{table}\" SELECT * FROM \"{database}\".\"{table}\"");
        }
        let names = self.names();
        format!("INSERT INTO main.\"{table}\" ({names}) SELECT {names} FROM \"{database}\".\"{table}\"")
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|column| format!("\"{column}\"")).collect();
        names.join(",")
    }
}

/// `rocpd_string`.
pub const STRING: Insert = Insert { table: "rocpd_string", columns: &["id", "string"] };

/// `rocpd_api`.
pub const API: Insert =
    Insert { table: "rocpd_api", columns: &["id", "pid", "tid", "start", "end", "apiName_id", "args_id"] };

/// `rocpd_op`.
pub const OP: Insert = Insert {
    table: "rocpd_op",
    columns: &[
        "id",
        "gpuId",
        "queueId",
        "sequenceId",
        "completionSignal",
        "start",
        "end",
        "description_id",
        "opType_id",
    ],
};

/// `rocpd_api_ops`.
pub const API_OPS: Insert = Insert { table: "rocpd_api_ops", columns: &["id", "api_id", "op_id"] };

/// `rocpd_kernelapi`.
pub const KERNELAPI: Insert = Insert {
    table: "rocpd_kernelapi",
    columns: &[
        "api_ptr_id",
        "stream",
        "gridX",
        "gridY",
        "gridZ",
        "workgroupX",
        "workgroupY",
        "workgroupZ",
        "groupSegmentSize",
        "privateSegmentSize",
        "kernelArgAddress",
        "aquireFence",
        "releaseFence",
        "codeObject_id",
        "kernelName_id",
    ],
};

/// `rocpd_copyapi`.
pub const COPYAPI: Insert = Insert {
    table: "rocpd_copyapi",
    columns: &[
        "api_ptr_id",
        "stream",
        "size",
        "width",
        "height",
        "kind",
        "dst",
        "src",
        "dstDevice",
        "srcDevice",
        "sync",
        "pinned",
    ],
};

/// `rocpd_kernelcodeobject`.
pub const KERNELCODEOBJECT: Insert =
    Insert { table: "rocpd_kernelcodeobject", columns: &["id", "vgpr", "sgpr", "fbar"] };

/// `rocpd_barrierop`.
pub const BARRIEROP: Insert = Insert {
    table: "rocpd_barrierop",
    columns: &["op_ptr_id", "signalCount", "aquireFence", "releaseFence"],
};

/// `rocpd_op_inputSignals`.
pub const OP_INPUT_SIGNALS: Insert =
    Insert { table: "rocpd_op_inputSignals", columns: &["id", "from_op_id", "to_op_id"] };

/// `rocpd_monitor`.
pub const MONITOR: Insert = Insert {
    table: "rocpd_monitor",
    columns: &["id", "deviceType", "deviceId", "monitorType", "start", "end", "value"],
};

/// `rocpd_stackframe`.
pub const STACKFRAME: Insert =
    Insert { table: "rocpd_stackframe", columns: &["id", "api_ptr_id", "depth", "name_id"] };

/// `ext_dispatch`.
pub const EXT_DISPATCH: Insert = Insert {
    table: "ext_dispatch",
    columns: &[
        "op_id",
        "kernelName_id",
        "gridX",
        "gridY",
        "gridZ",
        "workgroupX",
        "workgroupY",
        "workgroupZ",
        "groupSegmentSize",
        "privateSegmentSize",
        "kernelArgAddress",
        "codeObject_id",
    ],
};

/// `ext_kernelcodeobject`.
pub const EXT_KERNELCODEOBJECT: Insert = Insert {
    table: "ext_kernelcodeobject",
    columns: &[
        "id",
        "kernelName_id",
        "agpr",
        "vgprSpill",
        "sgprSpill",
        "groupSegmentSize",
        "privateSegmentSize",
        "kernargSegmentSize",
        "wavefrontSize",
        "maxWorkgroupSize",
    ],
};

/// `ext_launchattribute`.
pub const EXT_LAUNCHATTRIBUTE: Insert = Insert {
    table: "ext_launchattribute",
    columns: &["op_id", "graph", "graphNode", "clusterX", "clusterY", "clusterZ"],
};

/// `ext_tick`.
pub const EXT_TICK: Insert = Insert { table: "ext_tick", columns: &["op_id", "start", "end"] };

/// `ext_codeobject`.
pub const EXT_CODEOBJECT: Insert =
    Insert { table: "ext_codeobject", columns: &["id", "sha256", "uri", "target", "size"] };

/// `ext_codeobject_kernel`.
pub const EXT_CODEOBJECT_KERNEL: Insert =
    Insert { table: "ext_codeobject_kernel", columns: &["id", "ext_codeobject_id"] };

/// `ext_candidate`.
pub const EXT_CANDIDATE: Insert = Insert {
    table: "ext_candidate",
    columns: &["id", "path", "sha256", "target", "loaded", "outcome", "reason"],
};

/// `ext_replacement`.
pub const EXT_REPLACEMENT: Insert = Insert {
    table: "ext_replacement",
    columns: &["id", "op_id", "original_kernel_id", "replacement_kernel_id", "candidate_id"],
};

/// `ext_librarycall`.
pub const EXT_LIBRARYCALL: Insert =
    Insert { table: "ext_librarycall", columns: &["api_ptr_id", "domain_id", "category_id"] };

/// `ext_validation`.
pub const EXT_VALIDATION: Insert = Insert {
    table: "ext_validation",
    columns: &[
        "id",
        "op_id",
        "argument",
        "offset",
        "compared",
        "elements",
        "written",
        "different",
        "first",
        "original",
        "candidate",
        "largest",
        "reason",
    ],
};

/// `ext_instrumentation`.
pub const EXT_INSTRUMENTATION: Insert = Insert {
    table: "ext_instrumentation",
    columns: &[
        "id",
        "op_id",
        "kernelName_id",
        "gpuId",
        "queueId",
        "sequenceId",
        "analyzer",
        "messages",
        "bytes",
        "dropped",
        "incomplete",
        "reason",
    ],
};

/// `ext_memoryaccess`.
pub const EXT_MEMORYACCESS: Insert = Insert {
    table: "ext_memoryaccess",
    columns: &[
        "id",
        "instrumentation_id",
        "file",
        "line",
        "column",
        "accessKind",
        "space",
        "size",
        "accesses",
        "linesNeeded",
        "linesUsed",
        "conflicts",
    ],
};

/// `ext_heatmap`.
pub const EXT_HEATMAP: Insert =
    Insert { table: "ext_heatmap", columns: &["id", "instrumentation_id", "address", "size", "accesses"] };

/// `ext_timeinterval`.
pub const EXT_TIMEINTERVAL: Insert = Insert {
    table: "ext_timeinterval",
    columns: &["id", "instrumentation_id", "count", "total", "firstBegin", "lastEnd"],
};

/// `ext_basicblock`.
pub const EXT_BASICBLOCK: Insert = Insert {
    table: "ext_basicblock",
    columns: &[
        "id",
        "instrumentation_id",
        "block",
        "cu",
        "file",
        "line",
        "count",
        "timed",
        "total",
        "min",
        "p50",
        "p90",
        "p99",
        "max",
        "branchiness",
    ],
};

/// `ext_block`.
pub const EXT_BLOCK: Insert = Insert {
    table: "ext_block",
    columns: &[
        "id",
        "kernel_id",
        "number",
        "functionName",
        "offset",
        "size",
        "file",
        "line",
        "instructions",
        "valu",
        "salu",
        "vmem",
        "smem",
        "lds",
        "mfma",
        "branch",
        "other",
    ],
};

/// `ext_blockcount`.
pub const EXT_BLOCKCOUNT: Insert = Insert {
    table: "ext_blockcount",
    columns: &["id", "instrumentation_id", "block_id", "dispatches", "waves", "lanes", "ticks"],
};

/// `ext_handlervalue`.
pub const EXT_HANDLERVALUE: Insert =
    Insert { table: "ext_handlervalue", columns: &["id", "instrumentation_id", "name", "value"] };

/// `rocpd_metadata`; its ids are SQLite's own.
pub const METADATA: Insert = Insert { table: "rocpd_metadata", columns: &["tag", "value"] };
