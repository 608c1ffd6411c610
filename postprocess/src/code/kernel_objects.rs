//! The code objects that the kernels of a trace are from, by the kernels' numbers in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rpd_schema::session_fact;
use rpd_schema::text::text_of;
use rusqlite::Connection;

use super::file::FoundObject;
use super::saved::{SavedObject, folders};
use crate::trace::has_table;

/// See the module. Of each code object the bytes are read when they are asked for.
pub struct KernelObjects {
    objects: Vec<SavedObject>,
    by_kernel: BTreeMap<i64, usize>,
    folders: Vec<PathBuf>,
}

impl KernelObjects {
    /// Those of the trace in `file`. `saved` is the folder of saved code objects, if it is not beside the trace.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn of(trace: &Connection, file: &Path, saved: Option<&Path>) -> Result<KernelObjects> {
        let recorded = rpd_schema::sessions(trace)?
            .iter()
            .filter_map(|session| session.get(session_fact::SAVED_CODE).map(PathBuf::from))
            .collect();
        let mut all = KernelObjects {
            objects: Vec::new(),
            by_kernel: BTreeMap::new(),
            folders: folders(file, saved, recorded),
        };
        if !has_table(trace, "ext_codeobject")? || !has_table(trace, "ext_codeobject_kernel")? {
            return Ok(all);
        }
        let mut statement = trace.prepare(
            "SELECT L.id, C.sha256, C.uri, C.target, C.size
             FROM ext_codeobject_kernel L JOIN ext_codeobject C ON C.id = L.ext_codeobject_id",
        )?;
        let mut rows = statement.query([])?;
        let mut places: BTreeMap<SavedObject, usize> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let text = |at: usize| row.get_ref(at).map(|value| text_of(value).into_owned());
            let size = row.get_ref(4)?.as_i64().unwrap_or(0);
            let object = SavedObject { sha256: text(1)?, uri: text(2)?, target: text(3)?, size };
            let place = *places.entry(object).or_insert_with_key(|object| {
                all.objects.push(object.clone());
                all.objects.len() - 1
            });
            if let Ok(kernel) = row.get_ref(0)?.as_i64() {
                all.by_kernel.insert(kernel, place);
            }
        }
        Ok(all)
    }

    /// The place of the code object of a kernel, whose number is an id of `rocpd_kernelcodeobject`; none where the trace names none.
    pub fn of_kernel(&self, kernel: i64) -> Option<usize> {
        self.by_kernel.get(&kernel).copied()
    }

    /// What tells the code object at a place from all others: the SHA-256 of its bytes in hexadecimal digits; where the trace does not have
    /// it, where the program had the code object.
    pub fn name(&self, place: usize) -> &str {
        let SavedObject { sha256, uri, .. } = &self.objects[place];
        if sha256.is_empty() { uri } else { sha256 }
    }

    /// The code object at a place.
    ///
    /// # Errors
    /// In words, where its bytes are not, or are not the same any more.
    pub fn find(&self, place: usize) -> Result<FoundObject, String> {
        self.objects[place].find(&self.folders)
    }
}
