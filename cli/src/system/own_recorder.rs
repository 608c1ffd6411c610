//! The recorder in this process, for what it samples without a program: it is loaded as a program would load it, by its C interface
//! (include/rpd_tracer.h).

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::env;
use std::ffi::{CStr, OsString};
use std::path::Path;

use anyhow::{Context, Result};
use libloading::{Library, Symbol};

pub(crate) struct OwnRecorder(Library);

impl OwnRecorder {
    /// Loads it. It finds these variables on top of the present ones, and nobody finds what it or these have changed afterwards.
    ///
    /// # Errors
    /// When the library cannot be loaded.
    pub(crate) fn load(library: &Path, variables: &[(&str, OsString)]) -> Result<OwnRecorder> {
        let mut before = BTreeMap::new();
        // Where a name is there twice, programs find the first.
        env::vars_os().for_each(|(name, value)| {
            before.entry(name).or_insert(value);
        });
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

    /// How many GPUs there are to sample.
    ///
    /// # Errors
    /// When the library has no such function: it is of an older version.
    pub(crate) fn gpus(&self) -> Result<u32> {
        self.count(c"rpdmonitor_gpus")
    }

    /// How many of the sensors asked for any of these GPUs has. Those that none has are named.
    ///
    /// # Errors
    /// As [`OwnRecorder::gpus`].
    pub(crate) fn sensors(&self) -> Result<u32> {
        self.count(c"rpdmonitor_sensors")
    }

    /// Begins to sample GPUs; how many.
    ///
    /// # Errors
    /// As [`OwnRecorder::gpus`].
    pub(crate) fn monitor(&self) -> Result<u32> {
        self.count(c"rpdmonitor")
    }

    fn count(&self, function: &CStr) -> Result<u32> {
        // SAFETY: the type that include/rpd_tracer.h declares.
        let count: Symbol<'_, unsafe extern "C" fn() -> u32> =
            unsafe { self.0.get(function.to_bytes_with_nul()) }
                .context("the recorder is older than this rpd")?;
        // SAFETY: it may be called at any time.
        Ok(unsafe { count() })
    }

    /// Brings what there is into the file and ends recording.
    ///
    /// # Errors
    /// As [`OwnRecorder::gpus`].
    pub(crate) fn finish(&self) -> Result<()> {
        // SAFETY: the type that include/rpd_tracer.h declares.
        let finish: Symbol<'_, unsafe extern "C" fn()> =
            unsafe { self.0.get("rpdfinish") }.context("the recorder is older than this rpd")?;
        // SAFETY: it may be called at any time.
        unsafe { finish() };
        Ok(())
    }
}
