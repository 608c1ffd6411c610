//! What other tools recorded, as a trace.
//!
//! | file | owns |
//! |---|---|
//! | `rows.rs` | writing the rows of a trace that has one process |
//! | `tinygrad.rs` | the profile of a tinygrad program |

mod rows;
pub mod tinygrad;
