//! Values of the options about kernels that run in the place of the program's own.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use rpd_postprocess::pattern::pattern;
use rpd_settings::library_filter::LibraryFilter;
use rpd_settings::measure::Measure;

/// A directory with candidates.
pub(crate) fn directory(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    match path.is_dir() {
        true => Ok(path),
        false => Err("there is no such directory: give the one that has the .hsaco files".into()),
    }
}

/// A file that says which libraries' kernels may be replaced.
pub(crate) fn library_filter() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|name| {
        let path = PathBuf::from(name);
        let (_, complaints) = LibraryFilter::read(&path)?;
        match complaints.is_empty() {
            true => Ok(path),
            false => Err(complaints.join("; ")),
        }
    })
}

/// A regular expression for names of kernels.
pub(crate) fn regex(text: &str) -> Result<String, String> {
    pattern(text).map(|_| text.to_string())
}

/// Whose turn it is to run.
pub(crate) fn alternate(text: &str) -> Result<String, String> {
    let blocks = text.strip_prefix("blocks=").and_then(|length| length.parse::<u32>().ok());
    match text {
        "ABAB" | "random" => Ok(text.into()),
        _ if blocks.is_some_and(|length| length > 0) => Ok(text.into()),
        _ => Err("must be ABAB, random, or blocks=N with N launches in a row".into()),
    }
}

/// What buffers are compared as.
pub(crate) fn measure(text: &str) -> Result<String, String> {
    Measure::parse(text).map(|_| text.to_string())
}
