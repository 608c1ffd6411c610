//! The kernels that a trace has launched, and the code objects that they came from.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rpd_codeobject::{Kernel, Target, TritonBuild};
use rpd_schema::session_fact;
use rpd_schema::text::{shown, text_of};
use rusqlite::{Connection, Row};

use super::file::FoundObject;
use super::kernel::{Assumed, BuildLaunches, Candidate, KernelFacts, work_items};
use super::saved::{SavedObject, folders};
use super::triton;
use crate::notes::Notes;
use crate::region::{Region, Selected};
use crate::trace::launch::LaunchJoin;
use crate::trace::op_kind::KERNEL_TYPES;
use crate::trace::replaced::NOT_IN_FILE;
use crate::trace::{TimedByHip, has_table, open};

/// The kernels of a trace: what it says of them itself, and where their code is.
pub struct TraceCode {
    kernels: BTreeMap<KernelKey, TraceKernel>,
    objects: Vec<SavedObject>,
    folders: Vec<PathBuf>,
    kernel_caches: BTreeSet<String>,
}

/// A kernel is the same in all sessions that ran the same code of it, or code of which nothing is known on equal GPUs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct KernelKey {
    /// With parameters: of what ran, where that is known. An instrumented kernel has another one than the kernel that was launched.
    name: String,
    target: String,
    build: BuildKey,
}

/// A build of a kernel, and its code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct BuildKey {
    /// Place among the objects, where its code object is known.
    object: Option<usize>,
    /// None for the program's own.
    candidate: Option<Candidate>,
}

struct TraceKernel {
    /// What the recorder wrote of it.
    facts: Option<Kernel>,
    /// How Triton launches it, where it is a candidate that Triton made.
    triton: Option<TritonBuild>,
    launches: BTreeMap<LaunchSize, LaunchTotal>,
}

/// How a dispatch was launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LaunchSize {
    workgroup: [u32; 3],
    /// None where the trace does not say it of what ran.
    lds: Option<u32>,
}

/// Dispatches of one size.
#[derive(Debug, Clone, Copy, Default)]
struct LaunchTotal {
    calls: u64,
    ns: u64,
}

/// A row of `ext_kernelcodeobject`, and of `ext_codeobject` where one belongs to it.
struct TraceFacts {
    kernel: Kernel,
    object: Option<SavedObject>,
}

/// Kernels of the same build in one code object.
pub struct BuildObject<'a> {
    /// The code object, or in words why it is not there.
    pub found: Result<FoundObject, String>,
    /// None for the program's own kernels.
    pub candidate: Option<&'a Candidate>,
    /// The names of those that were launched.
    pub names: BTreeSet<&'a str>,
}

impl TraceCode {
    /// Reads what the trace `file` says of the kernels that were launched in a part of it. `saved` is the folder of saved code objects, if it is
    /// not beside the trace.
    ///
    /// # Errors
    /// When it cannot be read, or says nothing of kernels there.
    pub fn open(file: &Path, saved: Option<&Path>, part: &Region, notes: &dyn Notes) -> Result<TraceCode> {
        let (trace, version) = open(file, notes)?;
        let name = file.display();
        let selected = part.select(&trace, version)?;
        let code = TraceCode::of(&trace, file, saved, &selected)?;
        if code.kernels.is_empty() && !selected.is_everything() {
            bail!("{name} says nothing of the code of kernels in that part of it");
        }
        if code.kernels.is_empty() {
            bail!("{name} says nothing of its kernels' code: none ran, or another recorder wrote it");
        }
        Ok(code)
    }

    /// The same of an open trace, which may say nothing.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(
        trace: &Connection,
        file: &Path,
        saved: Option<&Path>,
        selected: &Selected,
    ) -> Result<TraceCode> {
        let name = file.display();
        let sessions = rpd_schema::sessions(trace);
        let sessions = sessions.with_context(|| format!("cannot read the sessions of {name}"))?;
        let all = |fact: &str| -> BTreeSet<String> {
            sessions.iter().filter_map(|session| session.get(fact)).map(str::to_string).collect()
        };
        let recorded = all(session_fact::SAVED_CODE).into_iter().map(PathBuf::from).collect();
        let mut code = TraceCode {
            kernels: BTreeMap::new(),
            objects: Vec::new(),
            folders: folders(file, saved, recorded),
            kernel_caches: all(session_fact::KERNEL_CACHE),
        };
        code.read(trace, selected).with_context(|| format!("cannot read the kernels of {name}"))?;
        Ok(code)
    }

    fn read(&mut self, trace: &Connection, selected: &Selected) -> Result<()> {
        let Some(launch) = LaunchJoin::of(trace)? else { return Ok(()) };
        if !has_table(trace, "ext_kernelcodeobject")? {
            return Ok(());
        }
        let gpus: BTreeMap<i64, String> = rpd_schema::gpus(trace)?
            .iter()
            .filter_map(|gpu| Some((i64::from(gpu.gpu), gpu.get(session_fact::GPU_TARGET)?.to_string())))
            .collect();
        let by_hip = TimedByHip::of(trace)?;
        let facts = facts(trace)?;
        // Sessions name the same code object each for itself.
        let objects: BTreeSet<&SavedObject> =
            facts.values().filter_map(|facts| facts.object.as_ref()).collect();
        self.objects = objects.into_iter().cloned().collect();
        let mut statement = trace.prepare(&launches_query(trace, selected, &launch)?)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let own = facts.get(&row.get(0)?);
            let replaced: Option<i64> = row.get(1)?;
            let known = match replaced {
                Some(_) => facts.get(&row.get_ref(2)?.as_i64().unwrap_or(0)),
                None => own,
            };
            if known.is_none() && replaced.is_none() {
                continue;
            }
            let text = |at: usize| row.get_ref(at).map(|value| text_of(value).into_owned());
            let candidate = match replaced {
                Some(_) => Some(Candidate { path: text(3)?, sha256: text(4)? }),
                None => None,
            };
            let target = match known.and_then(|known| known.object.as_ref()) {
                Some(object) => object.target.clone(),
                None => gpus.get(&row.get(5)?).cloned().unwrap_or_default(),
            };
            let object = known.and_then(|known| self.objects.binary_search(known.object.as_ref()?).ok());
            let ran = known.filter(|_| replaced.is_some()).map(|known| known.kernel.demangled());
            let name = match ran.filter(|name| !name.is_empty()) {
                Some(name) => name,
                None => text(6)?,
            };
            let key = KernelKey { name, target, build: BuildKey { object, candidate } };
            let kernel = match self.kernels.entry(key) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let KernelKey { name, build, .. } = new.key();
                    let triton = build.candidate.as_ref().and_then(|ran| triton::description(ran, name));
                    let facts = known.map(|known| known.kernel.clone());
                    new.insert(TraceKernel { facts, triton, launches: BTreeMap::new() })
                }
            };
            let lds = number(row, 10)?;
            let is_by_hip = by_hip.has(row.get(11)?, row.get(5)?);
            let static_lds = own.map(|own| own.kernel.group_segment_fixed_size);
            let added = if is_by_hip { Some(lds) } else { static_lds.map(|own| lds.saturating_sub(own)) };
            let workgroup = [number(row, 7)?, number(row, 8)?, number(row, 9)?];
            let size = match replaced {
                Some(_) => kernel.replacing(workgroup, added),
                None => LaunchSize { workgroup, lds: kernel.lds(added) },
            };
            let total = kernel.launches.entry(size).or_default();
            total.calls = total.calls.saturating_add(row.get::<_, i64>(12)?.unsigned_abs());
            // A sum of floats: one of integers fails where it is too large.
            total.ns = total.ns.saturating_add(row.get::<_, f64>(13)? as u64);
        }
        Ok(())
    }

    /// Whether the trace names code objects: its recorder was asked to save them.
    pub fn names_objects(&self) -> bool {
        !self.objects.is_empty()
    }

    /// The directories that candidates are from, as the sessions say it.
    pub fn kernel_caches(&self) -> &BTreeSet<String> {
        &self.kernel_caches
    }

    /// The names of the kernels that the trace names no code object of: once for each build.
    pub fn without_object(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().filter(|key| key.build.object.is_none()).map(|key| key.name.as_str())
    }

    /// Hands the kernels of each code object of the trace to `visit`, those of each build apart.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn each_object(&self, mut visit: impl FnMut(BuildObject<'_>) -> Result<()>) -> Result<()> {
        self.each_build(|_, _, object| visit(object))
    }

    /// The same with the key of the build and the target that the trace has of the code object.
    fn each_build<'a>(
        &'a self,
        mut visit: impl FnMut(&'a BuildKey, &'a String, BuildObject<'a>) -> Result<()>,
    ) -> Result<()> {
        let mut builds: BTreeMap<&BuildKey, BTreeSet<&str>> = BTreeMap::new();
        for key in self.kernels.keys() {
            builds.entry(&key.build).or_default().insert(&key.name);
        }
        for (build, names) in builds {
            let Some(saved) = build.object.map(|place| &self.objects[place]) else { continue };
            let found = saved.find(&self.folders);
            visit(build, &saved.target, BuildObject { found, candidate: build.candidate.as_ref(), names })?;
        }
        Ok(())
    }

    /// A row for each build of a kernel and each size that it was launched in, the one that took the most time first; from its code object
    /// where that is found, else from what the trace says. Tells `missing` which are not found and why.
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
        self.each_build(|build, of, BuildObject { found, names, .. }| {
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
                let key = KernelKey { name, target: of.clone(), build: build.clone() };
                let Some((key, known)) = self.kernels.get_key_value(&key) else { return };
                for launches in known.launches(key) {
                    let row = KernelFacts::launched(kernel, descriptor, target, assumed, launches);
                    rows.push(if with_arguments { row.with_arguments(kernel) } else { row });
                }
                in_objects.insert(key);
            })
        })?;
        for (key, kernel) in self.kernels.iter().filter(|(key, _)| !in_objects.contains(key)) {
            let target = Target::from(key.target.as_str());
            rows.extend(kernel.launches(key).map(|launches| match &kernel.facts {
                // A trace has the name with parameters alone.
                Some(facts) => KernelFacts {
                    symbol: String::new(),
                    ..KernelFacts::launched(facts, None, &target, assumed, launches)
                },
                None => KernelFacts::unknown(&key.name, &key.target, launches),
            }));
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.launches.as_ref().map(|launches| launches.total_ns)));
        Ok(rows)
    }
}

impl TraceCode {
    /// The [`rows`](TraceCode::rows) of the kernels of one name, and of what ran in their place where that has the name too.
    ///
    /// # Errors
    /// When a code object that was found cannot be read.
    pub fn rows_of(mut self, name: &str, missing: impl FnMut(String)) -> Result<Vec<KernelFacts>> {
        self.kernels.retain(|key, _| key.name == name);
        self.rows(Assumed::default(), false, missing)
    }
}

impl TraceKernel {
    /// All LDS of a workgroup to which a launch adds so much.
    fn lds(&self, added: Option<u32>) -> Option<u32> {
        Some(self.facts.as_ref()?.group_segment_fixed_size.saturating_add(added?))
    }

    /// How it ran in the place of a kernel that was launched with such workgroups, with `added` bytes of LDS.
    fn replacing(&self, workgroup: [u32; 3], added: Option<u32>) -> LaunchSize {
        if let Some(triton) = &self.triton {
            return LaunchSize { workgroup: [triton.workgroup, 1, 1], lds: self.lds(Some(triton.lds)) };
        }
        let most = self.facts.as_ref().map_or(0, |facts| facts.max_flat_workgroup_size);
        match most > 0 && work_items(workgroup) > most {
            // Only builds of Triton's run in other workgroups than the application's, in the largest that they allow.
            true => LaunchSize { workgroup: [most, 1, 1], lds: None },
            false => LaunchSize { workgroup, lds: self.lds(added) },
        }
    }

    fn launches<'a>(&'a self, key: &'a KernelKey) -> impl Iterator<Item = BuildLaunches> + 'a {
        self.launches.iter().map(|(size, total)| BuildLaunches {
            candidate: key.build.candidate.clone(),
            workgroup: size.workgroup,
            lds: size.lds,
            calls: total.calls,
            total_ns: total.ns,
        })
    }
}

/// The dispatches of a part, counted by what ran and how.
fn launches_query(trace: &Connection, selected: &Selected, launch: &LaunchJoin) -> Result<String> {
    let has_replacements = has_table(trace, "ext_replacement")? && has_table(trace, "ext_candidate")?;
    let (columns, join, group) = match has_replacements {
        true => (
            format!(
                "R.id, R.replacement_kernel_id, coalesce({}, '{NOT_IN_FILE}'), {}",
                shown("C.path"),
                shown("C.sha256")
            ),
            "LEFT JOIN ext_replacement R ON R.id = O.id LEFT JOIN ext_candidate C ON C.id = R.candidate_id",
            "R.id IS NULL, R.replacement_kernel_id, R.candidate_id",
        ),
        false => ("NULL, 0, '', ''".to_string(), "", "1"),
    };
    let (code, name) = (launch.column("codeObject_id"), launch.column("kernelName_id"));
    let size = launch.columns(&["workgroupX", "workgroupY", "workgroupZ", "groupSegmentSize"]);
    Ok(format!(
        "SELECT {code}, {columns}, O.gpuId, {}, {size}, O.id >> 32, count(*), total(max(O.\"end\" - O.start, 0))
         FROM rocpd_op O {} LEFT JOIN rocpd_string N ON N.id = {name} {join}
         WHERE {code} IS NOT NULL AND O.opType_id IN (SELECT id FROM rocpd_string WHERE string IN ({KERNEL_TYPES})) AND {}
         GROUP BY {code}, {group}, O.gpuId, {name}, {size}, O.id >> 32",
        shown("N.string"),
        launch.join(),
        selected.op_condition(trace, "O.id")?
    ))
}

/// A size; 0 where it is none.
fn number(row: &Row<'_>, at: usize) -> rusqlite::Result<u32> {
    row.get::<_, i64>(at).map(|number| u32::try_from(number).unwrap_or(0))
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
        let number = |at: usize| number(row, at);
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
