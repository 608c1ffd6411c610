//! Workloads of libraries that only newer distributions pack: `make matrix` runs these where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSymbol as _};
use rpd_codeobject::counting::{CountedKernel, Options, Variant, rewrite};
use rpd_codeobject::{CodeObject, demangle};
use rpd_simgpu::counts;

use crate::harness::{
    Dir, Expected, Loading, Ran, Run, Trace, code_object, not_tested, program, rpd, software_gpu, tool,
};
use crate::replace::{assert_named, dispatches, replaced_of, with_caches};

/// Runs the program without the recorder and with it; the file equals the device's log, every kernel has its name.
#[track_caller]
fn recorded<'a>(run: impl Fn(&'a Dir) -> Run<'a>, without: &'a Dir, with: &'a Dir) -> (Ran, Ran, Trace) {
    let plain = run(without).run();
    plain.expect(0);
    let ran = run(with).recorded(Loading::Preload).env("RPDT_TICKS", "1").run();
    ran.expect(0);
    let trace = with.trace("trace.rpd");
    trace.check_integrity();
    // Calls of HIP by destructors of thread-local data are counted, not recorded: rocBLAS 6.4 frees its handles so.
    let lost = trace.lost().into_iter().filter(|(cause, _)| !cause.ends_with("::ending_thread"));
    assert_eq!(lost.collect::<Vec<_>>(), []);
    let logs = with.logs();
    assert_eq!(logs.len(), 1);
    let expected = Expected::of(&logs[0].1);
    assert!(expected.kernels() > 0);
    expected.assert_equals(&trace);
    assert_eq!(trace.number("select count(*) from kernel where kernelName like 'kernel object %'"), 0);
    (plain, ran, trace)
}

#[test]
#[ignore = "make matrix: needs librccl-dev"]
fn rccl_adds_what_two_gpus_have() {
    let (without, with) = (Dir::new(), Dir::new());
    let (plain, ran, trace) = recorded(|dir| Run::new(dir, program("rccl")).gpus(2), &without, &with);
    assert_eq!(plain.stdout, "the sum is right on 2 GPUs\n");
    assert_eq!(ran.stdout, plain.stdout);
    // RCCL misses the kernel's driver, in words, and not always in as many.
    assert!(ran.stderr.lines().all(|line| plain.stderr.contains(line)), "{ran}");
    let kernels = "select count(distinct gpuId) from op where description like 'ncclKernel%'";
    assert_eq!(trace.number(kernels), 2);
}

/// With candidates that are for something else, and with RCCL's own kernels.
#[test]
#[ignore = "make matrix: needs librccl-dev"]
fn rccl_with_kernel_caches() {
    let [without, nothing, all] = [(); 3].map(|()| Dir::new());
    let run = |dir| Run::new(dir, program("rccl")).gpus(2);
    let plain = run(&without).run();
    plain.expect(0);
    let other = code_object("streams", "gfx900");
    let (_, dispatches, ran) = with_caches(&plain, (&nothing, &other), &all, run);
    let (replaced, of) = replaced_of(&dispatches, "ncclKernel");
    assert!(replaced == of && of >= 2, "{replaced} of {of}{ran}");
}

#[test]
#[ignore = "make matrix: needs librocblas-dev"]
fn rocblas_multiplies_matrices() {
    let (without, with) = (Dir::new(), Dir::new());
    let (plain, ran, trace) = recorded(|dir| Run::new(dir, program("rocblas")), &without, &with);
    assert_eq!(plain.stdout, "the product is right\n");
    assert_eq!(ran.expect_silent().stdout, plain.stdout);
    assert!(trace.number("select count(*) from kernel where kernelName like 'Cijk_%'") >= 1);
}

/// With candidates that are for something else, and with rocBLAS's and Tensile's own kernels.
#[test]
#[ignore = "make matrix: needs librocblas-dev"]
fn rocblas_with_kernel_caches() {
    let [without, nothing, all] = [(); 3].map(|()| Dir::new());
    let run = |dir| Run::new(dir, program("rocblas"));
    let plain = run(&without).run();
    plain.expect(0);
    let other = code_object("streams", "gfx900");
    let (_, dispatches, ran) = with_caches(&plain, (&nothing, &other), &all, run);
    let (replaced, of) = replaced_of(&dispatches, "Cijk_");
    assert!(replaced == of && of >= 1, "{replaced} of {of}{ran}");
}

#[test]
#[ignore = "make matrix: needs llama.cpp-tests and libggml0-backend-hip"]
fn llama_cpp_adds_tensors() {
    const TEST: &str = "/usr/libexec/x86_64-linux-gnu/llama.cpp-tests/test-backend-ops";
    let (without, with) = (Dir::new(), Dir::new());
    let run = |dir| ["test", "-o", "SUM_ROWS"].into_iter().fold(Run::new(dir, TEST), Run::arg);
    let (plain, ran, _) = recorded(run, &without, &with);
    for ran in [&plain, &ran] {
        assert!(ran.stdout.contains("ROCm0"), "{ran}");
        assert!(ran.stdout.contains("tests passed"), "{ran}");
    }
}

/// A model of the kind llama and one with experts, which the program makes, saves, loads again, and compares with the processor's results.
#[test]
#[ignore = "make matrix: needs llama.cpp-tests and libggml0-backend-hip"]
fn llama_cpp_runs_models() {
    const TEST: &str = "/usr/libexec/x86_64-linux-gnu/llama.cpp-tests/test-llama-archs";
    let dir = Dir::new();
    let run = ["-a", "^llama$", "-b", "ROCm0", "-s", "7"].into_iter().fold(Run::new(&dir, TEST), Run::arg);
    let ran = run.recorded(Loading::RpdRecord).env("RPDT_TICKS", "1").run();
    assert!(ran.expect(0).stdout.contains("all 2 test(s) passed"), "{ran}");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let expected = Expected::of(&dir.logs()[0].1);
    assert!(expected.kernels() > 100, "{}", expected.kernels());
    // The two demanglers write the address of a function that is an argument of a template in two ways.
    let differences = expected.differences(&trace, &trace.ops());
    let are_names = |line: &&String| line.contains(": description \"") && line.contains("<&(op_");
    let others: Vec<&String> = differences.iter().filter(|line| !are_names(line)).collect();
    assert!(others.is_empty(), "{others:#?}");
    assert_eq!(trace.number("select count(*) from kernel where kernelName like 'kernel object %'"), 0);
    assert!(trace.number("select count(*) from op where opType like 'Copy%'") > 0);
}

/// A program that was not written for this: products by hipBLAS, which calls rocBLAS, each with the kernel that Tensile chose.
#[test]
#[ignore = "make matrix: needs llama.cpp-tests and libggml0-backend-hip"]
fn llama_cpp_multiplies_by_hipblas() {
    const TEST: &str = "/usr/libexec/x86_64-linux-gnu/llama.cpp-tests/test-backend-ops";
    let dir = Dir::new();
    let wanted = ["test", "-b", "ROCm0", "-o", "MUL_MAT", "-p", "type_a=f16,type_b=f32,m=16,n=16,k=256"];
    let run = wanted.into_iter().fold(Run::new(&dir, TEST), Run::arg).recorded(Loading::RpdRecord);
    let ran = run.record_option("--libraries=hipblas,rocblas").run();
    assert!(ran.expect(0).stdout.contains("tests passed"), "{ran}");
    dir.trace("trace.rpd").check_integrity();
    let file = dir.path("trace.rpd");
    let said = tool(rpd().to_str().unwrap(), &["libraries", "--json", file.to_str().unwrap()]);
    let all: Vec<serde_json::Value> = serde_json::from_str(&said).unwrap();
    for library in ["hipblas", "rocblas"] {
        let products: Vec<_> =
            all.iter().filter(|of| of["library"] == library && !of["gflop_per_s"].is_null()).collect();
        assert!(products.len() >= 5, "{library}: {all:#?}");
        for of in products {
            let configuration = of["configuration"].as_str().unwrap();
            let batches =
                ["batchCount=", "batch_count="].into_iter().find_map(|key| configuration.split_once(key));
            let batches = batches.map_or(1.0, |(_, rest)| rest.split(' ').next().unwrap().parse().unwrap());
            let flop = 2.0 * 16.0 * 16.0 * 256.0 * batches * of["calls"].as_f64().unwrap();
            let found = of["gflop_per_s"].as_f64().unwrap() * of["gpu_ns"].as_f64().unwrap();
            assert!((found - flop).abs() < 1e-6 * flop, "{of:#}");
            assert!(of["kernels"][0]["name"].as_str().unwrap().starts_with("Cijk_"), "{of:#}");
        }
    }
}

/// Where the descriptors of kernels are in the code objects that the recorder has saved, by symbol. Kernels of one name may be in several.
fn descriptors(dir: &Dir) -> BTreeMap<String, Vec<u64>> {
    let mut found = BTreeMap::<String, Vec<u64>>::new();
    for file in fs::read_dir(dir.path("code")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        let elf = ElfFile64::<LittleEndian>::parse(&*bytes).unwrap();
        for symbol in elf.dynamic_symbols() {
            let name = symbol.name().unwrap_or_default();
            if let Some(name) = name.strip_suffix(".kd") {
                found.entry(name.to_string()).or_default().push(symbol.address());
            }
        }
    }
    found
}

/// Waves that have executed the instructions of the program's own kernels, by kernel and address in the code object.
fn executed(descriptors: &BTreeMap<String, Vec<u64>>, dir: &Dir, ran: &Ran) -> BTreeMap<(String, i64), i64> {
    let mut executed = BTreeMap::new();
    for kernel in counts::read(dir.path("counts"), ran.pid).unwrap() {
        // The software GPU knows no names of kernels that the recorder has made.
        if ["?", "rocr:", "__amd_rocclr"].iter().any(|other| kernel.name.starts_with(other)) {
            continue;
        }
        // Of several nobody knows which one it was.
        let [descriptor] = descriptors[&kernel.name][..] else { continue };
        for (pc, _, _, executions) in &kernel.instructions {
            let place = (demangle(&kernel.name), (pc - kernel.object + descriptor) as i64);
            *executed.entry(place).or_default() += *executions as i64;
        }
    }
    executed
}

/// Kernels that were launched, with their grids, and how often.
fn launches(trace: &Trace) -> Vec<String> {
    trace.texts(
        "select gpuId || ' ' || kernelName || ' ' || gridX || ' ' || gridY || ' ' || gridZ || ' ' || count(*) from dispatch
         group by gpuId, kernelName, gridX, gridY, gridZ order by 1",
    )
}

/// Whether the workgroups of the kernel of that name may wait for each other, and fewer run at once where it counts: the code objects that the
/// recorder has saved are rewritten here once more.
fn may_wait_and_gets_larger(dir: &Dir, name: &str, what: &str) -> bool {
    let variant = match what.split(',').next() {
        Some("count") => Variant::Waves,
        Some("lanes") => Variant::Lanes,
        _ => Variant::Time,
    };
    let options = Options { variant, slots: 4, ..Options::default() };
    let saved = fs::read_dir(dir.path("code")).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
    let made = saved.filter_map(|bytes| rewrite(&bytes, &options, &|mangled| demangle(mangled) == name).ok());
    let kernels: Vec<_> = made.flat_map(|made| made.kernels).collect();
    let gets_larger = |kernel: &CountedKernel| {
        (1..=16).any(|waves| {
            let residency = kernel.residency(waves * 64, 0);
            residency.counting < residency.original
        })
    };
    kernels.iter().any(|kernel| kernel.may_wait && gets_larger(kernel))
}

/// The blocks of all kernels of the program are counted. Two runs, as it is and with counting kernels: the output is the same, the same kernels are
/// launched, and each block is executed as often, by dispatches that count and by those that do not together. Each wavefront that counts has
/// entered the first block of its kernel. A kernel of which a dispatch does not count is named, with one of the reasons `refused`, or since its
/// workgroups may wait for each other, if that is so. Returns the run, and the kernels that counted.
#[track_caller]
fn counted<'a>(
    run: impl Fn(&'a Dir) -> Run<'a>,
    [without, with]: [&'a Dir; 2],
    what: &str,
    refused: &[&str],
) -> (Ran, Vec<String>) {
    let of = |dir: &'a Dir| {
        let run = run(dir).recorded(Loading::Preload);
        run.env("SIMGPU_COUNTS", dir.path("counts")).env("RPDT_SAVE_CODE", dir.path("code"))
    };
    let plain = of(without).run();
    plain.expect(0);
    let ran = of(with).env("RPDT_COUNT_BLOCKS", what).run();
    assert_eq!(ran.expect(0).stdout, plain.stdout, "{ran}");
    let (before, trace) = (without.trace("trace.rpd"), with.trace("trace.rpd"));
    trace.check_integrity();
    assert!(trace.has_table("ext_instrumentation"), "nothing counts: {ran}");
    assert_eq!(launches(&trace), launches(&before), "{ran}");

    // Of which kernels not every dispatch counts, and why.
    let mut named = BTreeSet::new();
    for line in ran.stderr.lines().filter(|line| line.contains("is not counted on GPU")) {
        let (name, why) = line.split_once(" is not counted on GPU ").unwrap();
        let (_, name) = name.split_once("(the program): ").unwrap();
        let waits = why.contains(" in some launches: its workgroups may wait for each other, ");
        let is_right = match waits {
            true => may_wait_and_gets_larger(with, name, what),
            false => refused.iter().any(|reason| why.contains(reason)),
        };
        assert!(is_right, "{line}");
        named.insert(name.to_string());
    }
    let uncounted = trace.texts(
        "select distinct kernelName from dispatch D where not exists (select 1 from ext_instrumentation I where I.op_id = D.id)",
    );
    // On a busy machine it may take longer to rewrite large code objects than a thread waits.
    let is_late = ran
        .stderr
        .contains("kernels take long to rewrite: the blocks of their first dispatches are not counted");
    for kernel in &uncounted {
        assert!(is_late || named.contains(kernel), "no reason is given for {kernel}: {ran}");
    }

    // Each block, by all dispatches.
    let counts: Vec<(String, i64, i64)> = trace.rows(
        "select S.string, B.offset, sum(C.waves) from ext_blockcount C join ext_block B on B.id = C.block_id
         join ext_instrumentation I on I.id = C.instrumentation_id join rocpd_string S on S.id = I.kernelName_id group by 1, 2",
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    );
    let descriptors = descriptors(without);
    let (as_it_is, beside) = (executed(&descriptors, without, &plain), executed(&descriptors, with, &ran));
    let compared: BTreeSet<&String> = as_it_is.keys().map(|(kernel, _)| kernel).collect();
    let several = descriptors.iter().filter(|(_, places)| places.len() > 1);
    let several: BTreeSet<String> = several.map(|(name, _)| demangle(name)).collect();
    for (kernel, offset, waves) in counts.iter().filter(|(kernel, ..)| !several.contains(kernel)) {
        let place = (kernel.clone(), *offset);
        let at = |executed: &BTreeMap<(String, i64), i64>| executed.get(&place).copied().unwrap_or_default();
        assert_eq!(waves + at(&beside), at(&as_it_is), "{what} {kernel} {offset:#x}: {ran}");
    }
    let is_counted: BTreeSet<&String> = counts.iter().map(|(kernel, ..)| kernel).collect();
    let missing: BTreeSet<_> = compared.difference(&is_counted).collect();
    assert!(!compared.is_empty());
    assert!(missing.iter().all(|kernel| uncounted.contains(**kernel)), "{missing:?}{ran}");

    let launched: Vec<(String, i64)> = trace.rows(
        "select S.string, sum(D.gridX * D.gridY * D.gridZ * ((D.workgroupX * D.workgroupY * D.workgroupZ + 63) / 64))
         from (select distinct op_id, kernelName_id from ext_instrumentation where analyzer = 'blocks') I
         join dispatch D on D.id = I.op_id join rocpd_string S on S.id = I.kernelName_id group by 1",
        |row| Ok((row.get(0)?, row.get(1)?)),
    );
    // The first block of the kernel, and of each function that it calls.
    let entered: Vec<(String, i64)> = trace.rows(
        "select S.string, sum(C.waves) from ext_blockcount C join ext_block B on B.id = C.block_id
         join ext_instrumentation I on I.id = C.instrumentation_id join rocpd_string S on S.id = I.kernelName_id
         where B.offset = (select min(offset) from ext_block where functionName = B.functionName and kernel_id = B.kernel_id)
         group by S.string, B.functionName",
        |row| Ok((row.get(0)?, row.get(1)?)),
    );
    for (kernel, waves) in &launched {
        assert!(entered.contains(&(kernel.clone(), *waves)), "{kernel}: {waves} launched, {entered:?}{ran}");
    }
    (ran, launched.into_iter().map(|(kernel, _)| kernel).collect())
}

/// Those of the vendor's BLAS, its kernels of assembly among them. They are launched once, so that they would not count if they looked as if their
/// workgroups waited for each other, which they do not.
#[test]
#[ignore = "make matrix: needs librocblas-dev"]
fn rocblas_counts_its_blocks() {
    for what in ["count", "lanes", "time"] {
        let (without, with) = (Dir::new(), Dir::new());
        // Of the other kernels in the same file, which do not run.
        let refused = ["no free scalar registers", "no free vector registers"];
        // The second product, seconds later, counts where it takes longer to rewrite all of the library's kernels than a thread waits.
        let run = |dir| Run::new(dir, program("rocblas")).arg("20").env("LOGDUR_FILTER", "^Cijk_");
        let (ran, kernels) = counted(run, [&without, &with], &format!("{what},any-grid"), &refused);
        assert_eq!(ran.stdout, "the product is right\n");
        assert!(kernels.iter().any(|kernel| kernel.starts_with("Cijk_")), "{what}: {kernels:?}{ran}");
    }
}

/// Those of a large program: its own checks find its results right.
#[test]
#[ignore = "make matrix: needs llama.cpp-tests and libggml0-backend-hip"]
fn llama_cpp_counts_its_blocks() {
    const TEST: &str = "/usr/libexec/x86_64-linux-gnu/llama.cpp-tests/test-backend-ops";
    for (what, operation) in [("lanes", "SUM_ROWS"), ("count", "ARGMAX"), ("time", "SCALE")] {
        let (without, with) = (Dir::new(), Dir::new());
        let run = |dir| ["test", "-o", operation].into_iter().fold(Run::new(dir, TEST), Run::arg);
        let (ran, kernels) = counted(run, [&without, &with], what, &[]);
        assert!(ran.stdout.contains("ROCm0") && ran.stdout.contains("tests passed"), "{ran}");
        assert!(!kernels.is_empty(), "{operation}: {ran}");
    }
}

/// Those that rocFFT generates and compiles when it runs: of powers, primes and products, rows and columns, real numbers and doubles. Each kernel that it
/// has loaded counts, or is refused for want of registers.
#[test]
#[ignore = "make matrix: needs librocfft-dev"]
fn transforms_count_their_blocks() {
    const SIZES: [&str; 12] =
        ["100", "128", "243", "343", "1009", "4096", "60x40", "128x128", "d64", "d1000", "r256", "dr90"];
    for what in ["count", "lanes", "time"] {
        let (without, with) = (Dir::new(), Dir::new());
        let run = |dir| {
            let run = Run::new(dir, program("transform")).env("SIMGPU_GFX", "gfx906");
            SIZES.into_iter().fold(run, Run::arg)
        };
        let refused = ["no free scalar registers", "no free vector registers"];
        let (ran, kernels) = counted(run, [&without, &with], what, &refused);
        assert_eq!(ran.stdout, "done\n");
        let of_rocfft = kernels.iter().filter(|kernel| kernel.contains("fft")).count();
        let (all, counted) = rewritten(&with, &refused);
        println!("{what}: {of_rocfft} kernels have run, of {all} in code objects {counted} count");
        assert!(of_rocfft >= SIZES.len() && all >= of_rocfft && counted > 0, "{kernels:#?}");
    }
}

/// How many kernels the code objects have that the recorder has saved, and how many of them count; each other one is refused, for one of these
/// reasons.
#[track_caller]
fn rewritten(dir: &Dir, reasons: &[&str]) -> (usize, usize) {
    let (mut all, mut counted) = (0, 0);
    for file in fs::read_dir(dir.path("code")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        let kernels = CodeObject::parse(&bytes).unwrap().kernels;
        let made = rewrite(&bytes, &Options::default(), &|_| true).unwrap();
        assert_eq!(made.kernels.len() + made.refused.len(), kernels.len());
        for (kernel, refusal) in &made.refused {
            assert!(reasons.iter().any(|reason| refusal.to_string().contains(reason)), "{kernel}: {refusal}");
        }
        (all, counted) = (all + kernels.len(), counted + made.kernels.len());
    }
    (all, counted)
}

/// This test needs what `make matrix` puts into the tree of that suite alone.
#[track_caller]
fn not_in_tree(suite: &str, what: &str) {
    let is_there = std::env::var("RPD_TEST_TREE").is_ok_and(|tree| tree == suite);
    assert!(!is_there, "{what}: tests/matrix/run puts it here");
    not_tested(format!("{what}: `make matrix` has it"));
}

/// Those of Triton's compiler.
#[test]
fn triton_kernels_count_their_blocks() {
    if !Path::new(TRITON).exists() {
        return not_in_tree("sid", "no Triton, and HIP 5 refuses its code objects");
    }
    let dir = Dir::new();
    for kernel in ["add_kernel", "dot_kernel"] {
        let builds = triton_builds(&dir, &format!("own {kernel} 4 1024\n"));
        for what in ["count", "lanes", "time"] {
            let (without, with) = (Dir::new(), Dir::new());
            let run = |dir| launched(dir, &builds[0], kernel, "10");
            let (ran, kernels) = counted(run, [&without, &with], what, &[]);
            assert_eq!(ran.stdout, format!("{kernel} is right in 10 rounds\n"), "{ran}");
            assert_eq!(kernels, [kernel], "{what}");
        }
    }
}

/// Where `tests/matrix/run` puts tinygrad.
const TINYGRAD: &str = "/opt/tinygrad";

/// A training on that device of tinygrad's.
fn training<'a>(dir: &'a Dir, device: &str) -> Run<'a> {
    const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/libraries/tinygrad_trains.py");
    Run::new(dir, "python3")
        .arg(script)
        .env("DEV", device)
        .env("TRAINING", "1")
        .env("PYTHONPATH", TINYGRAD)
        .env("HOME", ".")
        .env("PATH", "/usr/lib/llvm-21/bin:/usr/bin:/bin")
        .env("HIP_PATH", format!("{LIBRARIES}/libamdhip64.so.6"))
        .env("COMGR_PATH", format!("{LIBRARIES}/libamd_comgr.so.3"))
        .env("SIMGPU_GFX", "gfx906")
}

/// Kernels that tinygrad compiles while it trains: losses are those that the processor computes.
#[test]
fn tinygrad_kernels_count_their_blocks() {
    if !Path::new(TINYGRAD).exists() {
        return not_in_tree("sid", "no tinygrad");
    }
    let without = Dir::new();
    let losses = training(&without, "CPU").run().expect(0).stdout.clone();
    assert_eq!(losses.lines().count(), 6);
    for what in ["count", "lanes", "time"] {
        let (plain, with) = (Dir::new(), Dir::new());
        let (ran, kernels) = counted(|dir| training(dir, "HIP"), [&plain, &with], what, &[]);
        assert_eq!(ran.stdout, losses, "{ran}");
        assert!(kernels.len() > 3, "{kernels:?}{ran}");
    }
}

/// What tinygrad launches is what its own profile says: kernels by name, in the order of each GPU, and as many copies. The recording, which has
/// their times, equals the device's log. tinygrad 0.14 has no graphs on HIP: TinyJit launches kernel after kernel.
#[test]
fn tinygrad_launches_what_its_profile_says() {
    if !Path::new(TINYGRAD).exists() {
        return not_in_tree("sid", "no tinygrad");
    }
    for (what, gpus) in [("linear", 1), ("convolution", 1), ("two", 2)] {
        let on_processor = Dir::new();
        let losses = training(&on_processor, "CPU").arg(what).run().expect(0).stdout.clone();
        assert_eq!(losses.lines().count(), 6, "{what}");
        let (without, with) = (Dir::new(), Dir::new());
        let run = |dir| training(dir, "HIP").arg(what).gpus(gpus).env("PROFILE", "1").env("TMPDIR", ".");
        let (plain, ran, trace) = recorded(run, &without, &with);
        assert_eq!([&plain.stdout, &ran.stdout], [&losses; 2], "{what}");
        let profile = with.names().into_iter().find(|name| name.starts_with("profile.pkl")).unwrap();
        let import =
            Run::new(&with, rpd()).arg("import").arg("tinygrad").arg(profile).arg("-o").arg("profile.rpd");
        import.run().expect(0);
        let profile = with.trace("profile.rpd");
        for gpu in 0..gpus {
            let device = if gpu == 0 { "HIP".to_string() } else { format!("HIP:{gpu}") };
            let launched = profile.texts(&format!(
                "select substr(args, instr(args, 'name=') + 5) from api
                 where apiName = 'exec' and args like 'device={device} |%' and args not like '%name=copy %' order by start, id"
            ));
            let ran = trace.texts(&format!(
                "select description from op where opType = 'KernelExecution' and gpuId = {gpu} and description not like '\\_\\_amd%' escape '\\'
                 order by start"
            ));
            assert!(launched.len() > 90, "{what}: {}", launched.len());
            assert_eq!(ran, launched, "{what}: GPU {gpu}");
        }
        let copies = profile
            .number("select count(*) from api where apiName = 'exec' and args like '%name=copy %HIP%'");
        assert_eq!(trace.number("select count(*) from api where apiName = 'hipMemcpy'"), copies, "{what}");
    }
}

/// Where `tests/matrix/run` puts Triton.
const TRITON: &str = "/opt/triton";

/// Builds by Triton for gfx906, one for each line (tests/programs/libraries/triton_builds.py): the code object of each, and the dynamic
/// LDS that its launcher adds.
fn triton_builds(dir: &Dir, lines: &str) -> Vec<(PathBuf, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/libraries/triton_builds.py");
    fs::write(dir.path("lines"), lines).unwrap();
    let run = format!(
        "cd {} && HOME=. PYTHONPATH={TRITON} python3 -W ignore {} < lines",
        dir.path("").display(),
        script.display()
    );
    let said = tool("sh", &["-c", &run]);
    let build = |line: &str| {
        let (description, lds) = line.rsplit_once(' ').unwrap();
        (dir.path(description).with_extension("hsaco"), lds.to_string())
    };
    said.lines().map(build).collect()
}

/// The program that launches this build of four wavefronts, recorded.
fn launched<'a>(dir: &'a Dir, (own, lds): &(PathBuf, String), kernel: &str, rounds: &str) -> Run<'a> {
    let run = Run::new(dir, program("triton")).env("SIMGPU_GFX", "gfx906").env("RPDT_TICKS", "1");
    let arguments = [own.to_str().unwrap(), kernel, "4", "1024", lds, rounds];
    arguments.into_iter().fold(run.recorded(Loading::RpdRecord), Run::arg)
}

/// Kernels of Triton's run in other builds of theirs, from a directory as Triton's cache is laid out.
#[test]
fn triton_kernels_run_in_other_builds() {
    if !Path::new(TRITON).exists() {
        return not_in_tree("sid", "no Triton, and HIP 5 refuses its code objects");
    }
    let dir = Dir::new();
    for kernel in ["add_kernel", "dot_kernel"] {
        let lines = format!(
            "own {kernel} 4 1024\nbuilds/8 {kernel} 8 1024\nbuilds/2 {kernel} 2 1024\nbuilds/1 {kernel} 1 1024\n\
             builds/waves {kernel} 4 1024 waves_per_eu=2\n"
        );
        let builds = triton_builds(&dir, &lines);
        let of_kernel = Dir::new();
        let cache = format!("--kernel-cache={}", dir.path("builds").display());
        let recorded = launched(&of_kernel, &builds[0], kernel, "10").record_option(&cache);
        let ran = recorded.record_option("--alternate").run();
        assert_eq!(ran.expect(0).stdout, format!("{kernel} is right in 10 rounds\n"), "{ran}");
        let trace = of_kernel.trace("trace.rpd");
        trace.check_integrity();
        assert_named(&dispatches(&of_kernel, &trace));
        let calls =
            "select count(*) from replacement R where kernelName = '{kernel}' group by path order by path";
        let calls: Vec<i64> = trace.rows(&calls.replace("{kernel}", kernel), |row| row.get(0));
        assert_eq!(calls, [2, 2, 2, 2], "each build has its turns{ran}");
    }

    // What nothing beside the builds tells, their results do.
    let builds =
        triton_builds(&dir, "of/own add_kernel 4 1024\nof/8 add_kernel 8 1024\nof/512 add_kernel 4 512\n");
    for (build, is_right) in [(&builds[1], true), (&builds[2], false)] {
        let dir = Dir::new();
        let cache = format!("--kernel-cache={}", build.0.parent().unwrap().display());
        let run = launched(&dir, &builds[0], "add_kernel", "4").record_option(&cache);
        let ran = run.record_option("--validate=add_kernel").run();
        ran.expect(if is_right { 0 } else { 1 });
        let other = "leaves other results than the program's: argument 2: ";
        assert_eq!(ran.stderr.contains(other), !is_right, "{ran}");
    }

    // A block of another size computes something else; without Triton's files nobody knows what a launch needs.
    let builds =
        triton_builds(&dir, "mixed add_kernel 4 1024\nmixed add_kernel 8 512\nmixed add_kernel 8 1024\n");
    let bare = dir.path("bare");
    fs::create_dir(&bare).unwrap();
    fs::copy(&builds[2].0, bare.join("add_kernel.hsaco")).unwrap();
    for (cache, replaced, why) in [
        (dir.path("mixed"), 2, "it was made of other code or other constants than the application's"),
        (bare, 0, "it was compiled for workgroups of 512, the application's kernel for 256"),
    ] {
        let dir = Dir::new();
        let cache = format!("--kernel-cache={}", cache.display());
        let run = launched(&dir, &builds[0], "add_kernel", "4").record_option(&cache);
        let ran = run.record_option("--alternate").run();
        assert!(ran.expect(0).stderr.contains(why), "{ran}");
        assert_eq!(dir.trace("trace.rpd").number("select count(*) from ext_replacement"), replaced, "{ran}");
    }
}

/// `program` with calls of that library recorded, on so many GPUs; what `rpd libraries` says of the trace.
fn with_library_calls(dir: &Dir, name: &str, library: &str, gpus: u32) -> (Trace, Vec<serde_json::Value>) {
    with_calls_of(dir, Run::new(dir, program(name)).gpus(gpus), library)
}

fn with_calls_of(dir: &Dir, run: Run<'_>, libraries: &str) -> (Trace, Vec<serde_json::Value>) {
    let run = run.recorded(Loading::RpdRecord);
    let ran = run.record_option(&format!("--libraries={libraries}")).run();
    assert_eq!(ran.expect(0).stdout, "done\n", "{ran}");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    Expected::of(&dir.logs()[0].1).assert_equals(&trace);
    let file = dir.path("trace.rpd");
    let said = tool(rpd().to_str().unwrap(), &["libraries", "--json", file.to_str().unwrap()]);
    (trace, serde_json::from_str(&said).unwrap())
}

#[track_caller]
fn of_function<'a>(all: &'a [serde_json::Value], function: &str) -> Vec<&'a serde_json::Value> {
    let found: Vec<_> = all.iter().filter(|of| of["function"] == function).collect();
    assert!(!found.is_empty(), "no {function} in {all:#?}");
    found
}

/// AMD's own reader of sensors, below a directory that stands for /sys, reads what the recorder reads.
#[test]
#[ignore = "make matrix: needs librocm-smi64-1"]
fn sensors_are_what_rocm_smi_reads() {
    for version in ["v1_3", "v1_4"] {
        let dir = Dir::new();
        let sys = dir.path("sys");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/gpu_metrics/make-sysfs.sh");
        tool("sh", &[script.as_os_str(), sys.as_os_str(), version.as_ref()]);
        // A file system of its own for that one program, also in a changed root.
        let below =
            ["--mount", "--propagation", "unchanged", "sh", "-c", "mount --bind \"$0\" /sys && exec \"$1\""];
        let reader = program("rocm_smi");
        let said = tool(
            "unshare",
            &[&below.map(std::ffi::OsStr::new)[..], &[sys.as_os_str(), reader.as_os_str()]].concat(),
        );
        let run = Run::new(&dir, rpd())
            .arg("monitor")
            .arg("--all")
            .arg("-o")
            .arg("trace.rpd")
            .arg("--")
            .arg("sleep")
            .arg("0.3");
        run.env("RPDT_SYSFS", &sys).run().expect(0);
        let ours = "select value from rocpd_monitor where deviceId = 0 and monitorType = ";
        let trace = dir.trace("trace.rpd");
        for line in said.lines() {
            let (sensor, value) = line.split_once(' ').unwrap();
            match sensor {
                // In units of 2^-16 J.
                "energy_count" => {
                    let joules: f64 = trace.texts(&format!("{ours}'energy'"))[0].parse().unwrap();
                    let counted = value.parse::<f64>().unwrap() / 65536.0;
                    assert!((joules - counted).abs() <= 1e-6 * counted, "{version}: {joules} {counted}");
                }
                _ => assert_eq!(trace.texts(&format!("{ours}'{sensor}'")), [value], "{version}: {sensor}"),
            }
        }
        assert_eq!(said.lines().count(), 10, "{said}");
    }
}

/// Calls with the kernels that Tensile chose for them, and library_trace.csv as madengine made it of rocBLAS's and Tensile's logs.
#[test]
#[ignore = "make matrix: needs librocblas-dev"]
fn calls_of_rocblas_have_their_kernels() {
    let dir = Dir::new();
    let (trace, all) = with_library_calls(&dir, "blas", "rocblas", 1);
    let chosen = |of: &&serde_json::Value| {
        of["kernels"]
            .as_array()
            .unwrap()
            .iter()
            .any(|kernel| kernel["name"].as_str().unwrap().starts_with("Cijk_"))
    };
    let products: Vec<&serde_json::Value> = all.iter().filter(chosen).collect();
    let calls: u64 = products.iter().map(|of| of["calls"].as_u64().unwrap()).sum();
    let operations: u64 = products.iter().map(|of| of["operations"].as_u64().unwrap()).sum();
    assert_eq!((calls, operations), (7, 7), "{products:#?}");
    assert_eq!(
        trace.number("select count(distinct kernelName) from kernel where kernelName like 'Cijk_%'"),
        5
    );
    for of in of_function(&all, "rocblas_sgemm") {
        assert!(of["gflop_per_s"].as_f64().unwrap() > 0.0 && of["gb_per_s"].as_f64().unwrap() > 0.0, "{of}");
    }
    let file = dir.path("trace.rpd");
    let date = ["--date", "2026-11-22 10:03:46"];
    let arguments = [&["export", "library-trace", file.to_str().unwrap()], &date[..]].concat();
    let written = crate::harness::command(rpd())
        .args(&arguments)
        .env("MAD_MODEL_NAME", "blas_sample")
        .output()
        .unwrap();
    let written = String::from_utf8(written.stdout).unwrap();
    let logged = include_str!("../fixtures/library-logs/library_trace.csv");
    // rocBLAS's own line for scal is wrong: it lacks the type. The lines of its profile come in no order.
    let lines = |text: &str, of_profile: bool| {
        let is_wanted =
            |line: &&str| !line.contains(" -f scal ") && line.contains(",rocblas_function,") == of_profile;
        text.split_inclusive('\n').filter(is_wanted).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(lines(&written, false), lines(logged, false));
    let profile = [written.as_str(), logged].map(|text| {
        let mut lines = lines(text, true);
        lines.sort();
        lines
    });
    assert_eq!(profile[0], profile[1]);
    assert!(written.find(",rocblas_function,") < written.find(",tensile,"), "{written}");
    assert!(
        written.contains(",./rocblas-bench -f scal -r f32_r -n 1000 --alpha 2.5 --incx 1,1\r\n"),
        "{written}"
    );
}

/// The real rocblas-bench runs what was recorded: each line of rocBLAS's that `rpd libraries` makes is one that it understands.
#[test]
#[ignore = "make matrix: needs librocblas0-bench"]
fn rocblas_bench_runs_recorded_calls_again() {
    let dir = Dir::new();
    with_library_calls(&dir, "blas", "rocblas", 1);
    let mut rpd = crate::harness::command(rpd());
    rpd.args(["libraries", "--replay", "--json"]).arg(dir.path("trace.rpd"));
    rpd.env("LD_PRELOAD", software_gpu()).current_dir(dir.path(""));
    let said = rpd.output().unwrap();
    let said = (String::from_utf8(said.stdout).unwrap(), String::from_utf8(said.stderr).unwrap());
    let all: Vec<serde_json::Value> = serde_json::from_str(&said.0).unwrap_or_else(|_| panic!("{said:?}"));
    let replayed: Vec<&serde_json::Value> = all.iter().filter(|of| !of["replay"].is_null()).collect();
    assert!(replayed.len() >= 9, "{all:#?}");
    for of in replayed {
        let number = |name: &str| of["replay"][name].as_f64().unwrap_or_default();
        assert!(number("us") > 0.0 && of["replay"]["error"].is_null(), "{of:#}");
        assert!((number("ratio") - number("us") / of["gpu_us"].as_f64().unwrap()).abs() < 1e-9, "{of:#}");
        assert!(number("gflop_per_s") > 0.0, "{of:#}");
    }
}

#[test]
#[ignore = "make matrix: needs librccl-dev"]
fn collectives_have_their_bytes_and_bandwidth() {
    let dir = Dir::new();
    let (_, all) = with_library_calls(&dir, "collectives", "rccl", 2);
    // Bytes as rccl-tests count them, and what the bus carries of each.
    let expected = [
        ("ncclAllReduce", 4096.0, 1.0),
        ("ncclBroadcast", 4096.0, 1.0),
        ("ncclAllGather", 8192.0, 0.5),
        ("ncclReduceScatter", 4096.0, 0.5),
    ];
    for (function, bytes, factor) in expected {
        let [of] = of_function(&all, function)[..] else { panic!("{function}: {all:#?}") };
        assert_eq!(
            (of["library"].as_str(), of["calls"].as_u64(), of["operations"].as_u64()),
            (Some("rccl"), Some(2), Some(2)),
            "{of}"
        );
        assert_eq!(of["bytes"].as_f64(), Some(bytes), "{of}");
        let rate = 2.0 * bytes / of["gpu_ns"].as_f64().unwrap();
        assert!((of["gb_per_s"].as_f64().unwrap() - rate).abs() < 1e-9, "{of}");
        assert!((of["bus_gb_per_s"].as_f64().unwrap() - rate * factor).abs() < 1e-9, "{of}");
    }
    for function in ["ncclSend", "ncclRecv"] {
        let calls: u64 = of_function(&all, function).iter().map(|of| of["calls"].as_u64().unwrap()).sum();
        assert_eq!(calls, 2, "{function}");
    }
    let [sum] = of_function(&all, "ncclAllReduce")[..] else { panic!() };
    assert_eq!(sum["bench"], "all_reduce_perf -b 4096 -e 4096 -d float -o sum -g 2");
}

/// RCCL's own times of its kernels' workgroups: those of the kernels that were recorded.
#[test]
#[ignore = "make matrix: needs librccl-dev"]
fn rccl_says_when_its_workgroups_begin_and_end() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("collectives")).gpus(2).recorded(Loading::Preload);
    let run = run.env("NCCL_DEBUG", "INFO").env("NCCL_DEBUG_SUBSYS", "COLL");
    let ran = run.env("RCCL_KERNEL_COLL_TRACE_ENABLE", "1").run();
    ran.expect(0);
    let log = dir.path("rccl.log");
    fs::write(&log, &ran.stdout).unwrap();
    let said = ["libraries", "--channels", "--json", "--log", log.to_str().unwrap()];
    let said: Vec<serde_json::Value> = serde_json::from_str(&tool(rpd().to_str().unwrap(), &said)).unwrap();
    // Its other kernels, of sends, trace nothing.
    let kernels = "select gpuId || ' ' || gridX from kernel where kernelName like 'ncclKernelDebug%'";
    let blocks = |rank: u64| {
        let of = said.iter().filter(|of| of["rank"] == rank);
        assert!(of.clone().all(|of| of["end_us"].as_u64() >= of["begin_us"].as_u64()), "{said:#?}");
        of.count() as u64
    };
    for gpu in ["0", "1"] {
        let launched = dir.trace("trace.rpd").texts(kernels);
        let launched = launched.iter().filter_map(|kernel| kernel.strip_prefix(&format!("{gpu} ")));
        let launched: u64 = launched.map(|blocks| blocks.parse::<u64>().unwrap()).sum();
        assert!(launched > 0 && blocks(gpu.parse().unwrap()) == launched, "{launched}: {said:#?}");
    }
}

#[test]
#[ignore = "make matrix: needs librocfft-dev"]
fn transforms_have_their_plan() {
    let dir = Dir::new();
    let (_, all) = with_library_calls(&dir, "transform", "rocfft", 1);
    let [execute] = of_function(&all, "rocfft_execute")[..] else { panic!("{all:#?}") };
    assert_eq!(execute["bench"], "rocfft-bench --length 64 -b 1 -t 0 --precision single");
    assert!(execute["operations"].as_u64() >= Some(1), "{execute}");
    assert_flop(execute, 5.0 * 64.0 * 6.0);
}

/// What a call computes, by its rate and its time.
#[track_caller]
fn assert_flop(of: &serde_json::Value, flop: f64) {
    let found = of["gflop_per_s"].as_f64().unwrap() * of["gpu_ns"].as_f64().unwrap();
    assert!((found - flop).abs() < 1e-6 * flop, "{found}, not {flop}: {of}");
}

#[test]
fn products_of_sparse_matrices_have_their_kernels() {
    let dir = Dir::new();
    let (_, all) = with_library_calls(&dir, "sparse", "rocsparse", 1);
    let [product] = of_function(&all, "rocsparse_scsrmv")[..] else { panic!("{all:#?}") };
    assert!(
        product["configuration"].as_str().unwrap().contains("m=3 | n=3 | nnz=3 | alpha=1 |"),
        "{product}"
    );
    assert!(product["kernels"][0]["name"].as_str().unwrap().contains("csrmv"), "{product}");
    assert_flop(product, 6.0);
    // Its arguments are not the same in all versions.
    let [product] = of_function(&all, "rocsparse_sbsrmv")[..] else { panic!("{all:#?}") };
    assert!(product["configuration"].as_str().unwrap().contains("block_dim=1 | beta=1"), "{product}");
    assert_flop(product, 9.0);
}

#[test]
#[ignore = "make matrix: needs librocsolver-dev"]
fn solvers_have_their_kernels() {
    let dir = Dir::new();
    let (trace, all) = with_library_calls(&dir, "solver", "rocsolver", 1);
    let [factors] = of_function(&all, "rocsolver_sgetrf")[..] else { panic!("{all:#?}") };
    assert_eq!(
        (factors["configuration"].as_str(), factors["calls"].as_u64()),
        (Some("m=3 | n=3 | lda=3"), Some(1))
    );
    // All that the program launches, it launches in this call.
    let kernels = trace.number("select count(*) from op where opType in ('KernelExecution', 'FillBuffer')");
    assert_eq!(factors["operations"].as_i64(), Some(kernels), "{factors}");
    assert!(kernels >= 1 && factors["gflop_per_s"].is_null(), "{factors}");
}

/// MIOpen makes columns of the image by a kernel that it compiles, and has rocBLAS multiply them: its call has both kernels, and its own range too.
#[test]
#[ignore = "make matrix: needs libmiopen-dev"]
fn convolutions_have_their_sizes_and_kernels() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("convolution")).env("SIMGPU_GFX", "gfx906").env("HOME", ".");
    let (trace, all) = with_calls_of(&dir, run, "miopen,rocblas");
    let [of] = of_function(&all, "miopenConvolutionForwardImmediate")[..] else { panic!("{all:#?}") };
    let sizes = " | data_type=miopenFloat | mode=miopenConvolution | in=1,1,4,4 | filter=1,1,3,3 | out=1,1,2,2 | pad=0,0 | stride=1,1 | dilation=1,1 | groups=1";
    assert!(of["configuration"].as_str().unwrap().ends_with(sizes), "{of}");
    assert_flop(of, 2.0 * 4.0 * 9.0);
    let kernels: Vec<&str> =
        of["kernels"].as_array().unwrap().iter().map(|kernel| kernel["name"].as_str().unwrap()).collect();
    let has = |begin: &str| kernels.iter().any(|kernel| kernel.starts_with(begin));
    assert!(kernels.len() == 2 && has("Cijk_") && has("Im2d2Col"), "{kernels:?}");
    assert_eq!(trace.number("select count(*) from op where opType = 'KernelExecution'"), 2);
    let driver = "./bin/MIOpenDriver conv -n 1 -c 1 -H 4 -W 4 -k 1 -y 3 -x 3 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 1 -t 1 -S 0";
    assert_eq!(of["bench"], driver);
    let [product] = of_function(&all, "rocblas_gemm_ex")[..] else { panic!("{all:#?}") };
    assert_flop(product, 2.0 * 4.0 * 9.0);
    let ranges = trace
        .number("select count(*) from api where args like 's_api = miopenConvolutionForwardImmediate |%'");
    assert_eq!(ranges, 1, "MIOpen's own range");
}
