//! The programs of tests/programs/bench: compiled, run, and what they print.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::harness::{Dir, Loading, Run, Trace, library_symbols, recorder, tool};

/// Who is in the program besides itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    /// Nobody.
    Plain,
    /// An interceptor that only passes packets on.
    Floor,
    /// rocm-trace-lite, of the checkout that RPD_PEER names.
    Peer,
    /// The recorder.
    Recorder,
    /// The recorder, and librpd_hip.so.
    Symbols,
    /// The recorder, and librpd_libraries.so.
    Libraries,
}

impl Company {
    /// As tables call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Company::Plain => "plain",
            Company::Floor => "floor",
            Company::Peer => "rocm-trace-lite",
            Company::Recorder => "recorder",
            Company::Symbols => "recorder with librpd_hip.so",
            Company::Libraries => "recorder with librpd_libraries.so",
        }
    }
}

/// What a run said.
pub(crate) struct Outcome {
    /// Numbers by their name, as the program printed them.
    pub(crate) printed: BTreeMap<String, Vec<f64>>,
    /// CPU time of the recorder's own threads, ns; 0 without it.
    pub(crate) recorder_cpu_ns: f64,
    /// The trace; it goes with the directory.
    pub(crate) trace: PathBuf,
    _dir: Dir,
}

impl Outcome {
    /// The first number of that name.
    pub(crate) fn number(&self, name: &str) -> f64 {
        self.numbers(name)[0]
    }

    /// All numbers of that name.
    pub(crate) fn numbers(&self, name: &str) -> &[f64] {
        self.printed.get(name).unwrap_or_else(|| panic!("the program printed no {name}"))
    }

    /// Rows of the tables that events fill.
    pub(crate) fn rows(&self) -> f64 {
        let trace = Trace::open(&self.trace);
        TABLES.iter().map(|table| trace.number(&format!("select count(*) from {table}")) as f64).sum()
    }
}

/// Tables that events fill.
pub(crate) const TABLES: [&str; 6] =
    ["rocpd_string", "rocpd_api", "rocpd_kernelapi", "rocpd_op", "rocpd_api_ops", "ext_dispatch"];

/// Runs a program to its end; `gpus` as the software GPU's configuration, with kernels of `kernel_ns`.
///
/// # Panics
/// When it fails, or the recorder has lost anything: a benchmark of dropped records would be a fast one.
pub(crate) fn run(
    name: &str,
    arguments: &[String],
    company: Company,
    (gpus, kernel_ns): (u32, u32),
    environment: &[(&str, &str)],
) -> Outcome {
    let dir = Dir::new();
    let config = format!("[timing]\nkernel_ns = {kernel_ns}\n[execution]\ninterpret = false\n");
    // Writing the device's log would be part of every time.
    let mut run = Run::new(&dir, compiled(name)).gpus(gpus).config(&config).env("SIMGPU_EXECLOG", "");
    for argument in arguments {
        run = run.arg(argument);
    }
    for (variable, value) in environment {
        run = run.env(variable, *value);
    }
    match company {
        Company::Plain => {}
        Company::Floor => run = run.env("HSA_TOOLS_LIB", compiled("floor")),
        Company::Peer => {
            run = run.env("HSA_TOOLS_LIB", compiled("peer")).env("RTL_OUTPUT", dir.path("peer.db"));
        }
        Company::Recorder => {
            run = run.recorded(Loading::Preload).env("RPDT_REPORT", dir.path("report"));
        }
        Company::Symbols => {
            run = run.recorded(Loading::Symbols).env("RPDT_REPORT", dir.path("report"));
        }
        Company::Libraries => {
            run = run.recorded(Loading::Preload).env("RPDT_REPORT", dir.path("report"));
            run = run.preload(&[recorder(), library_symbols()]);
        }
    }
    std::fs::write(dir.path("report"), "").unwrap();
    let ran = run.run();
    ran.expect(0);
    let printed = numbers(&ran.stdout);
    let report = std::fs::read_to_string(dir.path("report")).unwrap();
    let fact = |name: &str| {
        report
            .split_whitespace()
            .find_map(|word| word.strip_prefix(name))
            .map_or(0.0, |value| value.parse().unwrap())
    };
    assert_eq!(fact("lost="), 0.0, "records were lost, so this run says nothing:{ran}");
    Outcome { printed, recorder_cpu_ns: fact("cpu_ns="), trace: dir.path("trace.rpd"), _dir: dir }
}

/// What a program printed: lines of a name and numbers.
pub(crate) fn numbers(stdout: &str) -> BTreeMap<String, Vec<f64>> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default().to_string();
        (name, words.map(|word| word.parse().unwrap()).collect())
    };
    stdout.lines().map(line).collect()
}

/// The program or library of that name, in `target/programs/bench`.
pub(crate) fn compiled(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let directory = recorder().with_file_name("../programs/bench");
    std::fs::create_dir_all(&directory).unwrap();
    let (source, compiler, options): (_, _, &[&str]) = match name {
        "markers" => ("markers.c", "cc", &["-Wall", "-Wextra", "-Werror", "-ldl", "-lpthread"]),
        "library_calls" => ("library_calls.c", "cc", &["-Wall", "-Wextra", "-Werror"]),
        "liblibrary.so" => ("library.c", "cc", &["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]),
        "hsa_calls" => ("hsa_calls.c", "cc", &["-Wall", "-Wextra", "-Werror", "-lhsa-runtime64"]),
        "launches" => ("launches.hip", "hipcc", &["--offload-arch=gfx900", "--offload-arch=gfx906"]),
        "calls" => ("calls.hip", "hipcc", &["--offload-arch=gfx900", "--offload-arch=gfx906"]),
        "deep_calls" => ("deep_calls.hip", "hipcc", &["--offload-arch=gfx900", "--offload-arch=gfx906"]),
        "idle" => ("idle.hip", "hipcc", &["--offload-arch=gfx900", "--offload-arch=gfx906"]),
        "floor" => ("floor.cpp", "c++", &["-shared", "-fPIC", "-DAMD_INTERNAL_BUILD"]),
        "peer" => return peer(&directory),
        _ => panic!("no program is called {name}"),
    };
    let source = root.join("tests/programs/bench").join(source);
    let program = directory.join(name);
    let changed = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    if changed(&program) < changed(&source) {
        with_headers(&directory);
        let mut arguments =
            vec!["-O2".into(), "-I".into(), directory.into_os_string(), "-o".into(), program.clone().into()];
        arguments.push(source.into());
        arguments.extend(options.iter().map(|option| (*option).into()));
        if name == "library_calls" {
            // Found beside the program.
            arguments.extend([compiled("liblibrary.so").into(), "-Wl,-rpath,$ORIGIN".into()]);
        }
        tool(compiler, &arguments);
    }
    program
}

/// The checkout of rocm-trace-lite to compare with, if there is one.
pub(crate) fn peers_checkout() -> Option<PathBuf> {
    std::env::var_os("RPD_PEER").map(PathBuf::from)
}

/// rocm-trace-lite's library, with the options of its Makefile.
fn peer(directory: &Path) -> PathBuf {
    let (checkout, library) = (peers_checkout().expect("RPD_PEER"), directory.join("librtl.so"));
    if !library.exists() {
        with_headers(directory);
        let mut arguments: Vec<OsString> =
            ["-O3", "-fPIC", "-std=c++17", "-shared", "-rdynamic", "-D__HIP_PLATFORM_AMD__"]
                .map(Into::into)
                .into();
        arguments.extend(["-DAMD_INTERNAL_BUILD", "-I/usr/include/hsa", "-I"].map(Into::into));
        arguments.extend([directory.into(), "-o".into(), library.clone().into()]);
        for source in ["trace_db", "hip_api_intercept", "roctx_shim", "hsa_intercept"] {
            arguments.push(checkout.join(format!("src/{source}.cpp")).into());
        }
        arguments.extend(["-lhsa-runtime64", "-lsqlite3", "-ldl", "-lpthread"].map(Into::into));
        tool("c++", &arguments);
    }
    library
}

/// hsa_api_trace.h includes its neighbours as `inc/...`.
fn with_headers(directory: &Path) {
    let inc = directory.join("inc");
    if !inc.exists() {
        std::os::unix::fs::symlink("/usr/include/hsa", &inc).unwrap();
    }
}

/// The code object for `gfx` of a program's kernels.
pub(crate) fn compiled_candidate(name: &str, gfx: &str) -> PathBuf {
    let program = compiled(name);
    let object = program.with_file_name(format!("{name}.{gfx}.hsaco"));
    let changed = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    if changed(&object) < changed(&program) {
        let bundle = object.with_extension("bundle");
        let section = format!("--dump-section=.hip_fatbin={}", bundle.display());
        let copy = object.with_extension("copy");
        tool("llvm-objcopy-15", &[section.as_ref(), program.as_os_str(), copy.as_os_str()]);
        std::fs::remove_file(copy).unwrap();
        let target = format!("--targets=hipv4-amdgcn-amd-amdhsa--{gfx}");
        let paths = [format!("--input={}", bundle.display()), format!("--output={}", object.display())];
        tool(
            "clang-offload-bundler-15",
            &[&["--unbundle".into(), "--type=o".into(), target][..], &paths].concat(),
        );
    }
    object
}
