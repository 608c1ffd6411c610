//! `rpd view` of a dataset: the ranks in a real browser, each of which opens as a trace.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::dataset::ranked;
use crate::harness::Dir;
use crate::view::{Viewed, opened};
use crate::webdriver::Browser;

/// A dataset of four ranks in `d`.
fn dataset(dir: &Dir) {
    let one = ranked(dir, "one.rpd", 1, 200, [0, 1]);
    let two = ranked(dir, "two.rpd", 2, 400, [2, 3]);
    dir.run(&["dataset", "d", &one, &two]).expect(0);
}

#[test]
fn what_makes_no_sense_for_a_dataset_is_refused_in_words() {
    let dir = Dir::new();
    dataset(&dir);
    dir.run(&["view", "--no-open", "--live", "d"]).expect(1).says(&["--live", "leave --live away"]);
    dir.run(&["view", "--no-open", "d", "one.rpd"]).expect(1).says(&["d is a directory", "shown alone"]);
    dir.run(&["view", "--no-open", "--job", "7", "one.rpd"]).expect(1).says(&["--job", "a trace was named"]);
    dir.run(&["view", "--no-open", "--job", "x", "d"]).expect(1).says(&["d has no job x: it has 7"]);
    dir.run(&["view", "--no-open", "."]).expect(1).says(&["is no dataset", "rpd dataset DIR FILE"]);
}

/// Whether the server answers a question with 200.
fn is_answered(viewed: &Viewed, path: &str) -> bool {
    let (host, page) = viewed.url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{page}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer.starts_with(b"HTTP/1.1 200")
}

#[test]
fn what_was_made_for_the_page_goes_with_it() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let dir = Dir::new();
        dataset(&dir);
        let before = dir.names();
        let mut viewed = Viewed::start(&dir, &["d"]);
        assert!(is_answered(&viewed, "ranks"));
        assert_eq!(dir.names(), before, "nothing is made before it is needed");
        assert!(is_answered(&viewed, "rank/0/all/"));
        assert_eq!(dir.names().len(), before.len() + 1, "its temporary directory is here");
        viewed.signal(signal);
        assert!(viewed.ended().success(), "{signal}");
        assert_eq!(dir.names(), before, "{signal}");
    }
}

#[test]
fn slices_that_are_not_there_take_no_place() {
    let dir = Dir::new();
    dataset(&dir);
    let before = dir.names();
    let viewed = Viewed::start(&dir, &["d"]);
    for slice in 0..6 {
        assert!(!is_answered(&viewed, &format!("rank/0/{slice}/")), "{slice}");
    }
    assert_eq!(dir.names(), before, "no temporary directory is made");
    assert!(is_answered(&viewed, "rank/0/all/"));
}

#[test]
fn ranks_are_seen_ordered_and_opened() {
    let dir = Dir::new();
    dataset(&dir);
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &["d"]);
    opened(&browser, &viewed.url);
    let place = |track: u32, share: f64| -> (f64, f64) {
        let place = browser.get(&format!("rpdTest.place({track}, {share})"));
        (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
    };
    assert_eq!(browser.get("rpdTest.order()"), json!([0, 1, 2, 3]));
    let facts = browser.get("document.getElementById('facts').textContent");
    assert!(facts.as_str().unwrap().starts_with("4 ranks of 1 job"), "{facts}");

    // The busiest first, as SQL has it of the traces.
    let busy = |trace: &str| -> Vec<(i64, f64)> {
        let rows = dir.run(&["sql", "--json", trace, "job_busy"]);
        let rows: Value = serde_json::from_str(&rows.expect(0).stdout).unwrap();
        let of = |row: &Value| (row["rank"].as_i64().unwrap(), row["busy_ns"].as_f64().unwrap());
        rows.as_array().unwrap().iter().map(of).collect()
    };
    let mut sums = [0.0; 4];
    for (rank, ns) in busy("one.rpd").into_iter().chain(busy("two.rpd")) {
        sums[rank as usize] += ns;
    }
    for (track, sum) in sums.iter().enumerate() {
        let found = browser.get(&format!("rpd.ranks.state().found[{track}].busy_ns"));
        assert_eq!(found.as_f64(), Some(*sum), "rank {track}");
    }
    let mut order = vec![0, 1, 2, 3];
    order.sort_by(|one, other| sums[*other as usize].total_cmp(&sums[*one as usize]).then(one.cmp(other)));
    browser.get("document.querySelector('#heads [data-by=busy]').click()");
    browser.wait(&format!("JSON.stringify(rpdTest.order()) === '{}'", json!(order)));
    browser.get("document.querySelector('#heads [data-by=rank]').click()");

    // The text at the pointer has the exact values.
    browser.point(place(2, 0.5));
    browser.wait("!document.getElementById('tip').hidden");
    let tip = browser.get("document.getElementById('tip').innerText");
    let tip = tip.as_str().unwrap();
    assert!(tip.starts_with("rank 2, node node1, job 7") && tip.contains("operations, 400 calls"), "{tip}");

    // Where GPUs were busy there is another colour than where they were not: behind the end of a shorter trace.
    let shares = "rpd.ranks.state().found[0].shares";
    let busy = browser.get(&format!("{shares}.indexOf(Math.max(...{shares}))")).as_f64().unwrap();
    let idle = browser.get(&format!("{shares}.findLastIndex((share) => share > 0) + 3")).as_f64().unwrap();
    assert!(idle < 1020.0, "{idle}");
    let height = browser.get("rpdTest.height()").as_f64().unwrap();
    let pixel = |part: f64| {
        let (x, y) = place(0, (part + 0.5) / 1024.0);
        browser.get(&format!("rpdTest.pixel([{x}, {}])", y + height / 2.0 - 3.0))
    };
    browser.wait("rpdTest.isWhole()");
    assert_ne!(pixel(busy), pixel(idle));

    // By keys: the third rank, at a time.
    browser.get("document.getElementById('tracks').focus()");
    browser.press(&["\u{e011}", "\u{e015}", "\u{e015}", "\u{e012}"]);
    browser.wait("rpdTest.chosen()[0] === 2 && Math.abs(rpdTest.chosen()[1] - 0.49) < 1e-9");
    let said = browser.get("document.getElementById('live').textContent");
    assert!(said.as_str().unwrap().starts_with("rank 2, node node1"), "{said}");
    browser.press(&["\u{e007}"]);
    browser.wait("Boolean(window.rpdTest?.state) && rpdTest.isWhole()");
    let address = browser.get("location.href");
    let address = address.as_str().unwrap().to_string();
    assert!(address.starts_with(&format!("{}rank/2/all/#t=", viewed.url)), "{address}");
    let calls = browser.get("rpd.app.trace.facts.calls");
    assert_eq!(calls, 400, "{address}");

    // And back, and all of a rank by a click on its name.
    browser.back();
    browser.wait("Boolean(window.rpdTest?.order) && rpdTest.isWhole()");
    let (_, y) = place(1, 0.0);
    browser.click((40.0, y));
    browser.wait("Boolean(window.rpdTest?.state) && rpdTest.isWhole()");
    assert_eq!(browser.get("location.href"), format!("{}rank/1/all/", viewed.url));
    assert_eq!(browser.get("rpd.app.trace.facts.file"), "job7-node1-rank1.rpd");
    let host = viewed.url.split('/').nth(2).unwrap().to_string();
    let foreign: Vec<String> = browser
        .requested()
        .into_iter()
        .filter(|url| url.starts_with("http") && !url.contains(&host))
        .collect();
    assert_eq!(foreign, [""; 0]);
    let said: Vec<String> = browser.console().into_iter().filter(|line| !line.contains("favicon")).collect();
    assert_eq!(said, [""; 0]);
}
