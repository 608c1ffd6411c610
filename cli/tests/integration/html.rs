//! `rpd export html`: the page's data are compared with reports and SQL; the page is opened in a real Chromium.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::generated::{generated, to_schema_3};
use crate::harness::{Dir, installed, ran};
use crate::webdriver::{Browser, is_firefox};

/// What is between two texts of which each is there once.
fn between<'a>(page: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = page.split_once(before).unwrap_or_else(|| panic!("no {before}"));
    rest.split_once(after).unwrap_or_else(|| panic!("no {after}")).0
}

fn exported(dir: &Dir, trace: &str, options: &[&str]) -> String {
    dir.run(&[&["export", "html", trace], options].concat()).expect(0).stdout.clone()
}

/// The data of a page, whose policy lets run what it has and nothing else.
fn data(page: &str) -> Value {
    let policy = between(page, "<meta http-equiv=\"Content-Security-Policy\" content=\"", "\">");
    let style = between(page, "<style>", "</style>");
    let program = between(page, "<script>", "</script>");
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    let expected = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(program),
        hash(style)
    );
    assert_eq!(policy, expected);
    assert_eq!(page.matches("<script").count(), 2);
    let data = between(page, "type=\"application/json\">", "</script>");
    let rest = page.replace(data, "");
    for other in ["http:", "https:", "src=", "url(", "@import"] {
        assert!(!rest.contains(other), "{other}");
    }
    serde_json::from_str(data).unwrap()
}

/// The rows of a table, by its title, each by the titles of its columns.
fn table(data: &Value, title: &str) -> Vec<Value> {
    let sections = data["sections"].as_array().unwrap().iter();
    let mut tables = sections.flat_map(|section| section["tables"].as_array().unwrap());
    let table = tables.find(|table| table["title"] == title).unwrap_or_else(|| panic!("no {title}"));
    let columns: Vec<&str> =
        table["columns"].as_array().unwrap().iter().map(|column| column["title"].as_str().unwrap()).collect();
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(table["total"], rows.len());
    let named = rows.iter().map(|row| {
        let values = row.as_array().unwrap();
        assert_eq!(values.len(), columns.len());
        columns.iter().map(|column| (*column).to_string()).zip(values.iter().cloned()).collect()
    });
    named.collect()
}

fn report(dir: &Dir, arguments: &[&str]) -> Vec<Value> {
    let json = dir.run(&[arguments, &["--json"]].concat()).expect(0).stdout.clone();
    match serde_json::from_str(&json).unwrap() {
        Value::Array(rows) => rows,
        other => panic!("{other}"),
    }
}

fn check(dir: &Dir, trace: &str, options: &[&str]) {
    let page = exported(dir, trace, options);
    assert!(page == exported(dir, trace, options), "not the same bytes twice");
    let data = data(&page);
    for (title, by) in [
        ("Kernels", "kernel"),
        ("Calls", "api"),
        ("Copies", "copy"),
        ("By stream", "stream"),
        ("By queue", "queue"),
        ("By thread", "thread"),
        ("By rank", "rank"),
    ] {
        let arguments = [&["top", "--percentiles", "--instrumented", "--by", by, trace], options].concat();
        let expected: Vec<Value> = report(dir, &arguments)
            .iter()
            .map(|row| {
                json!([
                    row["name"],
                    row["total_ns"],
                    row["calls"],
                    row["min_ns"],
                    row["max_ns"],
                    row["p50_ns"],
                    row["p99_ns"]
                ])
            })
            .collect();
        let found: Vec<Value> = table(&data, title)
            .iter()
            .map(|row| {
                let name = row
                    .as_object()
                    .unwrap()
                    .iter()
                    .find(|(key, _)| ["kernel", "function", "copies", by].contains(&key.as_str()));
                json!([
                    name.unwrap().1,
                    row["total"],
                    row["calls"],
                    row["min"],
                    row["max"],
                    row["p50"],
                    row["p99"]
                ])
            })
            .collect();
        assert_eq!(found, expected, "{title}");
    }
    let gpus = report(dir, &[&["overlap", trace], options].concat());
    for (found, expected) in data["gpus"].as_array().unwrap().iter().zip(&gpus) {
        for key in ["gpu", "operations", "busy_ns", "idle_ns", "span_ns", "compute_ns", "exposed_copies_ns"] {
            assert_eq!(found[key], expected[key], "{key}");
        }
    }
    assert_eq!(data["gpus"].as_array().unwrap().len(), gpus.len());
    let markers = report(dir, &[&["markers", trace], options].concat());
    let sum = |rows: &[Value], key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum(&table(&data, "Markers"), "GPU own"), sum(&markers, "gpu_own_ns"));
    assert_eq!(table(&data, "Markers").len(), markers.len());
    let copies = report(dir, &[&["copies", trace], options].concat());
    assert_eq!(sum(&table(&data, "Copies by size"), "total"), sum(&copies, "total_ns"));
}

#[test]
fn the_page_says_what_the_reports_say() {
    let dir = Dir::new();
    check(&dir, &dir.fixture("matmul_result.rpd"), &[]);
    let trace = dir.unpacked("mytrace_raw.rpd");
    check(&dir, &trace, &[]);
    check(&dir, &trace, &["--start", "25%", "--end", "75%"]);
    let trace = generated(&dir, "t.rpd", 3, 200);
    check(&dir, &trace, &["--gpu", "1"]);
    to_schema_3(&dir, &trace);
    check(&dir, &trace, &[]);
}

/// Operator, kernel and shapes, with how long it ran, ns.
type Operators = BTreeMap<(String, String, String), i64>;

#[test]
fn operators_are_those_of_the_autograd_pass_whether_it_ran_or_not() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let found = |trace: &str| -> Operators {
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_string();
        let rows = table(&data(&exported(&dir, trace, &[])), "Operators, kernels and shapes");
        let key = |row: &Value| (text(row, "operator"), text(row, "kernel"), text(row, "shapes"));
        rows.iter().map(|row| (key(row), row["total"].as_i64().unwrap())).collect()
    };
    let before = found(&trace);
    dir.run(&["autograd", &trace]).expect(0);
    let after = found(&trace);
    assert_eq!(before, after);
    let connection = dir.open(&trace);
    let mut query = connection
        .prepare("SELECT autogradName, kernelName, ifnull(sizes, ''), CAST(total_gpu AS INTEGER) FROM autogradKernel WHERE total_gpu > 0")
        .unwrap();
    let rows = query.query_map([], |row| Ok(((row.get(0)?, row.get(1)?, row.get(2)?), row.get(3)?))).unwrap();
    let expected: Operators = rows.collect::<Result<_, _>>().unwrap();
    assert!(!expected.is_empty());
    for (key, ns) in expected {
        assert_eq!(after.get(&key), Some(&ns), "{key:?}");
    }
}

/// Names that would be markup, formulas or something to a terminal.
const HOSTILE: &str = r#"'</script><script>alert(1)</script><img src=x onerror=alert(1)>"&amp;' || char(0x202e) || char(27) || '[2J=1+1<!--'"#;

fn hostile(dir: &Dir) -> String {
    dir.trace(
        "<b>&.rpd",
        &format!(
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, {HOSTILE}), (4, 'KernelExecution'), (5, 'Copy' || {HOSTILE}),
                 (6, 'aten::' || {HOSTILE} || ', op_id = 1, sizes = [[1]]'), (7, CAST(x'ff003c' AS TEXT));
             INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 400, 2, 6), (2, 7, 7, 110, 120, 3, 7), (3, 7, 7, 130, 130, 2, 3);
             INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 150, 160, 3, 4), (2, 0, 0, 0, '', 170, 180, 1, 5), (3, 0, 0, 0, '', 500, 540, 7, 4);
             INSERT INTO rocpd_api_ops VALUES (1, 2, 1), (2, 2, 2);
             INSERT INTO rocpd_kernelapi VALUES (2, {HOSTILE}, 1, 1, 1, 1, 1, 1, 0, 0, '', '', '', 0, 3);
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::command', {HOSTILE}), ('gpu::0::name', {HOSTILE}),
                 ('session::0::env::RANK', {HOSTILE});"
        ),
    )
}

#[test]
fn names_are_texts_and_nothing_else() {
    let dir = Dir::new();
    let page = exported(&dir, &hostile(&dir), &[]);
    assert!(!page.chars().any(|c| c != '\n' && rpd_escape::is_unsafe(c)));
    assert!(page.contains("<title>&lt;b&gt;&amp;.rpd - rpd</title>"));
    let data = data(&page);
    let kernel = table(&data, "Kernels").iter().map(|row| row["kernel"].to_string()).collect::<String>();
    assert!(
        kernel.contains("</script><script>alert(1)</script>") && kernel.contains("\\\\x1b[2J"),
        "{kernel}"
    );
    let empty = exported(&dir, &dir.trace("empty.rpd", ""), &[]);
    assert_eq!(self::data(&empty)["gpus"], json!([]));
}

/// The answers of a page in a browser, which logs nothing and asks for no other file; none where there is no browser.
fn browsed(dir: &Dir, page: &str, size: (u64, u64), expressions: &[&str]) -> Option<Vec<Value>> {
    let browser = Browser::start(dir)?;
    browser.resize(size);
    browser.requested();
    let url = format!("file://{}", dir.path(page).display());
    browser.open(&url);
    let answers = expressions.iter().map(|expression| browser.get(expression)).collect();
    assert_eq!(browser.console(), Vec::<String>::new());
    assert!(is_firefox() || browser.requested() == [url]);
    Some(answers)
}

#[test]
fn a_browser_shows_a_hundred_thousand_rows_at_once_and_hostile_names_as_texts() {
    let dir = Dir::new();
    dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution');
         WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
         INSERT INTO rocpd_string SELECT 10 + i, 'kernel ' || i FROM n;
         WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
         INSERT INTO rocpd_op SELECT i, 0, 0, 0, '', 1000000 * i, 1000000 * i + i, 10 + i, 2 FROM n;",
    );
    dir.run(&["export", "html", "t.rpd", "-o", "t.html"]).expect(0);
    let drawn = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))";
    let rows = "[...document.querySelectorAll('#section-kernels .row')].map((row) => row.querySelector('.name').textContent)";
    let count = "document.querySelector('#section-kernels .tools span').textContent";
    let type_in = "(() => { const input = document.querySelector('#section-kernels input'); input.value = 'KERNEL 777'; input.dispatchEvent(new Event('input')); })()";
    let expressions = [
        "[...document.querySelectorAll('nav button')].find((button) => button.textContent === 'Kernels').click()",
        &format!("{rows}.slice(0, 2)"),
        count,
        "[1, 1].forEach((column) => document.querySelectorAll('#section-kernels .head button')[column].click())",
        &format!("{rows}.slice(0, 2)"),
        "document.querySelector('#section-kernels .rows').scrollTop = 29 * 50000",
        drawn,
        &format!("[{rows}.includes('kernel 50001'), {rows}.length < 100]"),
        type_in,
        drawn,
        count,
        &format!("{rows}.slice(0, 1)"),
        "document.querySelector('#section-kernels .row').click()",
        "document.querySelector('#section-kernels .detail .full').textContent",
        "document.documentElement.scrollWidth <= window.innerWidth",
    ];
    let Some(answers) = browsed(&dir, "t.html", (1280, 800), &expressions) else { return };
    assert_eq!(answers[1], json!(["kernel 100000", "kernel 99999"]));
    assert_eq!(answers[2], "100,000 rows");
    assert_eq!(answers[4], json!(["kernel 1", "kernel 2"]));
    assert_eq!(answers[7], json!([true, true]));
    assert_eq!(answers[10], "280 of 100,000 rows");
    assert_eq!(
        (&answers[11], &answers[13], &answers[14]),
        (&json!(["kernel 777"]), &json!("kernel 777"), &json!(true))
    );

    let fits = "document.documentElement.scrollWidth <= window.innerWidth";
    let name = "N".repeat(3000);
    dir.trace(
        "n.rpd",
        &format!(
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution'), (3, '{name}');
             INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 1000, 2000, 3, 2), (2, 0, 0, 0, '', 9000, 9500, 3, 2);"
        ),
    );
    dir.run(&["export", "html", "n.rpd", "-o", "n.html"]).expect(0);
    let has = format!("document.body.textContent.includes('before {name}')");
    let Some(answers) = browsed(&dir, "n.html", (1280, 800), &[&has, fits]) else { return };
    assert_eq!(answers, [json!(true), json!(true)]);

    dir.run(&["export", "html", &hostile(&dir), "-o", "h.html"]).expect(0);
    let expressions = [
        "[...document.querySelectorAll('nav button')].forEach((button) => button.click())",
        "document.querySelectorAll('img, b:not(.facts b):not(.label b), #page script').length",
        "document.body.textContent.includes('</script><script>alert(1)</script>')",
        "document.documentElement.scrollWidth <= window.innerWidth",
        "[...document.querySelectorAll('nav button')].map((button) => button.textContent)",
    ];
    let Some(answers) = browsed(&dir, "h.html", (390, 800), &expressions) else { return };
    assert_eq!(answers[1..4], [json!(0), json!(true), json!(true)]);
    let all = json!(["Overview", "Kernels", "Operators", "Calls", "Markers", "Copies", "Streams and ranks"]);
    assert_eq!(answers[4], all);
}

#[test]
fn the_page_sorts_and_searches_as_its_own_tests_want() {
    if !installed("node") {
        return;
    }
    let dir = Dir::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut node = dir.command("node");
    ran(node.arg(root.join("tests/browser/model.mjs")).arg(root.join("../postprocess/src/export/html/page")))
        .expect(0);
}
