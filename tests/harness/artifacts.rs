//! What is tested, built once per run: the recorder, the software GPU and `rpd` by cargo, the programs by hipcc and cc.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use super::tool;

/// The repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// `target`, of which this test program is `target/<profile>/deps/<name>`.
fn target() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_path_buf()
}

/// A file of `target/release` after `cargo build --release`, as `make build` runs it: cargo does nothing where all is fresh. For other packages
/// cargo would choose other features, and build most of it again.
#[track_caller]
fn built(file: &str) -> PathBuf {
    // Tried once: what does not build for one test does not build for the next.
    static BUILD: OnceLock<Result<(), String>> = OnceLock::new();
    if let Err(why) = BUILD.get_or_init(build) {
        panic!("{why}");
    }
    target().join("release").join(file)
}

/// Whether tests run in the tree of a newer ROCm, on what was built outside of it (tests/matrix/run).
pub(crate) fn newer_rocm() -> bool {
    std::env::var_os("RPD_TEST_TREE").is_some()
}

/// The name under which programs open HIP.
pub(crate) fn hip_library() -> &'static str {
    let tree = std::env::var("RPD_TEST_TREE").unwrap_or_default();
    if tree == "sid" { "libamdhip64.so.6" } else { "libamdhip64.so.5" }
}

fn build() -> Result<(), String> {
    if newer_rocm() {
        return Ok(());
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["build", "--quiet", "--release", "--target-dir"]).arg(target());
    // Cargo sets this for the test program; the build must not depend on it.
    cargo.env_remove("LD_LIBRARY_PATH");
    let output = cargo.output().map_err(|error| format!("{cargo:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{cargo:?}\n{}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// librpd_tracer.so.
pub(crate) fn recorder() -> PathBuf {
    built("librpd_tracer.so")
}

/// libsimkfd.so.
pub(crate) fn software_gpu() -> PathBuf {
    built("libsimkfd.so")
}

/// librpd_hip.so.
pub(crate) fn hip_symbols() -> PathBuf {
    built("librpd_hip.so")
}

/// librpd_libraries.so.
pub(crate) fn library_symbols() -> PathBuf {
    built("librpd_libraries.so")
}

/// librpd_remote.so.
pub(crate) fn loader() -> PathBuf {
    built("librpd_remote.so")
}

/// The `rpdRemote` command.
pub(crate) fn rpd_remote() -> PathBuf {
    built("rpdRemote")
}

/// The `rpd` command.
pub(crate) fn rpd() -> PathBuf {
    built("rpd")
}

const HIP: &[&str] = &["hipcc", "--offload-arch=gfx900", "--offload-arch=gfx906", "-O2"];
/// rpd_probe.h.
const PROBE_HEADER: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../include");
/// Instrumented kernels, with the lines of their source.
const PROBE: &[&str] =
    &["hipcc", "--offload-arch=gfx900", "--offload-arch=gfx906", "-O2", "-g", PROBE_HEADER];
/// Handlers for the messages of instrumented kernels.
const HANDLER: &[&str] = &["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", PROBE_HEADER];
const HANDLER_RUST: &[&str] = &["rustc", "-O", "--crate-type", "cdylib", "-Dwarnings"];
/// Modules: bundles of code objects.
const HIP_VARIABLE: &[&str] = &["hipcc", "--offload-arch=gfx900", "-O2", "-DVARIABLE"];
const MODULE: &[&str] = &["hipcc", "--genco", "--offload-arch=gfx900", "--offload-arch=gfx906", "-O2"];
const MODULE_VARIANT: &[&str] =
    &["hipcc", "--genco", "--offload-arch=gfx900", "--offload-arch=gfx906", "-O2", "-DVARIANT=1"];
const MODULE_900: &[&str] = &["hipcc", "--genco", "--offload-arch=gfx900", "-O2"];
/// Libraries with kernels, the first of which needs the second.
const CODE_SECOND: &[&str] = &[
    "hipcc",
    "--offload-arch=gfx900",
    "-O2",
    "-shared",
    "-fPIC",
    "-DNAME=second",
    "-Wl,-soname,libsecond.so.2",
];
const CODE_FIRST: &[&str] =
    &["hipcc", "--offload-arch=gfx900", "-O2", "-shared", "-fPIC", "-DNAME=first", "-DNEEDS=second"];
/// Stands in for GPU libraries.
const STAND_IN: &[&str] =
    &["hipcc", "--offload-arch=gfx900", "-O2", "-shared", "-fPIC", "-Wl,-soname,stand_in_libraries"];
/// More than the smallest buffers may hold.
const MODULE_LARGE: &[&str] = &["hipcc", "--genco", "--offload-arch=gfx900", "-O2", "-DTABLE=(1<<19)"];
/// Code as the compiler makes it first.
const HIP_O0: &[&str] = &["hipcc", "--offload-arch=gfx900", "-O0"];
/// rocPRIM's headers take long to compile, and want C++14.
const HIP_14: &[&str] = &["hipcc", "--offload-arch=gfx900", "-O2", "-std=c++14"];
/// Stand-ins for NVIDIA's libraries.
const SIMCUDA: &[&str] =
    &["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden"];
const CC: &[&str] = &["cc", "-O2"];
/// Libraries may refer to what the program has.
const EXPORTING: &[&str] = &["cc", "-O2", "-rdynamic"];
/// With a table of functions that are bound at their first call.
const LAZY: &[&str] = &["cc", "-O2", "-shared", "-fPIC", "-Wl,-z,lazy"];
/// No lazy binding: its resolvers of indirect functions can call.
const SHARED: &[&str] = &["cc", "-O2", "-shared", "-fPIC", "-fno-plt"];
const WITH_LINES: &[&str] = &["cc", "-g", "-O2", "-Wall", "-Wextra", "-Werror"];
const FRAMES: &[&str] = &["-lamdhip64", "-ldl", "-lpthread"];
const FIRST: &[&str] = &["cc", "-g", "-O2", "-shared", "-fPIC", "-DNAME=first", "-DSIZE=0x8001"];
const OTHER: &[&str] = &["cc", "-g", "-O2", "-shared", "-fPIC", "-DNAME=other", "-DSIZE=0x8002"];
/// hsa_api_trace.h is C++, includes its neighbours as `inc/...`, and hides the interception behind a macro.
const HSA_TOOL: &[&str] = &["c++", "-O2", "-shared", "-fPIC", "-DAMD_INTERNAL_BUILD", "-I", "."];

/// The compiled program of that name, from fixtures/programs or tests/programs.
///
/// # Panics
/// When there is no such source, the compiler is missing, or the program does not compile.
pub(crate) fn program(name: &str) -> PathBuf {
    if let Some(version) = name.strip_prefix("libcupti-").and_then(|rest| rest.strip_suffix(".so")) {
        let define = format!("-DVERSION={version}");
        let compiler = [SIMCUDA, &[&define]].concat();
        let soname = "-Wl,-soname,libcupti.so.13";
        return compiled(name, "fixtures/simcuda/libcupti.c", &compiler, &[soname, "-ldl", "-lpthread"]);
    }
    let (source, compiler, libraries): (_, _, &[&str]) = match name {
        "demo" | "streams" | "graph" | "copies" | "events" | "long" => {
            (format!("fixtures/programs/{name}.hip"), HIP, &[])
        }
        "hang" | "held" | "forks" | "symbols" | "replace" | "validate" | "durations" | "energy"
        | "blocks" | "grid_barrier" | "synchronised" => (format!("tests/programs/{name}.hip"), HIP, &[]),
        "probe" => ("tests/programs/probe.hip".into(), PROBE, &[]),
        "inside" => ("tests/programs/inside.hip".into(), PROBE, &[]),
        "probe_say" => ("tests/programs/probe_say.hip".into(), PROBE, &["-ldl"]),
        "probe_misspelt" => ("tests/programs/probe.hip".into(), PROBE, &["-DMISSPELT"]),
        "probe_plain" => ("tests/programs/probe.hip".into(), HIP, &["-DPLAIN"]),
        "compared" => ("tests/programs/compared.hip".into(), HIP, &["-ldl", "-lpthread"]),
        "validate_variable" => ("tests/programs/validate.hip".into(), HIP_VARIABLE, &[]),
        "weak_hip" => ("tests/programs/weak_hip.c".into(), CC, &[]),
        "look_up" => ("tests/programs/look_up.c".into(), CC, &["-lamdhip64", "-ldl"]),
        "look_up_by_own" => {
            ("tests/programs/look_up.c".into(), &["cc", "-O2", "-rdynamic", "-DOWN"], &["-lamdhip64", "-ldl"])
        }
        "next_exit" => ("tests/programs/next_exit.c".into(), SHARED, &["-ldl"]),
        "stuck_save" => ("tests/programs/stuck_save.c".into(), SHARED, &["-ldl"]),
        "stuck_write" => ("tests/programs/stuck_write.c".into(), SHARED, &["-ldl"]),
        "own_exit" => ("tests/programs/own_exit.c".into(), LAZY, &[]),
        "next_getppid" => ("tests/programs/next_getppid.c".into(), SHARED, &["-ldl"]),
        "own_iterate" => ("tests/programs/symbols/own_iterate.c".into(), EXPORTING, &["-lamdhip64", "-ldl"]),
        "in_front" => ("tests/programs/symbols/in_front.c".into(), SHARED, &["-ldl"]),
        "in_a_variable" => {
            ("tests/programs/symbols/in_front.c".into(), &["cc", "-O2", "-rdynamic", "-DVARIABLE"], &["-ldl"])
        }
        "indirect" => ("tests/programs/symbols/indirect.c".into(), SHARED, &["-ldl"]),
        "constructor" => {
            ("tests/programs/symbols/constructor.c".into(), EXPORTING, &["-lamdhip64", "-ldl", "-lpthread"])
        }
        "constructor_library" => (
            "tests/programs/symbols/constructor.c".into(),
            &["cc", "-O2", "-shared", "-fPIC", "-DLIBRARY"],
            &[],
        ),
        "rocm_smi" => ("tests/programs/libraries/rocm_smi.c".into(), CC, &["-ldl"]),
        "rccl" => ("tests/programs/libraries/rccl.hip".into(), HIP, &["-lrccl"]),
        "rocblas" => ("tests/programs/libraries/rocblas.hip".into(), HIP, &["-lrocblas"]),
        "blas" => ("tests/programs/libraries/blas.hip".into(), HIP, &["-lrocblas"]),
        "collectives" => ("tests/programs/libraries/collectives.hip".into(), HIP, &["-lrccl"]),
        "transform" => ("tests/programs/libraries/transform.hip".into(), HIP, &["-lrocfft"]),
        "sparse" => ("tests/programs/libraries/sparse.hip".into(), HIP, &["-lrocsparse"]),
        "convolution" => ("tests/programs/libraries/convolution.hip".into(), HIP, &["-lMIOpen"]),
        "solver" => ("tests/programs/libraries/solver.hip".into(), HIP, &["-lrocsolver", "-lrocblas"]),
        "triton" => ("tests/programs/libraries/triton.hip".into(), HIP, &[]),
        "primitives" => ("tests/programs/primitives.hip".into(), HIP_14, &["-lrocrand"]),
        "more_primitives" => ("tests/programs/more_primitives.hip".into(), HIP_14, &[]),
        "generators" => ("tests/programs/generators.hip".into(), HIP_14, &["-lrocrand"]),
        "jacobi" | "kmeans" | "fft" | "alignment" | "life" | "graph_search" => {
            (format!("tests/programs/samples/{name}.hip"), HIP, &[])
        }
        "classics" => ("tests/programs/classics.hip".into(), HIP, &[]),
        "recursion" => ("tests/programs/recursion.hip".into(), HIP, &[]),
        "recursion_o0" => ("tests/programs/recursion.hip".into(), HIP_O0, &[]),
        "classics_o0" => ("tests/programs/classics.hip".into(), HIP_O0, &[]),
        "hip_calls" | "hip_rare" | "hip_links" | "hip_late" | "hip_stops" | "hip_taken" | "hip_jumps"
        | "hip_targets" | "hip_copy_kernels" | "hip_not_waited" | "hip_handlers" | "hip_forked"
        | "hip_cancelled" => {
            (format!("tests/programs/hip/{}.hip", &name["hip_".len()..]), HIP, &["-ldl", "-lpthread"])
        }
        "aql" => ("fixtures/programs/aql.c".into(), CC, &["-lhsa-runtime64"]),
        "marks" => ("fixtures/programs/marks.c".into(), CC, &["-ldl", "-lpthread"]),
        "control" => ("tests/programs/control.c".into(), CC, &["-ldl"]),
        "service" => ("tests/programs/remote/service.hip".into(), HIP, &["-ldl", "-lpthread"]),
        "behind" => ("tests/programs/remote/behind.hip".into(), HIP, &[]),
        "moments" => {
            ("tests/programs/remote/moments.c".into(), &["cc", "-O2", "-rdynamic"], &["-ldl", "-lpthread"])
        }
        "moments_kernels" => (
            "tests/programs/remote/moments.hip".into(),
            &["hipcc", "--offload-arch=gfx900", "-O2", "-shared", "-fPIC"],
            &[],
        ),
        "first_leaves" => ("tests/programs/remote/first_leaves.c".into(), CC, &["-lpthread"]),
        "signals" => ("tests/programs/remote/signals.c".into(), CC, &["-lpthread"]),
        "frames" => ("tests/programs/frames.c".into(), WITH_LINES, FRAMES),
        "frames_stripped" => ("tests/programs/frames.c".into(), &["cc", "-O2", "-s"], FRAMES),
        "frames_first" => ("tests/programs/frames_library.c".into(), FIRST, &[]),
        "frames_other" => ("tests/programs/frames_library.c".into(), OTHER, &[]),
        "ask_for_hip" => ("tests/programs/ask_for_hip.c".into(), CC, &["-ldl"]),
        "ask_for_hip_library" => {
            ("tests/programs/ask_for_hip.c".into(), SHARED, &["-Wl,--no-as-needed", "-lamdhip64", "-ldl"])
        }
        "load_code" => ("tests/programs/code/load.hip".into(), HIP, &["-ldl"]),
        "module.co" => ("tests/programs/code/module.hip".into(), MODULE, &[]),
        "module_variant.co" => ("tests/programs/code/module.hip".into(), MODULE_VARIANT, &[]),
        "module_large.co" => ("tests/programs/code/module.hip".into(), MODULE_LARGE, &[]),
        "code_candidates.co" => ("tests/programs/code/candidates.hip".into(), MODULE_900, &[]),
        "code_second" => ("tests/programs/code/library.hip".into(), CODE_SECOND, &[]),
        "code_first" => ("tests/programs/code/library.hip".into(), CODE_FIRST, &[]),
        "strides.so" => ("examples/handlers/strides.c".into(), HANDLER, &[]),
        "strides_rust.so" => ("examples/handlers/strides.rs".into(), HANDLER_RUST, &[]),
        "bad_handler.so" => ("tests/programs/bad_handler.c".into(), HANDLER, &[]),
        "other_handler.so" => ("tests/programs/bad_handler.c".into(), HANDLER, &["-DWRONG=7", "-Wl,-z,defs"]),
        "cuda_work" | "cuda_work_profile" => {
            ("tests/programs/cuda/work.c".into(), CC, &["-ldl", "-lpthread"])
        }
        "cuda_copies" => ("tests/cuda/copies.c".into(), CC, &["-ldl"]),
        "cuda_runtime" => ("tests/programs/cuda/runtime.c".into(), CC, &[]),
        "libcudart.so.13" => {
            ("fixtures/simcuda/libcudart.c".into(), SIMCUDA, &["-Wl,-soname,libcudart.so.13"])
        }
        "both_vendors" => ("tests/programs/cuda/both.hip".into(), HIP, &["-ldl"]),
        "libcuda.so.1" => {
            ("fixtures/simcuda/libcuda.c".into(), SIMCUDA, &["-Wl,-soname,libcuda.so.1", "-ldl", "-lpthread"])
        }
        "libfloor.so" => ("tests/cuda/floor.c".into(), SHARED, &["-ldl", "-lpthread"]),
        "libnvidia-ml.so.1" => {
            ("fixtures/simcuda/libnvidia-ml.c".into(), SIMCUDA, &["-Wl,-soname,libnvidia-ml.so.1"])
        }
        "library_calls" => ("tests/programs/library/calls.hip".into(), HIP, &["-ldl"]),
        "library_handler" => ("tests/programs/library/handler.c".into(), CC, &["-ldl"]),
        "library_reopened" => ("tests/programs/library/reopened.c".into(), CC, &["-ldl"]),
        "library_first" => ("tests/programs/library/reopened.c".into(), SHARED, &["-DANSWER=10"]),
        "library_second" => ("tests/programs/library/reopened.c".into(), SHARED, &["-DANSWER=20"]),
        "library_of_nothing" => ("tests/programs/bench/library.c".into(), SHARED, &[]),
        "stand_in_libraries" => ("tests/programs/library/library.hip".into(), STAND_IN, &[]),
        "noop" => ("fixtures/programs/noop.c".into(), CC, &[]),
        "plain_interceptor" | "refusing" => (format!("tests/programs/{name}.cpp"), HSA_TOOL, &[]),
        _ => panic!("no program is called {name}"),
    };
    if name == "cuda_work_profile" {
        let cupti = program("libcupti-130001.so").display().to_string();
        return compiled(name, &source, compiler, &["-Wl,--no-as-needed", &cupti, "-ldl", "-lpthread"]);
    }
    if name == "libcudart.so.13" || name == "cuda_runtime" {
        let driver = program("libcuda.so.1").display().to_string();
        let runtime = (name == "cuda_runtime").then(|| program("libcudart.so.13").display().to_string());
        let linked: Vec<&str> = runtime.iter().chain([&driver]).map(String::as_str).collect();
        return compiled(name, &source, compiler, &[&linked, libraries].concat());
    }
    if name == "code_first" {
        let second = format!("-Wl,{}", program("code_second").display());
        return compiled(name, &source, compiler, &[&second]);
    }
    if name == "library_calls" {
        let stand_in = program("stand_in_libraries");
        let found = format!("-Wl,-rpath,{}", stand_in.parent().unwrap_or(&stand_in).display());
        return compiled(name, &source, compiler, &["-ldl", &format!("-Wl,{}", stand_in.display()), &found]);
    }
    compiled(name, &source, compiler, libraries)
}

/// The code object of aql.c for `gfx`, taken out of the compiler's bundle.
pub(crate) fn aql_code_object(gfx: &str) -> PathBuf {
    let compiler = ["hipcc", "--genco", "-O2", &format!("--offload-arch={gfx}")];
    let bundle = compiled(&format!("aql_{gfx}.bundle"), "fixtures/programs/aql_kernel.hip", &compiler, &[]);
    let object = bundle.with_file_name(format!("aql_{gfx}.co"));
    let _one = lock(&COMPILED);
    unbundle(&bundle, gfx, &object);
    object
}

/// The code object for `gfx` of replace.hip's kernels, in another variant of them, by these options of the compiler.
pub(crate) fn candidate(gfx: &str, options: &[&str]) -> PathBuf {
    candidate_of("candidate", "tests/programs/replace.hip", gfx, options)
}

/// Another build of the demo's saxpy for `gfx`, which keeps something in LDS.
pub(crate) fn saxpy_candidate(gfx: &str) -> PathBuf {
    candidate_of("saxpy", "fixtures/programs/saxpy.hip", gfx, &[])
}

/// The instrumented builds of probe.hip's kernels for `gfx`.
pub(crate) fn probe_candidate(gfx: &str) -> PathBuf {
    candidate_of("probe", "tests/programs/probe.hip", gfx, &["-DCANDIDATE", "-g", PROBE_HEADER])
}

/// dh_comms.hip with the device functions of that checkout of dh_comms.
pub(crate) fn dh_comms_program(checkout: &str) -> PathBuf {
    let headers = format!("-I{checkout}/include");
    let compiler = ["hipcc", "--offload-arch=gfx900", "-O2", "-std=c++17", &headers];
    compiled("dh_comms", "tests/programs/dh_comms.hip", &compiler, &[])
}

/// Another build of validate.hip's kernels for `gfx`.
pub(crate) fn validate_candidate(gfx: &str, options: &[&str]) -> PathBuf {
    candidate_of("validate", "tests/programs/validate.hip", gfx, &[&["-DCANDIDATE"], options].concat())
}

/// Another build of compared.hip's kernels for `gfx`.
pub(crate) fn compared_candidate(gfx: &str) -> PathBuf {
    candidate_of("compared", "tests/programs/compared.hip", gfx, &["-DCANDIDATE"])
}

/// A kernel for `gfx` as Triton compiles them, by these options of the compiler.
pub(crate) fn block_kernel(gfx: &str, options: &[&str]) -> PathBuf {
    candidate_of("blocks", "tests/programs/libraries/blocks.hip", gfx, options)
}

fn candidate_of(name: &str, source: &str, gfx: &str, options: &[&str]) -> PathBuf {
    let options_name: String = options.iter().filter(|option| !option.starts_with("-I")).copied().collect();
    let name = format!("{name}_{gfx}{}", options_name.replace(['-', '=', '/'], "_"));
    let arch = format!("--offload-arch={gfx}");
    let compiler = [&["hipcc", "--genco", "-O2", &arch], options].concat();
    let bundle = compiled(&format!("{name}.bundle"), source, &compiler, &[]);
    let object = bundle.with_file_name(format!("{name}.hsaco"));
    let _one = lock(&COMPILED);
    unbundle(&bundle, gfx, &object);
    object
}

/// The code object for `gfx` of a module or program, taken out by the compiler's tools.
pub(crate) fn code_object(name: &str, gfx: &str) -> PathBuf {
    let file = program(name);
    let object = file.with_file_name(format!("{gfx}.hsaco"));
    let _one = lock(&COMPILED);
    if name.ends_with(".co") {
        unbundle(&file, gfx, &object);
    } else if !object.exists() {
        let section = file.with_file_name(format!("{gfx}.{}.fatbin", std::process::id()));
        let dump = format!("--dump-section=.hip_fatbin={}", section.display());
        tool("objcopy", &[&dump, file.to_str().unwrap(), "/dev/null"]);
        unbundle(&section, gfx, &object);
        fs::remove_file(section).unwrap();
    }
    object
}

/// Takes the code object for `gfx` out of a bundle of the compiler, once. One thread at a time: the caller has the lock.
fn unbundle(bundle: &Path, gfx: &str, object: &Path) {
    if object.exists() {
        return;
    }
    let part = object.with_extension(format!("{}.part", std::process::id()));
    let arguments = [
        "--unbundle".to_string(),
        "--type=o".to_string(),
        format!("--targets=hipv4-amdgcn-amd-amdhsa--{gfx}"),
        format!("--input={}", bundle.display()),
        format!("--output={}", part.display()),
    ];
    tool("clang-offload-bundler-15", &arguments);
    fs::rename(part, object).unwrap();
}

static COMPILED: LazyLock<Mutex<HashMap<String, PathBuf>>> = LazyLock::new(Mutex::default);

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A test that failed while it compiled leaves nothing half done: files appear by renaming.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `target/programs/<name>.<hash>/<name>`, where the hash is that of the source, its header and the command: what is there
/// is up to date. Made under another name and renamed, so that processes may do it at the same time.
fn compiled(name: &str, source: &str, compiler: &[&str], libraries: &[&str]) -> PathBuf {
    let mut programs = lock(&COMPILED);
    if let Some(program) = programs.get(name) {
        return program.clone();
    }
    let mut hash = DefaultHasher::new();
    let mut files = vec![root().join(source), root().join("fixtures/programs/check.h")];
    if source.starts_with("fixtures/simcuda") {
        files.push(root().join("fixtures/simcuda/simcuda.h"));
    }
    if source.starts_with("tests/programs/library/") {
        files.push(root().join("tests/programs/library/calls.h"));
    }
    if compiler.contains(&PROBE_HEADER) {
        files.extend(["include/rpd_probe.h", "include/rpd_handler.h"].map(|header| root().join(header)));
    }
    for file in &files {
        fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())).hash(&mut hash);
    }
    (compiler, libraries).hash(&mut hash);
    let all = target().join("programs");
    let directory = all.join(format!("{name}.{:016x}", hash.finish()));
    let program = directory.join(name);
    if !program.exists() {
        remove_older(&all, name, &directory);
        fs::create_dir_all(&directory).unwrap();
        let part = directory.join(format!("{}.part", std::process::id()));
        let mut command = match compiler[0] {
            // The one of this build: rustup's would look for its settings.
            "rustc" => super::command(Path::new(env!("CARGO")).with_file_name("rustc")),
            other => super::command(other),
        };
        command.args(&compiler[1..]).arg(root().join(source)).arg("-o").arg(&part).args(libraries);
        let inc = directory.join("inc");
        if compiler == HSA_TOOL && !inc.exists() {
            std::os::unix::fs::symlink("/usr/include/hsa", &inc).unwrap();
        }
        // hipcc leaves its directories behind.
        let temporary = tempfile::tempdir().unwrap();
        command.current_dir(&directory).env("TMPDIR", temporary.path());
        let output = command.output();
        let output = output.unwrap_or_else(|error| {
            panic!("cannot run {}: {error}; `make setup` installs what tests need", compiler[0])
        });
        assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
        fs::rename(part, &program).unwrap();
    }
    programs.insert(name.to_string(), program.clone());
    program
}

/// Programs of that name from other sources or commands. Another process may be making this one's.
fn remove_older(all: &Path, name: &str, kept: &Path) {
    let Ok(entries) = fs::read_dir(all) else { return };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let is_of_name = file.to_string_lossy().rsplit_once('.').is_some_and(|(stem, _)| stem == name);
        if is_of_name && entry.path() != kept {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
