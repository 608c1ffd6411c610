//! The tables this project adds to the format, one file each.

/// Table `ext_dispatch`, and view `dispatch` with one row per kernel that ran. Part of a fresh file.
pub const DISPATCH: &str = include_str!("../ext/dispatch.sql");

/// Table `ext_kernelcodeobject`: what the code object says beyond the format's registers. Added when first known.
pub const KERNELCODEOBJECT: &str = include_str!("../ext/kernelcodeobject.sql");

/// Tables `ext_codeobject` and `ext_codeobject_kernel`: the code objects that were saved. Added with the first.
pub const CODEOBJECT: &str = include_str!("../ext/codeobject.sql");

/// Tables `ext_candidate`, `ext_replacement` and view `replacement`: kernels that ran in place of others. Added with the first.
pub const REPLACEMENT: &str = include_str!("../ext/replacement.sql");

/// Table `ext_validation`: what candidates and the kernels they replaced left in memory. Added with the first.
pub const VALIDATION: &str = include_str!("../ext/validation.sql");

/// Tables `ext_instrumentation`, `ext_memoryaccess`, `ext_heatmap`, `ext_timeinterval`, `ext_basicblock`, `ext_handlervalue` and
/// their views: what instrumented kernels streamed out. Added with the first.
pub const INSTRUMENTATION: &str = include_str!("../ext/instrumentation.sql");

/// Table `ext_librarycall` and view `libraryCall`: calls of GPU libraries. Added with the first.
pub const LIBRARYCALL: &str = include_str!("../ext/librarycall.sql");

/// Table `ext_launchattribute`: graph nodes and clusters of CUDA's kernels. Added with the first.
pub const LAUNCHATTRIBUTE: &str = include_str!("../ext/launchattribute.sql");

/// Table `ext_tick`: the device's raw tick counts of an op. Added on request.
pub const TICK: &str = include_str!("../ext/tick.sql");

/// Table `ext_callstack` and its views: who called whom. Made by `rpd callstack`.
pub const CALLSTACK: &str = include_str!("../ext/callstack.sql");

/// Table `ext_autogradapi` and view `autograd`: PyTorch's operators. Made by `rpd autograd`.
pub const AUTOGRAD: &str = include_str!("../ext/autograd.sql");

/// View `autogradKernel` and those that it is made of: the kernels of operators. Where there are call stacks too.
pub const AUTOGRAD_KERNEL: &str = include_str!("../ext/autograd_kernel.sql");

/// Tables `ext_graph`, `ext_graph_kernelapis`, `ext_graph_kernelops` and view `graphLaunch`. Made by `rpd graph`.
pub const GRAPH: &str = include_str!("../ext/graph.sql");

/// View `graphKernel` in a file with `ext_dispatch`.
pub const GRAPH_KERNEL: &str = include_str!("../ext/graph_kernel.sql");

/// View `graphKernel` in a file without.
pub const GRAPH_KERNEL_PLAIN: &str = include_str!("../ext/graph_kernel_plain.sql");

/// What a recorder adds to a fresh file when it has the first row of it.
pub const RECORDERS: [&str; 8] = [
    KERNELCODEOBJECT,
    CODEOBJECT,
    REPLACEMENT,
    VALIDATION,
    INSTRUMENTATION,
    LIBRARYCALL,
    LAUNCHATTRIBUTE,
    TICK,
];
