//! What the exports of rows have in common: which rows of which trace, and where they go.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use rpd_postprocess::notes::SharedNotes;
use rpd_postprocess::query::{Frame, Prepared, Questioned};
use rpd_postprocess::region::Region;
use rpd_postprocess::text::escape;

use crate::args::region::RegionArgs;
use crate::output::file::OutputFile;
use crate::output::note::note;
use crate::output::progress::notes;

/// What the rows are, for the help of a verb.
pub(super) const ROWS_HELP: &str = "\
Rows:
  kernels, copies  operations of a GPU that ran; apis, markers: what threads did, all in order of time
           name          kernel, function, text of the marker, or kind of the copy; args: a call's arguments
           start_ns, end_ns, duration_ns  on the trace's clock; start_s: seconds from its first call on
           gpu, queue, stream  where it ran; stream as the launch has it
           session, rank, pid, tid  who did or launched it; rank where the launcher said it
           launched_ns   when the call began that launched it; api_id is its id in rocpd_api
           grid_x, ..., workgroup_x, ...  workgroups; work-items of one
           lds_bytes, scratch_bytes, bytes  LDS of a workgroup, scratch of a work-item; what was copied
           id            in rocpd_op or rocpd_api
  TABLE, VIEW      all rows of one of the trace or of its format: rpd sql FILE 'pragma table_list' lists them
  QUERY            the answer to a question in SQL, or to one that rpd sql --list shows; it may only read
Rows with impossible times or places are in no kernels, copies, apis, markers; rpd check lists them.
Names are tried in this order: table or view, then kernels to markers, then ready-made queries.
Of all of them a part can be named, as below: tables and views have calls and operations of it alone then, and
what refers to such; texts, metadata and sensors stay whole.";

/// Which rows, and where they go.
#[derive(Args)]
pub(super) struct Asked {
    /// The trace
    file: PathBuf,
    /// kernels, copies, apis, markers, a table, a view, or a query
    #[arg(value_name = "ROWS|QUERY", allow_hyphen_values = true)]
    rows: String,
    /// Write to this file [default: standard output, also for -]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace OUT if it exists; never a trace
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// Where rows are written.
pub(super) struct Destination<'a> {
    pub(super) out: &'a mut (dyn Write + Send),
    /// Whether it is a file that this makes.
    pub(super) is_file: bool,
    pub(super) frame: Option<Frame>,
    pub(super) notes: &'a SharedNotes,
}

impl Asked {
    /// Lets `write` write the rows and say how many they are. `gzip` is whether a name that ends in .gz means compression.
    ///
    /// # Errors
    /// When the trace cannot be read, the query is wrong or not allowed, or the output cannot be written.
    pub(super) fn run(
        self,
        gzip: bool,
        write: impl FnOnce(Prepared<'_>, Destination<'_>) -> Result<u64>,
    ) -> Result<ExitCode> {
        let notes = notes();
        let region = Region::from(self.region);
        let mut trace = Questioned::open(&self.file, None, None, &notes)?;
        let selected = match region.is_everything() {
            true => None,
            false => {
                let (trace, version) = rpd_schema::open_read(&self.file)?;
                Some(region.select(&trace, version)?)
            }
        };
        let name = self.rows.trim();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
        let (statement, frame) = match (is_name, selected) {
            (true, selected) => trace.rows_in(name, selected)?,
            (false, selected) => {
                selected.map_or(Ok(()), |selected| trace.restrict(selected))?;
                (self.rows.clone(), None)
            }
        };
        notes.show("running the query");
        let query = trace.prepare(&statement)?;
        let rows = match self.output.as_deref().filter(|path| *path != Path::new("-")) {
            None => {
                let mut out = io::stdout();
                let destination = Destination { out: &mut out, is_file: false, frame, notes: &notes };
                explained(write(query, destination), "standard output")?
            }
            Some(path) => to_file(path, (gzip, self.force), &notes, |out| {
                write(query, Destination { out, is_file: true, frame, notes: &notes })
            })?,
        };
        drop((trace, notes));
        if rows == 0 {
            note("the export has no rows");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn to_file(
    path: &Path,
    (gzip, force): (bool, bool),
    notes: &SharedNotes,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<u64>,
) -> Result<u64> {
    let shown = escape(&path.to_string_lossy()).into_owned();
    let is_packed = path.extension().is_some_and(|extension| extension == "gz");
    if is_packed && !gzip {
        bail!("{shown}: this format is not compressed by gzip; name a file that does not end in .gz");
    }
    if rpd_schema::identify(path).is_ok() {
        bail!("{shown} is a trace, which stays: name another file");
    }
    if fs::metadata(path).is_ok_and(|there| there.is_file()) && !force {
        bail!("{shown}: the file exists already; name another, or replace it with --force");
    }
    let cannot = || format!("cannot write {shown}");
    let mut destination = OutputFile::at(path, &**notes).with_context(cannot)?;
    let rows = if is_packed {
        let mut packed = GzEncoder::new(destination.file(), Compression::fast());
        let rows = explained(write(&mut packed), &shown)?;
        packed.finish().with_context(cannot)?;
        rows
    } else {
        explained(write(destination.file()), &shown)?
    };
    destination.finish().with_context(cannot)?;
    Ok(rows)
}

/// Says what could not be written.
fn explained(written: Result<u64>, output: &str) -> Result<u64> {
    written.map_err(|error| match error.is::<io::Error>() {
        true => error.context(format!("cannot write to {output}")),
        false => error,
    })
}
