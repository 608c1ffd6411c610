//! The router as browsers and others ask it, without sockets.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use proptest::prelude::*;
use rpd_postprocess::notes::Notes;
use rusqlite::Connection;
use tempfile::TempDir;
use tower::ServiceExt;

use super::*;

mod found;
mod jobs;
mod panes;

struct Silent;

impl Notes for Silent {
    fn note(&self, _line: std::fmt::Arguments<'_>) {}
}

/// A name that would be markup, formula and more.
const HOSTILE: &str = "<img src=x onerror=alert(1)>\u{1b}[2J\u{202e}=1+1";

fn trace(directory: &Path) -> std::path::PathBuf {
    let file = directory.join("trace.rpd");
    rpd_schema::create(&file).unwrap();
    let connection = Connection::open(&file).unwrap();
    connection
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO rocpd_string (id, string) VALUES (1, ''), (2, 'hipLaunchKernel'), (3, 'stream = 0x1 | mode = 1'),
                 (4, 'KernelExecution'), (5, 'saxpy(float*)');
             INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES (11, 7, 7, 1000, 1500, 2, 3);
             INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                 VALUES (21, 0, 0, 0, '', 2000, 4000, 5, 4), (22, 0, 0, 1, '', 9107199254740993, 9107199254740995, 5, 4);
             INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (11, 21);",
        )
        .unwrap();
    connection.execute("INSERT INTO rocpd_string (id, string) VALUES (6, ?1)", [HOSTILE]).unwrap();
    connection
        .execute_batch(
            "INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                 VALUES (23, 1, 0, 0, '', 2500, 2600, 6, 4);",
        )
        .unwrap();
    file
}

/// A server whose trace is read.
struct Tested {
    served: Arc<Served>,
    port: u16,
    directory: TempDir,
}

impl Tested {
    fn new() -> Tested {
        let directory = TempDir::new().unwrap();
        let file = trace(directory.path());
        Tested::of(directory, &[file])
    }

    fn of(directory: TempDir, files: &[std::path::PathBuf]) -> Tested {
        Tested::with(directory, files, false)
    }

    fn with(directory: TempDir, files: &[std::path::PathBuf], is_live: bool) -> Tested {
        Tested::serving(
            directory,
            &Serving { files, is_live, listen: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 0 },
        )
    }

    fn serving(directory: TempDir, serving: &Serving<'_>) -> Tested {
        let Server { traces, served, .. } = Server::of(serving, &Silent).unwrap();
        reader::whole(traces, &served);
        Tested { port: served.access.address.port(), served, directory }
    }

    fn path(&self, path: &str) -> String {
        format!("/{}/{path}", self.served.access.token)
    }

    fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", format!("127.0.0.1:{}", self.port));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let answer = router(Arc::clone(&self.served)).oneshot(request).await.unwrap();
            let (parts, body) = answer.into_parts();
            (parts.status, parts.headers, to_bytes(body, usize::MAX).await.unwrap().to_vec())
        })
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> StatusCode {
        self.ask(Method::GET, path, headers).0
    }

    fn json(&self, path: &str) -> serde_json::Value {
        let (status, _, body) = self.ask(Method::GET, &self.path(path), &[]);
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }
}

#[test]
fn without_the_token_there_is_nothing() {
    let tested = Tested::new();
    let token = &tested.served.access.token;
    assert_eq!(token.len(), 32);
    assert_ne!(*token, Tested::new().served.access.token);
    let changed = format!("{}{}", &token[..31], if token.ends_with('0') { '1' } else { '0' });
    for path in
        ["/", "/trace", "/index.html", "//", "/..", &format!("/{changed}/"), &format!("/{}/", &token[..31])]
    {
        assert_eq!(tested.get(path, &[]), 404, "{path}");
    }
    let cookie = format!("token={token}");
    let url = format!("http://127.0.0.1:{}/{token}/", tested.port);
    assert_eq!(tested.get("/trace", &[("cookie", &cookie), ("referer", &url)]), 404);
    assert_eq!(tested.get(&tested.path(""), &[]), 200);
    assert_eq!(tested.get(&tested.path("trace"), &[]), 200);
}

#[test]
fn another_name_of_this_machine_is_refused() {
    let tested = Tested::new();
    let port = tested.port;
    let page = tested.path("");
    for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:80", ""] {
        assert_eq!(tested.get(&page, &[("host", host)]), 403, "{host}");
    }
    assert_eq!(tested.get(&page, &[("host", &format!("evil.example:{port}"))]), 403);
    let twice = [("host", &*format!("127.0.0.1:{port}")), ("host", "evil.example")];
    assert_eq!(tested.get(&page, &twice), 403);
    for host in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"] {
        assert_eq!(tested.get(&page, &[("host", &format!("{host}:{port}"))]), 200, "{host}");
    }
}

#[test]
fn who_listens_on_all_addresses_is_reached_by_each_of_them_and_by_no_other_name() {
    let directory = TempDir::new().unwrap();
    let files = [trace(directory.path())];
    let serving =
        Serving { files: &files, is_live: false, listen: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0 };
    let tested = Tested::serving(directory, &serving);
    let (port, page) = (tested.port, tested.path(""));
    for host in ["192.0.2.7", "10.0.0.1", "[2001:db8::1]", "127.0.0.1", "localhost"] {
        assert_eq!(tested.get(&page, &[("host", &format!("{host}:{port}"))]), 200, "{host}");
    }
    for host in ["evil.example", "192.0.2.7.evil.example", "0x7f.1", "192.0.2"] {
        assert_eq!(tested.get(&page, &[("host", &format!("{host}:{port}"))]), 403, "{host}");
    }
    assert_eq!(tested.get(&page, &[("host", "192.0.2.7:1")]), 403);
    assert_eq!(tested.get(&page, &[("host", "192.0.2.7")]), 403);
    // Who listens on one address is not called by another.
    let tested = Tested::new();
    assert_eq!(tested.get(&tested.path(""), &[("host", &format!("192.0.2.7:{}", tested.port))]), 403);
}

#[test]
fn other_pages_are_refused() {
    let tested = Tested::new();
    let (page, trace) = (tested.path(""), tested.path("trace"));
    for site in ["cross-site", "same-site", "none", "x"] {
        assert_eq!(tested.get(&trace, &[("sec-fetch-site", site)]), 403, "{site}");
    }
    assert_eq!(tested.get(&trace, &[("sec-fetch-site", "same-origin")]), 200);
    // The page is opened by a link, or by the file that leads to it; it is in no other page's frame, and no other page reads it.
    let opened =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    assert_eq!(tested.get(&page, &opened), 200);
    assert_eq!(tested.get(&trace, &opened), 403);
    let framed =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
    assert_eq!(tested.get(&page, &framed), 403);
    let read =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "script")];
    assert_eq!(tested.get(&tested.path("app.mjs"), &read), 403);
}

#[test]
fn every_answer_tells_the_browser_what_not_to_do() {
    let tested = Tested::new();
    for path in [
        "/".to_string(),
        tested.path(""),
        tested.path("trace"),
        tested.path("nothing"),
        tested.path("app.mjs"),
    ] {
        let (_, headers, _) = tested.ask(Method::GET, &path, &[("origin", "http://evil.example")]);
        let policy = headers["content-security-policy"].to_str().unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ] {
            assert!(policy.split("; ").any(|found| found == part), "{path}: {part}");
        }
        assert!(!policy.contains("unsafe"));
        assert_eq!(headers["referrer-policy"], "no-referrer");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin");
        assert!(!headers.keys().any(|name| name.as_str().starts_with("access-control-")), "{headers:?}");
    }
}

#[test]
fn only_get_is_answered() {
    let tested = Tested::new();
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::PATCH, Method::HEAD] {
        assert_eq!(tested.ask(method.clone(), &tested.path("trace"), &[]).0, 405, "{method}");
    }
}

#[test]
fn no_path_leads_out_of_the_page() {
    let tested = Tested::new();
    for path in [
        "..",
        "../trace.rpd",
        "..%2ftrace.rpd",
        "%2e%2e/Cargo.toml",
        "trace.rpd",
        "/etc/passwd",
        "a/b",
        "app.mjs/",
        "%00",
    ] {
        assert_eq!(tested.get(&tested.path(path), &[]), 404, "{path}");
    }
}

#[test]
fn questions_that_make_no_sense_are_answered_with_what_is_wrong() {
    let tested = Tested::new();
    for path in [
        "tiles",
        "tiles?level=1&first=0&tiles=1&rows=0",
        "tiles?level=56&first=0&tiles=1&rows=0",
        "tiles?level=0&first=18446744073709551615&tiles=1&rows=0",
        "tiles?level=0&first=0&tiles=4294967295&rows=0",
        "tiles?level=0&first=0&tiles=1&rows=x",
        "tiles?level=-2&first=0&tiles=1&rows=0",
        "names?from=-1",
        "search?q=",
        "search?q=re:(",
        "search?q=dur>long",
        "hit?q=re:(",
        "hit?q=a&after=x",
        "events?from=0&to=1&order=luck",
        "statistics?from=0&to=1&rows=a",
        "statistics?from=0&to=1&by=luck",
        "statistics?from=0&to=1&sort=cats",
        "next?from=0&to=1&name=x",
        "grown",
        "grown?version=x",
    ] {
        let path = path.replace('>', "%3e").replace('(', "%28");
        let (status, _, body) = tested.ask(Method::GET, &tested.path(&path), &[]);
        assert_eq!(status, 400, "{path}");
        let said: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert!(said["error"].as_str().is_some_and(|error| !error.is_empty()));
    }
    for path in [
        "next?from=0&to=1",
        "next?from=0&to=9&name=4294967295",
        "hit?q=nothing%20has%20this",
        "value?row=0&at=0&from=0&to=1",
        "event",
        "event?event=4294967295",
        "event?op=-1",
        "event?row=99",
        "event?call=21",
    ] {
        assert_eq!(tested.get(&tested.path(path), &[]), 404, "{path}");
    }
    // Rows that are not there have no runs.
    assert_eq!(tested.get(&tested.path("tiles?level=0&first=0&tiles=1&rows=99"), &[]), 200);
}

#[test]
fn what_is_far_from_all_else_is_said_and_not_shown() {
    let tested = Tested::new();
    let facts = &tested.json("trace")["facts"];
    assert_eq!((&facts["outliers"], &facts["impossible"]), (&0.into(), &0.into()));
    assert_eq!((&facts["far"], &facts["far_from_ns"]), (&1.into(), &"9107199254740993".into()));
    assert_eq!((&facts["ops"], &facts["calls"], &facts["span_ns"]), (&2.into(), &1.into(), &3000.into()));
    assert_eq!(facts["first_ns"], "1000");
}

#[test]
fn an_event_has_all_that_the_file_says() {
    let tested = Tested::new();
    let op = tested.json("event?op=21");
    assert_eq!(
        (&op["id"], &op["text"], &op["start_ns"]),
        (&"21".into(), &"saxpy(float*)".into(), &1000.into())
    );
    assert_eq!(op["begin_ns"], "2000");
    let call = tested.json("event?call=11");
    assert_eq!(op["links"][0]["event"], call["event"]);
    assert_eq!(call["links"][0]["event"], op["event"]);
    assert_eq!(call["arguments"], serde_json::json!([["stream", "0x1"], ["mode", "1"]]));
    let cells = call["rows"][0]["cells"].as_array().unwrap();
    assert!(cells.contains(&serde_json::json!(["apiName_id", "hipLaunchKernel"])), "{cells:?}");
    let hostile = tested.json("event?op=23");
    assert_eq!(hostile["text"], HOSTILE);
}

/// Two traces, of which the second is that of the first with other times.
fn compared() -> Tested {
    let directory = TempDir::new().unwrap();
    let one = trace(directory.path());
    let other = directory.path().join("other.rpd");
    fs::copy(&one, &other).unwrap();
    let connection = Connection::open(&other).unwrap();
    connection
        .execute_batch(
            "UPDATE rocpd_op SET start = start + 700, \"end\" = \"end\" + 900 WHERE id = 21;
             INSERT INTO rocpd_string (id, string) VALUES (7, 'UserMarker'), (8, 'step');
             INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES (31, 7, 7, 1600, 1700, 7, 8), (32, 7, 7, 1800, 1900, 7, 8);",
        )
        .unwrap();
    Connection::open(&one)
        .unwrap()
        .execute_batch(
            "INSERT INTO rocpd_string (id, string) VALUES (7, 'UserMarker'), (8, 'step');
             INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES (31, 7, 7, 1700, 1800, 7, 8);",
        )
        .unwrap();
    Tested::of(directory, &[one, other])
}

#[test]
fn two_traces_are_aligned_as_is_asked() {
    let tested = compared();
    let shifts = || {
        let traces = tested.json("trace")["traces"].clone();
        [traces[0]["shift_ns"].as_u64().unwrap(), traces[1]["shift_ns"].as_u64().unwrap()]
    };
    let start = |source: usize| tested.json(&format!("event?op=21&source={source}"))["start_ns"].clone();
    // The first operation of A begins 1000 behind its first call, that of B 1500.
    assert_eq!(shifts(), [500, 0]);
    assert_eq!((start(0), start(1)), (1500.into(), 1700.into()));
    tested.json("align?by=event");
    assert_eq!(shifts(), [0, 0]);
    tested.json("align?by=hand&ns=250");
    assert_eq!((shifts(), start(1)), ([0, 250], 1950.into()));
    tested.json("align?by=op");
    assert_eq!(shifts(), [500, 0]);
    let name = tested.json("event?call=31")["name"].clone();
    tested.json(&format!("align?by=marker&name={name}&nth=1"));
    assert_eq!(shifts(), [0, 100]);
    // What the file says stays what it says.
    assert_eq!((start(1), &tested.json("event?op=21&source=1")["begin_ns"]), (1800.into(), &"2700".into()));
    assert_eq!(tested.json("event?op=21")["begin_ns"], "2000");
    let version = tested.json("trace")["version"].clone();
    for (wrong, words) in [
        (format!("align?by=marker&name={name}&nth=2"), "trace A has 1"),
        (format!("align?by=marker&name={name}&nth=0"), "trace A has 1"),
        ("align?by=hand".to_string(), "how far"),
        ("align?by=hand&ns=9223372036854775807".to_string(), "30 days"),
        ("align?by=luck".to_string(), "parameters"),
    ] {
        let (status, _, body) = tested.ask(Method::GET, &tested.path(&wrong), &[]);
        assert_eq!(status, 400, "{wrong}");
        assert!(
            String::from_utf8_lossy(&body).contains(words),
            "{wrong}: {}",
            String::from_utf8_lossy(&body)
        );
    }
    assert_eq!(tested.json("trace")["version"], version);
    let alone = Tested::new();
    assert_eq!(alone.get(&alone.path("align?by=op"), &[]), 404);
}

#[test]
fn answers_say_what_they_are_of() {
    let tested = compared();
    let (_, headers, _) = tested.ask(Method::GET, &tested.path("tiles?level=0&first=0&tiles=1&rows=0"), &[]);
    assert_eq!(headers["rpd-version"], "1");
    tested.json("align?by=event");
    let (_, headers, _) = tested.ask(Method::GET, &tested.path("names?from=0"), &[]);
    assert_eq!(headers["rpd-version"], "2");
    // Who knows an older one is told of the newer at once.
    assert_eq!(tested.json("grown?version=1")["version"], 2);
}

#[test]
fn a_replaced_file_is_said() {
    let tested = Tested::new();
    let file = tested.directory.path().join("trace.rpd");
    assert_eq!(tested.get(&tested.path("event?op=21"), &[]), 200);
    let other = tested.directory.path().join("other");
    fs::copy(&file, &other).unwrap();
    fs::rename(&other, &file).unwrap();
    let (status, _, body) = tested.ask(Method::GET, &tested.path("event?op=21"), &[]);
    assert_eq!(status, 500);
    assert!(String::from_utf8_lossy(&body).contains("replaced by another file"));
    // What is in memory is shown all the same.
    assert_eq!(tested.get(&tested.path("event?op=21&brief=true"), &[]), 200);
    fs::remove_file(&file).unwrap();
    let (status, _, body) = tested.ask(Method::GET, &tested.path("event?op=21"), &[]);
    assert_eq!(status, 500);
    assert_eq!(String::from_utf8_lossy(&body).matches("No such file").count(), 1);
}

#[test]
fn the_file_that_leads_to_the_page_is_its_owners_alone() {
    let directory = TempDir::new().unwrap();
    let file = browser::leading_file("http://127.0.0.1:1/token/", directory.path()).unwrap();
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().contains("url=http://127.0.0.1:1/token/"));
    drop(file);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn long_answers_are_compressed_for_those_who_take_that() {
    let takes = |what: &'static str| {
        let headers = HeaderMap::from_iter([("accept-encoding".parse().unwrap(), what.parse().unwrap())]);
        let answer = answers::answer(&headers, "text/plain", vec![7; 100_000]);
        let packed = answer.headers().get("content-encoding").is_some_and(|encoding| encoding == "gzip");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        (packed, runtime.block_on(to_bytes(answer.into_body(), usize::MAX)).unwrap().to_vec())
    };
    assert_eq!(takes("br"), (false, vec![7; 100_000]));
    let (is_packed, packed) = takes("br, gzip");
    assert!(is_packed && packed.len() < 10_000);
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&*packed).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, vec![7; 100_000]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_question_makes_it_fail(path in "[a-z./%?=&0-9:>-]{0,60}") {
        let tested = Tested::new();
        if let Ok(uri) = tested.path(&path).parse::<axum::http::Uri>() {
            let (status, headers, _) = tested.ask(Method::GET, &uri.to_string(), &[]);
            prop_assert!(!status.is_server_error(), "{status} {path}");
            prop_assert!(headers.contains_key("content-security-policy"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_damaged_file_gives_answers_or_says_what_is_wrong(
        damage in prop::collection::vec((100usize..1_000_000, prop::collection::vec(any::<u8>(), 1..80)), 1..12),
    ) {
        let directory = TempDir::new().unwrap();
        let file = trace(directory.path());
        let mut bytes = fs::read(&file).unwrap();
        for (at, bits) in damage {
            let at = at % (bytes.len() - bits.len());
            bytes[at..at + bits.len()].copy_from_slice(&bits);
        }
        fs::write(&file, bytes).unwrap();
        let files = [file];
        let serving = Serving { files: &files, is_live: false, listen: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 0 };
        if let Ok(Server { traces, served, .. }) = Server::of(&serving, &Silent) {
            reader::whole(traces, &served);
            let tested = Tested { port: served.access.address.port(), served, directory };
            let (status, _, body) = tested.ask(Method::GET, &tested.path("trace"), &[]);
            let said: serde_json::Value = serde_json::from_slice(&body).unwrap();
            match status.as_u16() {
                200 => prop_assert!(said["groups"].is_array()),
                500 => prop_assert!(said["error"].as_str().is_some_and(|error| error.len() > 10)),
                other => prop_assert!(false, "{other}"),
            }
            for question in ["event?event=0", "search?q=a", "statistics?from=0&to=99", "tiles?level=0&first=0&tiles=1&rows=0"] {
                let (_, _, body) = tested.ask(Method::GET, &tested.path(question), &[]);
                prop_assert!(!body.is_empty());
            }
        }
    }
}
