//! Lines on standard error about operations that reports about a GPU's time leave out.

use std::path::Path;

use rpd_postprocess::report::gpu_time::LeftOut;
use rpd_postprocess::text::counted;

use super::note::note;

/// Says how many operations count nowhere, and why.
pub(crate) fn note_left_out(file: &Path, left_out: LeftOut) {
    let name = file.display();
    if left_out.impossible > 0 {
        note(format_args!(
            "{name}: {} left out: impossible times, which rpd check lists",
            counted(left_out.impossible, "operation is", "operations are")
        ));
    }
    if left_out.barriers > 0 {
        note(format_args!(
            "{name}: {} left out: a GPU that waits does no work",
            counted(left_out.barriers, "barrier is", "barriers are")
        ));
    }
}
