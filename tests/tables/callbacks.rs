//! HIP's own callbacks (hipRegisterTracerCallback) in every version known, from a library that plays HIP with that version's names, numbers
//! and room for a call's data.

use std::collections::BTreeSet;

use super::{compile, file};
use crate::harness::{Dir, Loading, Ran, Run};

/// Versions that are told apart, and sizeof(hip_api_data_t) there. That of 5.2 has other callbacks.
const VERSIONS: [(&str, usize); 11] = [
    ("5.2", 0),
    ("5.3-5.4", 840),
    ("5.5", 840),
    ("5.6-5.7", 840),
    ("6.0", 1520),
    ("6.1", 1520),
    ("6.2", 1520),
    ("6.3", 1520),
    ("6.4", 1520),
    ("7.1", 1520),
    ("7.2", 1520),
];

fn place(version: &str) -> usize {
    VERSIONS.iter().position(|(known, _)| *known == version).unwrap()
}

/// The functions of that version.
fn functions(version: &str) -> BTreeSet<String> {
    let list = std::fs::read_to_string(file("fixtures/tables/hip.txt")).unwrap();
    let of_version = |line: &str| {
        let [_, name, first, last] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        (place(first)..=place(last)).contains(&place(version)).then(|| name.to_string())
    };
    list.lines().filter_map(of_version).collect()
}

/// Calls everything that `version` has, but `unknown`.
fn call_all(dir: &Dir, version: &str, unknown: Option<&str>) -> Ran {
    // Each major version has a name of its own.
    let library = format!("libamdhip64.so.{}", &version[..1]);
    let options = ["-shared", "-fPIC", &format!("-Wl,-soname,{library}")];
    let library = compile(dir, "hip_library.c", &library, &options).display().to_string();
    let program = compile(dir, "callbacks.c", "callbacks", &[&library, "-ldl"]);
    let versions = VERSIONS.map(|(version, _)| version).join(" ");
    let size = VERSIONS[place(version)].1.to_string();
    let mut run =
        Run::new(dir, program).arg(file("fixtures/tables/hip.txt")).arg(versions).arg(version).arg(size);
    if let Some(unknown) = unknown {
        run = run.arg(unknown);
    }
    run = run.env("LD_LIBRARY_PATH", dir.path("")).env("RPDT_HIP_APIS", "all").env("RPDT_LOG", "1");
    run.recorded(Loading::Preload).run()
}

#[test]
fn every_function_of_every_version_is_reported_once() {
    for (version, _) in &VERSIONS[1..] {
        let (dir, functions) = (Dir::new(), functions(version));
        let ran = call_all(&dir, version, None);
        assert_eq!(ran.expect(0).stdout, format!("{}\n", functions.len()), "{version}{ran}");
        assert!(ran.stderr.contains(&format!("HIP {version} found")), "{version}{ran}");
        let trace = dir.trace("trace.rpd");
        let rows = trace.texts("select apiName from api order by 1");
        assert_eq!(rows, functions.into_iter().collect::<Vec<_>>(), "{version}");
        let origin = trace.texts("select value from rocpd_metadata where tag like 'session::%::hip_door'");
        assert_eq!(origin, ["callbacks"]);
        assert_eq!(trace.number("select count(*) from rocpd_op"), 0, "HSA times kernels, not HIP");
    }
}

#[test]
fn arguments_are_found_where_each_version_has_them() {
    for (version, _) in &VERSIONS[1..] {
        let dir = Dir::new();
        call_all(&dir, version, None).expect(0);
        let trace = dir.trace("trace.rpd");
        let malloc = trace.texts("select args from api where apiName = 'hipMalloc'");
        assert_eq!(malloc, ["ptr=0x0 | size=0x1000"], "{version}");
        let copy = "select C.size || ' ' || C.kind from rocpd_copyapi C join api A on A.id = C.api_ptr_id where apiName = 'hipMemcpyToArray'";
        assert_eq!(trace.texts(copy), ["12345 1"], "{version}");
        let launches = trace.texts(
            "select apiName || ' ' || gridX || ' ' || gridY || ' ' || gridZ || ' ' || workgroupX || ' ' || workgroupY || ' ' || workgroupZ
                || ' ' || groupSegmentSize || ' ' || string
             from rocpd_kernelapi K join api A on A.id = K.api_ptr_id join rocpd_string S on S.id = kernelName_id where gridX > 0 order by 1",
        );
        let launch = |name: &str, kernel: &str| format!("{name} 5 6 7 64 2 1 1024 {kernel}");
        let mut expected = vec![launch("hipLaunchKernel", "by_host_function")];
        if place(version) >= place("7.1") {
            expected.insert(0, launch("hipDrvLaunchKernelEx", "by_function"));
            expected.push(launch("hipLaunchKernelExC", "by_host_function"));
        }
        assert_eq!(launches, expected, "{version}");
    }
}

#[test]
fn a_version_that_is_not_known_is_not_answered() {
    let dir = Dir::new();
    let ran = call_all(&dir, "6.1", Some("hipMalloc"));
    assert_eq!(ran.expect(0).stdout, "0\n", "{ran}");
    assert!(ran.stderr.contains("this HIP is of no version known: its calls are not recorded"), "{ran}");
    assert!(!dir.path("trace.rpd").exists());
}
