//! A trace that is watched while it is recorded: `rpd view --live` must cost the recorder nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::harness::{Dir, Expected, Loading, PATIENCE, Run, command, program, rpd, wait_for};

/// A page's server; it ends with this.
struct Viewed {
    command: Child,
    host: String,
    path: String,
}

impl Drop for Viewed {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

impl Viewed {
    fn start(dir: &Dir, trace: &str) -> Viewed {
        let mut view = command(rpd());
        view.args(["view", "--no-open", "--live"]).arg(dir.path(trace)).stdout(Stdio::piped());
        let mut command = view.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(command.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let (host, path) = url.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        Viewed { host: host.to_string(), path: path.to_string(), command }
    }

    /// What the page is told when it asks this.
    fn asked(&self, question: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "GET /{}{question} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.path, self.host
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// A number of the trace, as the page gets it.
    fn number(&self, name: &str) -> Option<i64> {
        let answer = self.asked("trace");
        let (_, value) = answer.split_once(&format!("\"{name}\":"))?;
        value.split([',', '}']).next()?.parse().ok()
    }
}

#[test]
fn a_recorder_at_full_speed_loses_nothing_to_who_watches() {
    let dir = Dir::new();
    let created = command(rpd()).arg("create").arg(dir.path("trace.rpd")).status().unwrap();
    assert!(created.success());
    let viewed = Viewed::start(&dir, "trace.rpd");
    let config = "[[kernel]]\nmatch = \"long_kernel\"\nns = 2000000000\n\
        [[kernel]]\nmatch = \"short_kernel\"\nns = 1000\n";
    let run = Run::new(&dir, program("long")).config(config).recorded(Loading::Preload);
    // Many transactions, each of which a reader could fail.
    let running = run.env("RPDT_AUTOFLUSH", "10").start();
    // The page shows rows before all are there, and then more.
    let some = wait_for("rows on the page", || viewed.number("ops").filter(|ops| *ops > 0));
    running.finish().expect(0).expect_silent();
    let trace = dir.trace("trace.rpd");
    Expected::of(&dir.logs()[0].1).assert_equals(&trace);
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
    let (calls, ops) =
        (trace.number("select count(*) from rocpd_api"), trace.number("select count(*) from rocpd_op"));
    assert!(some < ops, "it was shown when all was there");
    wait_for("all rows on the page", || {
        (viewed.number("calls") == Some(calls) && viewed.number("ops") == Some(ops)).then_some(())
    });
    let waited = trace.metadata("session::%::waited_ns");
    println!("{ops} operations; the program's threads waited {waited:?} ns");
}
