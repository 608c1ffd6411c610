//! `rpd export rocprofv3`, `rpd export rocprofv3-csv`: the JSON and the tables of AMD's rocprofv3.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use rpd_postprocess::export::{Exported, rocprofv3};
use rpd_postprocess::region::Region;
use rpd_postprocess::{text, trace};

use super::timeline::{TimelineArgs, tell};
use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output::file::OutputFile;
use crate::output::note::note;
use crate::output::progress::notes;

/// Write the JSON of AMD's rocprofv3, for TraceLens
///
/// The file has kernels, copies, calls and markers as rocprofv3 --output-format json has them. Such a file is of one process: where a trace
/// has several, name a session or a process.
#[derive(Args)]
#[command(after_help = format!("\
Keys of rocprofiler-sdk-tool[0]:
  metadata         pid, hostname, command: of the first process; init_time, fini_time: first begin and last end, ns
  agents           the CPUs are 0, GPU n is n + 1
  kernel_symbols   kernels by number, with the full name as each of the four
  strings          functions by kind and number; texts of markers by correlation id
  buffer_records   kernel_dispatch: kernels, fills and other operations, grid_size in work-items, dispatch_id: id in rocpd_op;
                   memory_copy: copies, bytes; hip_api: calls, of CUDA and others too; hsa_api: calls of HSA; marker_api:
                   markers. start_timestamp, end_timestamp: ns on the trace's clock; correlation_id: the call's id in
                   rocpd_api, the same of call and operation; thread_id: of the call; stream_id: 0 where it is not known
What the format asks for and the trace does not have is 0. Barriers are left out: the format has no record for them.

{REGION_HELP}

Example:
  rpd export rocprofv3 trace.rpd -o trace_results.json
  rpd export rocprofv3 all.rpd -o rank3_results.json --rank 3"))]
pub(super) struct Rocprofv3 {
    #[command(flatten)]
    timeline: TimelineArgs,
}

impl Rocprofv3 {
    /// Writes the records to standard output or to the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        let exported = self
            .timeline
            .run(|source, out| rocprofv3::export(source.trace, source.region, source.notes, out))?;
        note_processes(exported);
        Ok(ExitCode::SUCCESS)
    }
}

fn note_processes(exported: Exported) {
    if exported.processes > 1 {
        note(format_args!(
            "the export has {} processes, and the format knows one: name one with --session, --rank or --pid",
            exported.processes
        ));
    }
}

/// Write the tables of AMD's rocprofv3 as comma-separated values
///
/// The files are those of rocprofv3 --output-format csv --stats, each with a table: NAME_kernel_trace.csv and so on. A table that would have no
/// rows has no file. Such files are of one process: where a trace has several, name a session or a process.
#[derive(Args)]
#[command(after_help = format!("\
Files:
  agent_info         the CPUs are agent 0, GPU n is n + 1
  kernel_trace       kernels, fills and other operations; Dispatch_Id: id in rocpd_op, grids in work-items, LDS in whole pieces of 512 bytes
  memory_copy_trace  copies, with their direction
  hip_api_trace      calls of HIP, of CUDA and others too; those of libraries but RCCL are left out
  hsa_api_trace, rccl_api_trace, marker_api_trace
                     calls of HSA, of RCCL or NCCL, and markers with their texts
  kernel_stats, memory_copy_stats, hip_api_stats, hsa_api_stats, rccl_api_stats, marker_api_stats
                     by name: Calls, and of their durations, ns: sum, average, share of all, least, most, standard deviation
  domain_stats       the same of each table
Times are ns on the trace's clock. Correlation_Id is the call's id in rocpd_api, the same of call and operation. What the format asks for and
the trace does not have is 0, or empty. Memory allocations have no table. Barriers are left out.

{REGION_HELP}

Example:
  rpd export rocprofv3-csv trace.rpd -o run
  rpd export rocprofv3-csv trace.rpd -o run --tables kernel_trace,kernel_stats"))]
pub(super) struct Rocprofv3Csv {
    /// The trace
    file: PathBuf,
    /// How the names of the files begin: NAME_kernel_trace.csv
    #[arg(short, long, value_name = "NAME")]
    output: PathBuf,
    /// Replace files that exist; never a trace. The file of a table that has no rows stays
    #[arg(long)]
    force: bool,
    /// Only these tables
    #[arg(long, value_name = "TABLES", value_delimiter = ',', value_parser = rocprofv3::TABLES)]
    tables: Vec<String>,
    #[command(flatten)]
    region: RegionArgs,
}

impl Rocprofv3Csv {
    /// Writes the files.
    ///
    /// # Errors
    /// When the trace cannot be read, a file is there already, or one cannot be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        let wanted: Vec<&str> = match self.tables.as_slice() {
            [] => rocprofv3::TABLES.to_vec(),
            tables => tables.iter().map(String::as_str).collect(),
        };
        if self.output.file_name().is_none() {
            bail!(
                "{}: names of files cannot begin so; give -o such as run or directory/run",
                text::escape_path(&self.output)
            );
        }
        for table in &wanted {
            let file = rocprofv3::table_file(&self.output, table);
            if rpd_schema::identify(&file).is_ok() {
                bail!("{} is a trace, which stays: name other files with -o", text::escape_path(&file));
            }
            if file.is_file() && !self.force {
                bail!(
                    "{}: the file exists already; name others with -o, or replace what is there with --force",
                    text::escape_path(&file)
                );
            }
        }
        let notes = notes();
        let name = text::escape_path(&self.file);
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let region: Region = self.region.into();
        let (exported, tables) = rocprofv3::tables((&trace, version), &region, &*notes, &wanted)
            .with_context(|| format!("cannot export {name}"))?;
        let written: Vec<&str> = tables.iter().map(|table| table.name).collect();
        for table in tables {
            let path = rocprofv3::table_file(&self.output, table.name);
            let cannot = || format!("cannot write {}", text::escape_path(&path));
            let mut file = OutputFile::at(&path, &*notes).with_context(cannot)?;
            table.write(file.file()).with_context(cannot)?;
            file.finish().with_context(cannot)?;
        }
        drop(notes);
        tell(&name, region.is_everything(), exported);
        for table in wanted.into_iter().filter(|table| !written.contains(table)) {
            let file = rocprofv3::table_file(&self.output, table);
            if file.is_file() {
                note(format_args!(
                    "{} stays as it was: this export has no rows for it",
                    text::escape_path(&file)
                ));
            }
        }
        note_processes(exported);
        Ok(ExitCode::SUCCESS)
    }
}
