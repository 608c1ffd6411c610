//! README.md and docs/: the commands on the pages run, the links lead somewhere, every page is in the index. Pages and code have no words that
//! docs/glossary.md has others for.
//!
//! A fenced block `console` has commands behind `$ `, with their output below; a block `sh` is a script. What follows on the line of the
//! fence says why a block is not run: ```` ```sh not run: needs PyTorch ````. A block `text` has no commands. The commands of a page run one after the other in a directory
//! with `trace.rpd`, which is the demo's trace with markers as a training loop has them, `pytorch.rpd`, a real one of vLLM, `train` and
//! `train.py`, which are the demo on one GPU, `builds`, which has another build of one of its kernels, and `app`, which has instrumented
//! kernels (tests/programs/inside.hip).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::harness::{
    Dir, Loading, Run, command, newer_rocm, not_tested, program, rpd, rpd_remote, saxpy_candidate,
    software_gpu, tool,
};

/// A fenced block of a page.
struct Block {
    page: String,
    line: usize,
    /// What the fence says: the language, and why it is not run.
    info: String,
    text: Vec<String>,
}

impl Block {
    fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }

    fn reason_not_to_run(&self) -> Option<&str> {
        self.info.split_once(" not run: ").map(|(_, why)| why)
    }

    /// The scripts in it, each with the first line of the output that the page shows.
    fn scripts(&self) -> Vec<(String, Option<String>)> {
        if self.info == "sh" {
            return vec![(self.text.join("\n"), None)];
        }
        let mut scripts: Vec<(String, Option<String>)> = vec![];
        for line in &self.text {
            match (line.strip_prefix("$ "), line.strip_prefix("> "), scripts.last_mut()) {
                (Some(command), _, _) => scripts.push((command.to_string(), None)),
                (_, Some(more), Some((command, None))) => *command = format!("{command}\n{more}"),
                (_, _, Some((_, shown))) => {
                    shown.get_or_insert_with(|| line.clone());
                }
                (_, _, None) => panic!("{}: a console block begins with a command", self.place()),
            }
        }
        scripts
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// README.md and the pages of docs/, by their paths from the root, with their texts.
fn pages() -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join("docs")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| format!("docs/{}", entry.unwrap().file_name().display())).collect();
    names.retain(|name| name.ends_with(".md"));
    names.push("README.md".to_string());
    names.sort();
    names.into_iter().map(|name| (name.clone(), fs::read_to_string(root().join(name)).unwrap())).collect()
}

/// The fenced blocks of a page, and its lines outside of them with their numbers.
fn taken_apart<'a>(page: &str, text: &'a str) -> (Vec<Block>, Vec<(usize, &'a str)>) {
    let (mut blocks, mut prose) = (vec![], vec![]);
    let mut open: Option<Block> = None;
    for (line, number) in text.lines().zip(1..) {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(info), None) => {
                let info = info.trim().to_string();
                open = Some(Block { page: page.to_string(), line: number, info, text: vec![] });
            }
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.text.push(line.to_string());
                open = Some(block);
            }
            (None, None) => prose.push((number, line)),
        }
    }
    assert!(open.is_none(), "{page}: a fence is not closed");
    (blocks, prose)
}

/// What a line begins with that somebody would paste into a shell: a block `text`, which is never run, has no such line.
const COMMANDS: [&str; 4] = ["$ ", "rpd ", "rpdRemote ", "sqlite3 "];

/// The lines of a block `text` that a reader would run, by their numbers in the page.
fn commands_in_text(block: &Block) -> Vec<(usize, &str)> {
    let lines = (block.line + 1..).zip(block.text.iter().map(String::as_str));
    lines.filter(|(_, line)| COMMANDS.iter().any(|command| line.starts_with(command))).collect()
}

/// Whether somebody would paste this line into a shell: the test has to find it in a fenced block.
fn looks_like_a_command(line: &str) -> bool {
    let Some(code) = line.strip_prefix("    ") else { return false };
    let code = code.trim_start().trim_start_matches("$ ");
    ["rpd ", "rpdRemote ", "sqlite3 ", "LD_PRELOAD="].iter().any(|program| code.starts_with(program))
}

/// Another build of one of the demo's kernels.
const CANDIDATE: &str = "builds/lds/saxpy.hsaco";

/// What the commands of the pages find in their directory.
const FURNITURE: [&str; 7] =
    ["trace.rpd", "pytorch.rpd", "profile.pkl", "train", "train.py", "app", CANDIDATE];

/// Makes what the commands of the pages find in their directory.
fn furnish(dir: &Dir) {
    Run::new(dir, program("demo")).gpus(2).recorded(Loading::RpdRecord).run().expect(0);
    mark(&dir.path("trace.rpd"));
    let packed = root().join("fixtures/rpd/mytrace_raw.rpd.gz");
    let unpack = format!("zcat {} > {}", packed.display(), dir.path("pytorch.rpd").display());
    tool("sh", &["-c", &unpack]);
    for (script, name) in [("train", "demo"), ("app", "inside")] {
        let text = format!(
            "#!/bin/sh\nexport LD_PRELOAD=\"$LD_PRELOAD:{}\" SIMGPU_GPUS=1 SIMGPU_CONFIG={}\nexec {}\n",
            software_gpu().display(),
            root().join("fixtures/programs/demo.toml").display(),
            program(name).display()
        );
        fs::write(dir.path(script), text).unwrap();
        fs::set_permissions(dir.path(script), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::create_dir_all(dir.path(CANDIDATE).parent().unwrap()).unwrap();
    fs::copy(saxpy_candidate("gfx900"), dir.path(CANDIDATE)).unwrap();
    fs::copy(root().join("fixtures/tinygrad/null.pkl"), dir.path("profile.pkl")).unwrap();
    fs::write(dir.path("train.py"), "import os\nos.execv('./train', ['./train'])\n").unwrap();
}

/// Five markers, `step 1` to `step 5`, over the calls of the trace.
fn mark(trace: &Path) {
    let connection = rusqlite::Connection::open(trace).unwrap();
    connection
        .execute_batch(
            "INSERT OR IGNORE INTO rocpd_string (string) VALUES ('UserMarker');
             WITH RECURSIVE steps (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM steps WHERE n < 5)
             INSERT INTO rocpd_string (string) SELECT 'step ' || n FROM steps;
             WITH RECURSIVE steps (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM steps WHERE n < 5),
             span AS (SELECT min(start) AS a, max(\"end\") - min(start) AS long, min(pid) AS pid FROM rocpd_api)
             INSERT INTO rocpd_api (pid, tid, start, \"end\", apiName_id, args_id)
             SELECT pid, 1, a + (n - 1) * (long / 5), a + n * (long / 5) - 1,
                 (SELECT id FROM rocpd_string WHERE string = 'UserMarker'),
                 (SELECT id FROM rocpd_string WHERE string = 'step ' || n)
             FROM steps, span;",
        )
        .unwrap();
}

/// A directory like `furnished`, with no more in it.
fn copy_of(furnished: &Dir) -> Dir {
    let dir = Dir::new();
    fs::create_dir_all(dir.path(CANDIDATE).parent().unwrap()).unwrap();
    for name in FURNITURE {
        fs::copy(furnished.path(name), dir.path(name)).unwrap();
    }
    // Where `make install` would put them.
    let binaries = dir.path("bin");
    fs::create_dir(&binaries).unwrap();
    for binary in [rpd(), rpd_remote()] {
        symlink(&binary, binaries.join(binary.file_name().unwrap())).unwrap();
    }
    for front in ["rpd2tracing.py", "rpd2table.py", "rpd_trim.py", "rpd_autograd_summary.py"] {
        symlink(root().join("scripts").join(front), binaries.join(front)).unwrap();
    }
    dir
}

/// Runs the blocks of one page in order, and says what went wrong.
fn run_page(blocks: &[&Block], furnished: &Dir) -> Vec<String> {
    let dir = copy_of(furnished);
    let mut wrong = vec![];
    for block in blocks {
        for (script, shown) in block.scripts() {
            if let Some(why) = fails(&dir, &script, shown.as_deref()) {
                wrong.push(format!("{}: {why}\n$ {script}", block.place()));
            }
        }
    }
    wrong
}

/// Why the script is wrong, if it is: its status, an empty answer of a query, or other output than the page shows.
fn fails(dir: &Dir, script: &str, shown: Option<&str>) -> Option<String> {
    let installed = [
        ("/usr/local/share/rpd/queries", root().join("sql/queries")),
        ("/usr/local/lib", rpd().parent().unwrap().to_path_buf()),
    ];
    let script = installed.iter().fold(script.to_string(), |script, (named, real): &(_, PathBuf)| {
        script.replace(named, real.to_str().unwrap())
    });
    if script.starts_with("rpd record -- ") {
        // Whoever reads the page has no trace yet, and `rpd record` adds to none unasked.
        fs::remove_file(dir.path("trace.rpd")).unwrap();
    }
    let mut paths = vec![dir.path("bin")];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut shell = command("bash");
    shell.args(["-e", "-u", "-o", "pipefail", "-c", &script]).current_dir(dir.path("."));
    shell.env("PATH", std::env::join_paths(paths).unwrap()).env("TMPDIR", dir.path("."));
    let output = shell.stdin(std::process::Stdio::null()).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Some(format!("{}\n{stdout}{stderr}", output.status));
    }
    if script.starts_with("sqlite3 ") && stdout.is_empty() {
        return Some("the query found nothing".to_string());
    }
    // Spaces differ with the width of what is below, numbers with the run.
    let words = |line: &str| {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        line.split(|c: char| c.is_ascii_digit() || c == '.')
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("#")
    };
    let shown = shown.map(words).filter(|shown| !shown.is_empty())?;
    let found = stdout.lines().chain(stderr.lines()).any(|line| words(line) == shown);
    (!found).then(|| format!("the page shows {shown:?}, which is not in\n{stdout}{stderr}"))
}

#[test]
fn the_commands_on_the_pages_run() {
    if newer_rocm() {
        return not_tested("the machine around this tree runs the commands on the pages");
    }
    let furnished = Dir::new();
    furnish(&furnished);
    let (mut run, mut left_out, mut wrong) = (0, vec![], vec![]);
    for (page, text) in pages() {
        let (blocks, prose) = taken_apart(&page, &text);
        for (number, line) in prose {
            if looks_like_a_command(line) {
                wrong.push(format!("{page}:{number}: a command outside of a fenced block: {line}"));
            }
        }
        let mut runnable = vec![];
        for block in &blocks {
            match (block.info.as_str(), block.reason_not_to_run()) {
                (_, Some(why)) => left_out.push(format!("{}: {why}", block.place())),
                ("sh" | "console", None) => runnable.push(block),
                ("text", None) => {
                    for (number, line) in commands_in_text(block) {
                        wrong.push(format!("{page}:{number}: a command in a block of text: {line}"));
                    }
                }
                ("c" | "python" | "sql", None) => (),
                (info, None) => {
                    wrong.push(format!("{}: a block of {info:?} is neither run nor text", block.place()))
                }
            }
        }
        run += runnable.iter().map(|block| block.scripts().len()).sum::<usize>();
        wrong.extend(run_page(&runnable, &furnished));
    }
    println!(
        "{run} scripts of the pages were run; {} blocks were left out:\n{}",
        left_out.len(),
        left_out.join("\n")
    );
    assert!(
        wrong.is_empty(),
        "{} of {run} commands on the pages are wrong:\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
    assert!(run > left_out.len(), "most commands are left out: {left_out:?}");
}

/// The page that explains instrumented kernels shows those that its commands run.
#[test]
fn the_kernels_on_the_page_are_those_that_run() {
    let page = fs::read_to_string(root().join("docs/inside-a-kernel.md")).unwrap();
    let source = fs::read_to_string(root().join("tests/programs/inside.hip")).unwrap();
    let (blocks, _) = taken_apart("inside-a-kernel.md", &page);
    let shown: Vec<String> =
        blocks.iter().filter(|block| block.info == "c").map(|block| block.text.join("\n")).collect();
    assert_eq!(shown.len(), 4);
    for kernel in shown {
        assert!(source.contains(&kernel), "not in inside.hip:\n{kernel}");
    }
}

#[test]
fn a_wrong_command_on_a_page_is_found() {
    let dir = Dir::new();
    fs::create_dir_all(dir.path(CANDIDATE).parent().unwrap()).unwrap();
    for name in FURNITURE {
        fs::write(dir.path(name), "").unwrap();
    }
    tool(rpd().to_str().unwrap(), &["create", dir.path("trace.rpd").to_str().unwrap()]);
    let wrong = |block: &str| {
        let (blocks, _) = taken_apart("page.md", block);
        run_page(&blocks.iter().collect::<Vec<_>>(), &dir).len()
    };
    assert_eq!(
        wrong("```console\n$ rpd info trace.rpd\nfile    trace.rpd\n```\n```sh\nrpd check trace.rpd\n```"),
        0
    );
    assert_eq!(wrong("```console\n$ rpd tip trace.rpd\n$ rpd info trace.rpd\n```"), 1, "no such verb");
    assert_eq!(wrong("```console\n$ rpd info trace.rpd\nfile elsewhere.rpd\n```"), 1, "other output");
    assert_eq!(wrong("```console\n$ sqlite3 trace.rpd \\\n> 'select * from op'\n```"), 1, "nothing found");
    assert_eq!(wrong("```sh\nrpd info none.rpd | cat\ntrue\n```"), 1, "a failure in the middle");
    let (blocks, _) = taken_apart("page.md", "```text\nrpd: a message\nrpd top trace.rpd\n```");
    assert_eq!(commands_in_text(&blocks[0]), [(3, "rpd top trace.rpd")], "a command that is never run");
    assert!(
        looks_like_a_command("    $ rpd top trace.rpd") && !looks_like_a_command("rpd top shows kernels")
    );
}

/// What `[text](target)` of a line leads to.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

/// The anchors of a page, as GitHub makes them of its headings.
fn anchors(text: &str) -> Vec<String> {
    let headings = taken_apart("", text).1.into_iter().filter(|(_, line)| line.starts_with('#'));
    let anchor = |(_, line): (usize, &str)| {
        let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        title.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_lead_somewhere_and_the_index_has_every_page() {
    let mut wrong = vec![];
    for (page, text) in pages() {
        let folder = root().join(&page);
        let folder = folder.parent().unwrap();
        for (number, line) in taken_apart(&page, &text).1 {
            for target in targets(line).filter(|target| !target.contains("://")) {
                let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
                let path = if file.is_empty() { root().join(&page) } else { folder.join(file) };
                let there = match anchor {
                    "" => path.exists(),
                    _ => {
                        fs::read_to_string(&path).is_ok_and(|text| anchors(&text).iter().any(|a| a == anchor))
                    }
                };
                if !there {
                    wrong.push(format!("{page}:{number}: {target}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    for (page, _) in pages() {
        let Some(name) = page.strip_prefix("docs/").filter(|name| *name != "README.md") else { continue };
        let link = format!("]({name})");
        assert!(index.contains(&link), "docs/README.md does not lead to {name}");
    }
}

/// What a cell of the table of rows names: files, and functions in them.
fn files_and_functions(cell: &str) -> (Vec<&str>, Vec<&str>) {
    let (files, functions) = cell.split_once(": ").unwrap_or((cell, ""));
    let files = files.split(", ").filter(|name| name.ends_with(".rs")).collect();
    (files, functions.split('`').skip(1).step_by(2).collect())
}

/// docs/architecture.md says what a new pass touches: what its tables are made with is used by passes alone.
#[test]
fn tables_of_passes_are_known_to_passes_alone() {
    let ext = fs::read_to_string(root().join("sql/src/ext.rs")).unwrap();
    let (constants, recorders) = ext.split_once("pub const RECORDERS").unwrap();
    let names = constants.lines().filter_map(|line| line.strip_prefix("pub const ")?.split(':').next());
    let is_of_passes = |name: &&str| *name != "DISPATCH" && !recorders.contains(&format!("    {name},"));
    let of_passes: Vec<&str> = names.filter(is_of_passes).collect();
    assert!(of_passes.contains(&"CALLSTACK") && of_passes.len() > 5, "{of_passes:?}");
    let uses = |code: &str| of_passes.iter().any(|name| code.contains(&format!("ext::{name}")));
    let users: Vec<String> =
        sources().into_iter().filter(|(_, code)| uses(code)).map(|(path, _)| path).collect();
    assert!(
        users.len() > 3 && users.iter().all(|user| user.starts_with("postprocess/src/passes/")),
        "{users:?}"
    );
}

/// docs/architecture.md says of each table which function makes its rows, and which file pushes the record.
#[test]
fn the_table_of_rows_leads_to_code() {
    assert_eq!(files_and_functions("a.rs: `b`, `c`"), (vec!["a.rs"], vec!["b", "c"]));
    assert_eq!(files_and_functions("a.rs, b/c.rs"), (vec!["a.rs", "b/c.rs"], vec![]));
    let read = |path: &str| fs::read_to_string(root().join(path));
    let page = read("docs/architecture.md").unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("| table | record |")).skip(2);
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 20, "{rows:?}");
    let records = read("transport/src/records.rs").unwrap();
    let mut wrong = vec![];
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let is_record = |kind: &str| records.contains(&format!("\n    {kind} = "));
        if !cells[2].split('`').skip(1).step_by(2).all(is_record) {
            wrong.push(format!("no such record: {row}"));
        }
        let writer: &[&str] = &["transport/src/writer"];
        let sources: &[&str] = &["tracer/src/sources", "tracer/src"];
        for (cell, folders) in [(cells[3], writer), (cells[4], sources)] {
            let (files, functions) = files_and_functions(cell);
            let code = |file: &&str| folders.iter().find_map(|folder| read(&format!("{folder}/{file}")).ok());
            let found: Vec<String> = files.iter().filter_map(code).collect();
            let has = |function: &&str| found.iter().any(|code| code.contains(&format!("fn {function}(")));
            if found.len() < files.len() || !files.is_empty() && !functions.iter().all(has) {
                wrong.push(format!("no such file or function: {row}"));
            }
        }
    }
    let sentence =
        page.lines().find(|line| line.starts_with("The function that times a dispatch is")).unwrap();
    let (function, file) = (sentence.split('`').nth(1).unwrap(), sentence.split('`').nth(3).unwrap());
    if !read(file).is_ok_and(|code| code.contains(&format!("fn {function}("))) {
        wrong.push(sentence.to_string());
    }
    assert!(wrong.is_empty(), "docs/architecture.md:\n{}", wrong.join("\n"));
}

/// docs/hazards.md says of a hazard which test shows what it does.
#[test]
fn the_tests_that_hazards_are_shown_by_are_there() {
    let page = fs::read_to_string(root().join("docs/hazards.md")).unwrap();
    let sources = sources();
    let is_there = |name: &str| {
        let (function, file) = (format!("fn {name}("), format!("/{name}.rs"));
        sources.iter().any(|(path, code)| path.ends_with(&file) || code.contains(&function))
    };
    let is_path = |code: &&str| {
        code.chars().all(|letter| letter.is_ascii_lowercase() || "0123456789_:.".contains(letter))
    };
    let named = page.split('`').skip(1).step_by(2).filter(is_path);
    let named: BTreeSet<&str> = named
        .filter(|name| !name.starts_with("lost::"))
        .filter_map(|name| Some(name.rsplit_once("::")?.1))
        .collect();
    assert!(named.len() > 100, "{named:?}");
    let missing: Vec<_> = named.into_iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "docs/hazards.md: {missing:?}");
}

/// Words that meant several things, or nothing to a newcomer. docs/glossary.md has those to use.
const PRIVATE: [&str; 10] =
    ["door", "doors", "lane", "lanes", "wishes", "harvest", "harvested", "twin", "twins", "despair"];

/// The words of a line outside of `code` and of the targets of links, in lower case.
fn words(line: &str) -> Vec<String> {
    let outside: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut parts = outside.split("](");
    let first = parts.next().unwrap_or_default().to_string();
    let shown = parts.fold(first, |shown, part| {
        shown + " " + part.split_once(')').map_or(part, |(_, behind_the_target)| behind_the_target)
    });
    shown
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .map(str::to_lowercase)
        .filter(|word| !word.is_empty())
        .collect()
}

#[test]
fn pages_have_no_private_words() {
    assert_eq!(words("(A door), [a lane](twins.md): `--hip-door`."), ["a", "door", "a", "lane"]);
    let changelog = ("CHANGELOG.md".to_string(), fs::read_to_string(root().join("CHANGELOG.md")).unwrap());
    let mut found = vec![];
    for (page, text) in pages().into_iter().chain([changelog]) {
        for (number, line) in taken_apart(&page, &text).1 {
            let words = words(line);
            let private = words.iter().filter(|word| PRIVATE.contains(&word.as_str())).cloned();
            let private = private.chain(private_phrases(&words));
            found.extend(private.map(|word| format!("{page}:{number}: {word}")));
        }
    }
    assert!(found.is_empty(), "words that docs/glossary.md has others for:\n{}", found.join("\n"));
}

/// Private words of code: anywhere in an identifier, in comments and in texts.
const PRIVATE_EVERYWHERE: [&str; 11] = [
    "door",
    "doors",
    "wish",
    "wishes",
    "harvest",
    "harvested",
    "twin",
    "twins",
    "despair",
    "settle",
    "settled",
];
/// Those that are plain English in a sentence: in identifiers only.
const PRIVATE_IN_NAMES: [&str; 2] = ["told", "untold"];
/// Those that are plain English in the name of a function or a variable too: in names of types and constants.
const PRIVATE_IN_TYPES: [&str; 3] = ["kept", "way", "ways"];
/// Words in a meaning of our own that are plain English in another: edges between blocks are no ways, what is reported is not told.
const PRIVATE_PHRASES: [&str; 11] = [
    "way on from",
    "way on has",
    "ways on are",
    "way leads",
    "way into a kernel",
    "way into the function",
    "ways into a block",
    "told one by one",
    "is not told",
    "else is told",
    "are told as",
];
/// A lane is a work-item's place in a wavefront. Timelines have tracks and subtracks.
const TIMELINES: [&str; 2] = ["view/", "postprocess/src/export/"];

/// What code consists of, as far as words matter.
#[derive(Clone, Copy)]
enum Piece {
    Name,
    Comment,
    Text,
}

/// The names, comments and texts of Rust or JavaScript.
fn pieces(code: &str) -> Vec<(Piece, &str)> {
    let mut found = vec![];
    let mut rest = code;
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    while let Some(first) = rest.chars().next() {
        let hashes = rest.strip_prefix('r').map_or(0, |rest| rest.len() - rest.trim_start_matches('#').len());
        let (length, piece): (usize, Piece) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), Piece::Comment)
        } else if rest.starts_with("/*") {
            (rest.find("*/").map_or(rest.len(), |at| at + 2), Piece::Comment)
        } else if first == 'r' && rest[1 + hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let begin = hashes + 2;
            (rest[begin..].find(&end).map_or(rest.len(), |at| begin + at + end.len()), Piece::Text)
        } else if first == '"' || first == '`' {
            let mut is_escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == first && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            });
            (end.map_or(rest.len(), |at| at + 2), Piece::Text)
        } else if rest.starts_with("'\"'") || rest.starts_with("b'\"'") {
            (rest.find('"').unwrap_or(0) + 2, Piece::Text)
        } else if is_name(first) {
            (rest.find(|c| !is_name(c)).unwrap_or(rest.len()), Piece::Name)
        } else {
            rest = &rest[first.len_utf8()..];
            continue;
        };
        found.push((piece, &rest[..length]));
        rest = &rest[length..];
    }
    found
}

/// The words of an identifier, in lower case: `KeptTexts`, `is_kept` and `KEPT` have `kept`.
fn words_of_name(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if c == '_' || c.is_uppercase() && was_lower {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c != '_') {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// Those of [`PRIVATE_PHRASES`] that a sentence of these words has.
fn private_phrases(words: &[String]) -> Vec<String> {
    let sentence = format!(" {} ", words.join(" "));
    let found = PRIVATE_PHRASES.iter().filter(|phrase| sentence.contains(&format!(" {phrase} ")));
    found.map(|phrase| String::from(*phrase)).collect()
}

/// The private words of a file's code. Options, variables and facts that still have one in their names are each one word.
fn private_words(path: &str, code: &str) -> Vec<String> {
    let is_timeline = TIMELINES.iter().any(|folder| path.starts_with(folder));
    let is_private =
        |word: &str| PRIVATE_EVERYWHERE.contains(&word) || is_timeline && matches!(word, "lane" | "lanes");
    let in_sentence = |text: &str| -> Vec<String> {
        let outside: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        let words = outside.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-'));
        let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
        words.iter().filter(|word| is_private(word)).cloned().chain(private_phrases(&words)).collect()
    };
    let in_name = |name: &str| -> Vec<String> {
        let is_type = name.starts_with(char::is_uppercase);
        let is_one = |word: &String| {
            is_private(word)
                || PRIVATE_IN_NAMES.contains(&word.as_str())
                || is_type && PRIVATE_IN_TYPES.contains(&word.as_str())
        };
        if words_of_name(name).iter().any(is_one) { vec![name.to_string()] } else { vec![] }
    };
    let of_piece = |(piece, text): (Piece, &str)| match piece {
        Piece::Name => in_name(text),
        Piece::Comment => in_sentence(text),
        // The address of a timeline has had `lanes=` from the first.
        Piece::Text if is_timeline => in_sentence(text).into_iter().filter(|word| word != "lanes").collect(),
        Piece::Text => in_sentence(text),
    };
    pieces(code).into_iter().flat_map(of_piece).collect()
}

/// The files of these names, by their paths from the root.
fn files(folder: &Path, is_wanted: &dyn Fn(&str) -> bool, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap_or_default();
        if name == "target" || name.starts_with('.') || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            files(&path, is_wanted, found);
        } else if is_wanted(name) {
            let place = path.strip_prefix(root()).unwrap().to_str().unwrap().to_string();
            found.push((place, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The Rust and the JavaScript of the tree.
fn sources() -> Vec<(String, String)> {
    let mut found = vec![];
    files(root(), &|name| name.ends_with(".rs") || name.ends_with(".mjs"), &mut found);
    assert!(found.len() > 500, "{} files", found.len());
    found
}

#[test]
fn code_has_no_private_words() {
    let code = "// A door, `--hip-door`.\nlet is_told = r#\"twins \\\"#; /* a wish */ struct KeptTexts; kept('\"', \"hip_door\"); lane";
    assert_eq!(private_words("cli/a.rs", code), ["door", "is_told", "twins", "wish", "KeptTexts"]);
    assert_eq!(private_words("view/a.rs", "lane(\"lanes=\") // lanes"), ["lane", "lanes"]);
    let code = "// The first ten are told one by one.\n// Two are told apart on their way into a ring. Each way leads on.";
    assert_eq!(private_words("cli/a.rs", code), ["told one by one", "way leads"]);
    let mut all = sources();
    // This file names them.
    let own = Path::new(file!()).file_name().unwrap().to_str().unwrap();
    all.retain(|(path, _)| *path != format!("tests/{own}"));
    let found: Vec<String> = all
        .iter()
        .flat_map(|(path, code)| {
            private_words(path, code).into_iter().map(move |word| format!("{path}: {word}"))
        })
        .collect();
    assert!(found.is_empty(), "words that docs/glossary.md has others for:\n{}", found.join("\n"));
}

/// The name of the type that a line makes known outside of its module.
fn exported_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub")?;
    let rest =
        rest.strip_prefix('(').map_or(Some(rest), |rest| rest.split_once(')').map(|(_, rest)| rest))?;
    let mut words = rest.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    ["struct", "enum", "trait", "union"].contains(&words.next()?).then(|| words.next())?
}

/// Each crate by its folder, with the crates that it is built on, directly or through others.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let mut manifests = vec![];
    files(root(), &|name| name == "Cargo.toml", &mut manifests);
    let folder = |path: &str| path.strip_suffix("/Cargo.toml").unwrap_or_default().to_string();
    let named = |text: &str| {
        text.lines().find_map(|line| Some(line.strip_prefix("name = \"")?.trim_end_matches('"').to_string()))
    };
    let folders: BTreeMap<String, String> =
        manifests.iter().filter_map(|(path, text)| Some((named(text)?, folder(path)))).collect();
    let needs = |text: &str| -> BTreeSet<String> {
        let lines = text
            .lines()
            .skip_while(|line| *line != "[dependencies]")
            .skip(1)
            .take_while(|line| !line.starts_with('['));
        lines.filter_map(|line| folders.get(line.split([' ', '.']).next()?).cloned()).collect()
    };
    let mut found: BTreeMap<String, BTreeSet<String>> =
        manifests.iter().map(|(path, text)| (folder(path), needs(text))).collect();
    loop {
        let more: BTreeMap<_, BTreeSet<_>> = found
            .iter()
            .map(|(of, needs)| {
                (
                    of.clone(),
                    needs.iter().flat_map(|below| found[below].iter().chain([below])).cloned().collect(),
                )
            })
            .collect();
        if more == found {
            return found;
        }
        found = more;
    }
}

#[test]
fn a_type_has_a_name_of_its_own_in_its_crate_and_all_that_meets_it() {
    assert_eq!(exported_type("pub(super) struct Table<'a> {"), Some("Table"));
    assert_eq!(exported_type("pub enum State {"), Some("State"));
    assert_eq!(["struct Table;", "pub fn structs()"].map(exported_type), [None, None]);
    let crates = crates();
    assert!(
        crates["cli"].contains("remote/block") && !crates["tracer"].contains("postprocess"),
        "{crates:?}"
    );
    let all = sources();
    // The types of each crate: their names, where they are, and whether they are for other crates too.
    let mut types: BTreeMap<&str, Vec<(&str, &str, bool)>> = BTreeMap::new();
    let mut heads: BTreeMap<&str, String> = BTreeMap::new();
    for (path, code) in &all {
        let Some((of, file)) = path.split_once("/src/") else { continue };
        // The arguments of a verb have its name, as cli/src/verb.rs says.
        if file.contains("tests") || file.starts_with("verb/") || of.starts_with("fixtures") {
            continue;
        }
        let named = code
            .lines()
            .filter_map(|line| Some((exported_type(line)?, path.as_str(), line.starts_with("pub "))));
        // Each library has an error of its own, as libraries in Rust do.
        types.entry(of).or_default().extend(named.filter(|(name, ..)| *name != "Error"));
        heads.insert(path, code.lines().take_while(|line| line.starts_with("//!")).collect());
    }
    assert!(types.values().map(Vec::len).sum::<usize>() > 500);
    let mut found = BTreeSet::new();
    for (of, own) in &types {
        let below = crates[*of].iter().filter_map(|below| types.get(below.as_str()));
        let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, path, _) in own.iter().chain(below.flatten().filter(|(.., for_all)| *for_all)) {
            places.entry(name).or_default().push(path);
        }
        let said =
            |name: &str, files: &[&str]| files.iter().any(|file| heads[file].contains(&format!("::{name}`")));
        found.extend(places.into_iter().filter(|(name, files)| files.len() > 1 && !said(name, files)));
    }
    assert!(
        found.is_empty(),
        "types of one name: give one another name, make it private to its module, or say in the head of one what `crate::Name` is: {found:#?}"
    );
}

/// Columns of a row of a table at most, without the targets of links.
const WIDEST_ROW: usize = 120;

#[test]
fn rows_of_tables_fit_on_a_line() {
    let shown = |row: &str| {
        let mut parts = row.split("](");
        let first = parts.next().unwrap_or_default().to_string();
        let shown =
            parts.fold(first, |shown, part| shown + part.split_once(')').map_or(part, |(_, text)| text));
        shown.chars().filter(|c| !"`[".contains(*c)).count()
    };
    assert_eq!(shown("| `a` | [b](c.md) |"), "| a | b |".len());
    let mut found = vec![];
    for (page, text) in pages() {
        let lines = text.lines().enumerate().filter(|(_, line)| line.starts_with('|'));
        let wide = lines.map(|(number, row)| (number, shown(row))).filter(|(_, width)| *width > WIDEST_ROW);
        found.extend(wide.map(|(number, width)| format!("{page}:{}: {width} columns", number + 1)));
    }
    assert!(found.is_empty(), "say it below the table, in sentences:\n{}", found.join("\n"));
}
