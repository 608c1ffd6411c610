//! The same events in tinygrad's viz, the page closest to this one: what its server takes until it answers, what its page takes to draw all
//! of them, and what a frame takes while it is panned.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::harness::Dir;
use crate::webdriver::Browser;
use crate::{CLOSER, Lines, STEPS, busy, fs, server};

/// A Python that has tinygrad.
const PYTHON: &str = "RPD_TINYGRAD";

/// Its server; it ends with this.
struct Viz(Child);

impl Drop for Viz {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What tinygrad's viz takes for the trace of `dir`; nothing where [`PYTHON`] names none.
pub(crate) fn of_tinygrad(dir: &Dir, browser: &Browser) -> Lines {
    let Some(python) = std::env::var_os(PYTHON).map(PathBuf::from) else { return Vec::new() };
    let profile = dir.path("profile.pkl");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/view/tinygrad_profile.py");
    let written =
        Command::new(&python).arg(script).arg(dir.path("trace.rpd")).arg(&profile).status().unwrap();
    assert!(written.success(), "{}: {script}", python.display());
    // A port that was free a moment ago: viz cannot choose one.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let viz = Command::new(&python)
        .args(["-m", "tinygrad.viz.serve", "--rewrites-path", "none", "--profile-path"])
        .arg(&profile)
        .env("PORT", port.to_string())
        .current_dir(dir.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut viz = Viz(viz.unwrap());
    let mut said = BufReader::new(viz.0.stdout.take().unwrap()).lines();
    said.find(|line| line.as_ref().unwrap().contains("ready")).unwrap().unwrap();
    let ready = server::cpu_seconds(viz.0.id());
    let [_, most] = server::memory(viz.0.id());
    browser.open("about:blank");
    browser.cdp("Performance.enable", &serde_json::json!({ "timeDomain": "threadTicks" }));
    browser.open(&format!("http://127.0.0.1:{port}/"));
    browser.wait("typeof setState == 'function' && ctxs != null");
    browser.get("(setState({ currentCtx: 0 }), null)");
    browser.wait("Boolean(window.canvasZoom) && data.tracks.size > 0");
    let mut opened = 0.0;
    // It says nowhere that it has drawn: then its thread rests.
    while busy(browser) - opened > 0.05 {
        opened = busy(browser);
        sleep(Duration::from_millis(500));
    }
    let frames = format!(
        "(() => {{ const timeline = d3.select('#timeline'); timeline.call(canvasZoom.scaleBy, {});
          const took = []; for (let step = 0; step < {STEPS}; step += 1) {{ const begun = performance.now(); timeline.call(canvasZoom.translateBy, -10, 0);
            took.push(performance.now() - begun); }}
          return took.sort((a, b) => a - b)[{STEPS} >> 1]; }})()",
        CLOSER
    );
    let pan = browser.get(&frames).as_f64().unwrap();
    fs::remove_file(profile).unwrap();
    vec![
        ("tinygrad's viz: its server answers", ready, "CPU s"),
        ("tinygrad's viz: memory of its server at most", most, "MB"),
        ("tinygrad's viz: the page opens (page's thread)", opened, "CPU s"),
        ("tinygrad's viz: frame while panning", pan, "ms"),
    ]
}
