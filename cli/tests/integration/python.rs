//! `rpd.read` in Python: the rows and numbers are those of the command.

use std::fs;

use serde_json::Value;

use crate::export_rows::pyarrow;
use crate::generated::generated;
use crate::harness::{Dir, ran};
use crate::webdriver::Browser;

/// The notebook of the examples.
const NOTEBOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/python/trace.ipynb");

/// What a program finds that reads the trace of its argument.
const READ: &str = r#"
import json, subprocess, sys
sys.path.insert(0, sys.argv[1])
import rpd
from rpd.command import find
assert "pyarrow" not in sys.modules
t = rpd.read(sys.argv[2])
gaps = t.gaps().to_pylist()
def same(table, *arguments):
    rows = json.loads(subprocess.run([find(), *arguments, "--json", sys.argv[2]], stdout=subprocess.PIPE, check=True).stdout)
    found = [{key: value for key, value in row.items() if value is not None} for row in table.to_pylist()]
    assert found == [{key: value for key, value in row.items() if value is not None} for row in rows], arguments
same(t.top(), "top")
for by in ("kernel", "api", "copy", "marker"):
    same(t.top(by=by), "top", "--by", by)
first = ["--session", str(t.info["sessions"][0]["session"])]
assert t.top("kernel", *first).num_rows and t.gaps("gpu", *first).num_rows and t.overlap(*first).num_rows
same(t.top("kernel", *first), "top", "--by", "kernel", *first)
assert t.sql("kernels", *first).num_rows == t.sql("select count(*) as n from op where opType in ('KernelExecution', 'Task')", *first)["n"][0].as_py()
drawn = {}
class Axes:
    def stairs(self, values, edges, label):
        assert 0 < len(values) == len(edges) - 1 and all(0 <= value <= 100 for value in values)
        drawn[label] = sum(value / 100 * (end - begin) for value, begin, end in zip(values, edges, edges[1:])) * 1e9
    def legend(self, **options): pass
    def set(self, **options): pass
t.plot_utilisation(Axes())
print(json.dumps({
    "repr": repr(t), "html": t._repr_html_(), "info": t.info, "drawn": drawn,
    "frames": {name: getattr(t, name).to_pylist() for name in ("kernels", "copies", "apis", "markers")},
    "gaps": gaps, "causes": t.gaps("causes").to_pylist(), "overlap": t.overlap().to_pylist(),
    "sql": t.sql("select count(*) as n from rocpd_op").to_pylist(),
    "diff": t.diff(sys.argv[2], "--all").to_pylist(), "diff of traces": t.diff(rpd.read(sys.argv[2]), "--all").to_pylist(),
}))
"#;

/// Names what a module offers without type hints: functions, and methods of classes, with their arguments and what they return.
const WITHOUT_HINTS: &str = r#"
import ast, pathlib, sys
python, looked_at = pathlib.Path(sys.argv[1]), 0
modules = ["rpdTracerControl.py", "rpd/__init__.py", "rpd/trace.py", "rpd/timeline.py", "rpd/schema.py"]
for module in modules + [str(path.relative_to(python)) for path in python.glob("rocpd/*.py")]:
    def look(body, name):
        global looked_at
        for each in body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                look(each.body, f"{each.name}.")
            if not isinstance(each, ast.FunctionDef) or each.name.startswith("_") or each.name == "main":
                continue
            looked_at += 1
            arguments = each.args
            named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            hints = [argument.annotation for argument in named if argument and argument.arg not in ("self", "cls")]
            if None in [*hints, each.returns]:
                print(f"{module}: {name}{each.name}")
    look(ast.parse((python / module).read_text()).body, "")
assert looked_at > 40, looked_at
"#;

#[test]
fn everything_that_python_offers_has_type_hints() {
    let dir = Dir::new();
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../python");
    let found = ran(dir.command("python3").args(["-c", WITHOUT_HINTS, python]));
    assert_eq!(found.expect(0).stdout, "");
}

#[test]
fn python_repeats_what_was_lost() {
    let dir = Dir::new();
    let trace = generated(&dir, "g.rpd", 1, 30);
    let script = r#"
import json, sys, warnings
sys.path.insert(0, sys.argv[1])
import rpd
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    t = rpd.read(sys.argv[2])
    t.top(), t.gaps(), t.kernels
print(json.dumps([[str(warning.message) for warning in said], [warning.filename for warning in said], repr(t), t._repr_html_()]))
"#;
    let read = || -> Option<(Vec<String>, Vec<String>, String, String)> {
        let said = pyarrow(&dir, script, &[&dir.python(), &trace])?;
        Some(serde_json::from_str(&said.expect(0).stdout).unwrap())
    };
    let Some((warnings, _, repr, _)) = read() else { return };
    assert!(warnings.is_empty() && !repr.contains("lost"), "{warnings:?} {repr}");
    dir.open(&trace)
        .execute_batch(
            "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::pid', '100'), ('session::0::lost::ring', '7'),
                 ('session::0::launches_without_op', '2')",
        )
        .unwrap();
    let Some((warnings, files, repr, html)) = read() else { return };
    let lost = "7 records lost while recording (7 ring), 2 launches without an operation";
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].ends_with(lost) && !files[0].contains("rpd/trace.py"), "{warnings:?} {files:?}");
    assert!(repr.contains(lost) && html.contains(lost), "{repr} {html}");
    let page = dir.run(&["export", "html", &trace]).expect(0).stdout.clone();
    assert!(page.contains(r#"["incomplete: records lost while recording (7 ring)",7,"count"]"#), "{page}");
    assert!(page.contains(r#"["incomplete: launches without an operation",2,"count"]"#), "{page}");
}

/// A trace in which every third operation is a barrier, on three queues of one GPU and more.
fn with_barriers(dir: &Dir) -> String {
    let trace = generated(dir, "g.rpd", 1, 300);
    dir.open(&trace)
        .execute_batch("INSERT INTO rocpd_barrierop SELECT id, 0, '', '' FROM rocpd_op WHERE id % 3 = 0")
        .unwrap();
    trace
}

#[test]
fn python_has_the_numbers_of_the_command() {
    let dir = Dir::new();
    for trace in [with_barriers(&dir), dir.unpacked("mytrace_raw.rpd"), dir.fixture("matmul_result.rpd")] {
        let Some(read) = pyarrow(&dir, READ, &[&dir.python(), &trace]) else { return };
        let read: Value = serde_json::from_str(&read.expect(0).stdout).unwrap();
        let json = |arguments: &[&str]| -> Value {
            serde_json::from_str(&dir.run(&[arguments, &[&trace]].concat()).expect(0).stdout).unwrap()
        };
        let lines = |rows: &str| -> Value {
            let exported = dir.run(&["export", "jsonl", &trace, rows]);
            exported
                .expect(0)
                .stdout
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap())
                .collect()
        };
        for frame in ["kernels", "copies", "apis", "markers"] {
            assert!(read["frames"][frame] == lines(frame), "{trace} {frame}");
        }
        assert_eq!(read["overlap"], json(&["overlap", "--json"]));
        let diff = json(&["diff", "--json", "--all", &trace])["rows"].take();
        assert!(diff.as_array().unwrap().len() > 5 && read["diff"] == diff, "{trace}");
        assert!(read["diff of traces"] == diff, "{trace}");
        assert_eq!(read["info"]["sessions"], json(&["info", "--json"])["sessions"]);
        let gaps = json(&["gaps", "--json"]);
        let mut causes = Vec::new();
        for (gpu, found) in gaps.as_array().unwrap().iter().zip(read["gaps"].as_array().unwrap()) {
            assert_eq!(gpu["idle_ns"], found["idle_ns"]);
            assert!(found.get("causes").is_none());
            causes.extend(gpu["causes"].as_array().unwrap().iter().map(|cause| {
                let mut cause = cause.clone();
                cause["gpu"] = gpu["gpu"].clone();
                cause
            }));
            // The picture has the busy time of the report.
            let drawn = read["drawn"][format!("GPU {}", gpu["gpu"])].as_f64().unwrap();
            let busy = gpu["busy_ns"].as_f64().unwrap();
            assert!((drawn - busy).abs() <= 1e-6 * busy + 1.0, "{drawn} {busy}");
        }
        assert_eq!(read["causes"], Value::from(causes));
        let operations = dir
            .open(&trace)
            .query_row("SELECT count(*) FROM rocpd_op", [], |row| row.get::<_, i64>(0))
            .unwrap();
        assert_eq!(read["sql"][0]["n"], operations);
        let repr = read["repr"].as_str().unwrap();
        assert!(repr.contains(&trace) && repr.contains(&format!("{operations} operations")), "{repr}");
    }
}

#[test]
fn python_says_what_is_wrong_and_escapes_names() {
    let dir = Dir::new();
    let text = "<script>alert(1)</script>\u{1b}[2J\u{202e}";
    let trace = dir.trace("t.rpd", "");
    let connection = dir.open(&trace);
    connection.execute("INSERT INTO rocpd_string VALUES (1, ?1), (2, 'KernelExecution')", [text]).unwrap();
    connection.execute_batch("INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 100, 200, 1, 2)").unwrap();
    dir.write("no.rpd", "no trace");
    dir.trace("empty.rpd", "");
    let script = r#"
import json, sys
sys.path.insert(0, sys.argv[1])
import rpd
failures = []
def fails(what, kind):
    try:
        what()
    except kind as error:
        failures.append(str(error))
t, empty = rpd.read("t.rpd"), rpd.read("empty.rpd")
fails(lambda: rpd.read("missing.rpd"), rpd.Failed)
fails(lambda: rpd.read("no.rpd"), rpd.Failed)
fails(lambda: t.sql("delete from rocpd_op"), rpd.Failed)
fails(lambda: t.top(by="nothing"), rpd.Failed)
fails(lambda: t.gaps("nothing"), ValueError)
assert empty.kernels.num_rows == 0 and str(empty.kernels.schema.field("start_ns").type) == "int64"
assert empty.gaps().num_rows == empty.gaps("causes").num_rows == empty.top().num_rows == 0
sys.modules["pyarrow"] = None
fails(lambda: rpd.read("t.rpd"), ImportError)
import pydoc
assert "t.kernels" in pydoc.render_doc(rpd)
print(json.dumps([t._repr_html_(), failures]))
"#;
    let Some(said) = pyarrow(&dir, script, &[&dir.python()]) else { return };
    let (html, failures): (String, Vec<String>) = serde_json::from_str(&said.expect(0).stdout).unwrap();
    assert!(html.contains("&lt;script&gt;alert") && !html.contains("<script>"), "{html}");
    assert!(!html.contains(['\u{1b}', '\u{202e}']), "{html}");
    let words = ["no such file", "no.rpd", "may only read", "nothing", "causes", "pip install pyarrow"];
    assert_eq!(failures.len(), words.len(), "{failures:?}");
    for (failure, words) in failures.iter().zip(words) {
        assert!(failure.contains(words) && failure.lines().count() == 1, "{failure}");
    }
}

/// Runs each cell, as a notebook does, and what stands alone in its last line is shown.
const RUN: &str = r#"
import ast, json, sys
sys.path.insert(0, sys.argv[1])
cells = json.load(open(sys.argv[2]))["cells"]
there = {}
for cell in cells:
    if cell["cell_type"] != "code":
        continue
    parsed = ast.parse("".join(cell["source"]))
    last = parsed.body.pop() if isinstance(parsed.body[-1], ast.Expr) else None
    exec(compile(parsed, "cell", "exec"), there)
    if last:
        shown = eval(compile(ast.Expression(last.value), "cell", "eval"), there)
        getattr(shown, "_repr_html_", shown.__repr__)()
figures = [there["t"].plot_utilisation().figure, there["t"].plot_gaps().figure, there["t"].plot_kernel(there["name"])[0].figure]
for number, figure in enumerate(figures):
    figure.savefig("%d.png" % number)
print(sum(len(axes.patches) + len(axes.lines) for figure in figures for axes in figure.axes) > 10)
"#;

#[test]
fn the_notebook_runs() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    fs::rename(dir.path(&trace), dir.path("trace.rpd")).unwrap();
    let run = "import os, sys\nos.environ['MPLBACKEND'] = 'agg'\nos.environ['MPLCONFIGDIR'] = os.getcwd()\n"
        .to_string()
        + RUN;
    if let Some(shown) = pyarrow(&dir, &run, &[&dir.python(), NOTEBOOK]) {
        assert_eq!(shown.expect(0).stdout.lines().last(), Some("True"), "{shown}");
        for number in 0..3 {
            assert!(fs::metadata(dir.path(&format!("{number}.png"))).unwrap().len() > 5000);
        }
    }
    // A checkout of the sources alone is a package.
    let version = "import sys; sys.path.insert(0, sys.argv[1]); import rpd; print(sorted(rpd.__all__))";
    let there = ran(dir.command("python3").args(["-c", version, &dir.python()]));
    assert_eq!(there.expect(0).stdout, "['Failed', 'read', 'show']\n");
}

#[test]
fn python_shows_the_timeline_in_a_frame() {
    let dir = Dir::new();
    let trace = crate::generated::generated(&dir, "t.rpd", 3, 200);
    dir.write("no.rpd", "no trace");
    let script = r#"
import html, json, sys
sys.path.insert(0, sys.argv[1])
import rpd
shown = rpd.show(sys.argv[2])
frame = shown._repr_html_()
shown.save("page.html")
start = frame.index('srcdoc="') + 8
assert html.unescape(frame[start:frame.index('"', start)]) == open("page.html").read()
assert 'sandbox="allow-scripts"' in frame and "same-origin" not in frame
assert callable(rpd.show)
rpd.show(sys.argv[2], levels=True).save("levels.html")
try:
    rpd.show("no.rpd")
except rpd.Failed as failed:
    print(failed)
"#;
    let mut command = dir.command("python3");
    let ran = ran(command.env("PYTHONDONTWRITEBYTECODE", "1").args(["-c", script, &dir.python(), &trace]));
    assert!(ran.expect(0).stdout.contains("no.rpd"), "{}", ran.stdout);
    dir.run(&["export", "timeline", &trace, "-o", "same.html"]).expect(0);
    assert_eq!(fs::read(dir.path("page.html")).unwrap(), fs::read(dir.path("same.html")).unwrap());
    dir.run(&["export", "timeline", &trace, "--levels", "-o", "same-levels.html"]).expect(0);
    assert_eq!(fs::read(dir.path("levels.html")).unwrap(), fs::read(dir.path("same-levels.html")).unwrap());
    let Some(browser) = Browser::start(&dir) else { return };
    let page = fs::read_to_string(dir.path("page.html")).unwrap();
    let escaped = page.replace('&', "&amp;").replace('"', "&quot;");
    dir.write(
        "notebook.html",
        format!("<!doctype html><iframe sandbox=\"allow-scripts\" srcdoc=\"{escaped}\"></iframe>"),
    );
    browser.open(&format!("file://{}", dir.path("notebook.html").display()));
    browser.enter_frame();
    browser.wait("Boolean(window.rpdTest) && rpdTest.isWhole()");
    browser.get("document.getElementById('tab-selection').click()");
    browser.wait("document.querySelector('#pane .names') !== null");
    assert_eq!(browser.console(), Vec::<String>::new());
}
