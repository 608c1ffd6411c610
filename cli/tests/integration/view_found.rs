//! What people select and search in `rpd view`, in a real browser: what is counted, kept in the address, and drawn.

use serde_json::{Value, json};

use crate::harness::Dir;
use crate::view::{SELECTED, Viewed, numbers, opened, viewed_at};
use crate::webdriver::Browser;

const ESCAPE: &str = "\u{e00c}";

/// Operations by numbers from 1 to `count`: GPU, queue, begin, and end are SQL of their number n.
fn ops(count: u32, [gpu, queue, start, end]: [&str; 4]) -> String {
    format!(
        "INSERT OR IGNORE INTO rocpd_string (id, string) VALUES (1, ''), (2, 'KernelExecution'), (3, 'gemm');
         WITH RECURSIVE N(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM N WHERE n < {count})
         INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
         SELECT n, {gpu}, {queue}, 0, '', {start}, {end}, 3, 2 FROM N;"
    )
}

/// Number of events that the table says.
const COUNTED: &str = "Number(document.querySelector('#pane .figures')?.innerText.match(/events\\n([0-9,]+)/)?.[1].replaceAll(',', ''))";

/// Presses the button with this text in the table.
fn press(browser: &Browser, text: &str) {
    browser.get(&format!(
        "[...document.querySelectorAll('.names button')].find((one) => one.textContent === '{text}').click()"
    ));
}

#[test]
fn an_area_keeps_its_rows_in_the_address_and_is_drawn_on_them_only() {
    let dir = Dir::new();
    // 300 operations of a queue that all overlap, 7 of another.
    let trace = dir.trace(
        "t.rpd",
        &ops(307, ["0", "n > 300", "iif(n > 300, n * 1000, n)", "iif(n > 300, n * 1000 + 500, 1000000 - n)"]),
    );
    let Some((browser, viewed)) = viewed_at(&dir, &trace, "#closed=g0.0") else { return };
    let plot = numbers(&browser.get(SELECTED));
    let line = |track: &str| {
        let line = browser.get(&format!(
            "rpdTest.lines().find((line) => line.track === '{track}' && ['row', 'busy'].includes(line.sort))"
        ));
        (line["top"].as_f64().unwrap(), line["height"].as_f64().unwrap())
    };
    let area = |track: &str| {
        let (top, height) = line(track);
        let y = plot[1] + top + height / 2.0;
        browser.drag((plot[0] + 2.0, y), (plot[0] + plot[2] - 4.0, y + 3.0), Some("\u{e008}"));
    };
    // All of a closed track: also what found no row.
    area("g0.0");
    browser.wait(&format!("{COUNTED} === 300 && location.hash.includes('in=g0.0&')"));
    area("g0.1");
    browser.wait(&format!("{COUNTED} === 7 && location.hash.includes('in=g0.1&')"));
    // Another page with this address counts and draws the same.
    let there = browser.get("location.hash").as_str().unwrap().to_string();
    browser.open("about:blank");
    opened(&browser, &format!("{}{there}", viewed.url));
    browser.wait(&format!("{COUNTED} === 7"));
    assert_eq!(browser.get("rpdTest.state().parts"), json!([["g0.1"]]));
    let painted = |track: &str| {
        let (top, height) = line(track);
        let found = browser.get(&format!("rpdTest.overlaid(300, {}, 50, {})", top + 2.0, height - 4.0));
        found.as_u64().unwrap()
    };
    assert!(painted("g0.1") > 500 && painted("g0.0") == 0, "{} {}", painted("g0.1"), painted("g0.0"));
    // A time of all rows, and back.
    let y = plot[1] - 10.0;
    browser.drag((plot[0] + 2.0, y), (plot[0] + plot[2] - 4.0, y), None);
    browser.wait(&format!("{COUNTED} === 307 && rpdTest.state().parts === null"));
    browser.get("history.back()");
    browser.wait(&format!("{COUNTED} === 7 && rpdTest.state().parts !== null"));
    // One row of an open track is that row.
    browser.open("about:blank");
    opened(&browser, &format!("{}#closed=&tab=selection&range=0,2000000&in=g0.0:3:4,none", viewed.url));
    browser.wait(&format!("{COUNTED} === 2"));
    // A key selects the time of the selected event, another that between the cursors.
    browser.get("location.hash = 'closed=g0.0&sel=op:303&c=1000,5000'");
    browser.wait("rpdTest.state().sel === 'op:303' && rpdTest.state().range === null");
    browser.get("document.getElementById('plot').focus()");
    browser.press(&["r"]);
    browser.wait("JSON.stringify(rpdTest.state().range) === '[1000,5000]'");
    browser.press(&[ESCAPE, ","]);
    browser.get("location.hash = 'closed=g0.0&sel=op:303'");
    browser.wait("rpdTest.state().sel === 'op:303' && rpdTest.state().range === null && rpdTest.state().cursors[0] === null");
    browser.press(&["r"]);
    browser.wait("JSON.stringify(rpdTest.state().range) === '[302999,303499]'");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn what_a_search_does_not_find_is_grey_also_where_it_has_the_same_name() {
    let dir = Dir::new();
    // Each GPU has a short and a long operation of one name.
    let trace = dir.trace(
        "t.rpd",
        &ops(
            4,
            [
                "n > 2",
                "0",
                "1000 + (n % 2) * 1000000",
                "1000 + (n % 2) * 1000000 + iif(n % 2, 900000, 400000)",
            ],
        ),
    );
    let Some((browser, _viewed)) = viewed_at(&dir, &trace, "#t=0,2000000") else { return };
    let grey = || -> Vec<bool> {
        let plot = numbers(&browser.get(SELECTED));
        let lines =
            browser.get("rpdTest.lines().filter((line) => line.sort === 'row').map((line) => line.top)");
        let places = numbers(&lines).into_iter().flat_map(|top| [200_000.0, 1_400_000.0].map(|at| (at, top)));
        places
            .map(|(at, top)| {
                browser.get(&format!(
                    "rpdTest.pixel({}, {}) === rpdTest.theme().dim",
                    (at / 2e6 * plot[2]).floor(),
                    top + 15.0
                )) == Value::Bool(true)
            })
            .collect()
    };
    let search = |text: &str, hits: &str| {
        browser.get(&format!("(document.getElementById('query').value = '{text}', document.getElementById('query').dispatchEvent(new Event('input')))"));
        browser.wait(&format!("document.getElementById('hits').textContent === '{hits}'"));
        browser.wait("rpdTest.isWhole()");
    };
    assert_eq!(grey(), [false; 4]);
    search("dur>500us", "2 hits");
    assert_eq!(grey(), [true, false, true, false]);
    search("dur<500us gpu:1", "1 hit");
    assert_eq!(grey(), [true, true, false, true]);
    search("gemm", "4 hits");
    assert_eq!(grey(), [false; 4]);
    search("dur>2ms", "0 hits");
    assert_eq!(grey(), [true; 4]);
    browser.press(&["/", "\u{e007}"]);
    browser.get("document.getElementById('tab-search').click()");
    browser.wait("document.getElementById('pane').innerText.includes('0 events of 0 names')");
    // From hit to hit, from where one is: the last is in front of the first.
    search("gemm gpu:0", "2 hits");
    browser.get("document.getElementById('plot').focus()");
    browser.get("location.hash = 'q=gemm%20gpu:0&sel=op:2'");
    browser.wait("rpdTest.state().sel === 'op:2'");
    browser.press(&["n"]);
    browser
        .wait("rpdTest.state().sel === 'op:1' && document.getElementById('hits').textContent === '2 of 2'");
    browser.press(&["N"]);
    browser.wait("rpdTest.state().sel === 'op:2'");
    browser.press(&["N"]);
    browser.wait("rpdTest.state().sel === 'op:1'");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn a_list_of_events_is_sorted_by_who_has_all_of_them_and_begins_are_exact() {
    let dir = Dir::new();
    let begin = "iif(n < 3, 1, 100000000000 + n * 2 - 4)";
    let trace = dir
        .trace("t.rpd", &ops(12_003, ["0", "0", begin, &format!("{begin} + iif(n = 12003, 90000000, 1)")]));
    let Some((browser, viewed)) = viewed_at(&dir, &trace, "#tab=selection") else { return };
    let first =
        "[...(document.querySelector('.names .rows .row')?.children ?? [])].map((cell) => cell.textContent)";
    press(&browser, "Each event");
    browser.wait(&format!("{first}[1] === '0'"));
    press(&browser, "duration");
    browser.wait(&format!("{first}[2] === '90.00 ms' && {first}[5] === '12003'"));
    let sorted =
        browser.get("document.querySelector('.names [role=columnheader][aria-sort=descending]').textContent");
    assert_eq!(sorted.as_str(), Some("duration"));
    assert!(
        browser
            .get("document.querySelector('.names').innerText")
            .as_str()
            .unwrap()
            .contains("the first 10,000 of 12,003")
    );
    press(&browser, "duration");
    browser.wait(&format!("{first}[2] === '1 ns'"));
    press(&browser, "id");
    browser.wait(&format!("{first}[5] === '12003'"));
    // The second click comes before the answer to the first.
    browser.get("(() => { const head = [...document.querySelectorAll('.names .virtual button')].find((one) => one.textContent === 'begin'); head.click(); head.click() })()");
    browser.wait(&format!("{first}[1] === '0'"));
    let begins = browser.get("[...document.querySelectorAll('.names .rows .row')].slice(2, 5).map((row) => row.children[1].textContent)");
    assert_eq!(begins, json!(["100.000000001 s", "100.000000003 s", "100.000000005 s"]));
    // Who cannot see it is told which row is meant.
    browser.get("document.querySelector('.names [role=grid]').focus()");
    browser.press(&["\u{e015}", "\u{e015}"]);
    let active = "document.getElementById(document.querySelector('.names [role=grid]').getAttribute('aria-activedescendant'))";
    browser.wait(&format!("{active}?.getAttribute('aria-selected') === 'true' && {active}.children[1].textContent === '100.000000001 s'"));
    // The details have the begin too, on both clocks; an exported page as well.
    dir.run(&["export", "timeline", &trace, "-o", "t.html"]).expect(0);
    for page in [viewed.url.clone(), format!("file://{}", dir.path("t.html").display())] {
        browser.open("about:blank");
        opened(&browser, &format!("{page}#sel=op:4"));
        browser.wait("document.querySelector('#pane .title') !== null");
        let text = browser.get("document.getElementById('pane').innerText");
        let text = text.as_str().unwrap();
        assert!(text.contains("100.000000003 s") && text.contains("100000000004 ns"), "{page}: {text}");
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn the_table_is_about_one_of_two_traces() {
    let dir = Dir::new();
    for (file, count) in [("a.rpd", 10), ("b.rpd", 4)] {
        dir.trace(file, &ops(count, ["0", "0", "n * 1000", "n * 1000 + 500"]));
    }
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &["a.rpd", "b.rpd"]);
    opened(&browser, &format!("{}#tab=selection", viewed.url));
    browser.wait(&format!("{COUNTED} === 10"));
    browser.get("(() => { const choice = document.querySelector('.names select'); choice.value = '1'; choice.dispatchEvent(new Event('change')); })()");
    browser.wait(&format!("{COUNTED} === 4"));
    browser.get("document.querySelector('.names .link').click()");
    browser.wait("rpdTest.state().sel === 'b.op:1' && document.getElementById('live').textContent.startsWith('1 of 4: ')");
    press(&browser, "Each event");
    browser.wait("document.querySelector('.names [role=grid]')?.getAttribute('aria-rowcount') === '5'");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn labels_are_elements_where_they_are_seen() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        &format!(
            "{} INSERT INTO rocpd_string (id, string) VALUES (4, 'hipMalloc');
             INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) SELECT id, 1, id, start, \"end\", 4, 1 FROM rocpd_op",
            ops(1000, ["0", "n", "n * 1000", "n * 1000 + 500"])
        ),
    );
    let Some((browser, _viewed)) = viewed_at(&dir, &trace, "#closed=") else { return };
    let lines = browser.get("rpdTest.lines().length").as_u64().unwrap();
    assert!(lines > 2000, "{lines}");
    let nodes = || browser.get("document.querySelectorAll('*').length").as_u64().unwrap();
    assert!(nodes() < 2500, "{}", nodes());
    // Wherever one scrolls to, each line has its label, at its place.
    let lacking = "(() => { const labels = new Map([...document.querySelectorAll('#labels .label')].map((label) => [label.dataset.key, label.getBoundingClientRect().top]));
        const plot = document.getElementById('plot').getBoundingClientRect();
        return rpdTest.lines().filter((line) => line.top + 9 > 0 && line.top < plot.height && Math.abs((labels.get(line.track ?? line.group) ?? 1e9) - plot.top - line.top) > 1).length; })()";
    assert_eq!(browser.get(lacking), 0);
    browser.get("document.getElementById('plot').focus()");
    for key in ["\u{e00f}", "\u{e00f}", "\u{e00f}", "\u{e00f}", "\u{e00f}", "\u{e00e}"] {
        browser.press(&[key]);
        browser.wait("rpdTest.isWhole()");
        assert_eq!(browser.get(lacking), 0);
    }
    browser.get("location.hash = 'closed=&sel=op:999'");
    browser.wait("rpdTest.state().sel === 'op:999' && rpdTest.isWhole()");
    assert_eq!(browser.get(lacking), 0);
    assert!(nodes() < 2500, "{}", nodes());
    // Arrows go from label to label past what was seen, and the focus stays.
    browser.get("document.querySelector('[data-key=\"g0.999\"] .open').focus()");
    browser.press(&vec!["\u{e013}"; 60]);
    assert_eq!(
        browser.get("document.activeElement.closest('[data-key]')?.dataset.key").as_str(),
        Some("g0.939")
    );
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn an_address_with_an_event_keeps_that_all_is_seen() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", &ops(20, ["0", "0", "n * 1000", "n * 1000 + 900"]));
    let Some((browser, viewed)) = viewed_at(&dir, &trace, "#t=0,9000") else { return };
    browser.get("document.getElementById('plot').focus()");
    browser.press(&["0"]);
    browser.get("rpdTest.choose(3)");
    browser.wait("location.hash.includes('sel=') && rpdTest.state().t === null");
    browser.wait("location.hash.startsWith('#t=all&sel=op:')");
    let there = browser.get("location.hash").as_str().unwrap().to_string();
    browser.open("about:blank");
    opened(&browser, &format!("{}{there}", viewed.url));
    assert_eq!(browser.get("[rpdTest.state().t, rpdTest.state().sel]"), json!([null, "op:4"]));
    // An address with nothing but an event leads to that.
    browser.open("about:blank");
    opened(&browser, &format!("{}#sel=op:4", viewed.url));
    assert!(browser.get("rpdTest.state().t[1] - rpdTest.state().t[0] < 9000") == true);
}

#[test]
fn what_is_under_the_pointer_is_said_also_when_keys_move_the_times() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", &ops(20, ["0", "0", "n * 1000", "n * 1000 + 1000"]));
    let Some((browser, _viewed)) = viewed_at(&dir, &trace, "#t=1000,5000") else { return };
    let plot = numbers(&browser.get(SELECTED));
    let line = numbers(&browser.get(
        "rpdTest.lines().filter((line) => line.sort === 'row').map((line) => line.top + line.height / 2)",
    ));
    browser.get("document.getElementById('plot').focus()");
    let begins = |at: &str| {
        browser.wait(&format!("document.getElementById('tip').innerText.includes('at {at}') && !document.getElementById('tip').hidden"));
    };
    browser.point((plot[0] + plot[2] * 0.4, plot[1] + line[0]));
    begins("2 us");
    browser.press(&["d", "d"]);
    begins("3 us");
    // Zoomed in, the outline is as wide as the operation is now.
    browser.press(&["w", "w", "w"]);
    browser.wait("(() => { const { timeline } = rpd.app; const { left, right } = timeline.box(timeline.hover); return timeline.hover.start_ns === 3000 && Math.abs((right - left) / timeline.width - 1000 / timeline.view.length) < 0.01; })()");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn tables_are_saved_with_all_names_and_with_units() {
    let dir = Dir::new();
    let names = "WITH RECURSIVE N(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM N WHERE n < 600)
         INSERT INTO rocpd_string (id, string) SELECT 100 + n, 'name ' || n FROM N; UPDATE rocpd_op SET description_id = 100 + id";
    let long = "x".repeat(5000);
    let trace = dir.trace(
        "t.rpd",
        &format!(
            "{}{names}; UPDATE rocpd_string SET string = '{long}' WHERE id = 104",
            ops(600, ["0", "0", "n * 1000", "n * 1000 + n"])
        ),
    );
    let Some((browser, _viewed)) = viewed_at(&dir, &trace, "#tab=selection") else { return };
    browser.get("URL.createObjectURL = (blob) => { blob.text().then((text) => (window.saved = text.split('\\r\\n'))); return '#'; }");
    browser.wait("document.querySelectorAll('.names tbody tr').length === 500");
    assert!(
        browser.get(
            "document.getElementById('pane').innerText.includes('and 100 more names, which CSV has too')"
        ) == true
    );
    assert!(
        browser
            .get("[...document.querySelectorAll('.names tbody tr')].every((row) => row.offsetHeight < 70)")
            == true
    );
    press(&browser, "CSV");
    browser.wait("window.saved?.length === 602 && window.saved[0].startsWith('name,count,total_ns')");
    press(&browser, "Each event");
    browser.wait("document.querySelector('.names .virtual') !== null");
    browser.get("document.querySelector('.names .virtual p button').click()");
    browser.wait("window.saved[0] === 'name,begin_ns,duration_ns,kind,where,id'");
    // A long name leaves room for what else is known; all of it is there when it is opened.
    browser.get("location.hash = 'sel=op:4'");
    let title = "document.querySelector('#pane .title')";
    browser.wait(&format!(
        "{title}?.offsetHeight < 200 && {title}.querySelector('details').title.length === 5000"
    ));
    browser.get(&format!("{title}.querySelector('summary').click()"));
    browser.wait(&format!("{title}.innerText.includes('{long}')"));
    assert_eq!(
        browser.get(
            "document.getElementById('facts').innerText.includes('0 calls and markers · 600 operations')"
        ),
        true
    );
    assert_eq!(browser.console(), Vec::<String>::new());
}
