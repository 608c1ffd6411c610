//! The kernels that a trace has launched, and the code objects that they came from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rpd_codeobject::{Kernel, Target};
use rpd_schema::session_fact;
use rpd_schema::text::{shown, text_of};
use rusqlite::{Connection, Row};

use super::file::FoundObject;
use super::kernel::{Assumed, KernelFacts, Launches};
use super::saved::{SavedObject, folders};
use crate::notes::Notes;
use crate::text::escape;
use crate::trace::{has_table, open};

/// The kernels of a trace: what it says of them itself, and where their code is.
pub struct TraceCode {
    kernels: BTreeMap<KernelKey, TraceKernel>,
    objects: Vec<SavedObject>,
    folders: Vec<PathBuf>,
}

/// A kernel is the same in all sessions that ran the same code of it, or code of which nothing is known on equal GPUs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct KernelKey {
    /// With parameters.
    name: String,
    target: String,
    /// Place among the objects, where its code object is known.
    object: Option<usize>,
}

struct TraceKernel {
    /// What the recorder wrote of it.
    facts: Kernel,
    launches: Vec<Launches>,
}

/// A row of `ext_kernelcodeobject`, and of `ext_codeobject` where one belongs to it.
struct TraceFacts {
    kernel: Kernel,
    object: Option<SavedObject>,
}

impl TraceCode {
    /// Reads what the trace `file` says of its kernels. `saved` is the folder of saved code objects, if it is not beside the trace.
    ///
    /// # Errors
    /// When it cannot be read, or says nothing of kernels.
    pub fn open(file: &Path, saved: Option<&Path>, notes: &dyn Notes) -> Result<TraceCode> {
        let (trace, _) = open(file, notes)?;
        let name = file.display();
        let code = TraceCode::read(&trace, folders(file, saved));
        let code = code.with_context(|| format!("cannot read the kernels of {name}"))?;
        if code.kernels.is_empty() {
            bail!("{name} says nothing of its kernels' code: none ran, or another recorder wrote it");
        }
        Ok(code)
    }

    fn read(trace: &Connection, folders: Vec<PathBuf>) -> Result<TraceCode> {
        let mut code = TraceCode { kernels: BTreeMap::new(), objects: Vec::new(), folders };
        for table in ["ext_kernelcodeobject", "ext_dispatch"] {
            if !has_table(trace, table)? {
                return Ok(code);
            }
        }
        let gpus: BTreeMap<i64, String> = rpd_schema::gpus(trace)?
            .iter()
            .filter_map(|gpu| Some((i64::from(gpu.gpu), gpu.get(session_fact::GPU_TARGET)?.to_string())))
            .collect();
        let facts = facts(trace)?;
        // Sessions name the same code object each for itself.
        let objects: BTreeSet<&SavedObject> =
            facts.values().filter_map(|facts| facts.object.as_ref()).collect();
        code.objects = objects.into_iter().cloned().collect();
        let mut statement = trace.prepare(&format!(
            "SELECT D.codeObject_id, O.gpuId, {}, D.workgroupX, D.workgroupY, D.workgroupZ, D.groupSegmentSize,
                 count(*), total(max(O.\"end\" - O.start, 0))
             FROM ext_dispatch D JOIN rocpd_op O ON O.id = D.op_id LEFT JOIN rocpd_string N ON N.id = D.kernelName_id
             GROUP BY D.codeObject_id, O.gpuId, D.kernelName_id, D.workgroupX, D.workgroupY, D.workgroupZ,
                 D.groupSegmentSize",
            shown("N.string")
        ))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let Some(known) = facts.get(&row.get(0)?) else { continue };
            let object = known.object.as_ref().and_then(|object| code.objects.binary_search(object).ok());
            let target = match &known.object {
                Some(object) => object.target.clone(),
                None => gpus.get(&row.get(1)?).cloned().unwrap_or_default(),
            };
            let key = KernelKey { name: text_of(row.get_ref(2)?).into_owned(), target, object };
            let new = || TraceKernel { facts: known.kernel.clone(), launches: Vec::new() };
            code.kernels.entry(key).or_insert_with(new).add(launches(row)?);
        }
        Ok(code)
    }

    /// Whether the trace names code objects: its recorder was asked to save them.
    pub fn names_objects(&self) -> bool {
        !self.objects.is_empty()
    }

    /// Hands each code object of the trace to `visit`: its bytes, or in words why there are none, and the names of its kernels that were
    /// launched.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn each_object(
        &self,
        mut visit: impl FnMut(Result<FoundObject, String>, &BTreeSet<&str>) -> Result<()>,
    ) -> Result<()> {
        self.each_place(|_, found, names| visit(found, names))
    }

    fn each_place(
        &self,
        mut visit: impl FnMut(usize, Result<FoundObject, String>, &BTreeSet<&str>) -> Result<()>,
    ) -> Result<()> {
        for (place, saved) in self.objects.iter().enumerate() {
            let of_this = self.kernels.keys().filter(|key| key.object == Some(place));
            let names: BTreeSet<&str> = of_this.map(|key| key.name.as_str()).collect();
            let found = saved.find(&self.folders).map_err(|error| {
                let begin: String = saved.sha256.chars().take(12).collect();
                format!("code object {} for {}: {error:#}", escape(&begin), escape(&saved.target))
            });
            visit(place, found, &names)?;
        }
        Ok(())
    }

    /// A row for each kernel and each size that it was launched in, the one that took the most time first; from its code object where that
    /// is found, else from what the trace says. Tells `missing` which are not found and why.
    ///
    /// # Errors
    /// When a code object that was found cannot be read.
    pub fn rows(
        &self,
        assumed: Assumed,
        with_arguments: bool,
        mut missing: impl FnMut(String),
    ) -> Result<Vec<KernelFacts>> {
        let mut rows = Vec::new();
        let mut in_objects = BTreeSet::new();
        self.each_place(|place, found, names| {
            let object = match found {
                Ok(object) => object,
                Err(why) => {
                    missing(why);
                    return Ok(());
                }
            };
            object.each_kernel(|kernel, descriptor, target| {
                let name = kernel.demangled();
                if !names.contains(name.as_str()) {
                    return;
                }
                let key = KernelKey { name, target: self.objects[place].target.clone(), object: Some(place) };
                for launches in self.kernels.get(&key).map_or(&[][..], |kernel| &kernel.launches) {
                    let row = KernelFacts::of(kernel, descriptor, target, launches.assumed(assumed));
                    let row = if with_arguments { row.with_arguments(kernel) } else { row };
                    rows.push(row.launched(launches.clone()));
                }
                in_objects.insert(key);
            })
        })?;
        for (key, kernel) in self.kernels.iter().filter(|(key, _)| !in_objects.contains(key)) {
            let target = Target::from(key.target.as_str());
            for launches in &kernel.launches {
                let row = KernelFacts::of(&kernel.facts, None, &target, launches.assumed(assumed));
                // A trace has the name with parameters alone.
                rows.push(KernelFacts { symbol: String::new(), ..row }.launched(launches.clone()));
            }
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.launches.as_ref().map(|launches| launches.total_ns)));
        Ok(rows)
    }
}

impl TraceKernel {
    /// Sessions and GPUs are added up.
    fn add(&mut self, more: Launches) {
        let is_alike = |known: &&mut Launches| (known.workgroup, known.lds) == (more.workgroup, more.lds);
        match self.launches.iter_mut().find(is_alike) {
            Some(known) => {
                known.calls = known.calls.saturating_add(more.calls);
                known.total_ns = known.total_ns.saturating_add(more.total_ns);
            }
            None => self.launches.push(more),
        }
    }
}

fn launches(row: &Row<'_>) -> rusqlite::Result<Launches> {
    let number = |at: usize| row.get::<_, i64>(at).map(|number| u32::try_from(number).unwrap_or(0));
    Ok(Launches {
        workgroup: [number(3)?, number(4)?, number(5)?],
        lds: number(6)?,
        calls: row.get::<_, i64>(7)?.unsigned_abs(),
        // A sum of floats: one of integers fails where it is too large.
        total_ns: row.get::<_, f64>(8)? as u64,
    })
}

/// What the trace says of each kernel's code, by its id.
fn facts(trace: &Connection) -> Result<BTreeMap<i64, TraceFacts>> {
    let has_objects = has_table(trace, "ext_codeobject")? && has_table(trace, "ext_codeobject_kernel")?;
    let (columns, join) = match has_objects {
        true => (
            "C.sha256, C.uri, C.target, C.size",
            "LEFT JOIN ext_codeobject_kernel L ON L.id = E.id LEFT JOIN ext_codeobject C ON C.id = L.ext_codeobject_id",
        ),
        false => ("NULL, NULL, NULL, NULL", ""),
    };
    let mut statement = trace.prepare(&format!(
        "SELECT E.id, {}, K.vgpr, K.sgpr, E.agpr, E.vgprSpill, E.sgprSpill, E.groupSegmentSize, E.privateSegmentSize,
             E.kernargSegmentSize, E.wavefrontSize, E.maxWorkgroupSize, {columns}
         FROM ext_kernelcodeobject E JOIN rocpd_kernelcodeobject K ON K.id = E.id
             LEFT JOIN rocpd_string N ON N.id = E.kernelName_id {join}",
        shown("N.string")
    ))?;
    let mut rows = statement.query([])?;
    let mut facts = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let number = |at: usize| row.get::<_, i64>(at).map(|number| u32::try_from(number).unwrap_or(0));
        let text = |at: usize| row.get_ref(at).map(|value| text_of(value).into_owned());
        let mut kernel = Kernel::default();
        kernel.name = text(1)?;
        kernel.vgpr_count = number(2)?;
        kernel.sgpr_count = number(3)?;
        kernel.agpr_count = number(4)?;
        kernel.vgpr_spill_count = number(5)?;
        kernel.sgpr_spill_count = number(6)?;
        kernel.group_segment_fixed_size = number(7)?;
        kernel.private_segment_fixed_size = number(8)?;
        kernel.kernarg_segment_size = number(9)?;
        kernel.wavefront_size = number(10)?;
        kernel.max_flat_workgroup_size = number(11)?;
        // A trace does not say; compilers use both CUs of a workgroup processor unless they are told not to.
        kernel.workgroup_processor_mode = true;
        let sha256 = text(12)?;
        let object = SavedObject {
            sha256,
            uri: text(13)?,
            target: text(14)?,
            size: row.get::<_, Option<i64>>(15)?.unwrap_or(0),
        };
        let object = Some(object).filter(|object| !object.sha256.is_empty());
        facts.insert(row.get(0)?, TraceFacts { kernel, object });
    }
    Ok(facts)
}
