//! Registers and sizes of kernels, against LLVM's own reading of the same code objects.

use std::collections::BTreeMap;
use std::path::Path;

use crate::harness::{Dir, Loading, Run, Trace, newer_rocm, not_tested, program, tool, unbundled};

/// Of one kernel: the keys of its metadata with a plain value.
pub(crate) type Facts = BTreeMap<String, String>;

/// `amdhsa.kernels` of a code object by symbol, as llvm-readelf prints it (YAML; the keys of a kernel are indented by four).
pub(crate) fn kernels(code_object: &Path) -> BTreeMap<String, Facts> {
    let notes = tool("llvm-readelf-15", &["--notes".as_ref(), code_object.as_os_str()]);
    let list = notes.split("amdhsa.kernels:").nth(1).unwrap_or_else(|| panic!("no kernels: {notes}"));
    let list = list.split("\namdhsa.").next().unwrap();
    let kernels = list.split("\n  - ").skip(1).map(|kernel| {
        let facts: Facts = format!("    {kernel}")
            .lines()
            .filter_map(|line| line.strip_prefix("    .")?.split_once(':'))
            .map(|(key, value)| (key.to_string(), value.trim().trim_matches('\'').to_string()))
            .collect();
        (facts["symbol"].clone(), facts)
    });
    kernels.collect()
}

/// The code object for `gfx` in an executable of hipcc.
pub(crate) fn code_object(dir: &Dir, program: &Path, gfx: &str) -> std::path::PathBuf {
    let bundle = dir.path("bundle");
    let section = format!("--dump-section=.hip_fatbin={}", bundle.display());
    tool("llvm-objcopy-15", &[section.as_ref(), program.as_os_str(), dir.path("copy").as_os_str()]);
    unbundled(&bundle, gfx)
}

#[test]
fn kernels_of_the_demo() {
    for gfx in ["gfx900", "gfx906"] {
        let dir = Dir::new();
        let demo = program("demo");
        let run = Run::new(&dir, &demo).env("SIMGPU_GFX", gfx).recorded(Loading::Preload);
        run.run().expect(0).expect_silent();
        let expected: BTreeMap<String, Vec<String>> = kernels(&code_object(&dir, &demo, gfx))
            .into_values()
            .map(|facts| {
                let keys = [
                    "vgpr_count",
                    "sgpr_count",
                    "vgpr_spill_count",
                    "sgpr_spill_count",
                    "group_segment_fixed_size",
                    "private_segment_fixed_size",
                    "kernarg_segment_size",
                    "wavefront_size",
                    "max_flat_workgroup_size",
                ];
                let name = tool("c++filt", &[&facts["name"]]).trim().to_string();
                (name, keys.iter().map(|key| facts[*key].clone()).collect())
            })
            .collect();
        assert_eq!(expected.len(), 5, "kernels of the demo: {:?}", expected.keys());
        let trace = dir.trace("trace.rpd");
        let sql = "select distinct kernelName, vgpr, sgpr, vgprSpill, sgprSpill, E.groupSegmentSize, \
             E.privateSegmentSize, kernargSegmentSize, wavefrontSize, maxWorkgroupSize from dispatch D \
             join rocpd_kernelcodeobject C on C.id = D.codeObject_id join ext_kernelcodeobject E on E.id = C.id";
        let found: BTreeMap<String, Vec<String>> = trace
            .rows(sql, |row| {
                let facts = (1..10).map(|at| row.get::<_, i64>(at).map(|n| n.to_string()));
                Ok((row.get(0)?, facts.collect::<Result<_, _>>()?))
            })
            .into_iter()
            .collect();
        assert_eq!(found, expected, "{gfx}");
        assert_eq!(trace.number("select count(*) from dispatch where codeObject_id = 0"), 0);
        // What a launch asked for covers what its kernel needs.
        let less = "select count(*) from dispatch D join ext_kernelcodeobject E on E.id = D.codeObject_id \
             where D.groupSegmentSize < E.groupSegmentSize or D.privateSegmentSize < E.privateSegmentSize";
        assert_eq!(trace.number(less), 0);
    }
}

/// Largest workgroups of the kernels that ran, by GPU: tests/programs/hip/targets.hip has another one for each target.
pub(crate) fn largest_workgroups(trace: &Trace) -> Vec<String> {
    trace.texts(
        "select distinct gpuId || ' ' || maxWorkgroupSize from dispatch D \
         left join ext_kernelcodeobject E on E.id = D.codeObject_id order by 1",
    )
}

#[test]
fn gpus_of_two_targets_have_kernels_of_their_own() {
    for timing in ["hsa", "hip"] {
        let dir = Dir::new();
        let run = Run::new(&dir, program("hip_targets")).gpus(2).env("SIMGPU_GFX", "gfx900,gfx906");
        run.recorded(Loading::Preload).env("RPDT_TIMING", timing).run().expect(0).expect_silent();
        let trace = dir.trace("trace.rpd");
        assert_eq!(largest_workgroups(&trace), ["0 256", "1 512"], "{timing}");
        // A launch on GPU n has n + 1 workgroups; half of them were captured, and dispatched nothing.
        let launches = "select gridX || ' ' || maxWorkgroupSize || ' ' || count(*) from rocpd_kernelapi \
             join ext_kernelcodeobject E on E.id = codeObject_id group by gridX, maxWorkgroupSize order by 1";
        assert_eq!(trace.texts(launches), ["1 256 4", "2 512 4"], "{timing}");
    }
}

/// The session says by which driver and runtimes the GPU was used: `rpd replacements` tells where two runs differ in that.
#[test]
fn versions_of_the_driver_and_the_runtimes() {
    let dir = Dir::new();
    Run::new(&dir, program("demo")).recorded(Loading::Preload).run().expect(0);
    let versions = dir.trace("trace.rpd").metadata("session::0::version::%");
    let of = |name: &str| versions.get(&format!("session::0::version::{name}")).cloned().unwrap_or_default();
    let kernel = tool("uname", &["-r"]);
    assert!(of("driver").ends_with(&format!("Linux {}", kernel.trim())), "{versions:?}");
    if newer_rocm() {
        return not_tested("versions are compared with the names of the machine's own ROCm libraries only");
    }
    let libraries = tool("ldd", &[program("demo")]);
    for (name, file) in [("hip", "libamdhip64.so"), ("hsa", "libhsa-runtime64.so")] {
        let line = libraries.lines().find(|line| line.trim().starts_with(file)).unwrap();
        let path = line.split_whitespace().nth(2).unwrap();
        let real = std::fs::canonicalize(path).unwrap();
        assert_eq!(real.file_name().unwrap().to_str().unwrap(), format!("{file}.{}", of(name)));
    }
}
