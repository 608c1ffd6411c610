//! `rpd view` as a page asks it, and what its process takes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::WIDTH;
use crate::harness::Dir;

/// Ticks of a second in /proc.
const TICKS: f64 = 100.0;

/// Buckets of a tile.
const BUCKETS: u64 = 512;

/// CPU seconds of a process so far.
pub(crate) fn cpu_seconds(process: u32) -> f64 {
    // The name, which may have blanks, ends with the last bracket.
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = |field: usize| fields[field].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / TICKS
}

/// Memory that a process takes, and what it took at most, MB.
pub(crate) fn memory(process: u32) -> [f64; 2] {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    ["VmRSS:", "VmHWM:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1024.0 / 1e6
    })
}

/// A server that ends with this.
pub(crate) struct Server {
    process: Child,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(dir: &Dir, trace: &str) -> Server {
        let mut process = dir
            .rpd(&["view", "--no-open", trace])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        Server { process, url: url.trim().to_string() }
    }

    /// CPU seconds so far.
    pub(crate) fn cpu(&self) -> f64 {
        cpu_seconds(self.process.id())
    }

    /// Memory that it takes, and what it took at most, MB.
    pub(crate) fn memory(&self) -> [f64; 2] {
        memory(self.process.id())
    }

    /// An answer's bytes.
    fn ask(&self, question: &str) -> Vec<u8> {
        let (host, token) = self.url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{token}{question} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(
            answer.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&answer[..answer.len().min(300)])
        );
        let end = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
        answer.split_off(end + 4)
    }

    pub(crate) fn json(&self, question: &str) -> Value {
        serde_json::from_slice(&self.ask(question)).unwrap()
    }

    /// Waits until the trace is so far; CPU seconds until then.
    pub(crate) fn until(&self, what: &str) -> f64 {
        while self.json("trace")[what] != Value::Bool(true) {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.cpu()
    }

    /// Asks for what a view shows, as the page does; how many bytes it is.
    pub(crate) fn view(&self, rows: &str, from: u64, length: u64) -> usize {
        let pixel = (length / WIDTH / 2).max(1);
        let level = pixel.ilog2() & !1;
        let size = BUCKETS << level;
        let (first, last) = (from / size, (from + length) / size);
        self.ask(&format!("tiles?level={level}&first={first}&tiles={}&rows={rows}", last - first + 1)).len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
