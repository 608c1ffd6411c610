use std::ffi::OsString;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;

/// A tree with files of these contents.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (file, content) in files {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

fn examined(root: &Path, environment: &[(&str, &str)]) -> Vec<MachineFinding> {
    let environment = environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let system = System::new(Some(root), environment);
    // The recorder beside a test program is not there.
    examine(&system).into_iter().filter(|finding| finding.subject != "recorder").collect()
}

#[track_caller]
fn of<'a>(findings: &'a [MachineFinding], subject: &str) -> &'a MachineFinding {
    findings
        .iter()
        .find(|finding| finding.subject == subject)
        .unwrap_or_else(|| panic!("{subject}: {findings:#?}"))
}

const CPU: (&str, &str) =
    ("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 8\nsimd_count 0\n");
const GPU: (&str, &str) = (
    "sys/class/kfd/kfd/topology/nodes/1/properties",
    "cpu_cores_count 0\nsimd_count 440\ngfx_target_version 90010\ndrm_render_minor 128\n",
);
const KFD: (&str, &str) = ("dev/kfd", "");
const RENDER: (&str, &str) = ("dev/dri/renderD128", "");
const HSA: (&str, &str) = ("opt/rocm/lib/libhsa-runtime64.so.1.14.60403", "");
const HIP: (&str, &str) = ("opt/rocm/lib/libamdhip64.so.6.4.43484", "");

/// A machine with all that a recording of AMD's GPUs needs.
const WHOLE: [(&str, &str); 7] =
    [CPU, GPU, KFD, RENDER, HSA, HIP, ("sys/module/amdgpu/version", "6.12.12\n")];

#[test]
fn a_machine_of_amds_is_whole() {
    let root = tree(&WHOLE);
    let findings = examined(root.path(), &[]);
    assert!(findings.iter().all(|finding| finding.status != Status::Missing), "{findings:#?}");
    assert_eq!(of(&findings, "AMD driver").found, "amdgpu 6.12.12, /dev/kfd");
    assert_eq!(of(&findings, "AMD GPUs").found, "gfx90a");
    assert!(of(&findings, "HSA runtime").found.starts_with("1.14.60403: "));
    assert!(of(&findings, "HIP").found.starts_with("6.4.43484: "));
    assert_eq!(of(&findings, "other profilers").status, Status::Ok);
}

#[test]
fn each_thing_that_is_missing_has_its_line_and_its_mend() {
    for (without, subject, words) in [
        (KFD, "AMD driver", "--device /dev/kfd"),
        (GPU, "AMD GPUs", "dmesg"),
        (RENDER, "render nodes", "--device /dev/dri"),
        (HSA, "HSA runtime", "LD_LIBRARY_PATH"),
    ] {
        let files: Vec<_> = WHOLE.into_iter().filter(|file| *file != without).collect();
        let root = tree(&files);
        let findings = examined(root.path(), &[]);
        let missing: Vec<_> = findings.iter().filter(|finding| finding.status == Status::Missing).collect();
        assert_eq!(missing.len(), 1, "{without:?}: {missing:#?}");
        assert_eq!(missing[0].subject, subject);
        assert!(missing[0].mend.as_ref().is_some_and(|mend| mend.contains(words)), "{missing:#?}");
    }
    let files: Vec<_> = WHOLE.into_iter().filter(|file| *file != HIP).collect();
    assert_eq!(of(&examined(tree(&files).path(), &[]), "HIP").status, Status::Warn);
}

#[test]
fn a_gpu_without_a_driver_and_no_gpu_at_all() {
    let pci = |vendor| {
        [
            ("sys/bus/pci/devices/0000:01:00.0/vendor", vendor),
            ("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n"),
        ]
    };
    let findings = examined(tree(&pci("0x1002\n")).path(), &[]);
    assert!(of(&findings, "AMD driver").found.contains("1 of AMD's GPUs on the PCI bus"), "{findings:#?}");
    let findings = examined(tree(&pci("0x10de\n")).path(), &[]);
    assert!(
        of(&findings, "NVIDIA driver").mend.as_ref().unwrap().contains("modprobe nvidia"),
        "{findings:#?}"
    );
    // An audio function of a GPU, and a GPU of another vendor.
    let other = [
        ("sys/bus/pci/devices/0000:01:00.1/vendor", "0x1002"),
        ("sys/bus/pci/devices/0000:01:00.1/class", "0x040300"),
    ];
    for root in [tree(&other), tree(&pci("0x8086"))] {
        assert_eq!(of(&examined(root.path(), &[]), "GPU").status, Status::Missing);
    }
}

#[test]
fn a_machine_of_nvidias() {
    let driver = (
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (a@b)\nGCC version: 13\n",
    );
    let whole = [
        driver,
        ("dev/nvidiactl", ""),
        ("dev/nvidia0", ""),
        ("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 1\n"),
        ("usr/lib64/libcuda.so.580.95.05", ""),
        ("usr/local/cuda/extras/CUPTI/lib64/libcupti.so.2025.3.1", ""),
    ];
    let root = tree(&whole);
    let findings = examined(root.path(), &[]);
    assert!(findings.iter().all(|finding| finding.status != Status::Missing), "{findings:#?}");
    assert_eq!(of(&findings, "NVIDIA driver").found, "580.95.05, /dev/nvidiactl");
    assert_eq!(of(&findings, "NVIDIA GPUs").found, "NVIDIA H200");
    for (number, subject) in [(2, "NVIDIA GPUs"), (4, "CUDA driver library"), (5, "CUPTI")] {
        let files: Vec<_> =
            whole.iter().enumerate().filter(|(at, _)| *at != number).map(|(_, file)| *file).collect();
        assert_eq!(of(&examined(tree(&files).path(), &[]), subject).status, Status::Missing);
    }
    // In the package of a Python, and one that is too old.
    let mut files = whole[..5].to_vec();
    files.push(("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13", ""));
    let findings = examined(tree(&files).path(), &[("VIRTUAL_ENV", "/venv")]);
    assert_eq!(of(&findings, "CUPTI").status, Status::Ok, "{findings:#?}");
    files[5] = ("usr/local/cuda/lib64/libcupti.so.11.8", "");
    let findings = examined(tree(&files).path(), &[]);
    assert!(of(&findings, "CUPTI").found.contains("older than CUPTI 12.0"), "{findings:#?}");
    // A driver of CUDA 12 has no use for one of CUDA 13, wherever it comes from.
    files[0].1 = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Release Build\n";
    for new in ["usr/local/cuda/lib64/libcupti.so.13", "usr/local/cuda/lib64/libcupti.so.2025.3.1"] {
        files[5].0 = new;
        for named in [vec![], vec![("RPDT_CUPTI", "/".to_string() + new)]] {
            let variables: Vec<_> = named.iter().map(|(name, file)| (*name, file.as_str())).collect();
            let findings = examined(tree(&files).path(), &variables);
            let finding = of(&findings, "CUPTI");
            assert_eq!(finding.status, Status::Missing, "{findings:#?}");
            assert!(finding.found.ends_with("needs a driver from 580 on; this is 550.54.14"), "{finding:#?}");
        }
        let both = [&files[..], &[("usr/local/cuda/lib64/libcupti.so.2024.1.0", "")]].concat();
        assert_eq!(of(&examined(tree(&both).path(), &[]), "CUPTI").status, Status::Ok);
    }
    let named = examined(root.path(), &[("RPDT_CUPTI", "/none/libcupti.so.13")]);
    assert_eq!(of(&named, "CUPTI").status, Status::Missing);
    let injected = examined(root.path(), &[("CUDA_INJECTION64_PATH", "/opt/nsys/libToolsInjection64.so")]);
    assert_eq!(of(&injected, "other profilers").status, Status::Missing);
}

#[test]
fn other_tools_in_the_environment() {
    let root = tree(&WHOLE);
    for (name, value, words) in [
        (
            "HSA_TOOLS_LIB",
            "librpd_tracer.so /opt/rocm/lib/librocprofiler-sdk.so",
            "starts /opt/rocm/lib/librocprofiler-sdk.so,",
        ),
        ("LD_PRELOAD", "/a/libc.so:/opt/rocm/lib/librocprofiler-sdk-tool.so", "two profilers"),
        ("ROCP_TOOL_LIBRARIES", "x.so", "ROCP_TOOL_LIBRARIES"),
    ] {
        let findings = examined(root.path(), &[(name, value)]);
        let found = of(&findings, "other profilers");
        assert!(found.status == Status::Warn && found.found.contains(words), "{found:?}");
        assert!(found.mend.as_ref().is_some_and(|mend| mend.contains(name)), "{found:?}");
    }
    for (name, value) in [
        ("HSA_TOOLS_LIB", "/usr/local/lib/librpd_tracer.so"),
        ("LD_PRELOAD", "/a/librpd_tracer.so libmine.so"),
        ("CUDA_INJECTION64_PATH", "/a/librpd_tracer.so"),
        ("HSA_TOOLS_LIB", ""),
    ] {
        let findings = examined(root.path(), &[(name, value)]);
        assert_eq!(of(&findings, "other profilers").status, Status::Ok, "{name}={value}");
    }
    let asan = examined(root.path(), &[("LD_PRELOAD", "/usr/lib/libasan.so.8")]);
    assert_eq!(of(&asan, "sanitizers").status, Status::Warn);
    let misspelt = examined(root.path(), &[("RPDT_FILENAM", "x"), ("LOGDUR_FILTER", "x")]);
    assert!(of(&misspelt, "variables").found.contains("did you mean RPDT_FILENAME?"));
}

#[test]
fn limits_of_the_kernel_and_of_a_container() {
    let files = [
        WHOLE.as_slice(),
        &[
            ("sys/fs/selinux/enforce", "1"),
            ("proc/sys/kernel/yama/ptrace_scope", "2\n"),
            (".dockerenv", ""),
            ("dev/shm/x", ""),
        ],
    ]
    .concat();
    let findings = examined(tree(&files).path(), &[]);
    assert_eq!(of(&findings, "SELinux").status, Status::Warn);
    assert!(of(&findings, "ptrace").found.starts_with("ptrace_scope 2"));
    assert!(of(&findings, "container").found.starts_with("Docker"));
    assert!(of(&examined(tree(&WHOLE).path(), &[]), "/dev/shm").status == Status::Warn);
}

#[test]
fn nonsense_is_no_more_than_nonsense() {
    let long = "x".repeat(200_000);
    let files = [
        (
            "sys/class/kfd/kfd/topology/nodes/1/properties",
            "simd_count -1\ngfx_target_version 99999999999999999999\nsimd_count 4",
        ),
        (
            "sys/class/kfd/kfd/topology/nodes/2/properties",
            "simd_count 4\ngfx_target_version 18446744073709551615\ndrm_render_minor 128\n",
        ),
        ("sys/class/kfd/kfd/topology/nodes/3/properties", long.as_str()),
        KFD,
        ("sys/module/amdgpu/version", "\u{1b}[31mred\n"),
        ("proc/driver/nvidia/version", ""),
        ("dev/nvidiactl", ""),
        ("proc/self/mountinfo", "- - -\n \n"),
        ("etc/group", "::\n"),
    ];
    let root = tree(&files);
    // A pipe that nobody writes to, and a link to itself.
    let pipe = std::process::Command::new("mkfifo").arg(root.path().join("proc/kernel")).status().unwrap();
    assert!(pipe.success());
    fs::create_dir_all(root.path().join("proc/sys/kernel")).unwrap();
    fs::rename(root.path().join("proc/kernel"), root.path().join("proc/sys/kernel/osrelease")).unwrap();
    fs::create_dir_all(root.path().join("dev/dri")).unwrap();
    std::os::unix::fs::symlink("renderD128", root.path().join("dev/dri/renderD128")).unwrap();
    let findings = examined(root.path(), &[]);
    assert_eq!(of(&findings, "render nodes").status, Status::Missing);
    assert!(of(&findings, "system").found.starts_with("Linux not known"));
}
