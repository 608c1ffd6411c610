//! `rpd create`: an empty trace.

use std::path::Path;

use anyhow::Result;

/// Creates `file` as a trace without sessions. A file of no bytes is filled.
///
/// # Errors
/// When there is such a file already (it is left as it is), or it cannot be written.
pub(crate) fn run(file: &Path) -> Result<()> {
    Ok(rpd_schema::create(file)?)
}
