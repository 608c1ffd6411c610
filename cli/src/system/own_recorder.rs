//! The recorder in this process, for what it samples without a program: it is loaded as a program would load it, by its C interface
//! (include/rpd_tracer.h).

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};
use libloading::{Library, Symbol};

/// See the module.
pub(crate) struct OwnRecorder(Library);

impl OwnRecorder {
    /// Loads it. It finds these variables on top of the present ones, and nobody finds what it or these have changed afterwards.
    ///
    /// # Errors
    /// When the library cannot be loaded.
    pub(crate) fn load(library: &Path, variables: &[(&str, OsString)]) -> Result<OwnRecorder> {
        let before: BTreeMap<OsString, OsString> = env::vars_os().collect();
        // SAFETY: rpd has started no thread yet.
        variables.iter().for_each(|(name, value)| unsafe { env::set_var(name, value) });
        // SAFETY: its constructors are made to run in any process.
        let loaded = unsafe { Library::new(library) };
        let changed = env::vars_os().filter(|(name, value)| before.get(name) != Some(value));
        for (name, _) in changed.collect::<Vec<_>>() {
            match before.get(&name) {
                // SAFETY: the library starts no thread before it is asked to.
                Some(value) => unsafe { env::set_var(&name, value) },
                // SAFETY: as above.
                None => unsafe { env::remove_var(&name) },
            }
        }
        loaded.map(OwnRecorder).with_context(|| format!("cannot load {}", library.display()))
    }

    /// Begins to sample GPUs; how many.
    ///
    /// # Errors
    /// When the library has no such function: it is of an older version.
    pub(crate) fn monitor(&self) -> Result<u32> {
        // SAFETY: the type that include/rpd_tracer.h declares.
        let monitor: Symbol<'_, unsafe extern "C" fn() -> u32> =
            unsafe { self.0.get("rpdmonitor") }.context("the recorder is older than this rpd")?;
        // SAFETY: it may be called at any time.
        Ok(unsafe { monitor() })
    }

    /// Brings what there is into the file and ends recording.
    ///
    /// # Errors
    /// As [`OwnRecorder::monitor`].
    pub(crate) fn finish(&self) -> Result<()> {
        // SAFETY: the type that include/rpd_tracer.h declares.
        let finish: Symbol<'_, unsafe extern "C" fn()> =
            unsafe { self.0.get("rpdfinish") }.context("the recorder is older than this rpd")?;
        // SAFETY: it may be called at any time.
        unsafe { finish() };
        Ok(())
    }
}
