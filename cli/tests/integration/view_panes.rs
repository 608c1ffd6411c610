//! The panes of `rpd view` in a real browser, and what people do with rows: what is shown is what SQL and the other verbs say.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Dir, not_installed};
use crate::view::{SELECTED, Viewed, numbers, opened, viewed_at};
use crate::webdriver::Browser;

const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

fn first_ns(sql: &Connection) -> i64 {
    sql.query_row(
        "SELECT min(start) FROM (SELECT start FROM rocpd_api UNION ALL SELECT start FROM rocpd_op UNION ALL SELECT start FROM rocpd_monitor)",
        [],
        |row| row.get(0),
    )
    .unwrap()
}

/// Clicks on the button with this text in a part of the page.
fn press(browser: &Browser, part: &str, text: &str) {
    let text = Value::from(text);
    browser.wait(&format!("[...document.querySelectorAll('{part} button')].some((one) => one.textContent === {text} && !one.disabled)"));
    browser.get(&format!(
        "[...document.querySelectorAll('{part} button')].find((one) => one.textContent === {text}).click()"
    ));
}

fn clean(browser: &Browser) {
    assert_eq!(browser.console(), Vec::<String>::new());
    assert_eq!(browser.get("typeof window.hacked").as_str(), Some("undefined"));
}

/// Asks a question in the console of the page.
fn ask(browser: &Browser, question: &str) {
    let question = Value::from(question);
    browser.get(&format!("document.querySelector('.console textarea').value = {question}"));
    press(browser, ".console", "Ask");
    browser.wait("!document.querySelector('.console [role=status]').textContent.startsWith('Asking')");
}

/// Rows of the answer that are seen.
const ANSWER: &str = "[...document.querySelectorAll('.console .rows .row')].map((row) => [...row.children].map((cell) => cell.textContent))";

#[test]
fn rows_of_an_answer_in_sql_are_rows_and_lead_to_their_events() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let before = std::fs::read(dir.path(&trace)).unwrap();
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&trace]);
    let sql = dir.open(&trace);
    opened(&browser, &viewed.url);
    browser.press(&["q"]);
    assert_eq!(browser.get("document.activeElement.tagName").as_str(), Some("TEXTAREA"));
    let question = "select id, start, \"end\", 'long <b>one</b>' as name from rocpd_op order by \"end\" - start desc limit 5";
    ask(&browser, question);
    let mut rows = sql.prepare(question).unwrap();
    let rows: Vec<(i64, i64, i64)> = rows
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let texts = rows.iter().map(|(id, start, end)| {
        [id.to_string(), start.to_string(), end.to_string(), "long <b>one</b>".to_string()]
    });
    assert_eq!(browser.get(ANSWER), json!(texts.collect::<Vec<_>>()));
    // A click leads to the event.
    browser.get("document.querySelectorAll('.console .rows .row')[1].click()");
    browser.wait(&format!("rpdTest.state().sel === 'op:{}'", rows[1].0));
    // As rows of the page they lie where SQL has them.
    press(&browser, ".console", "As rows");
    browser.press(&[ESCAPE]);
    let first = first_ns(&sql);
    for (_, start, end) in &rows {
        let middle = (start + end) as f64 / 2.0 - first as f64;
        let found = browser.get(&format!(
            "rpdTest.lines().filter((line) => line.group === 'x.sql' && line.sort === 'row').map((line) => rpdTest.at(line.row, {middle})).find(Boolean)"
        ));
        assert_eq!((&found["start_ns"], &found["duration_ns"]), (&json!(start - first), &json!(end - start)));
        assert_eq!(
            browser.get(&format!("rpdTest.name({})", found["name"])).as_str(),
            Some("long <b>one</b>")
        );
    }
    clean(&browser);
    // What would change the file is refused in words; a wrong name too.
    for (question, words) in
        [("delete from rocpd_op", "may only read"), ("select * from rocpd_opp", "no table rocpd_opp")]
    {
        ask(&browser, question);
        let said = browser.get("document.querySelector('.console [role=status]').textContent");
        assert!(said.as_str().unwrap().contains(words), "{said}");
    }
    // Many rows: those that are seen are elements, all are counted, and a head sorts them.
    ask(&browser, "select id, \"end\" - start as took from rocpd_op");
    let all: i64 = sql.query_row("SELECT min(count(*), 10000) FROM rocpd_op", [], |row| row.get(0)).unwrap();
    assert_eq!(
        browser.get("Number(document.querySelector('.console [role=grid]').getAttribute('aria-rowcount'))"),
        json!(all + 1)
    );
    assert!(browser.get(&format!("{ANSWER}.length")).as_u64().unwrap() < 100);
    press(&browser, ".console [role=grid]", "took");
    let took = |browser: &Browser, at: usize| {
        browser.get(&format!("{ANSWER}[{at}][1]")).as_str().unwrap().parse::<i64>().unwrap()
    };
    assert_eq!(took(&browser, 0), rows[0].2 - rows[0].1);
    browser.get("document.querySelector('.console [role=grid]').focus()");
    browser.press(&["\u{e015}", "\u{e015}", ENTER]);
    browser.wait(&format!("rpdTest.state().sel === 'op:{}'", rows[2].0));
    assert!(std::fs::read(dir.path(&trace)).unwrap() == before, "the trace is as it was");
}

#[test]
fn rows_are_pinned_hidden_moved_and_filtered_and_the_address_keeps_it() {
    let dir = Dir::new();
    let trace = dir.generated("t.rpd", &["--events", "3000", "--processes", "2"]);
    let Some((browser, viewed)) = viewed_at(&dir, &trace, "") else { return };
    let tool = |key: &str, tool: &str| {
        browser.get(&format!("document.querySelector('[data-key=\"{key}\"] [data-tool={tool}]').click()"))
    };
    let groups = || {
        browser.get("[...new Set(rpdTest.lines().filter((line) => !line.isPinned && line.sort === 'group').map((line) => line.group))]")
    };
    let all: Vec<String> =
        groups().as_array().unwrap().iter().map(|key| key.as_str().unwrap().to_string()).collect();
    assert_eq!(all.len(), 4, "{all:?}");
    let queue = browser.get("rpdTest.groups().find((group) => group.is_gpu).tracks[0].key");
    let queue = queue.as_str().unwrap();
    tool(queue, "pin");
    browser.wait("rpdTest.isWhole()");
    let pinned = "rpdTest.lines().filter((line) => line.isPinned).map((line) => [line.track, line.top])";
    let before = browser.get(pinned);
    assert_eq!(before[0], json!([queue, 0]));
    // It stays where it is when the others are scrolled, and shows its events.
    let plot = numbers(&browser.get(SELECTED));
    let seen = format!(
        "Array.from({{ length: {} }}, (_, x) => rpdTest.pixel(x, 9) !== rpdTest.back()).filter(Boolean).length",
        plot[2] as u64
    );
    let drawn = browser.get(&seen);
    assert!(drawn.as_u64().unwrap() > 10, "{drawn}");
    browser.get("document.getElementById('plot').focus()");
    browser.press(&["\u{e015}", "\u{e015}", "\u{e015}"]);
    browser.wait("rpdTest.lines().find((line) => !line.isPinned).top < 40");
    assert_eq!((browser.get(pinned), browser.get(&seen)), (before, drawn));
    assert_eq!(browser.get("rpdTest.lines().filter((line) => line.track === rpdTest.lines()[0].track && !line.isPinned).length"), 0);
    // Hidden, moved, filtered.
    tool(&all[1], "hide");
    assert_eq!(groups(), json!([all[0], all[2], all[3]]));
    tool(&all[3], "up");
    assert_eq!(groups(), json!([all[0], all[3], all[2]]));
    browser.wait("location.hash.includes('pin=') && location.hash.includes('hide=') && location.hash.includes('order=')");
    let hash = browser.get("location.hash").as_str().unwrap().to_string();
    browser.open("about:blank");
    opened(&browser, &format!("{}{hash}", viewed.url));
    assert_eq!(groups(), json!([all[0], all[3], all[2]]));
    assert_eq!(browser.get(pinned)[0], json!([queue, 0]));
    browser.get("document.getElementById('hidden').click()");
    browser.wait("document.getElementById('hidden').hidden");
    assert_eq!(groups().as_array().unwrap().len(), 4);
    browser.get("(() => { const field = document.getElementById('rows'); field.value = '1801'; field.dispatchEvent(new Event('input')); })()");
    browser.wait(&format!(
        "rpdTest.lines().filter((line) => !line.isPinned).every((line) => line.group === '{}')",
        all[1]
    ));
    // By keys: the row under the pointer.
    browser.get("(() => { const field = document.getElementById('rows'); field.value = ''; field.dispatchEvent(new Event('input')); })()");
    browser.wait(&format!("rpdTest.lines().some((line) => line.group === '{}')", all[0]));
    browser.get("document.getElementById('plot').focus()");
    browser.point((plot[0] + 200.0, plot[1] + 9.0));
    browser.press(&["p"]);
    browser.wait("rpdTest.lines().every((line) => !line.isPinned)");
    // One key takes no row from another: what is under the pointer then is hidden, also what is pinned.
    let pin = || browser.get(&format!("rpd.app.rows.use('pin', '{queue}')"));
    pin();
    let label = "document.querySelector('#pinned .label .open')";
    browser.get(&format!("{label}.focus()"));
    browser.point((plot[0] + 220.0, plot[1] + 9.0));
    browser.press(&["h"]);
    browser.wait(&format!(
        "rpdTest.state().hidden?.join() === '{queue}' && rpdTest.lines().every((line) => line.track !== '{queue}')"
    ));
    browser.point((plot[0] + 240.0, plot[1] + plot[3] / 2.0));
    let under = "(() => { const { track, counter, group } = rpdTest.under(240, document.getElementById('plot').clientHeight / 2).line; return (counter ?? track ?? group).key; })()";
    let second = browser.get(under);
    browser.press(&["p"]);
    browser.wait(&format!("rpdTest.state().pins?.includes({second})"));
    let third = browser.get(under);
    assert_ne!(third, second);
    browser.press(&["h"]);
    browser.wait(&format!("rpdTest.state().hidden?.join() === ['{queue}', {third}].join()"));
    // The button that shows them has one line, and the text beside it has its place.
    assert_eq!(
        browser.get("(() => { const [button, beside, corner] = ['hidden', 'window', 'corner'].map((id) => document.getElementById(id).getBoundingClientRect()); return [document.getElementById('hidden').textContent, button.height < 26, beside.right <= corner.right, beside.left >= button.right]; })()"),
        json!(["2 hidden", true, true, true])
    );
    browser.get("document.getElementById('hidden').click()");
    browser.wait(&format!("rpdTest.lines().some((line) => line.isPinned && line.track === '{queue}')"));
    browser.get("rpdTest.state().pins.filter((key) => key !== 'none').forEach((key) => document.querySelector(`#pinned [data-key=\"${key}\"] [data-tool=pin]`).click())");
    browser.wait("rpdTest.lines().every((line) => !line.isPinned)");
    // The next time a trace of this shape is opened here, it looks the same.
    pin();
    browser.open("about:blank");
    opened(&browser, &viewed.url);
    assert_eq!(browser.get(pinned)[0], json!([queue, 0]));
    clean(&browser);
}

#[test]
fn cursors_measure_and_views_are_undone() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let Some((browser, _viewed)) = viewed_at(&dir, &trace, "#t=0,400000000") else { return };
    let plot = numbers(&browser.get(SELECTED));
    let at = |share: f64| browser.point((plot[0] + plot[2] * share, plot[1] + 80.0));
    at(0.25);
    browser.press(&["c"]);
    at(0.75);
    browser.get("document.getElementById('plot').dispatchEvent(new KeyboardEvent('keydown', { key: 'C', code: 'KeyC', shiftKey: true, bubbles: true }))");
    browser.wait("rpdTest.state().cursors.every((at) => at !== null)");
    let cursors = numbers(&browser.get("rpdTest.state().cursors"));
    assert!((cursors[1] - cursors[0] - 2e8).abs() <= 2.0 * 4e8 / plot[2], "{cursors:?}");
    let said = browser.get("document.getElementById('live').textContent");
    assert!(said.as_str().unwrap().contains("ms between the cursors"), "{said}");
    browser.wait("location.hash.includes('c=')");
    // Back to the view before, and forward again.
    let view = || numbers(&browser.get("rpdTest.state().t ?? [0, 0]"));
    let first = view();
    browser.press(&["w"]);
    let second = view();
    assert_ne!(first, second);
    browser.press(&["z"]);
    assert_eq!(view(), first);
    browser.get("document.getElementById('plot').dispatchEvent(new KeyboardEvent('keydown', { key: 'Z', code: 'KeyZ', shiftKey: true, bubbles: true }))");
    assert_eq!(view(), second);
    // To a time; a wrong one is said.
    browser.press(&["g", "x", ENTER]);
    browser.wait("document.querySelector('dialog [role=status]').textContent.startsWith('That is no time')");
    browser.get("(() => { document.querySelector('dialog input').value = '100ms'; })()");
    browser.press(&[ENTER]);
    browser.wait("document.querySelector('dialog') === null");
    let now = view();
    assert!(((now[0] + now[1]) / 2.0 - 1e8).abs() < 1.0, "{now:?}");
    // All keys, over the page; the focus is where it was then.
    browser.press(&["?"]);
    browser.wait("document.querySelector('dialog[open]')?.getAttribute('aria-label') === 'Keys'");
    browser.press(&[ESCAPE]);
    browser.wait("document.querySelector('dialog') === null && document.activeElement.id === 'plot'");
    // Marks by their number.
    browser.get("location.hash = 't=0,1000000&m=50000000:a,200000000:b'");
    browser.wait("rpdTest.state().marks.length === 2");
    browser.press(&["2"]);
    let now = view();
    assert!(((now[0] + now[1]) / 2.0 - 2e8).abs() < 1.0, "{now:?}");
    clean(&browser);
}

#[test]
fn the_tree_of_calls_is_that_of_the_export() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let Some((browser, _viewed)) = viewed_at(&dir, &trace, "#tab=flame") else { return };
    for of in ["gpu", "cpu"] {
        let lines = dir.run(&["export", "collapsed", "--time", of, &trace]).expect(0).stdout.clone();
        let mut roots = std::collections::BTreeMap::new();
        let mut all = 0_u64;
        for line in lines.lines() {
            let (stack, ns) = line.rsplit_once(' ').unwrap();
            let ns: u64 = ns.parse().unwrap();
            *roots.entry(stack.split(';').next().unwrap().to_string()).or_insert(0_u64) += ns;
            all += ns;
        }
        let (widest, ns) = roots.into_iter().max_by_key(|(_, ns)| *ns).unwrap();
        press(&browser, "#pane", if of == "gpu" { "GPU time" } else { "CPU time" });
        let frame = "document.querySelector('.frame[data-node=\"0\"]')";
        browser.wait(&format!("{frame}?.textContent === {}", Value::from(widest.as_str())));
        let command = match of {
            "gpu" => format!("rpd export collapsed {trace}"),
            _ => format!("rpd export collapsed --time cpu {trace}"),
        };
        browser.wait(&format!(
            "document.querySelector('#pane code').textContent === {}",
            Value::from(command.as_str())
        ));
        let share = numbers(&browser.get(&format!("(() => {{ const box = {frame}.getBoundingClientRect(); return [box.width, document.querySelector('.flame').clientWidth]; }})()")));
        assert!((share[0] / share[1] - ns as f64 / all as f64).abs() < 0.01, "{share:?} {ns} of {all}");
    }
    // By keys: to the widest frame inside; it becomes as wide as all.
    browser.get("document.querySelector('.frame[data-node=\"0\"]').focus()");
    browser.press(&["\u{e015}"]);
    let inner = browser.get("document.activeElement.dataset.node");
    assert_ne!(inner.as_str(), Some("0"));
    browser.press(&[ENTER]);
    browser.wait("(() => { const frame = document.activeElement; return frame.classList.contains('frame') && frame.getBoundingClientRect().width > document.querySelector('.flame').clientWidth * 0.98; })()");
    press(&browser, "#pane", "Tree");
    browser.wait("document.querySelectorAll('.tree li').length > 3");
    clean(&browser);
}

#[test]
fn reports_say_what_the_commands_say() {
    let dir = Dir::new();
    let trace = dir.generated("t.rpd", &["--events", "4000"]);
    let output = |arguments: &[&str]| -> Value {
        let ran = dir.run(&[arguments, &["--json", &trace]].concat());
        serde_json::from_str(&ran.expect(0).stdout).unwrap()
    };
    for pass in ["graph", "autograd"] {
        dir.run(&[pass, &trace]).expect(0);
    }
    let Some((browser, _viewed)) = viewed_at(&dir, &trace, "#tab=reports") else { return };
    let shows = |report: &str| {
        press(&browser, "#pane .controls", report);
        browser.wait("document.querySelectorAll('.report .virtual .rows .row').length > 0 && document.querySelector('#pane [role=status]').textContent.startsWith('Of ')");
    };
    let cells = |name: &str| -> Vec<Vec<String>> {
        let found = browser.get(&format!("[...document.querySelector('.report [role=grid][aria-label=\"{name}\"] .rows').children].map((row) => [...row.children].map((cell) => cell.textContent))"));
        serde_json::from_value(found).unwrap()
    };
    shows("Gaps");
    let gaps = output(&["gaps"]);
    let longest = gaps[0]["longest"].as_array().unwrap();
    let rows = cells("The longest");
    assert_eq!(rows.len(), longest.len());
    for (row, gap) in rows.iter().zip(longest) {
        assert_eq!(
            (row[2].as_str(), row[3].as_str()),
            (gap["cause"].as_str().unwrap(), gap["after"].as_str().unwrap())
        );
    }
    let command = browser.get("document.querySelector('#pane > div > p:last-child code').textContent");
    assert_eq!(command, "rpd gaps t.rpd");
    // A click goes there, and the time is selected.
    browser.get(
        "document.querySelector('.report [role=grid][aria-label=\"The longest\"] .row:not(.head)').click()",
    );
    browser.wait("rpdTest.state().range !== null");
    let range = numbers(&browser.get("rpdTest.state().range"));
    let first = first_ns(&dir.open(&trace));
    assert_eq!(range[0] as i64, longest[0]["start_ns"].as_i64().unwrap() - first);
    assert_eq!((range[1] - range[0]) as i64, longest[0]["idle_ns"].as_i64().unwrap());
    browser.press(&[ESCAPE, "0"]);
    for (report, verb, name) in [
        ("Copies", "copies", "By kind"),
        ("Queues", "queues", "Queues"),
        ("Memory", "memory", "What is allocated"),
    ] {
        shows(report);
        browser
            .wait(&format!("document.querySelector('.report [role=grid][aria-label=\"{name}\"]') !== null"));
        assert_eq!(cells(name).len(), output(&[verb]).as_array().unwrap().len(), "{verb}");
    }
    shows("Markers");
    let nodes = output(&["markers"]);
    let markers = cells("Tree of markers");
    assert_eq!(markers[0][0].trim(), nodes[0]["name"].as_str().unwrap());
    shows("Graphs");
    let launches: i64 =
        dir.open(&trace).query_row("SELECT count(*) FROM graphLaunch", [], |row| row.get(0)).unwrap();
    assert_eq!(
        browser.get("document.querySelector('[aria-label=Launches]').getAttribute('aria-rowcount')"),
        json!((launches + 1).to_string())
    );
    // A click on a launch selects its call.
    browser.get("document.querySelector('[aria-label=Launches] .rows .row').click()");
    browser.wait("rpdTest.state().sel?.startsWith('call:')");
    let selected = browser.get("rpdTest.state().sel");
    let launch: i64 = dir
        .open(&trace)
        .query_row(
            "SELECT L.id FROM graphLaunch L JOIN rocpd_api C ON C.id = L.id ORDER BY C.start LIMIT 1",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(selected, json!(format!("call:{launch}")));
    assert!(cells("Launches").iter().all(|row| !row[4].starts_with('-')), "a launch begins after the trace");
    shows("Operators");
    let best: String = dir
        .open(&trace)
        .query_row("SELECT autogradName FROM autogradKernel ORDER BY total_gpu DESC LIMIT 1", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(cells("Operators and their kernels")[0][0], best);
    // Who recorded, and what was lost.
    browser.get("document.getElementById('tab-trace').click()");
    browser.wait("document.querySelector('#sessions [aria-label=Sessions]') !== null && document.getElementById('sessions').innerText.includes('No records were lost')");
    clean(&browser);
}

#[test]
fn rows_that_are_worked_out_show_what_sql_says() {
    let dir = Dir::new();
    let trace = dir.generated("t.rpd", &["--events", "3000", "--gpus", "1"]);
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&trace]);
    let sql = dir.open(&trace);
    let first = first_ns(&sql);
    opened(&browser, &format!("{}#lanes=streams,graphs,memory", viewed.url));
    let track = |key: &str| {
        format!(
            "rpdTest.lines().filter((line) => line.sort === 'row' && line.track === '{key}').map((line) => line.row)"
        )
    };
    // The launch of a graph: from its first kernel to the last end.
    let (call, start, end): (i64, i64, i64) = sql
        .query_row(
            "SELECT C.id, min(O.start), max(O.\"end\") FROM rocpd_api C JOIN rocpd_string N ON N.id = C.apiName_id AND N.string = 'hipGraphLaunch'
             JOIN rocpd_api_ops L ON L.api_id = C.id JOIN rocpd_op O ON O.id = L.op_id GROUP BY C.id ORDER BY C.id LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    let [start, end] = [start, end].map(|ns| (ns - first) as f64);
    browser.get(&format!(
        "location.hash = 't={},{}&lanes=streams,graphs,memory&pin=g0.graph-launches'",
        start - 100.0,
        end + 100.0
    ));
    let event = browser.get(&format!(
        "fetch('event?call={call}&brief=true').then((answer) => answer.json()).then((found) => found.event)"
    ));
    let pixel = (end - start + 200.0) / numbers(&browser.get(SELECTED))[2];
    let is_there = |at: f64| {
        format!("{}.some((row) => rpdTest.at(row, {at})?.event === {event})", track("g0.graph-launches"))
    };
    browser.wait(&format!(
        "rpdTest.isWhole() && {} && {} && !{} && !{}",
        is_there(start + 2.0 * pixel),
        is_there(end - 2.0 * pixel),
        is_there(start - 4.0 * pixel),
        is_there(end + 4.0 * pixel)
    ));
    browser.get(&format!("rpdTest.choose({event})"));
    browser.wait(&format!("rpdTest.state().sel === 'call:{call}'"));
    // Streams have as many operations as SQL says.
    let expected: i64 = sql
        .query_row(
            "SELECT count(*) FROM rocpd_kernelapi K JOIN rocpd_api_ops L ON L.api_id = K.api_ptr_id",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let streams = browser.get("rpdTest.worked().filter((track) => track.label.startsWith('stream ')).reduce((sum, track) => sum + track.events, 0)");
    assert!(streams.as_i64().unwrap() >= expected, "{streams} {expected}");
    // Memory: the most that is allocated at once is what the command says.
    let output: Value =
        serde_json::from_str(&dir.run(&["memory", "--json", &trace]).expect(0).stdout).unwrap();
    let peaks: Vec<f64> =
        output.as_array().unwrap().iter().map(|of| of["peak_bytes"].as_f64().unwrap()).collect();
    let shown = numbers(&browser.get("rpdTest.counters().filter((counter) => counter.label.endsWith('memory')).map((counter) => counter.greatest)"));
    assert_eq!(shown, peaks);
    // They go away again.
    browser.get("document.querySelector('#more [value=streams]').click()");
    browser.wait("rpdTest.lines().every((line) => !line.track?.startsWith('g0.s')) && !location.hash.includes('streams')");
    clean(&browser);
}

/// The words of the pane, with a blank between them.
fn words(browser: &Browser) -> String {
    let text = browser.get("document.getElementById('pane').innerText");
    text.as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Three allocations, one of them at the address of another that was freed; what fills and copies them.
const ALLOCATIONS: &str = "
    INSERT INTO rocpd_string (id, string) VALUES (1, ''), (2, 'hipMalloc'), (3, 'hipFree'), (4, 'hipMemsetAsync'), (5, 'hipMemcpyAsync'), (6, 'hipHostMalloc'),
        (10, 'ptr=0x1000 | size=0x400'), (11, 'ptr=0x2000 | size=0x800'), (12, 'dst=0x2010 | value=0 | sizeBytes=0x10 | stream=0x0'), (13, 'ptr=0x1000'),
        (14, 'ptr=0x1000 | size=0x1000'), (15, 'ptr=0x9000 | size=0x100');
    INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES (1, 7, 7, 1000, 1100, 2, 10), (2, 7, 7, 1150, 1200, 2, 11), (3, 7, 7, 1300, 1310, 4, 12),
        (4, 7, 7, 1400, 1410, 5, 1), (5, 7, 7, 1500, 1510, 3, 13), (6, 7, 7, 1600, 1700, 2, 14), (7, 7, 7, 1800, 1810, 5, 1), (8, 7, 7, 1990, 2000, 6, 15);
    INSERT INTO rocpd_copyapi VALUES (4, '0x0', 16, 0, 0, 3, '0x2400', '0x1000', 0, 0, 0, 0), (7, '0x0', 16, 0, 0, 2, '0x9000', '0x1800', -1, 0, 0, 0);";

#[test]
fn memory_is_a_stack_of_allocations_with_their_lives_and_what_used_them() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", ALLOCATIONS);
    let Some((browser, _viewed)) = viewed_at(&dir, &trace, "#lanes=memory") else { return };
    browser
        .wait("rpdTest.isWhole() && rpdTest.counters().some((counter) => counter.key === 'p7.0.c-memory')");
    // At each time what lives, from the bottom in the order of allocation.
    let live = |time: u64| -> Vec<u64> {
        let blocks =
            browser.get(&format!("rpdTest.stack('p7.0.c-memory', {time}).map(([, bytes]) => bytes)"));
        numbers(&blocks).into_iter().map(|bytes| bytes as u64).collect()
    };
    for (time, blocks) in [
        (50, &[][..]),
        (100, &[0x400]),
        (250, &[0x400, 0x800]),
        (499, &[0x400, 0x800]),
        (500, &[0x800]),
        (700, &[0x800, 0x1000]),
        (999, &[0x800, 0x1000]),
    ] {
        assert_eq!(live(time), blocks, "{time}");
    }
    // The sums are what the command says.
    let output: Value =
        serde_json::from_str(&dir.run(&["memory", "--json", &trace]).expect(0).stdout).unwrap();
    let device = output.as_array().unwrap().iter().find(|of| of["place"] == "device").unwrap();
    let peak = device["peak_ns"].as_i64().unwrap() - 1000;
    assert_eq!(Some(live(peak as u64).iter().sum()), device["peak_bytes"].as_u64());
    assert_eq!(Some(live(999).iter().sum()), device["left_bytes"].as_u64());
    // It stands above the rows with the allocations one by one.
    assert_eq!(
        browser.get("rpdTest.lines().map((line) => line.track).filter((key) => /memory$/.test(key))"),
        json!(["p7.0.c-memory", "p7.0.memory", "p7.0.memory"])
    );
    // What is under a pixel is the allocation there, whose call a click selects.
    let plot = numbers(&browser.get(SELECTED));
    let line = browser.get("rpdTest.lines().find((line) => line.track === 'p7.0.c-memory')");
    let (top, height) = (line["top"].as_f64().unwrap(), line["height"].as_f64().unwrap());
    let y = |bytes: f64| top + (height - 1.0) * (1.0 - bytes / f64::from(0x1800));
    let x = |time: f64| time / 1000.0 * plot[2];
    let colour = |time: f64, bytes: f64| browser.get(&format!("rpdTest.pixel({}, {})", x(time), y(bytes)));
    let (first, second, third) = (colour(200.0, 600.0), colour(300.0, 2400.0), colour(800.0, 4000.0));
    assert!(first != second && second != third && first != third, "{first} {second} {third}");
    assert_eq!(colour(300.0, 5000.0), browser.get("rpdTest.back()"));
    let chosen = |time: f64, bytes: f64, call: i64| {
        browser.click((plot[0] + x(time), plot[1] + y(bytes)));
        browser.wait(&format!(
            "rpdTest.state().sel === 'call:{call}' && document.querySelector('#pane .title') !== null"
        ));
        words(&browser)
    };
    let said = chosen(300.0, 2400.0, 2);
    for part in
        ["never freed", "Copied and filled by 2", "hipMemsetAsync at 300 ns", "hipMemcpyAsync at 400 ns"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = chosen(300.0, 500.0, 1);
    assert!(
        said.contains("freed by hipFree") && said.contains("Copied and filled by 1 hipMemcpyAsync at 400 ns"),
        "{said}"
    );
    let said = chosen(800.0, 4000.0, 6);
    assert!(said.contains("Copied and filled by 1 hipMemcpyAsync at 800 ns"), "{said}");
    // And from what uses it back to it.
    browser.get("location.hash = 'lanes=memory&sel=call:4'");
    browser.wait("rpdTest.state().sel === 'call:4'");
    let said = words(&browser);
    assert!(said.contains("Memory dst hipMalloc 2.0 KiB"), "{said}");
    // Where no memory is, nothing is selected; a value of a counter is no event.
    browser.click((plot[0] + x(300.0), plot[1] + y(5000.0)));
    browser.wait("rpdTest.state().sel === null");
    clean(&browser);
}

#[test]
fn the_code_of_a_kernel_has_its_instructions_blocks_and_counts() {
    let dir = Dir::new();
    let trace = crate::blocks::of_reduces(&dir);
    dir.open(&trace)
        .execute_batch(
            "INSERT INTO rocpd_string VALUES (3, 'KernelExecution');
             INSERT INTO rocpd_op VALUES (1, 0, 1, 1, '', 1000, 5000, 2, 3);
             INSERT INTO ext_dispatch VALUES (1, 2, 4, 1, 1, 256, 1, 1, 0, 0, '', 7);
             INSERT INTO rocpd_kernelcodeobject (id, vgpr, sgpr, fbar) VALUES (7, 4, 9, 0);
             INSERT INTO ext_kernelcodeobject VALUES (7, 2, 0, 0, 0, 0, 0, 280, 64, 1024);",
        )
        .unwrap();
    let listed = dir.run(&["code", "--cfg", "--disasm", "--json", "--kernel", "^reduces$", &trace]);
    let Some((browser, _viewed)) = viewed_at(&dir, &trace, "#sel=op:1&tab=code") else { return };
    browser.wait("document.querySelector('.code .title') !== null");
    let text = browser.get("document.querySelector('.code').innerText");
    let Ok(listed) = serde_json::from_str::<Value>(&listed.stdout) else {
        // Without an LLVM that is said, and the rest is there.
        assert!(text.as_str().unwrap().contains("LLVM"), "{text}");
        return not_installed("no LLVM that knows AMD GPUs (package libllvm15)");
    };
    let listing = &listed[0];
    assert_eq!(
        browser.get("document.querySelectorAll('.blocks .node').length"),
        json!(listing["blocks"].as_array().unwrap().len())
    );
    let lines = browser.get("[...document.querySelectorAll('.lines li:not(.block):not(.source)')].map((line) => line.textContent.trim())");
    let expected = listing["instructions"].as_array().unwrap().iter().map(|instruction| {
        format!("{:06x} {}", instruction["address"].as_u64().unwrap(), instruction["text"].as_str().unwrap())
    });
    assert_eq!(lines, json!(expected.collect::<Vec<_>>()));
    // The block that most instructions were executed in is the hottest; the graph and the listing say how many waves.
    let counted: Value =
        serde_json::from_str(&dir.run(&["blocks", "--json", &trace]).expect(0).stdout).unwrap();
    let hottest =
        counted[0]["rows"].as_array().unwrap().iter().max_by_key(|row| row["executed"].as_u64()).unwrap();
    let place = listing["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .position(|block| block["address"] == hottest["offset"])
        .unwrap();
    let node = format!("document.querySelectorAll('.blocks .node')[{place}]");
    assert_eq!(
        browser.get(&format!("{node}.querySelector('.hot').getAttribute('fill-opacity')")).as_str(),
        Some("0.8")
    );
    let words = browser.get(&format!("{node}.getAttribute('aria-label')"));
    assert!(words.as_str().unwrap().contains(&format!("{} waves", hottest["waves"])), "{words}");
    // Edges are drawn by their kinds; a block leads to its lines.
    assert!(browser.get("document.querySelectorAll('.edge.taken').length").as_u64().unwrap() > 1);
    browser.get(&format!("{node}.dispatchEvent(new MouseEvent('click', {{ bubbles: true }}))"));
    assert_eq!(browser.get("document.activeElement.dataset.block"), json!(place.to_string()));
    clean(&browser);
}

/// The page's roofline has the numbers of `rpd blocks --roofline`, with the peaks that people say and without.
#[test]
fn the_roofline_of_a_kernel_is_that_of_the_command() {
    let dir = Dir::new();
    let trace = crate::blocks::of_doubles(&dir);
    let Some((browser, _viewed)) = viewed_at(&dir, &trace, "#sel=op:1&tab=code") else { return };
    browser.wait("document.querySelector('.roofline tbody tr') !== null");
    let cells = || {
        browser.get("[...document.querySelectorAll('.roofline tbody td')].map((cell) => cell.textContent)")
    };
    let expected = |peaks: &[&str]| {
        let said = dir.run(&[&["blocks", "--json", "--roofline", &trace], peaks].concat());
        let kernel = serde_json::from_str::<Value>(&said.expect(0).stdout).unwrap()[0].clone();
        let roofline = &kernel["roofline"];
        let number = |value: &Value, digits: usize| {
            value.as_f64().map(|value| format!("{value:.digits$}")).unwrap_or_default()
        };
        json!([
            kernel["kernel"],
            kernel["dispatches"].to_string(),
            number(&kernel["flops_per_byte"], 2),
            number(&roofline["gflops_per_s"], 2),
            number(&roofline["gbytes_per_s"], 2),
            number(&roofline["roof_percent"], 1),
            roofline["bound"].as_str().unwrap_or_default(),
            "uncounted dispatches"
        ])
    };
    let count =
        |what: &str| browser.get(&format!("document.querySelectorAll('.roofline [role=img] {what}').length"));
    assert_eq!(cells(), expected(&[]));
    assert_eq!([".asked", ".other", ".roof"].map(count), [1, 0, 0].map(|number| json!(number)));
    let say = |peak: &str, value: &str| {
        browser.get(&format!(
            "(() => {{ const input = document.querySelector('.roofline [data-peak={peak}]'); input.value = '{value}';
             input.dispatchEvent(new Event('change', {{ bubbles: true }})); return 0; }})()"
        ));
    };
    say("gflops", "500");
    say("gbytes", "80");
    browser.wait(
        "document.querySelector('.roofline code')?.textContent.includes('--peak-gflops 500 --peak-gbs 80')",
    );
    assert_eq!(cells(), expected(&["--peak-gflops", "500", "--peak-gbs", "80"]));
    // The kernel is below the roof.
    let heights = browser.get(
        "[document.querySelector('.roofline .asked').getBBox().y, document.querySelector('.roofline .roof').getBBox().y]",
    );
    assert!(heights[0].as_f64().unwrap() > heights[1].as_f64().unwrap(), "{heights}");
    clean(&browser);
    // A peak that is none is refused with words, and what is right afterwards counts.
    say("gbytes", "-3");
    browser.wait("document.querySelector('.roofline .wrong')?.textContent.includes('a number above 0')");
    say("gbytes", "");
    browser
        .wait("document.querySelector('.roofline code')?.textContent.includes('--peak-gflops 500 doubles')");
    assert_eq!(cells(), expected(&["--peak-gflops", "500"]));
    assert_eq!(count(".roof"), json!(1));
}

#[test]
fn builds_that_ran_in_place_of_a_kernel_stand_beside_it() {
    let dir = Dir::new();
    crate::code::replaced_trace(&dir);
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &["ab.rpd"]);
    let op: i64 = dir
        .open("ab.rpd")
        .query_row("SELECT O.id FROM rocpd_op O JOIN rocpd_string S ON S.id = O.description_id WHERE S.string = 'plain' LIMIT 1", [], |row| row.get(0))
        .unwrap();
    opened(&browser, &format!("{}#sel=op:{op}&tab=code", viewed.url));
    browser.wait("document.querySelector('.code .title') !== null");
    let rows: Value =
        serde_json::from_str(&dir.run(&["code", "--json", "--kernel", "^plain$", "ab.rpd"]).expect(0).stdout)
            .unwrap();
    assert_eq!(
        browser.get("document.querySelectorAll('.code tbody tr').length"),
        json!(rows.as_array().unwrap().len())
    );
    let builds = browser.get("[...document.querySelectorAll('.build h2')].map((head) => head.textContent)");
    let builds = builds.as_array().unwrap();
    let text = browser.get("document.querySelector('.code').innerText");
    if !text.as_str().unwrap().contains("LLVM") {
        assert!(
            builds.len() > 1 && builds[0].as_str().unwrap().starts_with("The program's own"),
            "{builds:?}"
        );
        assert!(builds[1].as_str().unwrap().starts_with("In its place: "), "{builds:?}");
    }
    clean(&browser);
}

/// A name that would be markup, in a place where names of everything come from.
const HOSTILE: &str = "<img src=x onerror=\"window.hacked = 1\">=1+1";

#[test]
fn names_are_texts_in_every_pane() {
    let dir = Dir::new();
    let mut rows = String::new();
    let texts = [
        HOSTILE,
        "KernelExecution",
        "UserMarker",
        "hipMalloc",
        &format!("ptr = 0x1000 | size = 64 | {HOSTILE}"),
        &format!("{HOSTILE} marker"),
    ];
    for (id, text) in texts.iter().enumerate() {
        rows += &format!("INSERT INTO rocpd_string VALUES ({}, '{text}');", id + 1);
    }
    rows += "INSERT INTO rocpd_api VALUES (1, 7, 7, 1000, 9000, 3, 6), (2, 7, 7, 1100, 1200, 4, 5), (3, 7, 7, 1300, 1400, 1, 1);
             INSERT INTO rocpd_op VALUES (1, 0, 0, 1, '', 2000, 3000, 1, 2), (2, 0, 0, 2, '', 4000, 5000, 1, 2);
             INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (3, 1), (3, 2);";
    rows += &format!(
        "INSERT INTO rocpd_kernelapi (api_ptr_id, stream, gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, groupSegmentSize, privateSegmentSize, kernelArgAddress, aquireFence, releaseFence, codeObject_id, kernelName_id)
             VALUES (3, '{HOSTILE}', 1, 1, 1, 64, 1, 1, 0, 0, '', '', '', 0, 1);
         INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::command', '{HOSTILE}'), ('session::0::host', '{HOSTILE}');"
    );
    let trace = dir.trace("t.rpd", &rows);
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&trace]);
    for tab in ["flame", "reports", "sql", "code", "trace", "selection"] {
        browser.open("about:blank");
        opened(
            &browser,
            &format!("{}#t=-100,8100&sel=op:1&lanes=streams,markers,graphs,memory&tab={tab}", viewed.url),
        );
        match tab {
            "sql" => {
                ask(&browser, &format!("select id, start, \"end\", '{HOSTILE}' as name from rocpd_op"));
                press(&browser, ".console", "As rows");
            }
            "reports" => {
                for report in ["Gaps", "Copies", "Markers", "Queues", "Memory", "Graphs", "Operators"] {
                    press(&browser, "#pane .controls", report);
                    browser.wait(
                        "document.querySelector('#pane [role=status]').textContent !== 'Reading the trace'",
                    );
                }
                press(&browser, "#pane .controls", "Markers");
            }
            "code" => browser.wait("document.querySelector('.code .title') !== null"),
            "flame" => browser.wait("document.querySelectorAll('.frame').length > 1"),
            "trace" => browser.wait("document.querySelector('#sessions [role=grid]') !== null"),
            _ => (),
        }
        browser.wait("rpdTest.isWhole()");
        assert_eq!(browser.get("document.querySelectorAll('body img').length"), 0, "{tab}");
        clean(&browser);
    }
}

#[test]
fn the_page_is_reached_by_keys_and_by_those_who_do_not_see_it() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let Some((browser, _viewed)) = viewed_at(&dir, &trace, "#tab=selection") else { return };
    browser.wait("document.querySelectorAll('.names tbody tr').length > 3");
    // Tab goes through all that can be done and leaves the timeline; what has the focus is seen, and has a name.
    browser.get("document.getElementById('query').focus()");
    let mut reached = Vec::new();
    for _ in 0..60 {
        browser.press(&["\u{e004}"]);
        let found = browser.get(
            "(() => { const at = document.activeElement; return [at.id || at.className || at.tagName, at.getAttribute('aria-label') || at.title || at.textContent || at.placeholder || '', getComputedStyle(at).outlineStyle]; })()",
        );
        assert_ne!(found[1].as_str(), Some(""), "{found} has no name");
        assert_ne!(found[2].as_str(), Some("none"), "{found}");
        reached.push(found[0].as_str().unwrap().to_string());
        if reached.last().unwrap() == "tab-selection" {
            break;
        }
    }
    for part in ["whole", "help", "rows", "open", "plot", "grip", "tab-selection"] {
        assert!(reached.iter().any(|one| one == part), "{part}: {reached:?}");
    }
    browser.press(&["\u{e014}"]);
    assert_eq!(browser.get("document.activeElement.id").as_str(), Some("tab-flame"));
    // Rows and their names are scrolled together, also by the focus.
    let last = "[...document.querySelectorAll('#labels .label')].at(-1)";
    browser.get(&format!("{last}.querySelector('.open').focus()"));
    browser.wait(&format!(
        "document.getElementById('gutter').scrollTop === 0 && Math.abs({last}.getBoundingClientRect().top - document.getElementById('plot').getBoundingClientRect().top - rpdTest.lines().at(-1).top) < 1"
    ));
    // Arrows go to what can be done with a row.
    browser.get("document.querySelector('.label.track .open').focus()");
    browser.press(&["\u{e014}"]);
    assert_eq!(browser.get("document.activeElement.dataset.tool").as_str(), Some("pin"));
    browser.press(&["\u{e015}"]);
    assert_eq!(browser.get("document.activeElement.className").as_str(), Some("open"));
    // The tree that screen readers get.
    if let Some(tree) = browser.cdp("Accessibility.getFullAXTree", &json!({})) {
        let nodes = tree["nodes"].as_array().unwrap();
        let has = |role: &str, name: &str| {
            nodes.iter().any(|node| {
                node["role"]["value"] == role
                    && node["name"]["value"].as_str().is_some_and(|found| found.contains(name))
            })
        };
        for (role, name) in [
            ("application", "Timeline of the trace"),
            ("searchbox", "Search names"),
            ("searchbox", "Filter rows"),
            ("tab", "Calls"),
            ("tabpanel", "Calls"),
            ("button", "main thread"),
        ] {
            assert!(has(role, name), "{role} {name}");
        }
    }
    browser.get("document.getElementById('plot').focus()");
    browser.press(&["\u{e00e}", "\u{e00e}", "\u{e00e}"]);
    browser.wait("rpdTest.lines()[0].top === 0 && rpdTest.isWhole()");
    // Who wants more contrast sees kinds by what is drawn on them; who wants no motion gets none.
    let pixels = "(() => { let sum = 0; for (let x = 0; x < 1000; x += 1) for (let y = 30; y < 380; y += 1) sum = (Math.imul(sum, 31) + rpdTest.pixel(x, y)) >>> 0; return sum; })()";
    let before = browser.get(pixels);
    let media = json!({ "features": [{ "name": "prefers-contrast", "value": "more" }, { "name": "prefers-reduced-motion", "value": "reduce" }] });
    if browser.cdp("Emulation.setEmulatedMedia", &media).is_none() {
        clean(&browser);
        return;
    }
    browser.wait("matchMedia('(prefers-contrast: more)').matches && rpdTest.isWhole()");
    browser.wait(&format!("{pixels} !== {before}"));
    assert_eq!(
        browser.get("[...document.querySelectorAll('*')].every((one) => getComputedStyle(one).transitionDuration === '0s' && getComputedStyle(one).animationName === 'none')"),
        true
    );
    // At 200 % nothing is lost: the page has half of the width, and no part is wider than it.
    browser.cdp(
        "Emulation.setDeviceMetricsOverride",
        &json!({ "width": 640, "height": 400, "deviceScaleFactor": 2, "mobile": false }),
    );
    browser.wait("innerWidth === 640");
    assert_eq!(browser.get("document.documentElement.scrollWidth"), 640);
    assert!(browser.get("document.getElementById('plot').clientHeight").as_u64().unwrap() >= 50);
    clean(&browser);
}

#[test]
fn panes_of_two_traces_are_about_the_one_that_is_chosen() {
    let dir = Dir::new();
    let one = dir.unpacked("mytrace_raw.rpd");
    std::fs::copy(dir.path(&one), dir.path("b.rpd")).unwrap();
    dir.open("b.rpd").execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM rocpd_op WHERE id % 2").unwrap();
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&one, "b.rpd"]);
    opened(&browser, &format!("{}#tab=sql", viewed.url));
    let choose = |pane: &str| {
        browser.get(&format!("(() => {{ const choice = document.querySelector('{pane} select[aria-label=\"Which trace\"]'); choice.value = '1'; choice.dispatchEvent(new Event('change')); }})()"));
    };
    let question = "select id, start, \"end\" from rocpd_op order by id limit 3";
    ask(&browser, question);
    assert_eq!(
        browser.get(&format!("{ANSWER}.map((row) => row[0])")),
        json!(["4294967297", "4294967298", "4294967299"])
    );
    choose(".console");
    browser.wait(&format!("{ANSWER}.map((row) => row[0]).join() === '4294967298,4294967300,4294967302'"));
    press(&browser, ".console", "As rows");
    // Where B is laid elsewhere, rows of the page and what is worked out go with it, and still lead to their events.
    browser.get("document.querySelector('#more [value=streams]').click()");
    browser.wait("rpdTest.worked().length > 0 && rpdTest.isWhole()");
    let row = "rpdTest.lines().find((line) => line.group === 'x.sql' && line.sort === 'row').row";
    let sql = dir.open("b.rpd");
    let first = first_ns(&sql);
    let (start, end): (i64, i64) = sql
        .query_row("SELECT start, \"end\" FROM rocpd_op WHERE id = 4294967298", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    let middle = |shift: i64| (start + end) / 2 - first + shift;
    let shift = |browser: &Browser| browser.get("rpdTest.shift()").as_i64().unwrap();
    let at = |shift: i64| browser.get(&format!("rpdTest.at({row}, {})", middle(shift)));
    // Where B is laid before A, its own times begin with the axis.
    let before = shift(&browser).max(0);
    assert_eq!(at(before)["start_ns"], json!(start - first + before));
    let moved = before + 3_000_000;
    browser.get("document.getElementById('tab-compare').click()");
    browser.get(&format!("(() => {{ const [by] = document.querySelectorAll('.compare select'); by.value = 'hand'; by.dispatchEvent(new Event('change')); const hand = document.querySelector('.compare input[type=text]'); hand.value = '{moved}ns'; hand.dispatchEvent(new Event('change')); }})()"));
    browser.wait(&format!("rpdTest.shift() === {moved} && rpdTest.isWhole()"));
    browser.wait(&format!("(rpdTest.at({row}, {}) ?? {{ event: -1 }}).event >= 0", middle(moved)));
    let found = at(moved);
    assert_eq!(found["start_ns"], json!(start - first + moved));
    browser.get(&format!("rpdTest.choose({})", found["event"]));
    browser.wait("rpdTest.state().sel === 'b.op:4294967298'");
    let op = browser.get(&format!("rpdTest.worked().flatMap((track) => track.rows).map((row) => rpdTest.at(row, {})).find((run) => run && run.event === {})", middle(moved), found["event"]));
    assert!(op.is_object(), "{op}");
    // Reports and calls of B are those of its file.
    browser.get("document.getElementById('tab-reports').click()");
    choose("#pane");
    browser.wait("document.querySelector('#pane code')?.textContent.includes('b.rpd')");
    browser.get("document.getElementById('tab-flame').click()");
    choose("#pane");
    browser.wait("document.querySelector('#pane code')?.textContent.includes('b.rpd')");
    browser.get("document.getElementById('tab-trace').click()");
    browser.wait("document.querySelectorAll('#sessions > h2').length === 2");
    // The address has what was asked of whom.
    assert!(browser.get("location.hash").as_str().unwrap().contains("&of=b"));
    clean(&browser);
}

#[test]
fn without_a_file_to_read_the_page_has_no_panes_that_need_it() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    dir.run(&["export", "timeline", &trace, "-o", "page.html"]).expect(0);
    let Some(browser) = Browser::start(&dir) else { return };
    let tabs = "[...document.querySelectorAll('#tabs button')].map((tab) => tab.textContent).join()";
    opened(&browser, &format!("file://{}#tab=sql&lanes=streams&pin=g0", dir.path("page.html").display()));
    assert_eq!(browser.get(tabs), "Event,Table,Search,Marks,Trace");
    assert_eq!(browser.get("getComputedStyle(document.getElementById('rows-menu')).display"), "none");
    // What needs none is there: pins, events one by one, hits as rows.
    assert_eq!(browser.get("rpdTest.lines().filter((line) => line.isPinned).length"), json!(1));
    browser.get("document.getElementById('tab-selection').click()");
    press(&browser, ".names", "Each event");
    browser.wait("document.querySelectorAll('.names .rows .row').length > 5");
    browser.wait("document.querySelectorAll('.histogram .bar').length > 1");
    browser.press(&["q"]);
    clean(&browser);
    // A trace that is recorded has them, and they say why they are empty.
    let viewed = Viewed::start(&dir, &["--live", &trace]);
    opened(&browser, &format!("{}#tab=sql&lanes=streams", viewed.url));
    assert_eq!(browser.get(tabs), "Event,Table,Calls,Reports,SQL,Code,Search,Marks,Trace");
    assert!(
        browser.get("document.getElementById('pane').innerText").as_str().unwrap().contains("without --live")
    );
    assert_eq!(browser.get("getComputedStyle(document.getElementById('rows-menu')).display"), "none");
    clean(&browser);
}
