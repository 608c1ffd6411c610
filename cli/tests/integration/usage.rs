//! Help, exit statuses, closed pipes.

use std::fs::{self, File};
use std::io::Read;
use std::process::Stdio;

use crate::harness::{Dir, RPD, Verb, not_tested, ran};

/// Help has bold words on a terminal, unless NO_COLOR (no-color.org) is set and not empty. No report has any.
#[test]
fn no_color() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let has_style =
        |arguments: &str, no_color: &str| {
            let mut on_a_terminal = dir.command("script");
            on_a_terminal.args(["-qec", &format!("{RPD} {arguments}"), "/dev/null"]);
            let shown = ran(on_a_terminal.env("TERM", "xterm-256color").env("NO_COLOR", no_color));
            shown.expect(0);
            shown.stdout.split("\x1b[").skip(1).any(|rest| {
                rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
            })
        };
    assert_eq!(["", "1"].map(|no_color| has_style("top --help", no_color)), [true, false]);
    for verb in ["top", "gaps", "overlap", "info"] {
        assert!(!has_style(&format!("{verb} {trace}"), ""), "{verb}");
    }
}

#[test]
fn wrong_usage_is_2() {
    let dir = Dir::new();
    for arguments in [
        &[][..],
        &["sing"],
        &["top"],
        &["top", "-n", "x", "f"],
        &["check"],
        &["check", "--fix", "f"],
        &["callstack"],
        &["callstack", "--twice", "f"],
        &["record"],
        &["record", "--append", "--force", "x"],
        &["record", "--delay", "soon", "x"],
        &["record", "--duration=-1", "x"],
        &["record", "--max-mb", "0", "x"],
        &["record", "--max-mb", "1XB", "x"],
        &["record", "--rotate", "10", "--", "true"],
        &["record", "--rotate", "10m", "--", "true"],
        &["record", "--rotate", "1KiB", "--", "true"],
        &["record", "--rotate", "10ms", "--", "true"],
        &["record", "--rotate", "1GB", "--max-mb", "2GB", "--", "true"],
        &["top", "--json", "--csv", "f"],
        &["top", "-n", "0", "f"],
        &["record", "--outptu", "a.rpd", "--", "true"],
        &["record", "-o", "-", "--", "true"],
        &["trim", "f", "-o", "-"],
        &["merge", "-o", "-", "f", "g"],
        &["create", "-"],
        &["remote", "start", "-o", "-", "1"],
        &["api", "-n", "0", "f"],
        &["api", "--json", "--csv", "f"],
        &["subclass", "--base", "api", "--name", "a b", "--apis", "x", "f"],
        &["subclass", "--base", "api", "--name", "", "--apis", "x", "f"],
        &["merge", "-o", "x", "f"],
        &["merge", "-o", "x", "--offset", "f", "f", "g"],
        &["merge", "-o", "x", "--offset", "f=soon", "f", "g"],
        &["merge", "-o", "x", "--align", "go", "f", "g"],
        &["trim", "f"],
        &["trim", "f", "-o", "x", "--in-place"],
        &["trim", "f", "-o", "x", "--start", "soon"],
        &["trim", "f", "-o", "x", "--end", "kernel:("],
        &["subclass", "--base", "call", "--name", "x", "--apis", "x", "f"],
        &["replacements"],
        &["replacements", "a", "b", "c"],
        &["replacements", "--json", "--csv", "f"],
        &["replacements", "-n", "0", "f"],
        &["replacements", "--kernel", "(", "f"],
        &["gaps"],
        &["gaps", "-n", "0", "f"],
        &["overlap", "--json", "--csv", "f"],
        &["copies", "--json", "--csv", "f"],
        &["queues", "--gpu", "x", "f"],
        &["kernel", "f"],
        &["categories", "--show-rules", "f"],
        &["markers", "-n", "0", "f"],
        &["table", "--json", "--csv", "f"],
        &["energy", "--floor", "-1", "f"],
        &["energy", "--by", "stream", "f"],
        &["variability", "--before", "9", "f"],
        &["variability", "--outlier", "nan", "f"],
        &["top", "--by", "colour", "f"],
        &["durations"],
        &["durations", "--format", "xml", "f"],
        &["durations", "--kernel", "(?=x)", "f"],
        &["export"],
        &["export", "chrome"],
        &["export", "morse", "f"],
        &["export", "chrome", "--format", "xml", "f"],
        &["export", "chrome", "--start", "soon", "f"],
        &["export", "chrome", "--kernel", "(", "f"],
        &["export", "chrome", "--gpu", "x", "f"],
        &["export", "perfetto"],
        &["export", "kineto"],
        &["export", "perfetto", "--format", "array", "f"],
        &["export", "csv", "f"],
        &["export", "parquet", "--json", "f", "op"],
    ] {
        let refused = dir.run(arguments);
        refused.expect(2);
        assert!(refused.stdout.is_empty(), "{refused}");
    }
    assert!(dir.names().is_empty());
}

/// `--alternate random -- app` would run a command random.
#[test]
fn a_value_that_became_the_command_is_understood() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("cache")).unwrap();
    for value in ["random", "ABAB", "blocks=4"] {
        let ran = dir.run(&["record", "--kernel-cache", "cache", "--alternate", value, "--", "true"]);
        ran.expect(2).says(&[
            &format!("rpd: {value} would be the command: --alternate takes"),
            &format!("--alternate={value}"),
        ]);
    }
    dir.run(&["record", "--save-code", "code", "true"]).expect(2).says(&["--save-code=code"]);
    dir.run(&["record", "--save-code", "cache", "--", "true"]).expect(2).says(&["--save-code=cache"]);
    dir.run(&["record", "--save-code", "--", "no-such-command", "x"])
        .expect(127)
        .says(&["command not found"]);
    assert_eq!(dir.names(), ["cache"]);
}

#[test]
fn a_first_word_that_is_no_verb_is_understood() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    dir.trace("trace", "");
    dir.script("train", "#!/bin/sh\n");
    dir.run(&[&trace]).expect(2).says(&["rpd info t.rpd", "rpd top t.rpd"]);
    dir.run(&["./trace"]).expect(2).says(&["rpd top ./trace"]);
    dir.run(&[&trace, "check"]).expect(2).says(&["rpd check t.rpd"]);
    dir.run(&["./train", "--epochs", "3"]).expect(2).says(&["rpd record -- ./train ..."]);
    dir.run(&["./trian"]).expect(2).says(&["./trian", "rpd record -- COMMAND"]);
    dir.run(&["bash"]).expect(2).says(&["rpd record -- bash"]);
    let verb = dir.run(&["recrod"]);
    assert!(verb.expect(2).stderr.contains("'record'"), "{verb}");
    let option = dir.run(&["record", "--outptu", "a.rpd", "--", "true"]);
    assert!(option.expect(2).stderr.contains("'--output'"), "{option}");
}

#[test]
fn help_has_no_broken_words() {
    let dir = Dir::new();
    let verbs = dir.verbs();
    for (verb, columns) in verbs.iter().flat_map(|verb| [60, 80, 200].map(|columns| (verb, columns))) {
        let asked = verb.with(&["--help"]);
        let help = ran(dir.rpd(&asked).env("COLUMNS", columns.to_string()));
        let whole = dir.run(&asked);
        assert!(whole.stderr.is_empty(), "{whole}");
        let words = |text: &str| text.split_whitespace().map(str::to_string).collect::<Vec<_>>();
        assert_eq!(words(&help.expect(0).stdout), words(&whole.expect(0).stdout), "{whole} at {columns}");
        // An example is a command, which cannot be broken.
        let lines = help.expect(0).stdout.lines().take_while(|line| !line.starts_with("Example"));
        let longest = lines.map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= columns, "{whole} at {columns}: {longest}");
    }
}

#[test]
fn tables_of_sentences_fit_a_narrow_terminal() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let damage = "UPDATE rocpd_api SET start = -5 WHERE id % 3 = 0;
        UPDATE rocpd_kernelapi SET kernelName_id = 987654321; DROP VIEW top;";
    dir.open(&trace).execute_batch(damage).unwrap();
    let words = |text: &str| text.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    for arguments in [&["passes"][..], &["check"], &["check", "--repair"]] {
        let file = dir.write("t.rpd", fs::read(dir.path(&trace)).unwrap());
        let run = |columns: Option<usize>| {
            fs::copy(dir.path(&trace), &file).unwrap();
            let mut command = dir.rpd(&[arguments, &["t.rpd"]].concat());
            command.envs(columns.map(|columns| ("COLUMNS", columns.to_string())));
            ran(&mut command)
        };
        let words = |text: &str| words(&text.replace(": ", " "));
        let whole = words(&run(None).stdout);
        assert!(whole.len() > 30, "{whole:?}");
        for columns in [60, 80, 100] {
            let result = run(Some(columns));
            for line in result.stdout.lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}: {result}");
            }
            // Nothing is cut: but for the titles all words are there, if elsewhere.
            let mut left = words(&result.stdout);
            for word in &whole {
                if let Some(at) = left.iter().position(|other| other == word) {
                    left.swap_remove(at);
                }
            }
            assert!(left.is_empty(), "{columns}: {left:?}: {result}");
            let titles = ["place", "what", "it", "means;", "what", "to", "do"].len() * 2;
            assert!(words(&result.stdout).len() + titles >= whole.len(), "{columns}: {result}");
        }
    }
}

#[test]
fn a_file_that_may_not_be_read_is_there() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let dir = Dir::new();
    dir.trace("mine.rpd", "");
    let mode =
        |name: &str, mode| fs::set_permissions(dir.path(name), fs::Permissions::from_mode(mode)).unwrap();
    mode("mine.rpd", 0o600);
    mode("", 0o755);
    let absolute = dir.path("mine.rpd").display().to_string();
    for name in ["mine.rpd", "./mine.rpd", &absolute] {
        let mut other = dir.rpd(&["info", name]);
        let Ok(output) = other.uid(65534).gid(65534).output() else {
            return not_tested("only root can be another user");
        };
        let result = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(result.contains("mine.rpd: permission denied"), "{name}: {result}");
    }
}

#[test]
fn failure_is_1_and_one_line() {
    let dir = Dir::new();
    let verbs = dir.verbs();
    // `rpd code` reads other files too.
    let is_of_traces = |verb: &&Verb| !["code", "create", "trim"].contains(&&*verb.words[0]);
    let reading = verbs.iter().filter(|verb| verb.needs_a_file_alone()).filter(is_of_traces);
    let refused = reading.map(|verb| {
        dir.run(&verb.with(&["missing.rpd"])).expect(1).says(&["missing.rpd", "no such file"]);
    });
    assert!(refused.count() > 25);
    dir.run(&["create", "no/such/dir/x.rpd"]).expect(1).says(&["no/such/dir/x.rpd"]);
    assert!(dir.names().is_empty());
}

#[test]
fn a_closed_pipe_is_success() {
    let dir = Dir::new();
    // More than a pipe holds, so that the writing really fails.
    let trace = dir.trace(
        "many.rpd",
        r#"INSERT INTO rocpd_string SELECT value + 10, 'kernel' || value || hex(zeroblob(100))
               FROM generate_series(1, 5000);
           INSERT INTO rocpd_op (gpuId, queueId, sequenceId, completionSignal, start, "end", description_id, opType_id)
               SELECT 0, 0, 0, '', 1, 2, id, 1 FROM rocpd_string WHERE id > 10;"#
            .replace("generate_series(1, 5000)", SERIES)
            .as_str(),
    );
    for form in ["--json", "--csv", "--wide"] {
        let mut child = dir
            .rpd(&["top", "-n", "5000", form, &trace])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 1];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{form}: {}", output.status);
        assert!(output.stderr.is_empty(), "{form}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let shell = format!("{RPD} top -n 5000 --csv {trace} | head -1; exit ${{PIPESTATUS[0]}}");
    let head = ran(dir.command("bash").args(["-c", &shell]));
    head.expect(0);
    assert_eq!(head.stdout.lines().count(), 1, "{head}");
    assert!(head.stderr.is_empty(), "{head}");
}

/// 5000 rows with a column `value`.
const SERIES: &str = "(WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 5000) SELECT value FROM n)";

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let verbs = dir.verbs();
    let mut writing = 0;
    for verb in verbs
        .iter()
        .filter(|verb| verb.needs_a_file_alone() && !["create", "trim"].contains(&&*verb.words[0]))
    {
        let arguments = verb.with(&[&trace]);
        if dir.rpd(&arguments).output().unwrap().stdout.is_empty() {
            continue;
        }
        writing += 1;
        let full = File::options().write(true).open("/dev/full").unwrap();
        let child = dir.rpd(&arguments).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to standard output"));
    }
    assert!(writing > 20, "{writing}");
}
