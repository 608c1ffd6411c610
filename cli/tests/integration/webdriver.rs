//! A browser, driven as people drive it: the W3C's WebDriver protocol, plain JSON over HTTP, by chromedriver; by geckodriver where
//! RPD_BROWSER is `firefox`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Dir, installed};

/// How long a browser may take for anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page; it goes away with this.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// What Firefox says of errors of pages, where it is the browser.
    errors: Option<Arc<Mutex<Vec<String>>>>,
}

/// The size of the page.
const PAGE: (u64, u64) = (1280, 800);

/// Whether tests are to run in Firefox.
pub(crate) fn is_firefox() -> bool {
    std::env::var_os("RPD_BROWSER").is_some_and(|name| name == "firefox")
}

/// What tests ask pages, where it is not there yet.
const IN_EACH_PAGE: &str = concat!(r#"if (!("rpdTest" in window)) {"#, include_str!("page.js"), "}\n");

/// Asks the driver; the answer's value.
fn ask(port: u16, method: &str, path: &str, body: &Value) -> Result<Value, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let body = if method == "POST" { body.to_string() } else { String::new() };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        answer.read_line(&mut line).map_err(failed)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap_or(0);
        }
    }
    let mut content = vec![0; length];
    answer.read_exact(&mut content).map_err(failed)?;
    let mut answer: Value = serde_json::from_slice(&content).map_err(|error| error.to_string())?;
    let value = answer["value"].take();
    if value["error"].is_string() { Err(value.to_string()) } else { Ok(value) }
}

impl Browser {
    /// Starts one. None where none is installed; that is said.
    pub(crate) fn start(dir: &Dir) -> Option<Browser> {
        let [program, of] =
            if is_firefox() { ["geckodriver", "firefox-esr"] } else { ["chromedriver", "chromium"] };
        if !installed(program) || !installed(of) {
            return None;
        }
        let mut driver = dir.command(program);
        // Its own group, so that browsers that it leaves behind end with it.
        driver
            .arg("--port=0")
            .env("HOME", dir.path("home"))
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(if is_firefox() { Stdio::piped() } else { Stdio::null() });
        let mut driver = driver.spawn().unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.ok()?;
            let (_, port) =
                line.rsplit_once("on port ").or_else(|| line.rsplit_once("Listening on 127.0.0.1:"))?;
            port.trim_end_matches('.').parse().ok().filter(|port| *port != 0)
        });
        std::thread::spawn(move || lines.for_each(drop));
        let errors = driver.stderr.take().map(|stderr| {
            let errors = Arc::new(Mutex::new(vec![]));
            let said = Arc::clone(&errors);
            std::thread::spawn(move || {
                // Errors of the browser's own are at resource: and chrome:.
                let is_of_page = |line: &String| {
                    ["http:", "file:", "about:"]
                        .iter()
                        .any(|of| line.starts_with(&format!("JavaScript error: {of}")))
                };
                let lines = BufReader::new(stderr).lines().map_while(Result::ok);
                lines.filter(is_of_page).for_each(|line| said.lock().unwrap().push(line));
            });
            errors
        });
        let port = port.expect("the driver says its port");
        let mut browser = Browser { driver, port, session: String::new(), errors };
        if is_firefox() {
            browser.start_firefox();
            return Some(browser);
        }
        let options = json!({
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            "goog:chromeOptions": { "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,800"] },
        });
        let session = browser.post("/session", &json!({ "capabilities": { "alwaysMatch": options } }));
        browser.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        browser.resize(PAGE);
        let script = json!({ "source": include_str!("page.js") });
        browser.cdp("Page.addScriptToEvaluateOnNewDocument", &script);
        Some(browser)
    }

    fn start_firefox(&mut self) {
        let options = json!({ "moz:firefoxOptions": {
            "args": ["-headless"],
            "prefs": { "browser.dom.window.dump.enabled": true },
        } });
        let session = self.post("/session", &json!({ "capabilities": { "alwaysMatch": options } }));
        self.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        self.resize(PAGE);
    }

    /// Makes the page this large; Chromium takes a narrow one for that of a telephone.
    pub(crate) fn resize(&self, (width, height): (u64, u64)) {
        if is_firefox() {
            // A window is larger than its page.
            let [wide, high] = ["outerWidth - innerWidth", "outerHeight - innerHeight"]
                .map(|difference| self.get(difference).as_u64().unwrap());
            self.post("/window/rect", &json!({ "width": width + wide, "height": height + high }));
        }
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700 });
        self.cdp("Emulation.setDeviceMetricsOverride", &size);
    }

    /// What a script in the page returns.
    fn run(&self, script: &str) -> Value {
        // Firefox has no command for scripts in every document.
        let first = if is_firefox() { IN_EACH_PAGE } else { "" };
        self.post("/execute/sync", &json!({ "script": format!("{first}{script}"), "args": [] }))
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        ask(self.port, "POST", &format!("{}{path}", self.session), body)
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A command of Chromium's own protocol, which Firefox has not.
    pub(crate) fn cdp(&self, command: &str, parameters: &Value) -> Option<Value> {
        (!is_firefox())
            .then(|| self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters })))
    }

    /// Opens a page.
    pub(crate) fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// Goes back to the page before, as the browser's button does. A script that leaves its page may be run again in the one that comes: the
    /// driver repeats a script whose page went away before it had answered.
    pub(crate) fn back(&self) {
        self.post("/back", &json!({}));
    }

    /// Looks into the first frame of the page from now on.
    pub(crate) fn enter_frame(&self) {
        self.post("/frame", &json!({ "id": 0 }));
        // What is in every document is not in a frame that has no origin.
        self.run(IN_EACH_PAGE);
    }

    /// What an expression of the page gives.
    pub(crate) fn get(&self, expression: &str) -> Value {
        self.run(&format!("return ({expression})"))
    }

    /// Waits until an expression of the page is true. It is not where a part of the page that it names is not there, or is being replaced.
    #[track_caller]
    pub(crate) fn wait(&self, expression: &str) {
        let script = format!(
            "try {{ return ({expression}) }} catch (error) {{ if (error instanceof TypeError) return String(error); throw error }}"
        );
        let begun = Instant::now();
        loop {
            let found = self.run(&script);
            if found == Value::Bool(true) {
                return;
            }
            let shown = || self.get("document.body.innerText");
            assert!(begun.elapsed() < PATIENCE, "never true: {expression}: {found}; {}", shown());
            sleep(Duration::from_millis(30));
        }
    }

    /// Presses keys, one after the other.
    pub(crate) fn press(&self, keys: &[&str]) {
        let steps: Vec<Value> = keys
            .iter()
            .flat_map(|key| ["keyDown", "keyUp"].map(|what| json!({ "type": what, "value": key })))
            .collect();
        self.post("/actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": steps }] }));
    }

    /// Presses a button of the mouse at a place of the window, and lets it go at another.
    pub(crate) fn drag(&self, from: (f64, f64), to: (f64, f64), key: Option<&str>) {
        let at = |(x, y): (f64, f64)| json!({ "type": "pointerMove", "duration": 20, "x": x.round(), "y": y.round() });
        let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
        let pause = json!({ "type": "pause" });
        let (down, up) =
            (json!({ "type": "pointerDown", "button": 0 }), json!({ "type": "pointerUp", "button": 0 }));
        let pointer = vec![pause.clone(), at(from), down, at(middle), at(to), up, pause.clone()];
        let mut actions = vec![
            json!({ "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": pointer }),
        ];
        if let Some(key) = key {
            let mut keys = vec![json!({ "type": "keyDown", "value": key })];
            keys.extend(std::iter::repeat_n(pause, 5));
            keys.push(json!({ "type": "keyUp", "value": key }));
            actions.push(json!({ "type": "key", "id": "keys", "actions": keys }));
        }
        self.post("/actions", &json!({ "actions": actions }));
    }

    /// Moves the pointer to a place of the window.
    pub(crate) fn point(&self, (x, y): (f64, f64)) {
        let to = json!({ "type": "pointerMove", "duration": 20, "x": x.round(), "y": y.round() });
        let pointer = json!({ "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": [to] });
        self.post("/actions", &json!({ "actions": [pointer] }));
    }

    /// Clicks at a place of the window.
    pub(crate) fn click(&self, at: (f64, f64)) {
        self.drag(at, at, None);
    }

    /// What the page wrote to its console since the last question, violations of its policy included.
    pub(crate) fn console(&self) -> Vec<String> {
        if let Some(errors) = &self.errors {
            return std::mem::take(&mut errors.lock().unwrap());
        }
        let lines = self.post("/se/log", &json!({ "type": "browser" }));
        lines
            .as_array()
            .unwrap()
            .iter()
            .map(|line| format!("{}: {}", line["level"], line["message"]))
            .collect()
    }

    /// Addresses that the browser asked for since the last question; of Firefox that is not known.
    pub(crate) fn requested(&self) -> Vec<String> {
        if is_firefox() {
            return vec![];
        }
        let lines = self.post("/se/log", &json!({ "type": "performance" }));
        let lines = lines.as_array().unwrap().iter();
        lines
            .filter_map(|line| {
                let event: Value = serde_json::from_str(line["message"].as_str()?).ok()?;
                let event = &event["message"];
                let is_request = event["method"] == "Network.requestWillBeSent";
                is_request.then(|| event["params"]["request"]["url"].as_str().unwrap_or_default().to_string())
            })
            .collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = ask(self.port, "DELETE", &self.session, &Value::Null);
        }
        let group = format!("-{}", self.driver.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.driver.wait();
    }
}
