//! What the timeline in the browser costs: the first picture, panning, zooming, a page that carries its trace, beside reading the same rows with
//! SQLite alone and beside JSON for Chrome's viewers. Nothing is asserted; docs/speed.md says what is measured.
//!
//! `cargo bench -p rpd-cli --bench view [-- [--raw FILE] [EVENTS...]]`: traces of that many events, by default 100,000 and one million, with
//! RPD_BENCH_LARGE also ten million (2 GB in the temporary directory). Times are CPU seconds, so that other programs disturb them little.
//! What a browser does is measured where chromium and chromedriver are installed. Where RPD_TINYGRAD names a Python that has tinygrad,
//! its viz opens the same events.

// A panic is how a benchmark that cannot run ends.
#![allow(clippy::unwrap_used)]

mod generator;
#[path = "../../tests/integration/harness.rs"]
#[allow(dead_code, unused_imports)]
mod harness;
#[path = "../passes/measured.rs"]
#[allow(dead_code)]
mod measured;
mod server;
#[path = "../passes/setting.rs"]
#[allow(dead_code)]
mod setting;
mod tinygrad;
#[path = "../../tests/integration/webdriver.rs"]
#[allow(dead_code)]
mod webdriver;

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::Dir;
use rusqlite::Connection;
use serde_json::Value;
use server::Server;
use webdriver::Browser;

const RPD: &str = env!("CARGO_BIN_EXE_rpd");

/// Set: ten million events as well.
const LARGE: &str = "RPD_BENCH_LARGE";

/// A page has room for the events of no larger traces.
const MOST_EVENTS_OF_PAGE: u64 = 20_000_000;

/// Views that are asked for, one after the other.
const STEPS: u64 = 60;

/// Pixels of a view, and the times a view is shorter than the trace while it is panned.
const WIDTH: u64 = 1600;
const CLOSER: u64 = 50;

/// Lines of a table: what, its value, its unit.
type Lines = Vec<(&'static str, f64, &'static str)>;

fn main() {
    let (raw, sizes) = setting::arguments();
    let asked: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let sizes = match (asked.is_empty(), std::env::var_os(LARGE)) {
        (false, _) => sizes,
        (true, None) => vec![100_000, 1_000_000],
        (true, Some(_)) => vec![100_000, 1_000_000, 10_000_000],
    };
    let machine = setting::machine();
    println!("{machine}");
    let mut lines = vec![format!("# {machine}"), "events\twhat\tvalue\tunit".to_string()];
    println!("{:>9} {:44} {:>12} unit", "events", "what", "value");
    for events in sizes {
        let dir = Dir::new();
        generator::generate(&dir.path("trace.rpd"), events);
        let mut all = of_server(&dir, events);
        all.extend(of_levels(&dir));
        if events <= MOST_EVENTS_OF_PAGE {
            all.extend(of_export(&dir, events));
            if let Some(browser) = Browser::start(&dir) {
                all.extend(of_browser(&dir, &browser));
                all.extend(tinygrad::of_tinygrad(&dir, &browser));
            }
        }
        for (what, value, unit) in all {
            println!("{events:>9} {what:44} {value:>12.3} {unit}");
            lines.push(format!("{events}\t{what}\t{value:.6}\t{unit}"));
        }
    }
    if let Some(path) = raw {
        fs::write(&path, lines.join("\n") + "\n")
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// CPU seconds of this process that SQLite takes for the columns which the timeline shows.
fn of_sqlite(trace: &Path) -> f64 {
    let before = server::cpu_seconds(std::process::id());
    let trace = Connection::open(trace).unwrap();
    let mut sum = 0_i64;
    for query in [
        "SELECT api_id, op_id FROM rocpd_api_ops",
        "SELECT id, gpuId, queueId, start, \"end\", description_id, opType_id FROM rocpd_op ORDER BY id",
        "SELECT id, pid, tid, start, \"end\", apiName_id, args_id FROM rocpd_api ORDER BY id",
    ] {
        let mut rows = trace.prepare(query).unwrap();
        let columns = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                sum = sum.wrapping_add(row.get::<_, i64>(column).unwrap());
            }
        }
    }
    assert!(sum != 0);
    server::cpu_seconds(std::process::id()) - before
}

/// The first picture, panning and zooming, as the server answers them.
fn of_server(dir: &Dir, events: u64) -> Lines {
    let floor = of_sqlite(&dir.path("trace.rpd"));
    let server = Server::start(dir, "trace.rpd");
    let rough = server.until("is_read");
    let whole = server.until("is_whole");
    let trace = server.json("trace");
    let span = trace["facts"]["span_ns"].as_u64().unwrap();
    assert_eq!(
        trace["facts"]["calls"].as_u64().unwrap() + trace["facts"]["ops"].as_u64().unwrap(),
        events / 2 * 2
    );
    let tracks =
        trace["groups"].as_array().unwrap().iter().flat_map(|group| group["tracks"].as_array().unwrap());
    let rows: Vec<String> =
        tracks.flat_map(|track| track["rows"].as_array().unwrap()).map(Value::to_string).collect();
    let rows = rows.join(",");
    let picture = server.view(&rows, 0, span);
    let first = server.cpu();
    // To the right, by a tenth of the view each time.
    let length = span / CLOSER;
    let mut bytes = 0;
    for step in 0..STEPS {
        bytes += server.view(&rows, span / 4 + step * length / 10, length);
    }
    let panned = server.cpu();
    // From all of it to a microsecond, each time a fifth shorter or so.
    let ratio = (span as f64 / 1000.0).powf(1.0 / STEPS as f64);
    for step in 0..STEPS {
        let length = (span as f64 / ratio.powi(step as i32)) as u64;
        server.view(&rows, (span - length) / 2, length);
    }
    let zoomed = server.cpu();
    let [memory, most] = server.memory();
    vec![
        ("SQLite reads these rows", floor, "CPU s"),
        ("rough picture can be drawn (server)", rough, "CPU s"),
        ("first picture of all (server)", first, "CPU s"),
        ("the same, as often as SQLite reads the rows", first / floor, "times"),
        ("the trace is read whole", whole, "CPU s"),
        ("memory of the server", memory, "MB"),
        ("and at most, while it read", most, "MB"),
        ("answer for the first picture", picture as f64 / 1000.0, "kB"),
        ("a view while panning (server)", (panned - first) * 1000.0 / STEPS as f64, "CPU ms"),
        ("answer for a view while panning", bytes as f64 / 1000.0 / STEPS as f64, "kB"),
        ("a view while zooming (server)", (zoomed - panned) * 1000.0 / STEPS as f64, "CPU ms"),
    ]
}

/// CPU seconds and bytes of an export to a file.
fn exported(dir: &Dir, verb: &str, file: &str, more: &[&str]) -> (f64, f64) {
    let mut command = Command::new(RPD);
    command.args(["export", verb]).arg(dir.path("trace.rpd")).arg("-o").arg(dir.path(file)).args(more);
    let measured = measured::of(&command);
    (measured.cpu, fs::metadata(dir.path(file)).unwrap().len() as f64)
}

/// The page with levels.
fn of_levels(dir: &Dir) -> Lines {
    let (cpu, bytes) = exported(dir, "timeline", "levels.html", &["--levels"]);
    vec![("rpd export timeline --levels", cpu, "CPU s"), ("its page with levels", bytes / 1e6, "MB")]
}

/// The page that carries its trace, beside JSON for Chrome's viewers.
fn of_export(dir: &Dir, events: u64) -> Lines {
    let (page_cpu, page) = exported(dir, "timeline", "trace.html", &["--max-mb", "268"]);
    let (json_cpu, json) = exported(dir, "chrome", "trace.json", &[]);
    fs::remove_file(dir.path("trace.json")).unwrap();
    vec![
        ("rpd export timeline", page_cpu, "CPU s"),
        ("its page", page / 1e6, "MB"),
        ("an event in it", page / events as f64, "bytes"),
        ("rpd export chrome / timeline, time", json_cpu / page_cpu, "times"),
        ("rpd export chrome / timeline, bytes", json / page, "times"),
    ]
}

/// What the page's own thread is busy with, s; it counts on while the page stays.
fn busy(browser: &Browser) -> f64 {
    let metrics = browser.cdp("Performance.getMetrics", &serde_json::json!({}));
    let metrics = &metrics.expect("the benchmark is one of Chromium")["metrics"];
    metrics.as_array().unwrap().iter().find(|metric| metric["name"] == "TaskDuration").unwrap()["value"]
        .as_f64()
        .unwrap()
}

/// Opens a page and waits until it shows all: how long its thread was busy.
fn opening(browser: &Browser, url: &str) -> f64 {
    browser.open("about:blank");
    browser.cdp("Performance.enable", &serde_json::json!({ "timeDomain": "threadTicks" }));
    let before = busy(browser);
    browser.open(url);
    browser.wait("Boolean(window.rpdTest) && rpdTest.isWhole()");
    let after = busy(browser);
    if after < before { after } else { after - before }
}

/// What the page does: opening, frames.
fn of_browser(dir: &Dir, browser: &Browser) -> Lines {
    let [exported, of_levels] = ["trace.html", "levels.html"]
        .map(|page| opening(browser, &format!("file://{}", dir.path(page).display())));
    let server = Server::start(dir, "trace.rpd");
    server.until("is_whole");
    let opened = opening(browser, &server.url);
    // Closer, then frames beside filling as many pixels.
    browser.press(&["w"; 12]);
    browser.wait("rpdTest.isWhole()");
    let frames = |key: &str| {
        browser.get("(window.took = [], window.observer ??= new PerformanceObserver((list) => window.took.push(...list.getEntriesByName('frame'))), window.observer.observe({ type: 'measure' }), null)");
        for _ in 0..STEPS {
            browser.press(&[key]);
        }
        browser.wait("rpdTest.isWhole()");
        let median = "(() => { const took = window.took.map((one) => one.duration).sort((a, b) => a - b); return took[took.length >> 1]; })()";
        browser.get(median).as_f64().unwrap()
    };
    let fill = browser.get(
        "(() => { const canvas = document.getElementById('events'); const image = new ImageData(canvas.width, canvas.height); const pixels = new Uint32Array(image.data.buffer);
          const context = document.createElement('canvas').getContext('2d'); [context.canvas.width, context.canvas.height] = [canvas.width, canvas.height];
          const took = []; for (let run = 0; run < 20; run += 1) { const begun = performance.now();
            for (let turn = 0; turn < 50; turn += 1) { pixels.fill(run + turn); context.putImageData(image, 0, 0); } took.push((performance.now() - begun) / 50); }
          return took.sort((a, b) => a - b)[10]; })()",
    );
    let fill = fill.as_f64().unwrap();
    let (pan, zoom) = (frames("d"), frames("s"));
    vec![
        ("the page opens (page's thread)", opened, "CPU s"),
        ("the exported page opens (page's thread)", exported, "CPU s"),
        ("the exported page with levels opens (page's thread)", of_levels, "CPU s"),
        ("frame while panning", pan, "ms"),
        ("frame while panning / filling its pixels", pan / fill, "times"),
        ("frame while zooming / filling its pixels", zoom / fill, "times"),
    ]
}
