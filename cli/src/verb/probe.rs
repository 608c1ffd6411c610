//! `rpd probe`: runs a command with instrumented kernels in the place of its own, or only timed, with the options of omniprobe.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_analyzers::handler_protocol::SOCKETS;
use rpd_analyzers::{Analyzers, BlockFilter};
use rpd_duration_log::LogFormat;

use super::record::{Probing, Record};
use crate::args::{replacement, value};
use crate::output::note::note;
use crate::record::handlers::Handlers;

/// Run a command with instrumented kernels, and record what they stream out
///
/// Without -i the command's own kernels run, and are timed. With -i, instrumented kernels run in the place of the command's own where the
/// kernel cache or the command itself has some; analyzers work on what they stream out while they run. The options are
/// omniprobe's. With --auto the command's own kernels are rewritten when they are loaded, and count their basic blocks.
#[derive(Args)]
#[command(
    override_usage = "rpd probe [OPTIONS] [--] COMMAND [ARGUMENT]...",
    after_help = "\
Exit status: as of `rpd record`.

Examples:
  rpd probe -i -a MemoryAnalysis -- ./app
  rpd probe --auto=lanes -k gemm -d 1/10 -o counted.rpd -- ./app
  rpd probe -i -c cache/ -k 'gemm.*' -d 1 -l report.txt -o probed.rpd -- python3 train.py"
)]
pub(crate) struct Probe {
    /// Run instrumented kernels
    #[arg(short, long)]
    instrumented: bool,
    /// Count how often each basic block of the command's own kernels is executed, without their source: `count` the wavefronts,
    /// `lanes` the lanes that are active too, `time` how long wavefronts stay. rpd blocks shows it, with the code objects, which are
    /// saved in OUTPUT.code/ (or where RPDT_SAVE_CODE says)
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "count",
        value_parser = ["count", "lanes", "time"],
        conflicts_with_all = ["instrumented", "analyzers", "cache", "filter_x", "filter_y", "filter_z"]
    )]
    auto: Option<String>,
    /// With --auto, count also dispatches whose workgroups may wait for each other, or for those of another kernel, and might no longer all run
    /// at once with the registers that counting takes: they may hang. Without this they run as they are
    #[arg(long, requires = "auto")]
    any_grid: bool,
    /// With --auto, a thread that loads code does not wait until its kernels are rewritten. Dispatches before that are not counted; the
    /// recorder says how many there were
    #[arg(long, requires = "auto")]
    no_wait: bool,
    /// Only kernels in whose demangled names this regular expression is found
    #[arg(short, long, value_name = "REGEX", value_parser = replacement::regex)]
    kernels: Option<String>,
    /// Which dispatches of a kernel are instrumented or counted: all of them, one in a hundred at random, the first, or with 1/N
    /// the last of each N
    #[arg(short, long, value_name = "all|random|1|1/N", value_parser = dispatches, default_value = "all")]
    dispatches: String,
    /// Decides which dispatches -d random takes
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Directory with .hsaco files whose kernels run in the place of the command's own: with -i the instrumented ones
    #[arg(short, long, visible_alias = "cache-location", value_name = "DIR", value_parser = replacement::directory)]
    cache: Option<PathBuf>,
    /// Where reports go, and without -i a line for each kernel: a file, or `console` for standard output [default: console; nowhere with
    /// --auto]
    #[arg(short, long, visible_alias = "log-location", value_name = "LOG")]
    log: Option<PathBuf>,
    /// How reports and lines are written: for people and with commas, or as JSON
    #[arg(short = 't', long, value_name = "FORMAT", value_parser = value::log_format(), default_value = "csv")]
    log_format: LogFormat,
    /// What is made of the messages: MessageLogger, Heatmap, MemoryAnalysis, TimeInterval, BasicBlockAnalysis, one of omniprobe's
    /// libraries, or a handler of your own: a library with the functions of rpd_handler.h or a file of Python. May be given several
    /// times [default: all but MessageLogger]
    #[arg(short, long, value_name = "ANALYZER", value_delimiter = ',', num_args = 1.., value_parser = analyzer)]
    analyzers: Vec<String>,
    /// Print the variables that the command gets
    #[arg(short, long)]
    env_dump: bool,
    /// Print more of what the recorder does
    #[arg(short, long)]
    verbose: bool,
    /// Only messages of workgroups with that x, or with an x from N up to, not including, M
    #[arg(long, value_name = "N|N:M", allow_hyphen_values = true, value_parser = workgroups)]
    filter_x: Option<String>,
    /// The same for y
    #[arg(long, value_name = "N|N:M", allow_hyphen_values = true, value_parser = workgroups)]
    filter_y: Option<String>,
    /// The same for z
    #[arg(long, value_name = "N|N:M", allow_hyphen_values = true, value_parser = workgroups)]
    filter_z: Option<String>,
    /// Only kernels of the libraries that this JSON file selects, as for `rpd record`
    #[arg(long, value_name = "FILE", value_parser = replacement::library_filter())]
    library_filter: Option<PathBuf>,
    /// The file to record into [default: what RPDT_FILENAME says, otherwise trace.rpd]
    #[arg(short, long, value_name = "FILE", value_parser = value::output())]
    output: Option<PathBuf>,
    /// Add to the recordings and the log that are already there
    #[arg(long, conflicts_with = "force")]
    append: bool,
    /// Replace recordings and log that are already there
    #[arg(long, action = clap::ArgAction::Count)]
    force: u8,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The name of an analyzer, or a file.
fn analyzer(name: &str) -> Result<String, String> {
    let (_, wrong) = Analyzers::named(name);
    let looks_like_a_file = name.contains('/') || name.ends_with(".so") || name.ends_with(".py");
    match wrong.is_empty() || is_handler(name) {
        true => Ok(name.to_string()),
        false if looks_like_a_file => {
            Err(format!("there is no such file; without one, {}", wrong.join("; ")))
        }
        false => Err(wrong.join("; ")),
    }
}

/// Whether it is a handler of the user's own.
fn is_handler(name: &str) -> bool {
    !Analyzers::named(name).1.is_empty() && Path::new(name).is_file()
}

/// Which dispatches.
fn dispatches(text: &str) -> Result<String, String> {
    let one_in = || text.strip_prefix("1/")?.parse::<u64>().ok().filter(|count| *count > 0);
    match ["all", "random", "1"].contains(&text) || one_in().is_some() {
        true => Ok(text.to_string()),
        false => Err("it is all, random, 1 or 1/N".into()),
    }
}

/// A range of workgroups in one dimension.
fn workgroups(text: &str) -> Result<String, String> {
    BlockFilter::default().set(0, text).map(|()| text.to_string())
}

impl Probe {
    /// Runs the command as `rpd record` does.
    ///
    /// # Errors
    /// When recording cannot be set up. The command has not run then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let filters = [
            ("DH_COMMS_GROUP_FILTER_X", self.filter_x),
            ("DH_COMMS_GROUP_FILTER_Y", self.filter_y),
            ("DH_COMMS_GROUP_FILTER_Z", self.filter_z),
        ];
        let filters = filters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let mut variables: Vec<(&str, OsString)> =
            filters.map(|(name, value)| (name, value.into())).collect();
        let has_choices = !variables.is_empty() || !self.analyzers.is_empty() || self.dispatches != "all";
        if has_choices && !self.instrumented && self.auto.is_none() {
            note("without -i or --auto no kernel is instrumented: -a, -d and the filters change nothing");
        }
        variables.push(("LOGDUR_INSTRUMENTED", if self.instrumented { "true" } else { "false" }.into()));
        variables.push(("LOGDUR_DISPATCHES", self.dispatches.into()));
        let (own, built_in): (Vec<String>, Vec<String>) =
            self.analyzers.into_iter().partition(|name| is_handler(name));
        if !built_in.is_empty() {
            variables.push(("LOGDUR_HANDLERS", built_in.join(",").into()));
        }
        let own: Vec<PathBuf> = own.into_iter().filter(|_| self.instrumented).map(PathBuf::from).collect();
        let handlers = (!own.is_empty()).then(|| Handlers::new(own)).transpose()?;
        if let Some(handlers) = &handlers {
            variables.push((SOCKETS, handlers.sockets()));
        }
        let log = self.log.or_else(|| self.auto.is_none().then(|| "console".into()));
        let counts_blocks = self.auto.is_some();
        let saves_code = counts_blocks && std::env::var_os("RPDT_SAVE_CODE").is_none();
        if let Some(auto) = self.auto {
            let how = [(self.any_grid, ",any-grid"), (self.no_wait, ",no-wait")];
            let how: String =
                how.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, word)| word).collect();
            variables.push(("RPDT_COUNT_BLOCKS", format!("{auto}{how}").into()));
        }
        if self.verbose {
            variables.push(("RPDT_LOG", "1".into()));
        }
        let record = Record {
            output: self.output,
            save_code: saves_code.then(PathBuf::new),
            append: self.append,
            force: self.force,
            kernel_cache: self.cache,
            kernels: self.kernels,
            library_filter: self.library_filter,
            seed: self.seed,
            log_format: log.is_some().then_some(self.log_format),
            log,
            command: self.command,
            probing: Probing {
                instruments: self.instrumented,
                counts_blocks,
                variables,
                shows_variables: self.env_dump,
                handlers,
            },
            ..Record::default()
        };
        record.run()
    }
}
