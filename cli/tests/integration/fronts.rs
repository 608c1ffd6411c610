//! The commands with the names and arguments of rocmProfileData's tools; rpd2tracing.py is tested beside its export.

use std::fs;

use crate::harness::{Dir, RPD, Ran, ran};

/// Puts the command and a front into the directory.
fn install(dir: &Dir, name: &str) {
    let script = format!("{}/../scripts/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::copy(script, dir.path(name)).unwrap();
    std::os::unix::fs::symlink(RPD, dir.path("rpd")).unwrap();
}

fn front(dir: &Dir, name: &str, arguments: &[&str]) -> Ran {
    ran(dir.command("python3").arg(name).args(arguments))
}

#[test]
fn rpd2table_takes_the_arguments_of_the_original() {
    let dir = Dir::new();
    install(&dir, "rpd2table.py");
    let trace = dir.unpacked("mytrace_raw.rpd");
    let same = |markers: &[&str]| {
        let ours = dir.run(&[&["table", "--csv", &trace], markers].concat()).expect(0).stdout.clone();
        assert_eq!(fs::read_to_string(dir.path("out.csv")).unwrap(), ours, "{markers:?}");
        ours
    };
    let one = front(&dir, "rpd2table.py", &[&trace, "execute_model", "out.csv"]);
    assert!(one.expect(0).stdout.ends_with("Summary table saved to out.csv\n"), "{one}");
    let table = same(&["execute_model"]);
    // What the original says of this trace: 22 ranges on GPU 2 with 9818 operations in all.
    let rows: Vec<&str> = table.lines().skip(1).collect();
    let column = |row: &str, at: usize| row.rsplit(',').nth(at).unwrap().parse::<u64>().unwrap();
    assert_eq!(rows.iter().map(|row| column(row, 5)).sum::<u64>(), 9818);
    assert!(rows.iter().all(|row| row.starts_with("execute_model,2,")), "{table}");
    // Several markers are one argument there.
    front(&dir, "rpd2table.py", &[&trace, "execute_model, generate", "out.csv"]).expect(0);
    same(&["execute_model", "generate"]);
    front(&dir, "rpd2table.py", &[&trace, "", "out.csv"]).expect(0);
    let whole = same(&[]);
    front(&dir, "rpd2table.py", &[&trace, "no such marker", "out.csv"]).expect(1).says(&["no such marker"]);
    assert_eq!(fs::read_to_string(dir.path("out.csv")).unwrap(), whole, "an old table stays");
    let nowhere = front(&dir, "rpd2table.py", &[&trace, "execute_model", "missing/out.csv"]);
    assert!(nowhere.expect(1).stderr.contains("cannot write missing/out.csv"), "{nowhere}");
    front(&dir, "rpd2table.py", &[&trace]).expect(2);
    assert_eq!(dir.names(), ["mytrace_raw.rpd", "out.csv", "rpd", "rpd2table.py"]);
}

#[test]
fn rpd_trim_takes_the_arguments_of_the_original() {
    let dir = Dir::new();
    install(&dir, "rpd_trim.py");
    let trace = dir.unpacked("mytrace_raw.rpd");
    let before = fs::read(dir.path(&trace)).unwrap();
    let calls = || -> i64 {
        dir.open(&trace).query_row("SELECT count(*) FROM rocpd_api", [], |row| row.get(0)).unwrap()
    };
    let all = calls();
    let (first, expected): (i64, i64) = dir
        .open(&trace)
        .query_row(
            "SELECT min(start), (SELECT count(*) FROM rocpd_api, (SELECT min(start) AS s, max(end) - min(start) AS d FROM rocpd_api)
                 WHERE start >= s + d / 4 AND start <= s + d / 4 * 3) FROM rocpd_api",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    front(&dir, "rpd_trim.py", &[&trace, "--start", "25%", "--end", "75%", "--dryrun"]).expect(0);
    assert!(fs::read(dir.path(&trace)).unwrap() == before, "a dry run changes nothing");
    front(&dir, "rpd_trim.py", &["--start", "25%", &trace, "--end", "75%", "--no-dryrun"]).expect(0);
    assert_eq!(calls(), expected);
    fs::write(dir.path(&trace), &before).unwrap();
    // Numbers are nanoseconds, on the trace's clock or from the first call on.
    let from = (first + 1_000_000).to_string();
    front(&dir, "rpd_trim.py", &[&trace, "--start", &from]).expect(0);
    let by_clock = calls();
    fs::write(dir.path(&trace), &before).unwrap();
    front(&dir, "rpd_trim.py", &[&trace, "--start", "+1000000"]).expect(0);
    assert!(calls() == by_clock && by_clock < all, "{by_clock} of {all}");
    front(&dir, "rpd_trim.py", &[&trace, "--start", "soon"]).expect(2);
    front(&dir, "rpd_trim.py", &["missing.rpd"]).expect(1).says(&["missing.rpd"]);
    assert_eq!(dir.names(), ["mytrace_raw.rpd", "rpd", "rpd_trim.py"]);
}

#[test]
fn rpd_autograd_summary_takes_the_arguments_of_the_original() {
    let dir = Dir::new();
    install(&dir, "rpd_autograd_summary.py");
    let trace = dir.unpacked("mytrace_as_shipped.rpd");
    let made = front(&dir, "rpd_autograd_summary.py", &[&trace, "out.html", "--start", "1"]);
    assert!(made.expect(0).stderr.contains("have no effect"), "{made}");
    let page = fs::read_to_string(dir.path("out.html")).unwrap();
    for title in ["Autograd Operator", "Kernel Name", "Sizes", "Total Call", "Average GPU", "Total GPU"] {
        assert!(page.contains(&format!("<th>{title}</th>")), "{title}");
    }
    // Each operator once in the first column, with the calls and the GPU time of all its kernels.
    let connection = dir.open(&trace);
    let mut operators = connection
        .prepare("SELECT autogradName, count(*), sum(calls), sum(total_gpu) FROM autogradKernel GROUP BY 1")
        .unwrap();
    let mut operators = operators.query([]).unwrap();
    let mut seen = 0;
    while let Some(row) = operators.next().unwrap() {
        let (name, kernels): (String, i64) = (row.get(0).unwrap(), row.get(1).unwrap());
        let (calls, total): (i64, i64) = (row.get(2).unwrap(), row.get(3).unwrap());
        let average = (total as f64 / calls as f64 * 10.0).round() / 10.0;
        if kernels > 1 {
            let line = page
                .lines()
                .find(|line| {
                    line.contains("class=\"group\"")
                        && line.contains(&format!("<td><bdi>{name}</bdi></td><td><bdi></bdi></td>"))
                })
                .unwrap_or_else(|| panic!("{name}"));
            let numbers: Vec<f64> = line
                .split("<td class=\"number\">")
                .skip(1)
                .map(|cell| cell.split('<').next().unwrap().parse().unwrap())
                .collect();
            assert!((numbers[0], numbers[2]) == (calls as f64, total as f64), "{line}");
            assert!((numbers[1] - average).abs() < 0.11, "{line}");
            seen += 1;
        }
    }
    assert!(seen > 3, "{seen}");
    // Names are harmless.
    connection
        .execute(
            "UPDATE rocpd_string SET string = '<script>alert(1)</script>' || char(27) || char(8238) WHERE string =
                 (SELECT autogradName FROM autogradKernel LIMIT 1)",
            [],
        )
        .unwrap();
    front(&dir, "rpd_autograd_summary.py", &[&trace, "out.html"]).expect(0);
    let page = fs::read_to_string(dir.path("out.html")).unwrap();
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script>alert"), "escaped");
    assert!(!page.contains(['\u{1b}', '\u{202e}']), "escaped");
    let bare = dir.fixture("matmul_result.rpd");
    let without = front(&dir, "rpd_autograd_summary.py", &[&bare, "out.html"]);
    assert!(without.expect(1).stderr.contains("come from: rpd autograd"), "{without}");
    assert_eq!(fs::read_to_string(dir.path("out.html")).unwrap(), page, "an old page stays");
}

/// Both fronts write a file that the caller names.
const WRITERS: [(&str, &str); 2] =
    [("rpd2table.py", "mytrace_raw.rpd"), ("rpd_autograd_summary.py", "mytrace_as_shipped.rpd")];

#[test]
fn fronts_replace_no_trace() {
    for (script, trace) in WRITERS {
        let dir = Dir::new();
        install(&dir, script);
        let trace = dir.unpacked(trace);
        let other = dir.fixture("matmul_result.rpd");
        std::os::unix::fs::symlink(&other, dir.path("link")).unwrap();
        for out in [&trace, &other, "link"] {
            let before = fs::read(dir.path(out)).unwrap();
            let refused = front(&dir, script, &[&trace, out]);
            assert!(
                refused.expect(1).stderr.contains(&format!("{out} is a trace, which stays")),
                "{refused}"
            );
            assert!(fs::read(dir.path(out)).unwrap() == before, "{script}: {out}");
        }
        assert!(dir.path("link").is_symlink(), "{script}");
    }
}

#[test]
fn fronts_write_through_what_is_no_file() {
    for (script, trace) in WRITERS {
        let dir = Dir::new();
        install(&dir, script);
        let trace = dir.unpacked(trace);
        front(&dir, script, &[&trace, "out"]).expect(0);
        let expected = fs::read(dir.path("out")).unwrap();
        ran(dir.command("mkfifo").arg("pipe")).expect(0);
        let pipe = dir.path("pipe");
        let reader = std::thread::spawn(move || fs::read(pipe).unwrap());
        front(&dir, script, &[&trace, "pipe"]).expect(0);
        // A front that put a file in the place of the pipe would leave its reader waiting.
        let kind = fs::symlink_metadata(dir.path("pipe")).unwrap().file_type();
        assert!(std::os::unix::fs::FileTypeExt::is_fifo(&kind), "{script}");
        assert!(reader.join().unwrap() == expected, "{script}");
        assert!(dir.names().iter().all(|name| !name.contains(".part-")), "{:?}", dir.names());
    }
}
