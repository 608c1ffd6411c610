//! roctx: return values as AMD's, rows for every mark and range, and another roctx library that hears of each call once.

use std::path::{Path, PathBuf};

use super::{compile, markers, source};
use crate::harness::{Dir, Loading, Run};

/// What roctx.c prints where there is no other roctx library: AMD's return values.
pub(super) const RETURNED: &str = "version 4.1\npop of nothing -1\npush 0\npush 1\npop 1\npop 0\npop of nothing -1\nstart 1\n\
     push on a thread 0\npop on a thread 0\nstart 2\npause 0\nresume 0\npause of one thread 0\nthread 0 right\n\
     name 0\nname 0\nname 0\nname 0\n";
/// What it prints where other_roctx.c stands behind the recorder, or is alone: each call once, in order.
pub(super) const FORWARDED: &str = "version 7.8\n<pop>\npop of nothing 99\n<push outer>\npush 99\n<push inner>\npush 100\n<mark a mark>\n<pop>\n\
     pop 100\n<pop>\npop 99\n<pop>\npop of nothing 98\n<start crossing>\nstart 1001\n<stop 1001>\n<start back>\n\
     <push on a thread>\npush on a thread 98\n<pop>\npop on a thread 98\nstart 1002\n<stop 1002>\n<stop 4711>\n\
     pause 23\n<push in a pause>\n<pop>\n<start in a pause>\n<start resumed>\n<stop 1003>\nresume 25\n<stop 1004>\n\
     pause of one thread 22\nthread 21 other\n<name main>\nname 26\n<name agent>\nname 27\n\
     <name device>\nname 28\n<name stream>\nname 29\n<mark (null)>\n<mark broken>\n<push left open>\n<start left open>\n";

/// The stand-in for AMD's library, in `dir`.
pub(super) fn other(dir: &Dir) -> PathBuf {
    let map = format!("-Wl,-soname,libroctx64.so.4,--version-script={}", source("other_roctx.map").display());
    compile(dir, "other_roctx.c", "libroctx64.so.4", &["-shared", "-fPIC", &map])
}

/// roctx.c linked against the stand-in, as programs are linked against AMD's library.
pub(super) fn linked(dir: &Dir) -> PathBuf {
    let library = other(dir).display().to_string();
    let program = compile(dir, "roctx.c", "linked", &["-DLINKED", "-lpthread", &library]);
    let needs = crate::harness::tool("readelf", &["-VW".as_ref(), program.as_os_str()]);
    assert!(needs.contains("ROCTX_4.1"), "{needs}");
    program
}

/// roctx.c, which is given a library's name.
pub(super) fn opening(dir: &Dir) -> PathBuf {
    compile(dir, "roctx.c", "opening", &["-ldl", "-lpthread"])
}

/// The rows roctx.c makes, whatever stands behind the recorder.
#[track_caller]
pub(super) fn assert_recorded(dir: &Dir) {
    let markers = markers(dir);
    let mut texts: Vec<&str> = markers.iter().map(|(text, ..)| text.as_str()).collect();
    texts.sort_unstable();
    let expected = [
        "",
        "a mark",
        "back",
        "broken \u{fffd}\u{fffd} and\nlines",
        "crossing",
        "inner",
        "left open",
        "left open",
        "on a thread",
        "outer",
        "resumed",
    ];
    assert_eq!(texts, expected, "{markers:?}");
    let of = |text: &str| markers.iter().find(|(known, ..)| known == text).unwrap();
    let [outer, inner, mark, crossing, back, on_a_thread] =
        ["outer", "inner", "a mark", "crossing", "back", "on a thread"].map(of);
    assert!(outer.2 <= inner.2 && inner.3 <= outer.3, "{markers:?}");
    assert!(inner.2 <= mark.2 && mark.2 == mark.3 && mark.3 <= inner.3, "{markers:?}");
    // A range is its starter's, whoever stops it.
    assert!(crossing.1 == outer.1 && back.1 == on_a_thread.1 && back.1 != outer.1, "{markers:?}");
    assert!(back.2 >= crossing.3 && back.3 >= on_a_thread.3, "{markers:?}");
    let last = markers.iter().map(|(.., end)| *end).max().unwrap();
    let ends: Vec<_> = markers.iter().filter(|(text, ..)| text == "left open").map(|m| m.3).collect();
    assert!(
        ends[0] <= last && ends[1] == last,
        "the thread's ends with it, the process's with that: {markers:?}"
    );
}

#[test]
fn a_program_linked_with_a_version_node_and_no_library_of_its_own() {
    let dir = Dir::new();
    let program = linked(&dir);
    // The loader wants a file of that name, with that node; what it defines is not reached. An empty one will do.
    std::fs::write(dir.path("empty.c"), "").unwrap();
    let map = format!("-Wl,-soname,libroctx64.so.4,--version-script={}", source("other_roctx.map").display());
    let (empty, place) = (dir.path("empty.c"), dir.path("libroctx64.so.4"));
    let options =
        ["-shared", "-fPIC", &map, "-o", place.to_str().unwrap(), empty.to_str().unwrap()].map(String::from);
    crate::harness::tool("cc", &options);
    let run = Run::new(&dir, program).env("LD_LIBRARY_PATH", dir.path(""));
    let ran = run.recorded(Loading::Preload).run();
    assert_eq!(ran.expect(0).expect_silent().stdout, RETURNED, "{ran}");
    assert_recorded(&dir);
}

#[test]
fn another_roctx_library_hears_of_each_call_once_and_its_values_are_returned() {
    let dir = Dir::new();
    let program = linked(&dir);
    let run = |dir| Run::new(dir, &program).env("LD_LIBRARY_PATH", dir.path(""));
    let plain = run(&dir).run();
    assert_eq!(plain.expect(0).expect_silent().stdout, FORWARDED, "{plain}");
    let ran = run(&dir).recorded(Loading::Preload).run();
    assert_eq!(ran.expect(0).expect_silent().stdout, plain.stdout, "{ran}");
    assert_recorded(&dir);
}

#[test]
fn a_program_that_opens_the_recorder_as_its_roctx_library() {
    let dir = Dir::new();
    let program = opening(&dir);
    let recorder = crate::harness::recorder();
    let ran = Run::new(&dir, &program).arg(&recorder).recorded(Loading::Preload).run();
    assert_eq!(ran.expect(0).expect_silent().stdout, RETURNED, "{ran}");
    assert_recorded(&dir);
}

#[test]
fn resuming_begins_a_recording_that_waits_for_a_start() {
    let dir = Dir::new();
    let program = opening(&dir);
    let recorder = crate::harness::recorder();
    let run = Run::new(&dir, &program).arg(&recorder).recorded(Loading::Preload);
    run.env("RPDT_AUTOSTART", "0").run().expect(0).expect_silent();
    let texts: Vec<_> = markers(&dir).into_iter().map(|(text, ..)| text).collect();
    assert_eq!(texts, ["resumed", "", "broken \u{fffd}\u{fffd} and\nlines", "left open", "left open"]);
}

#[test]
fn texts_of_a_megabyte_and_of_any_bytes() {
    let dir = Dir::new();
    let script = dir.path("long.py");
    std::fs::write(&script, LONG).unwrap();
    let ran = Run::new(&dir, Path::new("python3")).arg(&script).recorded(Loading::Preload).run();
    ran.expect(0).expect_silent();
    let texts: Vec<_> = markers(&dir).into_iter().map(|(text, ..)| text).collect();
    assert_eq!(texts.len(), 302);
    assert_eq!(texts[0], "long ".repeat(1 << 18));
    assert_eq!(texts[1], "same place, other text");
    let random: Vec<u8> = std::fs::read(dir.path("random")).unwrap();
    for (text, bytes) in texts[2..].iter().zip(random.chunks(100)) {
        assert_eq!(*text, String::from_utf8_lossy(bytes));
    }
}

/// Marks 1.25 MiB of text, then another text at the same address, then 300 times 100 random bytes, which it leaves in `random`.
const LONG: &str = "\
import ctypes, random
roctx = ctypes.CDLL(None)
place = ctypes.create_string_buffer(b'long ' * (1 << 18))
roctx.roctxMarkA(place)
place.value = b'same place, other text'
roctx.roctxMarkA(place)
numbers = random.Random(1)
with open('random', 'wb') as file:
    for _ in range(300):
        text = bytes(numbers.randrange(1, 256) for _ in range(100))
        roctx.roctxMarkA(text)
        file.write(text)
";
