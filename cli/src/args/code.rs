//! Values of the options about code objects.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};

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
