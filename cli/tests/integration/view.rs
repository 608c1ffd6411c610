//! `rpd view`: the command, and the page in a real browser. What is under a pixel is what SQL says.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::generated::generated;
use crate::harness::Dir;
use crate::webdriver::Browser;

/// A server that ends with this.
pub(crate) struct Viewed {
    command: Child,
    pub(crate) url: String,
}

impl Viewed {
    pub(crate) fn start(dir: &Dir, arguments: &[&str]) -> Viewed {
        let mut command = dir.rpd(&[&["view", "--no-open"], arguments].concat());
        let mut command = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(command.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        if url.is_empty() {
            let mut said = String::new();
            command.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
            panic!("{said}");
        }
        Viewed { command, url: url.trim().to_string() }
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.command.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    pub(crate) fn ended(&mut self) -> std::process::ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.command.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < Duration::from_secs(600), "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Viewed {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

/// A page whose tiles have all come.
pub(crate) fn opened(browser: &Browser, url: &str) {
    browser.open(url);
    browser.wait("Boolean(window.rpdTest) && rpdTest.isWhole()");
}

/// A trace in a browser, at a place of its page that begins with # or is empty; none where there is no browser.
pub(crate) fn viewed_at(dir: &Dir, trace: &str, place: &str) -> Option<(Browser, Viewed)> {
    let browser = Browser::start(dir)?;
    let viewed = Viewed::start(dir, &[trace]);
    opened(&browser, &format!("{}{place}", viewed.url));
    Some((browser, viewed))
}

#[test]
fn the_address_is_printed_and_ctrl_c_ends_it() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    let mut viewed = Viewed::start(&dir, &[&trace]);
    let port = viewed.url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.split_once('/')).unwrap();
    assert_eq!((port.1.len(), port.1.ends_with('/')), (33, true), "{}", viewed.url);
    // The address has what nobody else may know; the command line and the environment do not.
    let token = port.1.trim_end_matches('/');
    for file in ["cmdline", "environ"] {
        let report = fs::read(format!("/proc/{}/{file}", viewed.command.id())).unwrap();
        assert!(!String::from_utf8_lossy(&report).contains(token));
    }
    // It answers, and tells nobody without the token anything.
    let mut stream = TcpStream::connect(format!("127.0.0.1:{}", port.0)).unwrap();
    write!(stream, "GET /trace HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", port.0).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404") && !answer.contains("t.rpd"), "{answer}");
    viewed.signal("-INT");
    assert!(viewed.ended().success());
    assert_eq!(dir.names(), ["t.rpd"]);
}

#[test]
fn it_ends_when_nobody_asks() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    let mut viewed = Viewed::start(&dir, &["--idle", "200ms", &trace]);
    assert!(viewed.ended().success());
}

#[test]
fn a_session_of_ssh_is_shown_how_to_get_there() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    let mut command = dir.rpd(&["view", "--idle", "100ms", &trace]);
    // Where the screen is another machine's, no browser is started.
    let ran = command.env("SSH_CONNECTION", "a 1 b 2").env("DISPLAY", ":0").output().unwrap();
    let port = String::from_utf8(ran.stdout).unwrap();
    let port = port.split([':', '/']).nth(4).unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains(&format!("ssh -L {port}:127.0.0.1:{port} HOST")), "{said}");
}

#[test]
fn the_browser_is_given_a_file_and_not_the_address() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    dir.script(
        "bin/xdg-open",
        "#!/bin/sh\necho \"$@\" > opened\nstat -c %a \"$1\" >> opened\ncat \"$1\" >> opened\n",
    );
    let mut command = dir.rpd(&["view", "--idle", "2s", &trace]);
    let path = format!("{}:{}", dir.path("bin").display(), std::env::var("PATH").unwrap());
    let ran = command.env("PATH", path).env("DISPLAY", ":0").output().unwrap();
    let url = String::from_utf8(ran.stdout).unwrap();
    let opened = fs::read_to_string(dir.path("opened")).unwrap();
    let (arguments, rest) = opened.split_once('\n').unwrap();
    let token = url.trim().trim_end_matches('/').rsplit('/').next().unwrap();
    assert!(!arguments.contains(token) && arguments.ends_with(".html"), "{arguments}");
    assert!(rest.starts_with("600\n") && rest.contains(url.trim()), "{rest}");
    assert!(!std::path::Path::new(arguments).exists());
}

#[test]
fn what_is_no_trace_is_said_at_once() {
    let dir = Dir::new();
    dir.write("x.rpd", "no trace");
    for (arguments, words) in [(&["view", "x.rpd"][..], "x.rpd"), (&["view", "none.rpd"], "none.rpd")] {
        let ran = dir.run(arguments);
        ran.expect(1);
        assert!(ran.stdout.is_empty() && ran.stderr.contains(words), "{}", ran.stderr);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let trace = dir.trace("t.rpd", "");
    let ran = dir.run(&["view", "--port", &taken.local_addr().unwrap().port().to_string(), &trace]);
    ran.expect(1);
    assert!(ran.stderr.contains("cannot listen on 127.0.0.1:"), "{}", ran.stderr);
}

/// One event of SQL: id, begin, end, name.
struct Expected {
    id: i64,
    begin: i64,
    end: i64,
    name: String,
}

fn longest_ops(trace: &Connection, most: i64) -> Vec<Expected> {
    let mut rows = trace
        .prepare("SELECT O.id, start, \"end\", iif(D.string = '', T.string, D.string) FROM rocpd_op O JOIN rocpd_string D ON D.id = description_id
                  JOIN rocpd_string T ON T.id = opType_id WHERE \"end\" > start ORDER BY \"end\" - start DESC, O.id LIMIT ?1")
        .unwrap();
    let rows = rows.query_map([most], |row| {
        Ok(Expected { id: row.get(0)?, begin: row.get(1)?, end: row.get(2)?, name: row.get(3)? })
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

/// Middle of the plot's box of the selected event, in the window.
pub(crate) const SELECTED: &str = "(() => { const box = document.getElementById('plot').getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; })()";

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn the_page_shows_what_sql_says() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&trace]);
    let sql = dir.open(&trace);
    let first: i64 = sql
        .query_row(
            "SELECT min(start) FROM (SELECT start FROM rocpd_api UNION ALL SELECT start FROM rocpd_op)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    opened(&browser, &viewed.url);
    assert_eq!(browser.get("document.title").as_str(), Some("mytrace_raw.rpd · rpd view"));
    let (calls, ops): (i64, i64) = sql
        .query_row("SELECT (SELECT count(*) FROM rocpd_api), (SELECT count(*) FROM rocpd_op)", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    let tracks = "rpdTest.groups().flatMap((group) => group.tracks.map((track) => group.is_gpu ? [0, track.events] : [track.events, 0]))";
    assert_eq!(
        numbers(
            &browser
                .get(&format!("{tracks}.reduce((all, one) => [all[0] + one[0], all[1] + one[1]], [0, 0])"))
        ),
        [calls as f64, ops as f64]
    );

    for expected in longest_ops(&sql, 5) {
        let (begin, end) = (expected.begin - first, expected.end - first);
        let room = (end - begin).max(20);
        browser.open("about:blank");
        opened(&browser, &format!("{}#t={},{}&sel=op:{}", viewed.url, begin - room, end + room, expected.id));
        // The address leads to the event, and the pane has what the file has.
        browser.wait("document.querySelector('#pane .title') !== null");
        let text = browser.get("document.getElementById('pane').innerText");
        let text = text.as_str().unwrap();
        for part in [
            expected.name.as_str(),
            &expected.id.to_string(),
            &expected.begin.to_string(),
            &expected.end.to_string(),
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // Pixels inside of it are its, pixels in front of it and behind it are what SQL has there.
        let plot = numbers(&browser.get(SELECTED));
        let state = browser.get("rpdTest.state().t");
        let (from, to) = (numbers(&state)[0], numbers(&state)[1]);
        let x = |at: f64| (at - from) / (to - from) * plot[2];
        browser.wait("rpdTest.isWhole()");
        let middle = (begin + end) as f64 / 2.0;
        let name = Value::from(expected.name.as_str());
        let line = browser.get(&format!(
            "rpdTest.lines().find((line) => line.sort === 'row' && line.group.startsWith('g')
                 && rpdTest.name(rpdTest.at(line.row, {middle})?.name) === {name})"
        ));
        let y = line["top"].as_f64().unwrap() + line["height"].as_f64().unwrap() / 2.0;
        let bucket = (to - from) / plot[2];
        let event = |at: f64| browser.get(&format!("rpdTest.under({}, {y}).run?.event ?? null", x(at)));
        let inside = event(middle);
        assert!(inside.is_u64());
        assert_eq!(
            (event(begin as f64 + 2.0 * bucket), event(end as f64 - 2.0 * bucket)),
            (inside.clone(), inside.clone())
        );
        assert_ne!(event(begin as f64 - 3.0 * bucket), inside);
        assert_ne!(event(end as f64 + 3.0 * bucket), inside);
        let mut coloured = 0;
        for step in 0..40 {
            let at = from + (to - from) * (f64::from(step) + 0.5) / 40.0;
            let pixel = (at - bucket * 2.0, at + bucket * 2.0);
            let row = line["row"].as_u64().unwrap();
            let is_drawn = browser.get(&format!("rpdTest.pixel({}, {y}) !== rpdTest.back()", x(at)))
                == Value::Bool(true);
            let (some, all): (bool, bool) = sql
                .query_row(
                    "SELECT count(*) > 0, coalesce(max(start <= ?1 AND \"end\" >= ?2), 0) FROM rocpd_op
                     WHERE \"end\" >= ?1 AND start <= ?2 AND gpuId = ?3 AND queueId = ?4",
                    (
                        first + pixel.0 as i64,
                        first + pixel.1.ceil() as i64,
                        line["group"].as_str().unwrap()[1..].parse::<i64>().unwrap(),
                        line["track"].as_str().unwrap().rsplit('.').next().unwrap().parse::<i64>().unwrap(),
                    ),
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .unwrap();
            let is_alone = browser.get(&format!("rpdTest.groups().flatMap((group) => group.tracks).find((track) => track.rows.includes({row})).rows.length")) == 1;
            assert!(some || !is_drawn, "something is drawn where nothing is");
            assert!(is_drawn || !all || !is_alone, "nothing is drawn where something is");
            coloured += u32::from(is_drawn);
        }
        assert!(coloured > 8, "{coloured}");
    }
    assert_eq!(browser.console(), Vec::<String>::new());
    let host = viewed.url.split('/').nth(2).unwrap();
    for asked in browser.requested() {
        assert!(
            asked.starts_with(&format!("http://{host}/"))
                || asked.starts_with("data:")
                || asked == "about:blank",
            "{asked}"
        );
    }
}

#[test]
fn people_find_their_way() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&trace]);
    let sql = dir.open(&trace);
    opened(&browser, &viewed.url);
    let hash = || browser.get("location.hash").as_str().unwrap().to_string();
    let length = || {
        let t = browser.get("rpdTest.state().t");
        if t.is_null() { f64::INFINITY } else { numbers(&t)[1] - numbers(&t)[0] }
    };

    // Search: as many hits as SQL has, and Enter goes from one to the next.
    let (name, count): (String, i64) = sql
        .query_row(
            "SELECT string, count(*) FROM rocpd_op JOIN rocpd_string S ON S.id = description_id WHERE length(string) > 3
             AND string NOT GLOB '*[^A-Za-z0-9_]*' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let pattern = format!("re:^{name}$");
    browser.press(&["/"]);
    assert_eq!(browser.get("document.activeElement.id").as_str(), Some("query"));
    let typed: Vec<String> = pattern.chars().map(String::from).collect();
    browser.press(&typed.iter().map(String::as_str).collect::<Vec<_>>());
    let digits = "Number((document.getElementById('hits').textContent.match(/^[0-9,]+ hits?$/)?.[0] ?? '').replace(/[^0-9]/g, ''))";
    browser.wait(&format!("{digits} === {count}"));
    browser.press(&["\u{e007}"]);
    browser.wait("rpdTest.state().sel !== null");
    let selected = browser.get("rpdTest.state().sel");
    browser.press(&["\u{e007}"]);
    if count > 1 {
        browser.wait(&format!("rpdTest.state().sel !== {selected}"));
    }
    assert!(
        hash().contains("&q=re%3A") || hash().contains("#q=re%3A") || hash().contains("q=re%3A"),
        "{}",
        hash()
    );
    browser.press(&["\u{e00c}"]);
    browser.wait("rpdTest.state().q === '' && document.activeElement.id === 'plot'");

    // The arrow of an operation leads to its call, and back.
    let (op, call): (i64, i64) = sql
        .query_row(
            "SELECT op_id, api_id FROM rocpd_api_ops GROUP BY api_id HAVING count(*) = 1 LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    browser.get(&format!("location.hash = 'sel=op:{op}'"));
    browser.wait(&format!("rpdTest.state().sel === 'op:{op}' && rpdTest.links() === 1"));
    browser.press(&["["]);
    browser.wait(&format!("rpdTest.state().sel === 'call:{call}'"));
    browser.press(&["]"]);
    browser.wait(&format!("rpdTest.state().sel === 'op:{op}'"));
    browser.get("history.back()");
    browser.wait(&format!("rpdTest.state().sel === 'call:{call}'"));
    browser.get("history.forward()");
    browser.wait(&format!("rpdTest.state().sel === 'op:{op}'"));

    // Keys: fit, zoom, pan, back, all.
    browser.press(&["f"]);
    browser.wait("rpdTest.state().t !== null");
    let fitted = length();
    browser.press(&["w"]);
    browser.wait("rpdTest.isWhole()");
    assert!(length() < fitted * 0.8 || fitted < 30.0);
    browser.press(&["s", "s", "d", "a"]);
    assert!(length() > fitted * 1.2);
    browser.press(&["0"]);
    assert!(length() > fitted);
    browser.press(&["z"]);
    browser.press(&["0", "\u{e00c}"]);
    browser.wait("rpdTest.isWhole() && rpdTest.state().sel === null");

    // The next and the previous event of a row are those of SQL, in their order.
    browser.get("location.hash = ''");
    browser.wait("rpdTest.isWhole()");
    browser.press(&["."]);
    browser.wait("rpdTest.state().sel !== null");
    browser.wait("document.getElementById('live').textContent.length > 0");
    let one = browser.get("rpdTest.state().sel");
    browser.press(&["."]);
    browser.wait(&format!("rpdTest.state().sel !== {one}"));
    browser.press(&[","]);
    browser.wait(&format!("rpdTest.state().sel === {one}"));

    // A click selects what is under it, and nothing where there is nothing.
    browser.press(&["\u{e00c}", "0"]);
    browser.wait("rpdTest.isWhole() && rpdTest.state().sel === null");
    let plot = numbers(&browser.get(SELECTED));
    let clicked = browser.get(
        "(() => { const line = rpdTest.lines().find((line) => line.sort === 'row' && line.group.startsWith('g')); const y = line.top + line.height / 2;
          for (let x = 10; x < 900; x += 1) { const run = rpdTest.under(x, y).run; if (run?.isExact) return [x, y, run.name]; } return null; })()",
    );
    let clicked = numbers(&clicked);
    browser.click((plot[0] + clicked[0], plot[1] + clicked[1]));
    browser.wait("rpdTest.state().sel?.startsWith('op:') && document.querySelector('#pane .title') !== null");
    let name = browser.get(&format!("rpdTest.name({})", clicked[2]));
    assert!(
        browser
            .get("document.querySelector('#pane .title').innerText")
            .as_str()
            .unwrap()
            .contains(name.as_str().unwrap())
    );

    // A part of the ruler: numbers of all events there, as SQL counts them.
    browser.press(&["0"]);
    browser.wait("rpdTest.isWhole()");
    let y = plot[1] - 10.0;
    browser.drag((plot[0] + plot[2] * 0.3, y), (plot[0] + plot[2] * 0.7, y), None);
    browser.wait("rpdTest.state().range !== null");
    let range = numbers(&browser.get("rpdTest.state().range"));
    let count: i64 = sql
        .query_row(
            "WITH E AS (SELECT start, \"end\" FROM rocpd_api UNION ALL SELECT start, \"end\" FROM rocpd_op), F AS (SELECT min(start) AS first FROM E)
             SELECT count(*) FROM E, F WHERE start - first < ?2 AND (\"end\" - first > ?1 OR start - first >= ?1)",
            (range[0] as i64, range[1] as i64),
            |row| row.get(0),
        )
        .unwrap();
    browser.wait(&format!("document.querySelector('#pane .figures')?.innerText.replace(/,/g, '').includes('events\\n{count}\\n')"));

    // Closing a group leaves its bar, and frames draw it in one blit with no question to the server.
    browser.press(&["\u{e00c}", "0"]);
    browser.wait("rpdTest.isWhole()");
    let rows = browser.get("rpdTest.lines().length").as_u64().unwrap();
    browser.get("document.querySelector('.label.group').click()");
    browser.wait("rpdTest.isWhole()");
    assert!(browser.get("rpdTest.lines().length").as_u64().unwrap() < rows);
    assert!(hash().contains("closed=") || browser.get("rpdTest.state().closed").is_array());
    browser.get("document.querySelector('.label.group').click()");
    browser.wait("rpdTest.isWhole()");
    let before = browser.get("rpdTest.counts()");
    browser.press(&["w"]);
    browser.wait("rpdTest.isWhole()");
    browser.press(&["a", "d"]);
    browser.wait("rpdTest.isWhole()");
    let after = browser.get("rpdTest.counts()");
    let difference = |key: &str| after[key].as_f64().unwrap() - before[key].as_f64().unwrap();
    assert_eq!(difference("blits"), difference("frames"));
    assert!(after["labels"].as_f64().unwrap() <= 400.0);
    assert!(difference("requests") <= 6.0 && difference("bytes") < 1e6, "{before} {after}");

    // What the accessibility tree says of it.
    if let Some(tree) = browser.cdp("Accessibility.getFullAXTree", &serde_json::json!({})) {
        let nodes = tree["nodes"].as_array().unwrap();
        let roles: Vec<&str> = nodes.iter().filter_map(|node| node["role"]["value"].as_str()).collect();
        for role in ["application", "tablist", "tab", "tabpanel", "searchbox", "button"] {
            assert!(roles.contains(&role), "{role}");
        }
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// What the page is allowed for a view: no question inside of what it keeps, otherwise one for what is seen and one for what is beside it; one
/// picture of the rows for each frame.
#[test]
fn a_pan_asks_no_sql_and_each_view_costs_what_it_may() {
    let dir = Dir::new();
    let trace = dir.generated("t.rpd", &["--events", "20000", "--gpus", "2"]);
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&trace]);
    opened(&browser, &viewed.url);
    let span =
        browser.get("fetch('trace').then((answer) => answer.json()).then((trace) => trace.facts.span_ns)");
    let span = span.as_f64().unwrap();
    // Nothing of the file is left that could be asked.
    fs::write(dir.path(&trace), vec![0; 65536]).unwrap();
    browser.requested();
    let counts = || browser.get("rpdTest.counts()");
    let cost = |before: &Value, after: &Value, key: &str| {
        after[key].as_f64().unwrap() - before[key].as_f64().unwrap()
    };
    let go = |from: f64, length: f64| {
        let before = counts();
        browser.get(&format!("location.hash = 't={from},{}'", from + length));
        browser.wait(&format!(
            "rpdTest.state().t !== null && Math.abs(rpdTest.state().t[0] - {from}) < 1 && rpdTest.isWhole()"
        ));
        (before, counts())
    };
    for closer in [16.0, 256.0] {
        let length = (span / closer).floor();
        for place in [0.3, 0.6] {
            let (before, after) = go((span * place).floor(), length);
            assert_eq!(cost(&before, &after, "requests"), 2.0, "a new view: {before} {after}");
            assert!(cost(&before, &after, "bytes") <= 2.0 * 256.0 * 1024.0, "{before} {after}");
            // A small step is inside of what is kept, and asks ahead at most; back there nothing is asked.
            let (before, after) = go((span * place).floor() + (length * 0.05).floor(), length);
            assert!(cost(&before, &after, "requests") <= 1.0, "{before} {after}");
            assert!(cost(&before, &after, "bytes") <= 256.0 * 1024.0, "{before} {after}");
            let (before, after) = go((span * place).floor(), length);
            assert_eq!(
                (cost(&before, &after, "requests"), cost(&before, &after, "bytes")),
                (0.0, 0.0),
                "{before} {after}"
            );
            assert!(cost(&before, &after, "frames") >= 1.0);
            assert_eq!(cost(&before, &after, "blits"), cost(&before, &after, "frames"));
            assert!(after["labels"].as_f64().unwrap() <= 400.0);
            assert!(after["kept"].as_f64().unwrap() <= f64::from(64 << 20));
        }
    }
    browser.press(&["d", "d", "a", "s", "w"]);
    browser.wait("rpdTest.isWhole()");
    // Events are drawn, and the only questions were for tiles and names.
    assert!(browser.get("rpdTest.labels().length").as_u64().unwrap() > 0);
    for asked in browser.requested() {
        let question = asked.strip_prefix(&viewed.url).unwrap_or(&asked);
        assert!(["tiles?", "names?", "alive"].iter().any(|of| question.starts_with(of)), "{asked}");
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn names_of_the_trace_are_texts_and_losses_come_first() {
    let dir = Dir::new();
    let hostile = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";
    let long = "x".repeat(5000);
    let trace = dir.trace(
        "t.rpd",
        &format!(
            "INSERT INTO rocpd_string (id, string) VALUES (1, ''), (2, 'KernelExecution'), (3, '{hostile}'),
                 (4, '{long}'), (5, 'a' || char(27) || '[2J' || char(8238) || 'b' || char(10) || '=1+1');
             INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id) VALUES
                 (1, 0, 0, 0, '', 1000, 2000, 3, 2), (2, 0, 0, 0, '', 2000, 3000, 4, 2), (3, 0, 0, 0, '', 3000, 4000, 5, 2),
                 (4, 0, 0, 0, '', 5, 4, 3, 2);
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::lost::<b>budget', '12'), ('session::0::host', 'h');"
        ),
    );
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&trace]);
    for op in 1..=3 {
        browser.open("about:blank");
        opened(&browser, &format!("{}#sel=op:{op}", viewed.url));
        browser.wait("document.querySelector('#pane .title') !== null");
    }
    let health = browser.get("document.getElementById('health').innerText");
    assert!(
        health.as_str().unwrap().contains("12 records were lost while recording (12 <b>budget)"),
        "{health}"
    );
    assert!(health.as_str().unwrap().contains("1 row with impossible times"), "{health}");
    let title = browser.get("document.querySelector('#pane .title').innerText");
    assert_eq!(title.as_str(), Some("a\\x1b[2J\\u{202e}b\\n=1+1"));
    assert_eq!(browser.get("typeof window.hacked").as_str(), Some("undefined"));
    assert_eq!(browser.get("document.querySelectorAll('img, main script').length"), 0);
    // Markup cannot be made at all: the policy wants trusted types, and there are none.
    let refused = browser.get("(() => { try { document.body.innerHTML = '<b>x</b>'; return 'made'; } catch (error) { return error.name; } })()");
    assert_eq!(refused.as_str(), Some("TypeError"));
}

#[test]
fn arrows_go_behind_labels_and_what_is_far_is_left_out_and_said() {
    let dir = Dir::new();
    // A call at the top, many markers with long names below it, and far to the right the operation that the arrow leads to.
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string (id, string) VALUES (1, ''), (2, 'KernelExecution'), (3, 'UserMarker'), (4, 'hipLaunchKernel');
         WITH RECURSIVE N(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM N WHERE n < 399)
         INSERT INTO rocpd_string (id, string) SELECT 100 + n, printf('a marker with a name that is longer than its event %d', n) FROM N;
         INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES (1, 1, 1, 1000, 1100, 4, 1);
         WITH RECURSIVE N(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM N WHERE n < 399)
         INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id)
             SELECT 10 + n, 1, 2 + n / 40, 1000 + n % 40 * 1000, 2000 + n % 40 * 1000, 3, 100 + n FROM N;
         INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id) VALUES
             (1, 0, 0, 0, '', 30000, 31000, 4, 2), (2, 0, 0, 0, '', 864000000000000, 864000000000010, 4, 2);
         INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (1, 1);",
    );
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&trace]);
    // From an operation whose call is on the screen, and from one whose call is not.
    for times in ["0,31000", "19000,31000"] {
        browser.open("about:blank");
        opened(&browser, &format!("{}#t={times}&sel=op:1", viewed.url));
        browser.wait("rpdTest.links() === 1 && rpdTest.labels().length > 50");
        let crossed = "rpdTest.labels().filter(([x, y, width, height]) => rpdTest.overlaid(x + 1, y + 2, width - 2, height - 4) > 0).length";
        assert_eq!(browser.get(crossed), 0, "{times}");
        let all = browser.get("rpdTest.overlaid(0, 0, innerWidth, innerHeight)").as_u64().unwrap();
        assert!(all > 500, "{times}: {all} pixels");
    }
    let health = browser.get("document.getElementById('health').innerText");
    assert!(health.as_str().unwrap().contains("1 row that begins or ends days away"), "{health}");
    assert_eq!(browser.get("rpdTest.groups()[1].tracks[0].events"), 1);
}

#[test]
fn sensors_and_queue_depth_are_drawn_and_shown_exactly() {
    let dir = Dir::new();
    let hostile = "<img src=x onerror=window.hacked=1>";
    let trace = dir.trace(
        "t.rpd",
        &format!(
            "INSERT INTO rocpd_string (id, string) VALUES (1, ''), (2, 'KernelExecution'), (3, 'gemm'), (4, 'hipLaunchKernel');
         INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES (1, 1, 1, 1000, 2000, 4, 1), (2, 1, 1, 3000, 4000, 4, 1);
         INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id) VALUES
             (1, 0, 0, 0, '', 10000, 60000, 3, 2), (2, 0, 0, 0, '', 60000, 101000, 3, 2);
         INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (1, 1), (2, 2);
         INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES
             ('gpu', 0, 'sclk', 1000, 40000, '2000'), ('gpu', 0, 'sclk', 41000, 101000, '1000'),
             ('gpu', 0, 'vram', 1000, 101000, '9007199254740993'), ('gpu', 0, '{hostile}', 1000, 2000, 'many'),
             ('gpu', 0, '{hostile}', 2000, 101000, '12.5');
         WITH RECURSIVE N(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM N WHERE n < 49999)
         INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value)
             SELECT 'gpu', 0, 'power', 1000 + 2 * n, 1002 + 2 * n, iif(n = 33333, '300', 100 + n % 2) FROM N;"
        ),
    );
    let Some((browser, _viewed)) = viewed_at(&dir, &trace, "#t=0,100000") else { return };
    let labels =
        browser.get("rpdTest.groups().flatMap((group) => group.counters.map((counter) => counter.label))");
    assert_eq!(labels, serde_json::json!(["queue depth", hostile, "power", "sclk", "vram"]));
    let plot = numbers(&browser.get(SELECTED));
    let place = |counter: &str, time: f64| {
        let line = browser.get(&format!(
            "rpdTest.lines().find((line) => line.sort === 'counter' && line.track.endsWith('.{counter}'))"
        ));
        (
            (plot[2] * time / 100_000.0).floor(),
            line["top"].as_f64().unwrap(),
            line["height"].as_f64().unwrap(),
        )
    };
    // What is drawn where: `share` of the height is seen from the bottom.
    let is = |counter: &str, time: f64, share: f64| {
        let (x, top, height) = place(counter, time);
        let y = top + (height - 2.0) * (1.0 - share);
        let pixel = browser.get(&format!("rpdTest.pixel({x}, {y})"));
        let theme = browser.get("rpdTest.theme()");
        if pixel == theme["back"] {
            "back"
        } else if pixel == theme["accent"] {
            "line"
        } else {
            "area"
        }
    };
    for (counter, time, share, what) in [
        ("sclk", 20_000.0, 0.95, "line"),
        ("sclk", 20_000.0, 0.3, "area"),
        ("sclk", 70_000.0, 0.8, "back"),
        ("sclk", 70_000.0, 0.2, "area"),
        ("queue depth", 30_000.0, 0.3, "area"),
        ("queue depth", 80_000.0, 0.8, "back"),
        // One value of 50,000 that is three times the others is seen in its pixel, and not beside it.
        ("power", 66_667.0, 0.7, "line"),
        ("power", 60_000.0, 0.7, "back"),
    ] {
        // A line of one pixel is looked for around the height.
        let seen: Vec<_> = [-0.06, -0.03, 0.0, 0.03, 0.04].map(|by| is(counter, time, share + by)).to_vec();
        assert!(seen.contains(&what), "{counter} at {time}: {seen:?}");
        assert!(what == "line" || seen.iter().all(|one| *one == what), "{counter} at {time}: {seen:?}");
    }
    for (counter, time, words) in [
        ("sclk", 20_000.0, ["sclk 2000", "since 0, for 40.00 us"]),
        ("vram", 20_000.0, ["vram 9007199254740993", "for 100.0 us"]),
        ("queue depth", 30_000.0, ["queue depth 2", "since 2 us, for 57.00 us"]),
        ("queue depth", 80_000.0, ["queue depth 1", "since 59 us, for 41.00 us"]),
        ("power", 66_667.0, ["values in this pixel", "100 to 300"]),
    ] {
        let (x, top, height) = place(counter, time);
        browser.point((plot[0] + x, plot[1] + top + height / 2.0));
        let tip = "document.getElementById('tip').innerText";
        browser.wait(&format!("{tip}.includes('{}') && {tip}.includes('{}')", words[0], words[1]));
    }
    let health = browser.get("document.getElementById('health').innerText");
    assert!(health.as_str().unwrap().contains("1 value of a sensor is no number"), "{health}");
    assert_eq!(browser.get("typeof window.hacked").as_str(), Some("undefined"));
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// What the table of names says: name, number of events and total of each row.
const TABLE: &str = "[...document.querySelectorAll('.names tbody tr')].map((row) => [...row.children].slice(0, 3).map((cell) => cell.innerText.slice(0, 300).replace(/,/g, '')))";

#[test]
fn the_table_follows_what_is_seen_and_its_names_lead_to_their_events() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&trace]);
    let sql = dir.open(&trace);
    let first: i64 = sql.query_row("SELECT min(start) FROM rocpd_api", [], |row| row.get(0)).unwrap();
    opened(&browser, &viewed.url);
    browser.press(&["t"]);
    // The kernels of what is seen, as SQL has them, in the order that is asked for.
    let by_sql = |(from, to): (i64, i64), order: &str| -> Vec<(String, i64)> {
        let query = format!(
            "SELECT iif(D.string = '', T.string, D.string) AS name, count(*) AS number, sum(\"end\" - start) AS total FROM rocpd_op
             JOIN rocpd_string D ON D.id = description_id JOIN rocpd_string T ON T.id = opType_id
             WHERE start - ?3 < ?2 AND (\"end\" - ?3 > ?1 OR start - ?3 >= ?1) GROUP BY name ORDER BY {order} LIMIT 5"
        );
        let mut rows = sql.prepare(&query).unwrap();
        let rows = rows.query_map((from, to, first), |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    };
    let shows = |expected: &[(String, i64)]| {
        assert!(!expected.is_empty());
        let expected = serde_json::json!(
            expected
                .iter()
                .map(|(name, number)| [
                    name.chars().take(300).filter(|char| *char != ',').collect(),
                    number.to_string()
                ])
                .collect::<Vec<_>>()
        );
        browser.wait(&format!("JSON.stringify({TABLE}.slice(0, {}).map((row) => row.slice(0, 2))) === JSON.stringify({expected})", expected.as_array().unwrap().len()));
    };
    let press = |text: &str| {
        browser.get(&format!("[...document.querySelectorAll('.names button')].find((one) => one.textContent === '{text}').click()"))
    };
    press("Operations");
    shows(&by_sql((0, i64::MAX / 2), "total DESC"));
    press("longest");
    shows(&by_sql((0, i64::MAX / 2), "max(\"end\" - start) DESC"));
    assert_eq!(
        browser
            .get("document.querySelector('[aria-sort=descending]').innerText.trim().startsWith('longest')"),
        true
    );
    press("total");
    press("total");
    let ascending = browser
        .get(&format!("{TABLE}.length > 1 && document.querySelector('[aria-sort=ascending]') !== null"));
    assert_eq!(ascending, true);
    press("total");
    // Zooming in changes it.
    browser.get("location.hash = 't=330000000,340000000&tab=selection'");
    shows(&by_sql((330_000_000, 340_000_000), "total DESC"));

    // A click on a name leads through its events there, by their starts.
    let mut names = by_sql((330_000_000, 340_000_000), "length(name) < 200 DESC, number DESC");
    let (name, number) = names.remove(0);
    assert!(number > 2);
    let mut rows = sql
        .prepare(
            "SELECT O.id FROM rocpd_op O JOIN rocpd_string D ON D.id = description_id JOIN rocpd_string T ON T.id = opType_id
             WHERE iif(D.string = '', T.string, D.string) = ?1 AND start - ?2 < 340000000 AND (\"end\" - ?2 > 330000000 OR start - ?2 >= 330000000) ORDER BY start, O.id LIMIT 3",
        )
        .unwrap();
    let ids =
        rows.query_map((&name, first), |row| row.get(0)).unwrap().collect::<Result<Vec<i64>, _>>().unwrap();
    let click = |is_back: bool| {
        browser.get(&format!(
            "[...document.querySelectorAll('.names .link')].find((one) => one.textContent === {}).dispatchEvent(new MouseEvent('click', {{ shiftKey: {is_back}, bubbles: true }}))",
            Value::from(&*name)
        ))
    };
    for (is_back, id) in [(false, ids[0]), (false, ids[1]), (false, ids[2]), (true, ids[1])] {
        click(is_back);
        browser.wait(&format!("rpdTest.state().sel === 'op:{id}'"));
    }
    browser.wait(&format!("document.getElementById('live').textContent.startsWith('2 of {number}: ')"));
    assert_eq!(browser.get("rpdTest.state().tab").as_str(), Some("selection"));

    // The filter has what is typed, letters that are keys elsewhere too.
    browser.get("document.querySelector('.names input').focus()");
    browser.press(&["C", "i", "j", "k", "_"]);
    let known = "document.querySelector('.names input').value === 'Cijk_'";
    browser
        .wait(&format!("{known} && {TABLE}.length > 0 && {TABLE}.every((row) => row[0].includes('Cijk_'))"));
    assert_eq!(browser.get("document.activeElement === document.querySelector('.names input')"), true);
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn marks_are_named_and_kept_in_the_address() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let Some((browser, viewed)) = viewed_at(&dir, &trace, "#t=0,400000000") else { return };
    let plot = numbers(&browser.get(SELECTED));
    let marks = || browser.get("JSON.stringify(rpdTest.state().marks)").as_str().unwrap().to_string();
    let drawn = |at: f64| {
        browser
            .get(&format!("rpdTest.overlaid({}, 0, 3, 50)", (plot[2] * at / 4e8).round() - 1.0))
            .as_u64()
            .unwrap()
    };
    assert_eq!((marks().as_str(), drawn(1e8)), ("[]", 0));
    // What is typed at once is its name, letters that are keys elsewhere too.
    browser.point((plot[0] + plot[2] / 4.0, plot[1] + 60.0));
    browser.press(&["m", "<", "b", ">", "m", "w", ",", ":", "\u{e007}"]);
    browser.wait("rpdTest.state().marks.length === 1 && rpdTest.state().marks[0][1] === '<b>mw,:' && document.activeElement.id === 'plot'");
    let at = browser.get("rpdTest.state().marks[0][0]").as_f64().unwrap();
    assert!((at - 1e8).abs() <= 4e8 / plot[2], "{at}");
    browser.wait("decodeURIComponent(location.hash).includes(':<b>mw,:')");
    browser.point((plot[0] + plot[2] / 2.0, plot[1] + 60.0));
    browser.press(&["m", "\u{e007}"]);
    browser.wait("rpdTest.state().marks.length === 2 && location.hash.includes('mark%202')");
    let both = marks();
    // Another page with this address has them, drawn as lines; they are texts.
    let hash = browser.get("location.hash").as_str().unwrap().to_string();
    browser.open("about:blank");
    opened(&browser, &format!("{}{hash}", viewed.url));
    assert_eq!(marks(), both);
    browser.wait("document.querySelectorAll('.marks input').length === 2");
    assert_eq!(browser.get("document.querySelector('.marks input').value").as_str(), Some("<b>mw,:"));
    assert!(drawn(at) > 40 && drawn(2e8) > 40 && drawn(3e8) == 0);
    // One is removed; the way back has it again.
    browser.get("document.querySelector('.marks tr button[aria-label^=Remove]').click()");
    browser.wait("rpdTest.state().marks.length === 1");
    browser.get("history.back()");
    browser.wait("rpdTest.state().marks.length === 2");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn traces_that_are_damaged_or_empty_show_words_and_no_blank_page() {
    let dir = Dir::new();
    let empty = dir.trace("empty.rpd", "");
    let torn = dir.trace(
        "torn.rpd",
        "DROP TABLE rocpd_op; CREATE TABLE rocpd_op (id integer PRIMARY KEY, other integer)",
    );
    let Some(browser) = Browser::start(&dir) else { return };
    for (trace, words) in
        [(empty, "The trace holds no calls and no operations."), (torn, "cannot read torn.rpd")]
    {
        let viewed = Viewed::start(&dir, &[&trace]);
        browser.open(&viewed.url);
        browser.wait("!document.getElementById('message').hidden && !/^Reading/.test(document.getElementById('message').textContent)");
        let said = browser.get("document.getElementById('message').textContent");
        assert!(said.as_str().unwrap().starts_with(words), "{said}");
    }
}

#[test]
fn generated_traces_are_shown_whole() {
    let dir = Dir::new();
    let Some(browser) = Browser::start(&dir) else { return };
    for seed in 1..=2 {
        let trace = generated(&dir, &format!("g{seed}.rpd"), seed, 400);
        let viewed = Viewed::start(&dir, &[&trace]);
        opened(&browser, &viewed.url);
        assert_eq!(browser.console(), Vec::<String>::new());
        assert!(browser.get("rpdTest.lines().length").as_u64().unwrap() > 0);
    }
}

#[test]
fn a_trace_that_grows_is_followed_until_people_move_away() {
    let dir = Dir::new();
    let row = |from: i64, to: i64| {
        format!(
            "WITH RECURSIVE n(i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM n WHERE i < {to} - 1)
             INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
             SELECT i, 0, 0, 0, '', 1000000000 + i * 1000, 1000000900 + i * 1000, 3, 2 FROM n;"
        )
    };
    let trace = dir.trace(
        "t.rpd",
        "PRAGMA foreign_keys = OFF; INSERT INTO rocpd_string (id, string) VALUES (1, ''), (2, 'KernelExecution'), (3, 'gemm')",
    );
    let Some(browser) = Browser::start(&dir) else { return };
    let mut viewed = Viewed::start(&dir, &["--live", &trace]);
    browser.open(&viewed.url);
    browser.wait("document.getElementById('message').innerText === 'Nothing is recorded yet.'");
    let writer = dir.open(&trace);
    let write =
        |from, to| writer.execute_batch(&format!("PRAGMA foreign_keys = OFF; {}", row(from, to))).unwrap();
    let facts =
        |text: &str| browser.wait(&format!("document.getElementById('facts').innerText.includes('{text}')"));
    write(10, 1010);
    facts("1,000 operations");
    browser.wait("rpdTest.isWhole() && document.getElementById('message').hidden");
    // All is seen, and stays so.
    write(1010, 3010);
    facts("3,000 operations");
    browser.wait("rpdTest.isWhole() && rpdTest.state().t === null");
    // What is zoomed in follows the end, and what is selected stays that.
    browser.get("location.hash = 't=2500000,3100000&sel=op:2900'");
    browser.wait("rpdTest.state().sel === 'op:2900' && rpdTest.state().t !== null");
    browser.press(&["\u{e007}"]);
    write(3010, 5010);
    facts("5,000 operations");
    browser.wait("rpdTest.isWhole() && rpdTest.state().t[1] > 4999900 && rpdTest.state().t[1] - rpdTest.state().t[0] === 600000");
    assert_eq!(browser.get("rpdTest.state().sel").as_str(), Some("op:2900"));
    // What is at a time is what is there now.
    let under = "rpdTest.lines().filter((line) => line.sort === 'row' && line.group === 'g0').map((line) => rpdTest.at(line.row, 4800400) !== null && rpdTest.name(rpdTest.at(line.row, 4800400).name))[0]";
    assert_eq!(browser.get(under).as_str(), Some("gemm"));
    // Who moves away stays there; who asks for it is led to the end again.
    browser.get("document.getElementById('plot').focus()");
    browser.press(&["a", "a", "a", "a"]);
    browser.wait("rpdTest.state().t[1] < 4900000 && document.getElementById('follow').getAttribute('aria-pressed') === 'false'");
    let there = browser.get("rpdTest.state().t");
    write(5010, 6010);
    facts("6,000 operations");
    browser.wait("rpdTest.isWhole()");
    assert_eq!(browser.get("rpdTest.state().t"), there);
    browser.get("document.getElementById('follow').click()");
    browser.wait("rpdTest.state().t[1] > 5999900");
    // An event that began before all others moves the times, not what is seen.
    browser.press(&["a", "a", "a", "a"]);
    let before = numbers(&browser.get("rpdTest.state().t"));
    writer
        .execute_batch(
            "INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
             VALUES (1, 0, 1, 0, '', 1000000000, 1000001000, 3, 2)",
        )
        .unwrap();
    facts("6,001 operations");
    let after = numbers(&browser.get("rpdTest.state().t"));
    assert_eq!([after[0] - before[0], after[1] - before[1]], [10_000.0, 10_000.0]);
    assert_eq!(browser.console(), Vec::<String>::new());
    // Another file of that name is not followed.
    fs::remove_file(dir.path(&trace)).unwrap();
    dir.trace("t.rpd", "");
    browser.wait("document.getElementById('growth').innerText.startsWith('No longer followed: the trace was replaced')");
    // The header has room for it.
    assert_eq!(
        browser.get("document.querySelector('header').scrollWidth <= innerWidth && document.getElementById('growth').title.endsWith('start rpd view again')"),
        true
    );
    viewed.signal("-INT");
    assert!(viewed.ended().success());
}

/// A page that was exported to a file.
fn exported(browser: &Browser, dir: &Dir, page: &str) {
    opened(browser, &format!("file://{}", dir.path(page).display()));
}

#[test]
fn an_exported_page_says_and_draws_what_the_server_does() {
    let dir = Dir::new();
    let real = dir.unpacked("mytrace_raw.rpd");
    let made = generated(&dir, "g.rpd", 7, 700);
    let Some(browser) = Browser::start(&dir) else { return };
    for trace in [&real, &made] {
        let page = format!("{trace}.html");
        dir.run(&["export", "timeline", trace, "--args", "-o", &page]).expect(0);
        let viewed = Viewed::start(&dir, &[trace]);
        let bytes = "(tiles) => tiles.map((tile) => Object.values(tile).map(String).join()).join(';')";
        let rows = "rpdTest.groups().flatMap((group) => [group.busy, ...group.tracks.flatMap((track) => [track.busy, ...track.rows]), ...group.counters.map((one) => one.row)])";
        let mut questions: Vec<String> = (0..18)
            .flat_map(|step| {
                let level = 2 * step + 4;
                let tiles = |first: &str| {
                    format!("rpdTest.server.tiles({level}, {first}, 2, [...new Set({rows})]).then({bytes})")
                };
                [tiles("0"), tiles(&format!("Math.floor(2e8 / (512 * 2 ** {level}))"))]
            })
            .collect();
        questions.extend(
            [
                "rpdTest.groups()",
                "rpdTest.server.names(0).then((names) => names.map(([text, kind]) => [text.slice(0, 200), kind]))",
                "rpdTest.server.search('a')",
                "rpdTest.server.search('dur>20us gpu:0')",
                "rpdTest.server.search('re:^hip.*Launch')",
                "rpdTest.server.search('re:(?i)^HIP[[:alpha:]]+$')",
                "rpdTest.server.search('re:(?P<one>_|\\-)[^[:digit:]]*\\z')",
                "rpdTest.server.search('dur>.5us dur<1m')",
                "rpdTest.server.search('dur<0.1h gpu:1')",
                "rpdTest.server.search('arg:0x')",
                "rpdTest.server.hit('a', { at: 2e8 })",
                "rpdTest.server.hit('a', { at: 2e8, back: true })",
                "rpdTest.server.hit('a', { at: 0, back: true })",
                "rpdTest.server.hit('a', { after: 3 })",
                "rpdTest.server.hit('dur>1ns', { after: 3, back: true })",
                "rpdTest.server.search('re:.').then(async ({ hits }) => { const all = await Promise.all(hits.slice(0, 100).map(({ event }) => rpdTest.server.event({ event, brief: true }))); return all.filter((event) => event.kind === 'marker').slice(0, 50); })",
                "rpdTest.server.statistics([1e5, 3e8], null, { by: 'p99', ascending: true, sort: 'operations' })",
                "rpdTest.server.statistics([0, 5e8], null, { by: 'name', q: 'e' })",
                "rpdTest.server.events([1e5, 3e8], null, { sort: 'operations', order: 'duration' })",
                "rpdTest.server.events([0, 5e8], null, { q: 'e', order: 'start', ascending: true })",
                "rpdTest.server.events([0, 5e8], null, { order: 'name' })",
                "rpdTest.server.events([0, 5e8], null, { order: 'kind', ascending: true })",
                "rpdTest.server.events([0, 5e8], null, { order: 'row' })",
                "rpdTest.server.events([0, 5e8], null, { order: 'id' })",
                "rpdTest.server.next([0, 5e8], null, { name: 1 })",
                "rpdTest.server.next([0, 5e8], null, { name: 1, after: 7, back: true })",
                "Promise.all([0, 9, 99, 999].map((event) => rpdTest.server.event({ event, brief: true })))",
                "rpdTest.server.event({ event: 3, move: 2, brief: true })",
                "Promise.all(rpdTest.groups().flatMap((group) => group.counters).map(({ row }) => rpdTest.server.value(row, 3e7, [3e7, 4e8])))",
            ]
            .map(String::from),
        );
        let answers = |browser: &Browser| -> Vec<Value> {
            questions.iter().map(|question| without_arguments(browser.get(question))).collect()
        };
        opened(&browser, &viewed.url);
        let served = answers(&browser);
        let arguments = browser.get("rpdTest.server.search('hipMemcpy').then(({ hits }) => hits.length ? rpdTest.server.event({ event: hits[0].event }).then((event) => [event.arguments, event.id, event.begin_ns]) : null)");
        exported(&browser, &dir, &page);
        for (question, (stored, served)) in questions.iter().zip(answers(&browser).into_iter().zip(served)) {
            assert!(stored == served, "{trace} {question}: {stored} {served}");
        }
        let stored = browser.get("rpdTest.server.search('hipMemcpy').then(({ hits }) => hits.length ? rpdTest.server.event({ event: hits[0].event }).then((event) => [event.arguments, event.id, event.begin_ns]) : null)");
        assert_eq!(stored, arguments);
        // Nothing was asked of anybody, and nothing was refused by the page's policy.
        assert_eq!(browser.console(), Vec::<String>::new());
        for asked in browser.requested() {
            let is_own = asked.starts_with(&format!("file://{}", dir.path(&page).display()));
            assert!(
                is_own
                    || asked.starts_with("data:")
                    || asked == "about:blank"
                    || asked.starts_with(&viewed.url),
                "{asked}"
            );
        }
    }
}

/// Tiles in the middle of a page at a level: of each the row, what its runs show, how many begin in them, where they are; and how busy they are.
fn tiles_at(browser: &Browser, level: u64) -> (Value, Vec<i64>) {
    let found = browser.get(&format!(
        "(async () => {{
            const parts = Math.ceil((await rpdTest.server.trace()).names / 4096);
            const named = await Promise.all(Array.from({{ length: parts }}, (_, part) => rpdTest.server.names(4096 * part)));
            const names = named.flat().map(([text, kind]) => [text.slice(0, 100), kind]);
            const rows = rpdTest.groups().flatMap((group) =>
                [...new Set([group.busy, ...group.tracks.flatMap((track) => [track.busy, ...track.rows]), ...group.counters.map((one) => one.row)])]);
            const tiles = await rpdTest.server.tiles({level}, Math.floor(2e8 / (512 * 2 ** {level})), 2, rows);
            const counters = new Set(rpdTest.counters().map((one) => one.row));
            const shows = ({{ row, event, name }}) => (counters.has(row) ? [...event, ...name] : Array.from(name, (number) => names[number]));
            return [tiles.map((tile) => [tile.row, tile.tile, shows(tile), [...tile.count], [...tile.first], [...tile.length]]), tiles.flatMap((tile) => [...tile.busy])];
        }})()"
    ));
    let busy = found[1].as_array().unwrap().iter().map(|share| share.as_i64().unwrap()).collect();
    (found[0].clone(), busy)
}

#[test]
fn a_page_of_levels_draws_what_the_server_does_and_says_what_it_has_not() {
    let dir = Dir::new();
    let real = dir.unpacked("mytrace_raw.rpd");
    let made = generated(&dir, "g.rpd", 7, 7000);
    for trace in [&real, &made] {
        let page = format!("{trace}.html");
        let said = dir.run(&["export", "timeline", trace, "--levels", "-o", &page]);
        assert!(said.expect(0).stderr.contains("no single events"), "{}", said.stderr);
        let again = dir.run(&["export", "timeline", trace, "--levels"]);
        assert!(again.expect(0).stdout == fs::read_to_string(dir.path(&page)).unwrap());
    }
    dir.run(&["export", "timeline", &real, "--levels", "--args"]).expect(2);
    let Some(browser) = Browser::start(&dir) else { return };
    for trace in [&real, &made] {
        let url = format!("file://{}", dir.path(&format!("{trace}.html")).display());
        opened(&browser, &url);
        let least =
            browser.get("rpdTest.server.trace().then((trace) => trace.least_ns / 16)").as_u64().unwrap();
        let finest = u64::from(least.ilog2());
        assert_eq!(least, 1 << finest);
        let levels: Vec<u64> = (finest..finest + 24).step_by(2).collect();
        let stored: Vec<_> = levels.iter().map(|level| tiles_at(&browser, *level)).collect();
        let viewed = Viewed::start(&dir, &[trace]);
        opened(&browser, &viewed.url);
        for (level, (stored, busy)) in levels.iter().zip(stored) {
            let (served, busy_there) = tiles_at(&browser, *level);
            assert!(stored == served, "{trace} {level}: {stored} {served}");
            assert!(
                busy.iter().zip(busy_there).all(|(one, other)| (one - other).abs() <= 1),
                "{trace} {level}"
            );
        }
    }
    let url = format!("file://{}", dir.path(&format!("{real}.html")).display());
    browser.open("about:blank");
    browser.requested();
    opened(&browser, &url);
    let text = |of: &str| {
        let text = browser.get(&format!("document.querySelector('{of}').innerText"));
        text.as_str().unwrap().to_string()
    };
    let says = text("#health");
    assert!(
        says.contains("levels and not single events") && says.contains(&format!("rpd view {real}")),
        "{says}"
    );
    // As far as one zooms, there is something to be seen.
    browser.press(&["w"; 90]);
    browser.wait("rpdTest.isWhole()");
    assert_eq!(
        browser.get("rpdTest.server.trace().then((trace) => rpdTest.state().t[1] - rpdTest.state().t[0] >= trace.least_ns - 1)"),
        true
    );
    browser.get("location.hash = 'q=a&tab=selection'");
    browser.wait("document.getElementById('hits').innerText.includes('no search')");
    browser.wait("document.getElementById('pane').innerText.includes('Not in a page that has levels')");
    // An event that is clicked on: what is known of it.
    browser.get("location.hash = ''");
    let run = "rpdTest.lines().filter((line) => line.sort === 'row').map((line) => rpdTest.at(line.row, 2e8)).find(Boolean)";
    let name = browser.get(&format!("rpdTest.name({run}.name)"));
    browser.get(&format!("rpdTest.choose({run}.event)"));
    browser.wait("document.getElementById('pane').innerText.includes('Each event: rpd view')");
    let shown = text("#pane");
    assert!(
        shown.starts_with(&*name.as_str().unwrap().replace('\n', "\\n")) && shown.contains(" takes "),
        "{name} {shown}"
    );
    assert_eq!(browser.console(), Vec::<String>::new());
    assert!(
        browser
            .requested()
            .iter()
            .all(|asked| asked.starts_with(&url) || asked.starts_with("data:") || asked == "about:blank")
    );
}

/// An answer but for the arguments, which a brief one of the server has not.
fn without_arguments(mut answer: Value) -> Value {
    let of_one = |event: &mut Value| {
        if let Some(event) = event.as_object_mut() {
            event.remove("arguments");
        }
    };
    match &mut answer {
        Value::Array(events) => events.iter_mut().for_each(of_one),
        event => of_one(event),
    }
    answer
}

#[test]
fn an_exported_page_is_the_same_each_time_and_no_larger_than_allowed() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let hostile = "</script><script>alert(1)</script><!--";
    dir.open(&trace)
        .execute(
            "UPDATE rocpd_string SET string = ?1 WHERE id = (SELECT description_id FROM rocpd_op LIMIT 1)",
            [hostile],
        )
        .unwrap();
    let export = |page: &str, options: &[&str]| {
        dir.run(&[&["export", "timeline", &trace, "-o", page], options].concat())
    };
    let said = export("a.html", &[]);
    assert!(said.expect(0).stderr.contains("24860 events; names, and no arguments"), "{}", said.stderr);
    export("b.html", &[]).expect(0);
    let page = fs::read_to_string(dir.path("a.html")).unwrap();
    assert_eq!(page, fs::read_to_string(dir.path("b.html")).unwrap());
    assert!(!page.contains(hostile) && !page.contains("http://") && !page.contains("https://"));
    // A part is smaller, and is what the region says.
    export("part.html", &["--in", "25%..50%"]).expect(0);
    assert!(fs::metadata(dir.path("part.html")).unwrap().len() < page.len() as u64);
    // A page that would be larger than it may is not written, and the message says what part fits.
    let names: String = (0..40_000)
        .map(|at| format!("({at} + 9000000, 'a name that no other one is like {at} {}'),", at * 7919 % 10007))
        .collect();
    dir.open(&trace)
        .execute_batch(&format!(
            "INSERT INTO rocpd_string (id, string) VALUES {};
             UPDATE rocpd_op SET description_id = 9000000 + (id * 3) % 40000;",
            names.trim_end_matches(',')
        ))
        .unwrap();
    let large = export("large.html", &["--max-mb", "1"]);
    large.expect(1);
    assert!(
        large.stderr.contains("more than the 1 MB that --max-mb allows")
            && large.stderr.contains("--levels writes"),
        "{}",
        large.stderr
    );
    let fits = large.stderr.trim_end().rsplit(' ').next().unwrap();
    assert!(fits.starts_with("0%..") && fits.ends_with('%'), "{}", large.stderr);
    export("fits.html", &["--max-mb", "1", "--in", fits]).expect(0);
    assert!(fs::metadata(dir.path("fits.html")).unwrap().len() <= 1_000_000);
    // A page of a part has no names of the rest.
    let few = export("few.html", &["--in", "0%..1%"]);
    few.expect(0);
    let events: usize = few.stderr.split(' ').find_map(|word| word.parse().ok()).unwrap();
    let few = fs::read_to_string(dir.path("few.html")).unwrap();
    assert!((1..=events).contains(&few.matches("a name that no other one is like").count()), "{events}");
    // Of levels one is chosen that fits.
    export("levels.html", &["--levels", "--max-mb", "0.6"]).expect(0);
    assert!(fs::metadata(dir.path("levels.html")).unwrap().len() <= 600_000);
    let small = export("levels.html", &["--levels", "--max-mb", "0.1", "--force"]);
    small.expect(1);
    assert!(
        small.stderr.contains("more than the 0.1 MB that --max-mb allows; raise --max-mb"),
        "{}",
        small.stderr
    );
    // 24,860 events of about 5 bytes: that there are so many is known before they are read.
    let many = export("large.html", &["--max-mb", "0.1"]);
    many.expect(1);
    assert!(
        many.stderr.contains(
            "the page would have 0.13 MB or more for 24860 calls and operations alone, more than the 0.1 MB"
        ),
        "{}",
        many.stderr
    );
    assert!(!dir.path("large.html").exists());
    let Some(browser) = Browser::start(&dir) else { return };
    exported(&browser, &dir, "a.html");
    assert!(browser.get("rpdTest.server.search('alert').then((found) => found.count)").as_u64().unwrap() > 0);
    // A page that was cut off on its way says so.
    dir.write("cut.html", &page[..page.len() / 2]);
    browser.open(&format!("file://{}", dir.path("cut.html").display()));
    browser.wait("document.getElementById('message').innerText.includes('not whole')");
    let id = page.find("data-column=\"name\"").unwrap();
    let end = page[id..].find("</script>").unwrap() + id;
    dir.write("less.html", format!("{}{}", &page[..end - 1200], &page[end..]));
    browser.open(&format!("file://{}", dir.path("less.html").display()));
    browser.wait("document.getElementById('message').innerText.startsWith('The page failed')");
}

#[test]
fn two_traces_are_compared_on_one_axis() {
    let dir = Dir::new();
    let one = dir.unpacked("mytrace_raw.rpd");
    fs::copy(dir.path(&one), dir.path("b.rpd")).unwrap();
    let longer = "UPDATE rocpd_op SET \"end\" = start + 3 * (\"end\" - start) WHERE description_id = (SELECT description_id FROM rocpd_op GROUP BY 1 ORDER BY sum(\"end\" - start) DESC LIMIT 1)";
    dir.open("b.rpd").execute_batch(longer).unwrap();
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&one, "b.rpd"]);
    opened(&browser, &format!("{}#tab=compare", viewed.url));
    // What differs most is what was changed, three times as long.
    browser.wait("document.querySelector('.compare tbody tr') !== null");
    let first =
        browser.get("[...document.querySelector('.compare tbody tr').cells].map((cell) => cell.innerText)");
    let (name, count, some): (String, i64, i64) = dir
        .open(&one)
        .query_row(
            "SELECT string, count(*), min(rocpd_op.id) FROM rocpd_op JOIN rocpd_string S ON S.id = description_id GROUP BY description_id ORDER BY sum(\"end\" - start) DESC LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    assert_eq!(
        (first[0].as_str().map(str::trim), first[1].as_str(), first[2].as_str()),
        (Some(&*name), Some(&*count.to_string()), Some(&*count.to_string()))
    );
    assert_eq!(first[8], "×3.00");
    // Events of both are found by what their files call them, and each file says what it has.
    browser.get(&format!("location.hash = 'sel=b.op:{some}&tab=details'"));
    let name_shown = json!(name);
    browser.wait(&format!("document.getElementById('pane').innerText.includes({name_shown})"));
    let groups = browser.get("rpdTest.groups().map((group) => [group.source, group.label[0]])");
    for group in groups.as_array().unwrap() {
        assert_eq!(group[1], if group[0] == 0 { "A" } else { "B" });
    }
    // Aligned by hand, and the address keeps it.
    browser.open("about:blank");
    opened(&browser, &format!("{}#shift=5000000&tab=compare", viewed.url));
    browser.wait("rpdTest.state().shift === 5000000 && document.querySelector('.compare').innerText.includes('5.000 ms')");
    // Colours say which is slower: those of what was changed become others.
    let row = browser.get(&format!(
        "rpdTest.server.search({}).then(({{ hits }}) => hits.find((hit) => rpdTest.lines().some((line) => line.row === hit.row && line.group.startsWith('g'))))",
        Value::from(format!("re:^{}$", regex_of(&name)))
    ));
    let (begin, length) = (row["start_ns"].as_f64().unwrap(), row["duration_ns"].as_f64().unwrap());
    browser.get(&format!(
        "location.hash = 't={},{}&shift=5000000&tab=compare'",
        begin as i64,
        (begin + length) as i64
    ));
    browser.wait("rpdTest.isWhole() && rpdTest.state().t !== null");
    let pixel = format!(
        "(() => {{ const line = rpdTest.lines().find((line) => line.row === {} && line.sort === 'row'); return rpdTest.pixel(400, line.top + 8); }})()",
        row["row"]
    );
    let plain = browser.get(&pixel);
    browser.get("document.getElementById('by-ratio').click()");
    browser.wait(&format!("rpdTest.isWhole() && {pixel} !== {plain}"));
    assert_eq!(browser.console(), Vec::<String>::new());
    dir.run(&["view", "--live", &one, "b.rpd"]).expect(1);
}

/// A text as a regular expression has it.
fn regex_of(text: &str) -> String {
    text.chars()
        .flat_map(|char| if char.is_alphanumeric() || char == '_' { vec![char] } else { vec!['\\', char] })
        .collect()
}

#[test]
fn another_user_of_the_machine_gets_nothing() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        crate::harness::not_tested("only root can be another user");
        return;
    }
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    let viewed = Viewed::start(&dir, &[&trace]);
    let (port, token) = viewed.url.strip_prefix("http://127.0.0.1:").unwrap().split_once('/').unwrap();
    let token = token.trim_end_matches('/');
    let as_other = |script: &str| {
        let mut shell = std::process::Command::new("bash");
        let ran = shell.args(["-c", script]).current_dir("/").uid(65534).gid(65534).output().unwrap();
        String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
    };
    let ask = |path: &str| {
        as_other(&format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3"
        ))
    };
    // The other user reaches the port, and would be answered if they knew the token.
    assert!(ask(&format!("/{token}/trace")).starts_with("HTTP/1.1 200"));
    for path in ["/", "/trace", "/index.html", &format!("/{}/", "0".repeat(32))] {
        let answer = ask(path);
        assert!(answer.starts_with("HTTP/1.1 404") && !answer.contains("t.rpd"), "{answer}");
    }
    // But nothing that they can look at has it.
    let process = viewed.command.id();
    let seen = as_other(&format!(
        "cat /proc/{process}/cmdline /proc/{process}/environ /proc/{process}/maps; ls -l /proc/{process}/fd; ps -ww -o args -p {process}; cat /tmp/rpd-view-*"
    ));
    assert!(seen.contains("view") && !seen.contains(token), "{seen}");
}

#[test]
fn who_listens_elsewhere_is_warned_and_who_has_no_browser_gets_the_address() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    let said = |arguments: &[&str]| {
        let mut command = dir.rpd(&[&["view", "--idle", "100ms", &trace], arguments].concat());
        let ran = command
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("SSH_CONNECTION")
            .output()
            .unwrap();
        assert!(ran.status.success());
        (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap())
    };
    let (url, report) = said(&["--listen", "0.0.0.0"]);
    assert!(
        url.starts_with("http://127.0.0.1:") && report.contains("anyone who reaches 0.0.0.0:"),
        "{report}"
    );
    let (url, report) = said(&[]);
    let port = url.split([':', '/']).nth(4).unwrap();
    assert!(
        report.contains(&format!("ssh -L {port}:127.0.0.1:{port} HOST")) && !report.contains("anyone"),
        "{report}"
    );
    assert!(said(&["--no-open"]).1.is_empty());
}

#[test]
fn a_damaged_trace_is_an_error_on_the_page_and_never_a_blank() {
    let dir = Dir::new();
    let Some(browser) = Browser::start(&dir) else { return };
    let whole = fs::read(dir.path(&generated(&dir, "g.rpd", 3, 800))).unwrap();
    let mut shown = 0;
    for seed in 0..200 {
        if shown == 4 {
            break;
        }
        let mut random = crate::generated::Random::new(seed);
        let mut bytes = whole.clone();
        // Some pages say what the tables are; without them nothing is opened at all.
        for _ in 0..40 {
            let at = 4096 + random.below(bytes.len() as i64 - 4096 - 64) as usize;
            bytes[at..at + 64].fill(random.below(256) as u8);
        }
        dir.write("damaged.rpd", &bytes);
        let mut command = dir.rpd(&["view", "--no-open", "damaged.rpd"]);
        let mut command = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(command.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let mut viewed = Viewed { command, url: url.trim().to_string() };
        if viewed.url.is_empty() {
            assert_eq!(viewed.ended().code(), Some(1));
            continue;
        }
        shown += 1;
        browser.open(&viewed.url);
        browser.wait(
            "Boolean(window.rpdTest) && rpdTest.isWhole() && (rpdTest.groups().length > 0 || !document.getElementById('message').hidden)
             || document.getElementById('message').classList.contains('wrong') && document.getElementById('message').innerText.length > 20",
        );
    }
    assert_eq!(shown, 4);
}
