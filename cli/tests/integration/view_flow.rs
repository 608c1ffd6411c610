//! What waited for what, and what is missing from the trace, in a real browser: drawn where the file says it is, and told in words.

use serde_json::{Value, json};

use crate::harness::Dir;
use crate::view::{SELECTED, Viewed, numbers, opened};
use crate::webdriver::Browser;

/// A process whose kernels of two streams wait for each other. It was stopped from 700 to 800 of 1000, and lost records from 500 to 520, and
/// three more nobody knows when.
const ROWS: &str = "
    INSERT INTO rocpd_string (id, string) VALUES (1, ''), (2, 'KernelExecution'), (3, 'first'), (4, 'second'), (5, 'hipLaunchKernel'), (6, 'hipEventRecord'),
        (7, 'hipStreamWaitEvent'), (8, 'hipStreamSynchronize'), (9, 'event=0xe | stream=0x10'), (10, 'stream=0x20 | event=0xe'), (11, 'stream=0x20');
    INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES (1, 7, 7, 1000, 1010, 5, 1), (2, 7, 7, 1020, 1025, 6, 9),
        (3, 7, 7, 1030, 1035, 7, 10), (4, 7, 7, 1040, 1050, 5, 1), (5, 7, 7, 1060, 1420, 8, 11), (6, 7, 7, 1990, 2000, 5, 1);
    INSERT INTO rocpd_kernelapi VALUES (1, '0x10', 1, 1, 1, 1, 1, 1, 0, 0, '', '', '', 0, 3), (4, '0x20', 1, 1, 1, 1, 1, 1, 0, 0, '', '', '', 0, 4);
    INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id) VALUES
        (1, 0, 1, 0, '', 1100, 1200, 3, 2), (2, 0, 2, 0, '', 1200, 1400, 4, 2);
    INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (1, 1), (4, 2);
    INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::pid', '7'), ('session::0::command', './train'), ('session::0::start_monotonic_ns', '900'),
        ('session::0::end_monotonic_ns', '2100'), ('session::0::stopped', '1700-1800'), ('session::0::lost::buffer_full', '12'), ('session::0::lost::write', '3'),
        ('session::0::lost_times', '1500-1520:buffer_full=12');";

fn text(browser: &Browser, of: &str) -> String {
    browser.get(of).as_str().unwrap_or_default().to_string()
}

const PANE: &str = "document.getElementById('pane').innerText";

#[test]
fn arrows_lead_from_what_was_waited_for_to_what_waited() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", ROWS);
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&trace]);
    opened(&browser, &viewed.url);
    let chosen = |which: &str, arrows: u64| {
        browser.get(&format!("location.hash = 't=0,1000&sel={which}'"));
        browser.wait(&format!("rpdTest.state().sel === '{which}' && rpdTest.dependencies() === {arrows}"));
        text(&browser, PANE).split_whitespace().collect::<Vec<_>>().join(" ").replace(" ,", ",")
    };
    // The second kernel waited for the first, because a call made its stream wait for an event that was recorded behind that.
    let said = chosen("op:2", 2);
    assert!(said.contains("Waited for first ended as this began, by hipStreamWaitEvent"), "{said}");
    assert!(said.contains("Waited for by 1 hipStreamSynchronize begins 340 ns before this ended"), "{said}");
    // The call that waited for the second kernel: the arrow ends where that ended.
    let said = chosen("call:5", 1);
    assert!(said.contains("Waited for second ended 340 ns after this began"), "{said}");
    let said = chosen("call:3", 1);
    assert!(said.contains("first ended 170 ns after this began, by hipEventRecord"), "{said}");
    let plot = numbers(&browser.get(SELECTED));
    let ends = |from: f64| from / 1000.0 * plot[2];
    let inked = |x: f64| browser.get(&format!("rpdTest.overlaid({}, 0, 12, {})", x - 6.0, plot[3]));
    assert!(inked(ends(118.0)).as_u64().unwrap() > 0, "the arrow leaves the call");
    // A call that did not wait has no such arrow, and neither has one whose wait is not known.
    let said = chosen("call:1", 0);
    assert!(!said.contains("Waited for"), "{said}");
    // A click on what tied them leads there.
    chosen("op:2", 2);
    browser.get("[...document.querySelectorAll('#pane .waits button')].find((one) => one.textContent === 'hipStreamWaitEvent').click()");
    browser.wait("rpdTest.state().sel === 'call:3'");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn what_was_not_recorded_is_drawn_where_it_was_and_explained() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", ROWS);
    dir.run(&["export", "timeline", &trace, "-o", "t.html"]).expect(0);
    let Some(browser) = Browser::start(&dir) else { return };
    let viewed = Viewed::start(&dir, &[&trace]);
    for url in [viewed.url.clone(), format!("file://{}", dir.path("t.html").display())] {
        opened(&browser, &url);
        // A row above the threads of the process has all three spans, those of one time below each other.
        let rows = "rpdTest.lines().filter((line) => line.track === 'p7.0.recording')";
        let spans = browser.get(&format!(
            "{rows}.flatMap((line) => [50, 510, 750].map((at) => rpdTest.at(line.row, at)).filter((run) => run?.isExact).map((run) => [rpdTest.name(run.name), run.start_ns, run.duration_ns]))"
        ));
        assert_eq!(
            spans,
            json!([
                ["3 records lost (3 write)", 0, 1000],
                ["3 records lost (3 write)", 0, 1000],
                ["3 records lost (3 write)", 0, 1000],
                ["12 records lost (12 buffer_full)", 500, 20],
                ["not recorded", 700, 100],
            ])
        );
        // While nothing was recorded the rows of the process are striped, and no other time is.
        let plot = numbers(&browser.get(SELECTED));
        let striped = |from: f64, to: f64| {
            let [left, right] = [from, to].map(|at| (at / 1000.0 * plot[2]).round());
            browser.get(&format!(
                "(() => {{ const line = rpdTest.lines().find((one) => one.track === 'p7.0.7'); let inked = 0;
                   for (let x = {left} + 2; x < {right} - 2; x += 1) for (let y = 2; y < 14; y += 1) inked += rpdTest.pixel(x, line.top + y) !== rpdTest.back();
                   return inked; }})()"
            ))
        };
        assert!(striped(700.0, 800.0).as_u64().unwrap() > 20);
        assert_eq!(striped(820.0, 980.0), json!(0));
        // A click tells what is known of it.
        let answer = |at: f64, name: &str| {
            let name = Value::from(name);
            let y = browser.get(&format!("(() => {{ const line = {rows}.find((line) => rpdTest.name(rpdTest.at(line.row, {at})?.name) === {name}); return line.top + line.height / 2; }})()"));
            browser.click((plot[0] + at / 1000.0 * plot[2], plot[1] + y.as_f64().unwrap()));
            browser.wait(&format!("document.querySelector('#pane .title')?.textContent === {name}"));
            text(&browser, PANE)
        };
        let said = answer(510.0, "12 records lost (12 buffer_full)");
        assert!(
            said.contains("buffer_full\t12") && said.contains("20 ns") && said.contains("train 7"),
            "{said}"
        );
        assert!(answer(50.0, "3 records lost (3 write)").contains("does not say when"));
        assert!(answer(750.0, "not recorded").contains("Recording was stopped"));
        // The pane of the trace lists them, and leads there.
        browser.get("document.getElementById('tab-trace').click()");
        browser.get("[...document.querySelectorAll('#pane button')].find((one) => one.textContent === 'not recorded').click()");
        browser
            .wait("rpdTest.state().t !== null && rpdTest.state().t[0] > 600 && rpdTest.state().t[1] < 900");
        assert_eq!(browser.console(), Vec::<String>::new());
    }
}
