//! The common part of the exports of rows: which rows of which trace, and where they go.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::notes::SharedNotes;
use rpd_postprocess::query::{Frame, Prepared, Questioned};
use rpd_postprocess::region::Region;

use super::destination::OutputArgs;
use super::timeline::note_impossible;
use crate::args::region::RegionArgs;
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
    #[command(flatten)]
    to: OutputArgs,
    #[command(flatten)]
    region: RegionArgs,
}

/// Where rows are written.
pub(super) struct RowOutput<'a> {
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
        write: impl FnOnce(Prepared<'_>, RowOutput<'_>) -> Result<u64>,
    ) -> Result<ExitCode> {
        if !gzip {
            self.to.refuse_gzip()?;
        }
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
        let is_file = self.to.path().is_some();
        let rows =
            self.to.write(&*notes, |out| write(query, RowOutput { out, is_file, frame, notes: &notes }))?;
        drop((trace, notes));
        if let Some(frame) = frame {
            let (trace, _) = rpd_schema::open_read(&self.file)?;
            note_impossible(&self.file.display().to_string(), frame.left_out(&trace)?);
        }
        if rows == 0 {
            note("the export has no rows");
        }
        Ok(ExitCode::SUCCESS)
    }
}
