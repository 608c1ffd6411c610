//! NVTX 3: by a program that plays NVTX's part too, and by the Python package nvtx, whose copy of NVTX is NVIDIA's own.

use std::path::{Path, PathBuf};

use super::{compile, markers};
use crate::harness::{Dir, Loading, Run, recorder};

const RETURNED: &str = "initialize 1\npop of nothing negative\npush 0\npush 1\npush 2\npop 2\npop 1\npop 0\nids differ\n\
     another thread: push 0, pop 0\n";
const DOMAINS: &str = "domains differ by name\npush 0 0 0 1\npop 1 0 0 0\n";
const NAMES: &str = "names left alone\n";
/// Texts without a domain, in the order of their beginnings.
const TEXTS: [&str; 14] = [
    "mark A",
    "mark W \u{1F600} \u{fffd}!",
    "mark Ex",
    "wide \u{e4}",
    "2.5",
    "-7",
    "",
    "",
    "push A",
    "push W",
    "push Ex",
    "start A",
    "start W",
    "start Ex",
];

fn nvtx(dir: &Dir) -> PathBuf {
    compile(dir, "nvtx.c", "nvtx", &["-ldl", "-lpthread"])
}

fn texts(dir: &Dir) -> Vec<String> {
    markers(dir).into_iter().map(|(text, ..)| text).collect()
}

#[test]
fn marks_ranges_and_domains_of_every_form() {
    let dir = Dir::new();
    let program = nvtx(&dir);
    // Without LD_PRELOAD, as under a framework's launcher, and with it.
    for preloaded in [false, true] {
        let run = Run::new(&dir, &program).env("NVTX_INJECTION64_PATH", recorder());
        let ran = if preloaded { run.recorded(Loading::Preload) } else { run }.run();
        assert_eq!(ran.expect(0).expect_silent().stdout, [RETURNED, DOMAINS, NAMES].concat(), "{ran}");
        let markers = markers(&dir);
        let texts: Vec<&str> = markers.iter().map(|(text, ..)| text.as_str()).collect();
        assert_eq!(texts[..14], TEXTS, "{markers:?}");
        assert_eq!(texts[14], "on a thread");
        let domains =
            ["registered A", "registered W \u{e4}", "crossing", "crossing", "", "registered W \u{e4}"];
        assert_eq!(texts[15..], domains, "{markers:?}");
        // The pop of domain one ended its own ranges, not those begun after them in others.
        let (one, two, none) = (&markers[15], &markers[16], &markers[17]);
        assert!(one.3 <= none.3 && none.3 <= two.3, "{markers:?}");
        let started = markers.iter().find(|(text, ..)| text == "start Ex").unwrap();
        assert!(started.1 == markers[0].1 && markers[14].1 != markers[0].1, "{markers:?}");
        std::fs::remove_file(dir.path("trace.rpd")).unwrap();
    }
}

/// Workers of multiprocessing end by os._exit, and so may the main process. The recorder is there by NVTX alone, so that nothing of it
/// stands in front of the C library; the commits between come once a second.
#[test]
fn processes_that_end_by_os_exit() {
    let dir = Dir::new();
    let script = "\
import multiprocessing, os, nvtx
def work(number):
    for i in range(100): nvtx.mark(f'worker {number} {i}')
if __name__ == '__main__':
    nvtx.mark('main')
    for method in 'fork', 'spawn':
        context = multiprocessing.get_context(method)
        workers = [context.Process(target=work, args=(n,)) for n in range(2)]
        [w.start() for w in workers]; [w.join() for w in workers]
    for i in range(1000): nvtx.mark(f'main {i}')
    os._exit(0)
";
    std::fs::write(dir.path("workers.py"), script).unwrap();
    let run = Run::new(&dir, "python3").arg("workers.py").env("PYTHONPATH", package());
    run.env("NVTX_INJECTION64_PATH", recorder()).env("RPDT_AUTOFLUSH", "1").run().expect(0).expect_silent();
    let texts = texts(&dir);
    let count = |start: &str| texts.iter().filter(|text| text.starts_with(start)).count();
    assert_eq!((count("worker"), count("main")), (400, 1001));
    let trace = dir.trace("trace.rpd");
    assert_eq!((trace.session_count(), trace.metadata("session::%::end_monotonic_ns").len()), (5, 5));
}

#[test]
fn older_copies_of_nvtx() {
    let dir = Dir::new();
    let program = nvtx(&dir);
    let run = |what: &str| Run::new(&dir, &program).arg(what).env("NVTX_INJECTION64_PATH", recorder()).run();
    assert_eq!(run("OLD").expect(0).expect_silent().stdout, [RETURNED, NAMES].concat());
    assert_eq!(texts(&dir).len(), 15);
    std::fs::remove_file(dir.path("trace.rpd")).unwrap();
    assert_eq!(run("EMPTY").expect(0).expect_silent().stdout, ["initialize 0\n", NAMES].concat());
    assert!(!dir.path("trace.rpd").exists());
}

#[test]
fn another_tool_that_the_user_names_has_its_way() {
    let dir = Dir::new();
    let program = nvtx(&dir);
    let other = compile(&dir, "other_injection.c", "libother.so", &["-shared", "-fPIC"]);
    for loading in [Loading::Preload, Loading::RpdRecord] {
        let ran = Run::new(&dir, &program).env("NVTX_INJECTION64_PATH", &other).recorded(loading).run();
        assert_eq!(ran.expect(0).stdout, ["other tool with tables\ninitialize 0\n", NAMES].concat(), "{ran}");
    }
}

#[test]
fn preloading_is_all_it_takes() {
    for loading in [Loading::Preload, Loading::RpdRecord] {
        let dir = Dir::new();
        // NVTX finds it by the variable that the recorder sets; newer copies also among the loaded libraries.
        let run = Run::new(&dir, "python3")
            .arg("-c")
            .arg("import nvtx; nvtx.mark('a mark')")
            .env("PYTHONPATH", package());
        run.recorded(loading).run().expect(0);
        assert_eq!(texts(&dir), ["a mark"], "{loading:?}");
    }
}

/// Where `make setup` puts the Python package nvtx.
fn package() -> PathBuf {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("target/nvtx");
    assert!(place.join("nvtx").is_dir(), "no {}; `make setup` installs it", place.display());
    place
}

#[test]
fn the_python_package() {
    let dir = Dir::new();
    let script = "\
import threading, nvtx
with nvtx.annotate('outer'):
    with nvtx.annotate('inner', domain='a domain', payload=3):
        nvtx.mark('a mark')
    @nvtx.annotate()
    def decorated(): pass
    decorated()
    nvtx.push_range('pushed \\u00e4')
    nvtx.pop_range()
crossing = nvtx.start_range('crossing', domain='a domain')
thread = threading.Thread(target=nvtx.end_range, args=(crossing,))
thread.start(); thread.join()
";
    // The recorder gets in by NVTX alone: no LD_PRELOAD.
    let run = Run::new(&dir, "python3").arg("-c").arg(script).env("PYTHONPATH", package());
    run.env("NVTX_INJECTION64_PATH", recorder()).run().expect(0).expect_silent();
    assert_eq!(texts(&dir), ["outer", "inner", "a mark", "decorated", "pushed \u{e4}", "crossing"]);
}
