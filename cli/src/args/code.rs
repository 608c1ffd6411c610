//! Values of the options about code objects.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use rpd_settings::quantity;

/// Work-items of the largest workgroup that any GPU runs.
const MOST_WORK_ITEMS: u32 = 1024;

/// A directory that files are to be put into, which need not be there yet. Empty stands for the default.
pub(crate) fn directory() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|name| {
        let path = PathBuf::from(name);
        match path.exists() && !path.is_dir() {
            true => Err("this is not a directory: name one, or one that is still to be made"),
            false => Ok(path),
        }
    })
}

/// The work-items of a workgroup: `256`, or its size in two or three directions, `16x16`.
pub(crate) fn workgroup(text: &str) -> Result<u32, String> {
    let sizes: Option<Vec<u32>> = text.split('x').map(|size| size.parse().ok()).collect();
    let items = sizes.filter(|sizes| sizes.len() <= 3);
    let items = items.and_then(|sizes| sizes.into_iter().try_fold(1_u32, u32::checked_mul));
    items.filter(|items| (1..=MOST_WORK_ITEMS).contains(items)).ok_or_else(|| {
        format!("not a workgroup such as 256 or 16x16, of {MOST_WORK_ITEMS} work-items at most")
    })
}

/// LDS in bytes.
pub(crate) fn lds(text: &str) -> Result<u32, String> {
    let bytes = quantity::size_bytes(text, 1).ok_or("not a size such as 4096 or 4KiB")?;
    u32::try_from(bytes).map_err(|_| "more than any workgroup has".to_string())
}
