//! The part of madengine's tools that one recording gives: the libraries and sensors that it must record, and the files that it is
//! written out to afterwards, where the tools would have put theirs.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rpd_postprocess::export::rocprofv3;
use rpd_postprocess::text;

use super::configuration::{Tool, ToolConfiguration};

/// What stands in for a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// The trace itself, and Chrome's JSON of it.
    Trace,
    /// The same as rocm_trace_lite has them.
    TraceLite,
    /// Records as rocprofv3 writes them in its format json, and these of its tables beside them.
    Rocprofv3 { tables: &'static [&'static str] },
    /// rocprofv3's tables alone, whose names begin so.
    Tables { begin: &'static str, tables: &'static [&'static str] },
    /// Perfetto's protobuf.
    Perfetto,
    /// Calls of this library, and what library_trace.csv has of them: of MIOpen convolutions, of RCCL nothing.
    Library { library: &'static str, rows: &'static [&'static str] },
    /// A look at the installation before the run.
    TheRock,
    /// What a sensor reads.
    Sensor { sensor: &'static str, prefix: &'static str },
}

use Stands::*;

const COUNTERS: &str = "hardware counters are not recorded";
const A_TEST: &str = "it is a test of madengine's own";

/// rocprofv3's tables: of --hip-trace, --runtime-trace, --sys-trace, and with --stats.
const OF_HIP: &[&str] = &["agent_info", "hip_api_trace"];
const OF_RUNTIME: &[&str] = &[
    "agent_info",
    "kernel_trace",
    "memory_copy_trace",
    "hip_api_trace",
    "rccl_api_trace",
    "marker_api_trace",
];
const OF_SYSTEM: &[&str] = &[
    "agent_info",
    "kernel_trace",
    "memory_copy_trace",
    "hip_api_trace",
    "hsa_api_trace",
    "rccl_api_trace",
    "marker_api_trace",
];
const WITH_STATISTICS: &[&str] = &[
    "agent_info",
    "kernel_trace",
    "kernel_stats",
    "memory_copy_trace",
    "memory_copy_stats",
    "hip_api_trace",
    "hip_api_stats",
    "rccl_api_trace",
    "rccl_api_stats",
    "marker_api_trace",
    "marker_api_stats",
    "domain_stats",
];

/// The tools of madengine 2.1.1 (`scripts/common/tools.json`), and why a recording cannot stand in for some.
const TOOLS: [(&str, Result<Stands, &str>); 28] = [
    ("rpd", Ok(Trace)),
    ("rocprof", Ok(Rocprofv3 { tables: OF_RUNTIME })),
    ("rocprof_hip_only", Ok(Rocprofv3 { tables: OF_HIP })),
    ("rocprof_sys", Ok(Rocprofv3 { tables: OF_SYSTEM })),
    ("rocprofv3", Ok(Rocprofv3 { tables: OF_RUNTIME })),
    ("rocprofv3_lightweight", Ok(Rocprofv3 { tables: &[] })),
    ("rocprofv3_api_overhead", Ok(Rocprofv3 { tables: &[] })),
    ("rocprofv3_communication", Ok(Perfetto)),
    ("rocprofv3_perfetto", Ok(Perfetto)),
    ("rocprofv3_compute", Err(COUNTERS)),
    ("rocprofv3_memory", Err(COUNTERS)),
    ("rocprofv3_full", Err(COUNTERS)),
    ("rocprofv3_pc_sampling", Err("program counters are not sampled")),
    ("rocprofv3_agent", Ok(Tables { begin: "rocprof_output/rocprofv3_output", tables: WITH_STATISTICS })),
    // As earlier versions call the next one.
    ("rocprofv3_agent_full", Err(COUNTERS)),
    ("rocprofv3_agent_counter", Err(COUNTERS)),
    ("rocm_trace_lite", Ok(TraceLite)),
    ("rocm_trace_lite_default", Ok(TraceLite)),
    ("rocblas_trace", Ok(Library { library: "rocblas", rows: &["rocblas", "rocblas_function"] })),
    ("hipblaslt_trace", Ok(Library { library: "hipblaslt", rows: &["hipblaslt"] })),
    ("miopen_trace", Ok(Library { library: "miopen", rows: &["miopen"] })),
    ("tensile_trace", Ok(Library { library: "rocblas", rows: &["tensile"] })),
    ("rccl_trace", Ok(Library { library: "rccl", rows: &[] })),
    ("gpu_info_power_profiler", Ok(Sensor { sensor: "power", prefix: "POWER_" })),
    ("gpu_info_vram_profiler", Ok(Sensor { sensor: "vram", prefix: "VRAM_" })),
    ("therock_check", Ok(TheRock)),
    ("test_tools_A", Err(A_TEST)),
    ("test_tools_B", Err(A_TEST)),
];

/// In the name of a file: a process of the trace.
const PID: &str = "{pid}";

/// A file that the recording is written out to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// A copy of the trace.
    Copy(PathBuf),
    /// What `rpd export` with these arguments in front of the trace makes of it.
    Export(Vec<String>, PathBuf),
    /// Tables of rocprofv3, each a file whose name begins so.
    Tables(&'static [&'static str], PathBuf),
}

impl Output {
    /// Where it goes, or how the names of its files begin.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Output::Copy(path) | Output::Export(_, path) | Output::Tables(_, path) => path,
        }
    }

    /// Whether its name has the number of a process.
    pub(crate) fn is_of_process(&self) -> bool {
        self.path().to_string_lossy().contains(PID)
    }

    /// The same of the process with that number.
    pub(crate) fn of_process(&self, pid: &str) -> Output {
        let named = |path: &Path| PathBuf::from(path.to_string_lossy().replace(PID, pid));
        match self {
            Output::Copy(path) => Output::Copy(path.clone()),
            Output::Export(arguments, path) => Output::Export(arguments.clone(), named(path)),
            Output::Tables(tables, path) => Output::Tables(tables, named(path)),
        }
    }

    /// The files that it may become.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match self {
            Output::Copy(path) | Output::Export(_, path) => vec![path.clone()],
            Output::Tables(tables, begin) => {
                tables.iter().map(|table| rocprofv3::table_file(begin, table)).collect()
            }
        }
    }
}

/// What the recording needs, and what comes of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolPlan {
    /// Where the trace goes, where nobody says otherwise.
    pub(crate) trace: Option<PathBuf>,
    /// As `--libraries` has them; empty where none are needed.
    pub(crate) libraries: String,
    /// As `--monitor` has them; empty where none are needed.
    pub(crate) sensors: String,
    /// The files.
    pub(crate) outputs: Vec<Output>,
    /// Remarks for the user.
    pub(crate) notes: Vec<String>,
    /// Whether the command may run only where ROCm comes from TheRock.
    pub(crate) wants_therock: bool,
}

/// The names of all tools, in order.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|(name, _)| *name)
}

/// Whether it is one of madengine's tools.
pub(crate) fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// The names of those that a recording can stand in for, for `--help`.
pub(crate) fn recorded() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().filter(|(_, stands)| stands.is_ok()).map(|(name, _)| *name)
}

impl ToolPlan {
    /// What the tools of the configuration ask for.
    ///
    /// # Errors
    /// When a recording cannot stand in for one of them, or a setting is wrong.
    pub(crate) fn of(configuration: &ToolConfiguration) -> Result<ToolPlan> {
        let mut plan = ToolPlan::default();
        let (mut libraries, mut rows, mut sensors) = (Vec::new(), Vec::new(), Vec::new());
        let mut period: Option<Duration> = None;
        let is_named = |file: &&String| !file.is_empty();
        let mut library_file = PathBuf::from("library_trace.csv");
        for tool in &configuration.tools {
            let known = TOOLS.iter().find(|(name, _)| *name == tool.name).map(|(_, stands)| *stands);
            let stands = known.unwrap_or(Err("rpd does not know what it does")).map_err(|why| {
                anyhow!(
                    "{}: a recording cannot stand in for it ({why}); --exec runs tools as configured",
                    tool.name
                )
            })?;
            if tool.has_own_command {
                plan.notes.push(format!("{}: its cmd is not run, rpd records in its place", tool.name));
            }
            match stands {
                Trace => {
                    plan.trace.get_or_insert_with(|| "rpd_output/trace.rpd".into());
                    plan.outputs.push(Output::Copy("rpd_output/trace.rpd".into()));
                    plan.export(&["chrome"], "rpd_output/trace.json");
                }
                TraceLite => {
                    let copy = Output::Copy("rocm_trace_lite_output/trace.db".into());
                    if !plan.outputs.contains(&copy) {
                        plan.outputs.push(copy);
                        plan.export(&["chrome"], "rocm_trace_lite_output/trace.json.gz");
                    }
                }
                Rocprofv3 { tables } => {
                    plan.export(&["rocprofv3"], &rocprof_output("_results.json")?);
                    if !tables.is_empty() {
                        plan.tables(tables, &rocprof_output("")?);
                    }
                }
                TheRock => plan.wants_therock = true,
                Tables { begin, tables } => plan.tables(tables, begin),
                Perfetto => plan.export(&["perfetto"], &rocprof_output("_results.pftrace")?),
                Library { library, rows: of } => {
                    libraries.push(library);
                    if of.is_empty() {
                        plan.notes.push(format!(
                            "{}: library_trace.csv has no rows of {library}; rpd libraries TRACE shows its calls",
                            tool.name
                        ));
                    }
                    rows.extend_from_slice(of);
                    if let Some(file) = tool.environment.get("OUTPUT_FILE").filter(is_named) {
                        library_file = file.into();
                    }
                }
                Sensor { sensor, prefix } => {
                    let settings = Sampling::of(tool, prefix, sensor, configuration)?;
                    sensors.push(settings.sensor);
                    period = Some(period.map_or(settings.every, |period| period.min(settings.every)));
                    let mut arguments = vec!["gpu-info".to_string(), settings.sensor.to_string()];
                    arguments.push(format!("--every={}ns", settings.every.as_nanos()));
                    if !settings.gpus.is_empty() {
                        arguments.push(format!("--gpu={}", settings.gpus));
                    }
                    let file = settings.file.unwrap_or_else(|| format!("{}_output.csv", tool.name).into());
                    plan.outputs.push(Output::Export(arguments, file));
                }
            }
        }
        libraries.sort_unstable();
        libraries.dedup();
        plan.libraries = libraries.join(",");
        if let Some(file) = configuration.overriding.get("OUTPUT_FILE").filter(is_named) {
            library_file = file.into();
        }
        if !rows.is_empty() {
            let of = format!("--libraries={}", rows.join(","));
            let variable =
                |option, name| configuration.environment.get(name).map(|value| format!("--{option}={value}"));
            let job = [variable("jobid", "JENKINS_BUILD_NUMBER"), variable("model", "MAD_MODEL_NAME")];
            let arguments = ["library-trace".to_string(), of].into_iter().chain(job.into_iter().flatten());
            plan.outputs.push(Output::Export(arguments.collect(), library_file));
        }
        plan.refuse_equal_files()?;
        sensors.sort_unstable();
        sensors.dedup();
        plan.sensors = sensors.join(",");
        if let Some(period) = period {
            // The recorder's own distances are shorter than what is written: nothing between two rows is missed.
            let sampled = period.clamp(Duration::from_millis(1), Duration::from_millis(10));
            plan.sensors.push_str(&format!(":{}ns", sampled.as_nanos()));
        }
        Ok(plan)
    }

    fn export(&mut self, arguments: &[&str], path: &str) {
        let export = Output::Export(arguments.iter().map(ToString::to_string).collect(), path.into());
        if !self.outputs.contains(&export) {
            self.outputs.push(export);
        }
    }

    /// Of two tools that write one file, the second would replace what the first has written.
    fn refuse_equal_files(&self) -> Result<()> {
        let mut places = HashSet::new();
        for file in self.outputs.iter().flat_map(Output::files) {
            if !places.insert(place(&file)) {
                bail!(
                    "{}: two tools would write this file; give one of them another OUTPUT_FILE",
                    text::escape_path(file)
                );
            }
        }
        Ok(())
    }

    /// Tools whose tables have the same files get the longest of their lists, which has the others in it.
    fn tables(&mut self, tables: &'static [&'static str], begin: &str) {
        let mut longest = tables;
        self.outputs.retain(|output| match output {
            Output::Tables(others, path) if path.as_os_str() == begin => {
                if others.len() > longest.len() {
                    longest = others;
                }
                false
            }
            _ => true,
        });
        self.outputs.push(Output::Tables(longest, begin.into()));
    }
}

/// Where a file is, however its path is written: without `.` in it.
pub(crate) fn place(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf())
}

/// Where rocprofv3 puts its results: by host and process.
fn rocprof_output(end: &str) -> Result<String> {
    let host =
        fs::read_to_string("/proc/sys/kernel/hostname").context("cannot read the name of this host")?;
    Ok(format!("rocprof_output/{}/{PID}{end}", host.trim()))
}

/// How gpu_info_profiler.py is asked to sample.
struct Sampling {
    sensor: &'static str,
    every: Duration,
    /// With commas between them; empty for all.
    gpus: String,
    /// Where the configuration says that the file goes.
    file: Option<PathBuf>,
}

impl Sampling {
    /// By the names with the prefix, of which there is one value for all tools; otherwise by those without it that earlier versions
    /// and the documentation have, of which each tool has its own.
    fn of(
        tool: &Tool,
        prefix: &str,
        sensor: &'static str,
        configuration: &ToolConfiguration,
    ) -> Result<Sampling> {
        let setting = |name: &str| {
            let prefixed = configuration.environment.get(&format!("{prefix}{name}"));
            let own = || configuration.overriding.get(name).or_else(|| tool.environment.get(name));
            prefixed.or_else(own).map(|value| value.trim()).filter(|value| !value.is_empty())
        };
        let wrong =
            |name: &str, value: &str, wanted: &str| anyhow!("{}: {name}={value} is not {wanted}", tool.name);
        let rate = setting("SAMPLING_RATE").unwrap_or("0.1");
        let seconds = rate.parse::<f64>().ok().filter(|seconds| (0.001..=3600.0).contains(seconds));
        let seconds =
            seconds.ok_or_else(|| wrong("SAMPLING_RATE", rate, "a number of seconds from 0.001 to 3600"))?;
        let device = setting("DEVICE").unwrap_or("all");
        let gpus = match device {
            "all" => String::new(),
            list if list.split(',').all(|gpu| gpu.trim().parse::<u32>().is_ok()) => list.replace(' ', ""),
            other => return Err(wrong("DEVICE", other, "all, or numbers of GPUs with commas between them")),
        };
        let sensor = match setting("MODE") {
            None => sensor,
            Some("power") => "power",
            Some("vram") => "vram",
            Some(other) => return Err(wrong("MODE", other, "power or vram")),
        };
        let dual = setting("DUAL_GCD").or_else(|| setting("DUAL-GCD")).unwrap_or("false");
        if dual.eq_ignore_ascii_case("true") {
            bail!(
                "{}: DUAL_GCD runs the command twice at once, which a recording does not; start both in a script of your own",
                tool.name
            );
        }
        // OUTPUT_FILE of docker_env_vars names the file of the libraries, not of a sensor.
        let prefixed = configuration.environment.get(&format!("{prefix}OUTPUT_FILE"));
        let file = prefixed.or_else(|| tool.environment.get("OUTPUT_FILE")).filter(|file| !file.is_empty());
        Ok(Sampling { sensor, every: Duration::from_secs_f64(seconds), gpus, file: file.map(PathBuf::from) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::configuration::Definitions;
    use super::*;

    fn plan(given: &str) -> Result<ToolPlan> {
        ToolPlan::of(&ToolConfiguration::read(given, &Definitions::default(), is_known)?)
    }

    #[test]
    fn tools_are_stacked_in_one_recording() {
        let plan =
            plan("rocblas_trace,gpu_info_power_profiler,tensile_trace,gpu_info_vram_profiler,rpd").unwrap();
        assert_eq!(plan.libraries, "rocblas");
        assert_eq!(plan.sensors, "power,vram:10000000ns");
        assert_eq!(plan.trace.as_deref(), Some(Path::new("rpd_output/trace.rpd")));
        let files: Vec<_> = plan.outputs.iter().map(|output| output.path().to_str().unwrap()).collect();
        assert_eq!(
            files,
            [
                "gpu_info_power_profiler_output.csv",
                "gpu_info_vram_profiler_output.csv",
                "rpd_output/trace.rpd",
                "rpd_output/trace.json",
                "library_trace.csv"
            ]
        );
        let Output::Export(arguments, _) = &plan.outputs[4] else { panic!("{:?}", plan.outputs) };
        assert_eq!(arguments, &["library-trace", "--libraries=rocblas,rocblas_function,tensile"]);
    }

    /// The command sees these variables, but rpd's own environment has none of them.
    #[test]
    fn what_the_configuration_says_of_the_job_is_in_the_file() {
        let given = r#"{"tools": [{"name": "miopen_trace", "env_vars": {"MAD_MODEL_NAME": "of the tool"}}],
            "docker_env_vars": {"JENKINS_BUILD_NUMBER": "77"}}"#;
        let outputs = plan(given).unwrap().outputs;
        let [Output::Export(arguments, _)] = &*outputs else { panic!("{outputs:?}") };
        assert_eq!(arguments, &["library-trace", "--libraries=miopen", "--jobid=77", "--model=of the tool"]);
    }

    #[test]
    fn settings_have_names_of_all_versions() {
        let arguments = |variables: &str| {
            let given = format!(r#"[{{"name": "gpu_info_power_profiler", "env_vars": {variables}}}]"#);
            plan(&given).map(|plan| match &plan.outputs[0] {
                Output::Export(arguments, _) => arguments.join(" "),
                Output::Copy(path) | Output::Tables(_, path) => path.display().to_string(),
            })
        };
        assert_eq!(arguments("{}").unwrap(), "gpu-info power --every=100000000ns");
        assert_eq!(
            arguments(r#"{"DEVICE": "0, 1", "SAMPLING_RATE": 0.5, "DUAL-GCD": "false"}"#).unwrap(),
            "gpu-info power --every=500000000ns --gpu=0,1"
        );
        assert_eq!(
            arguments(r#"{"POWER_MODE": "vram", "POWER_SAMPLING_RATE": "1"}"#).unwrap(),
            "gpu-info vram --every=1000000000ns"
        );
        for (variables, file) in [
            (r#"{"POWER_OUTPUT_FILE": "power.csv"}"#, "power.csv"),
            (r#"{"OUTPUT_FILE": "of/the tool.csv"}"#, "of/the tool.csv"),
            (r#"{"VRAM_OUTPUT_FILE": "other.csv"}"#, "gpu_info_power_profiler_output.csv"),
        ] {
            let given = format!(r#"[{{"name": "gpu_info_power_profiler", "env_vars": {variables}}}]"#);
            assert_eq!(plan(&given).unwrap().outputs[0].path(), Path::new(file), "{variables}");
        }
        // A sensor's file is its own, whichever tool comes first.
        for given in [
            r#"[{"name": "rocblas_trace"}, {"name": "gpu_info_power_profiler", "env_vars": {"OUTPUT_FILE": "power.csv"}}]"#,
            r#"[{"name": "gpu_info_power_profiler", "env_vars": {"OUTPUT_FILE": "power.csv"}}, {"name": "rocblas_trace"}]"#,
        ] {
            let outputs = plan(given).unwrap().outputs;
            let files: Vec<&Path> = outputs.iter().map(Output::path).collect();
            assert_eq!(files, [Path::new("power.csv"), Path::new("library_trace.csv")]);
        }
        let one = r#"[{"name": "gpu_info_power_profiler", "env_vars": {"POWER_OUTPUT_FILE": "x.csv"}},
            {"name": "gpu_info_vram_profiler", "env_vars": {"VRAM_OUTPUT_FILE": "x.csv"}}]"#;
        let said = plan(one).unwrap_err().to_string();
        assert!(said.starts_with("x.csv: two tools would write this file"), "{said}");
        for wrong in [
            r#"{"DEVICE": "x"}"#,
            r#"{"SAMPLING_RATE": "-1"}"#,
            r#"{"MODE": "heat"}"#,
            r#"{"DUAL-GCD": "true"}"#,
        ] {
            assert!(arguments(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_variable_of_a_later_tool_wins_and_that_of_docker_over_all() {
        let outputs = |given: &str| -> Vec<String> {
            let outputs = plan(given).unwrap().outputs.into_iter();
            let shown = |output| match output {
                Output::Export(arguments, path) => format!("{} > {}", arguments.join(" "), path.display()),
                Output::Copy(path) | Output::Tables(_, path) => path.display().to_string(),
            };
            outputs.map(shown).collect()
        };
        let tools = r#""tools": [
            {"name": "gpu_info_power_profiler", "env_vars": {"POWER_SAMPLING_RATE": "0.2", "DEVICE": "0"}},
            {"name": "gpu_info_vram_profiler", "env_vars": {"POWER_SAMPLING_RATE": "0.3", "DEVICE": "1"}},
            {"name": "rocblas_trace", "env_vars": {"OUTPUT_FILE": "one.csv"}},
            {"name": "tensile_trace", "env_vars": {"OUTPUT_FILE": "two.csv"}}]"#;
        let libraries = "library-trace --libraries=rocblas,rocblas_function,tensile";
        assert_eq!(
            outputs(&format!("{{{tools}}}")),
            [
                "gpu-info power --every=300000000ns --gpu=0 > gpu_info_power_profiler_output.csv",
                "gpu-info vram --every=100000000ns --gpu=1 > gpu_info_vram_profiler_output.csv",
                &format!("{libraries} > two.csv"),
            ]
        );
        let docker =
            r#""docker_env_vars": {"POWER_SAMPLING_RATE": "0.4", "DEVICE": "2", "OUTPUT_FILE": "three.csv"}"#;
        assert_eq!(
            outputs(&format!("{{{tools}, {docker}}}")),
            [
                "gpu-info power --every=400000000ns --gpu=2 > gpu_info_power_profiler_output.csv",
                "gpu-info vram --every=100000000ns --gpu=2 > gpu_info_vram_profiler_output.csv",
                &format!("{libraries} > three.csv"),
            ]
        );
    }

    #[test]
    fn rocprofv3_has_its_tables() {
        let tables = |given: &str| {
            let outputs = plan(given).unwrap().outputs.into_iter();
            outputs
                .filter_map(|output| match output {
                    Output::Tables(tables, begin) => Some((begin, tables)),
                    _ => None,
                })
                .collect::<Vec<_>>()
        };
        let [(begin, of_agent)] = &*tables("rocprofv3_agent") else { panic!("one set of files") };
        assert_eq!(begin, Path::new("rocprof_output/rocprofv3_output"));
        for table in ["agent_info", "domain_stats", "kernel_stats", "kernel_trace", "hip_api_trace"] {
            assert!(of_agent.contains(&table), "{table}");
        }
        assert!(tables("rocprofv3_lightweight,rocprofv3_perfetto").is_empty());
        // Two tools, whose files have the same names.
        for given in ["rocprof_hip_only,rocprof_sys,rocprof", "rocprof_sys,rocprof_hip_only"] {
            let [(_, tables)] = &*tables(given) else { panic!("one set of files") };
            assert_eq!(*tables, OF_SYSTEM);
            assert!([OF_HIP, OF_RUNTIME].iter().flat_map(|of| of.iter()).all(|table| tables.contains(table)));
        }
    }

    #[test]
    fn what_a_recording_does_not_have_is_said() {
        for (name, stands) in TOOLS {
            let said = plan(name).map_err(|error| error.to_string());
            assert_eq!(said.is_err(), stands.is_err(), "{name}: {said:?}");
        }
    }
}
