//! `rpd manual`: manual pages that render, completions that shells take. `rpd --version`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{Dir, installed, ran};

/// What both commands have, in a directory.
fn written() -> Dir {
    let dir = Dir::new();
    dir.run(&["manual", "share"]).expect(0);
    dir
}

fn read(dir: &Dir, file: &str) -> String {
    fs::read_to_string(dir.path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn every_verb_has_a_page_and_no_other() {
    let dir = written();
    let mut pages: BTreeSet<String> = BTreeSet::from(["rpd.1".into(), "rpdRemote.1".into()]);
    for verb in dir.verbs() {
        let name = verb.words.join("-");
        if let Some(below) = name.strip_prefix("remote-") {
            pages.insert(format!("rpdRemote-{below}.1"));
        }
        pages.insert(format!("rpd-{name}.1"));
    }
    assert_eq!(names(&dir.path("share/man/man1")), pages);
}

#[test]
fn pages_render_without_a_warning_and_say_what_help_says() {
    if !installed("groff") {
        return;
    }
    let dir = written();
    for page in names(&dir.path("share/man/man1")) {
        let file = format!("share/man/man1/{page}");
        let rendered = ran(dir.command("groff").args(["-man", "-Tascii", "-P-cbou", "-ww", &file]));
        assert_eq!(rendered.expect(0).stderr, "", "{rendered}");
        let text = &rendered.stdout;
        assert!(
            text.contains("NAME") && text.contains("SYNOPSIS") && text.contains("DESCRIPTION"),
            "{rendered}"
        );
    }
    let top = ran(dir.command("groff").args(["-man", "-Tascii", "-P-cbou", "share/man/man1/rpd-top.1"]));
    let help = dir.run(&["top", "--help"]);
    // Lines that are aligned stay so, in the order of --help, which breaks those that are too long for it.
    let mut rest = top.stdout.as_str();
    let below = help.stdout.lines().skip_while(|line| *line != "Columns:");
    let items = below.filter(|line| line.starts_with("  ") && line.trim_start().contains("  "));
    for line in items {
        let begin: String = line.chars().take(40).collect();
        let at = rest.find(begin.trim_end()).unwrap_or_else(|| panic!("{line:?} is not in {top}"));
        rest = &rest[at..];
    }
    assert!(rest.contains("rpd top --csv trace.rpd > top.csv"), "{top}");
}

/// What bash completes behind these words.
fn completed(dir: &Dir, words: &[&str]) -> Vec<String> {
    let command = words[0];
    let script = format!(
        "source share/bash-completion/completions/{command}; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
         _{command} {command} \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"; complete -p {command} >&2"
    );
    let ran = ran(dir.command("bash").args(["--norc", "-c", &script, "bash"]).args(words));
    assert!(ran.expect(0).stderr.contains("-o default"), "files are completed where nothing else is: {ran}");
    ran.stdout.lines().filter(|line| !line.is_empty()).map(String::from).collect()
}

#[test]
fn bash_completes_verbs_options_and_values() {
    let dir = written();
    let offered: BTreeSet<String> = completed(&dir, &["rpd", ""])
        .into_iter()
        .filter(|word| !word.starts_with('-') && word != "help")
        .collect();
    let verbs = dir.verbs();
    let verbs: BTreeSet<String> =
        verbs.into_iter().filter(|verb| verb.words.len() == 1).map(|verb| verb.words.concat()).collect();
    assert_eq!(offered, verbs, "hidden verbs are for rpd itself");
    assert_eq!(completed(&dir, &["rpd", "over"]), ["overlap"]);
    assert_eq!(completed(&dir, &["rpd", "top", "--perc"]), ["--percentiles"]);
    let by = completed(&dir, &["rpd", "top", "--by", "k"]);
    assert_eq!(by, ["kernel"]);
    assert!(completed(&dir, &["rpd", "export", "per"]).contains(&"perfetto".to_string()));
    assert_eq!(completed(&dir, &["rpdRemote", "sta"]), ["start", "status"]);
    assert_eq!(completed(&dir, &["rpd", "remote", "flu"]), ["flush"]);
    // The name of a file is bash's own business.
    assert_eq!(completed(&dir, &["rpd", "top", "tra"]), Vec::<String>::new());
}

#[test]
fn scripts_of_zsh_and_fish_are_sound() {
    let dir = written();
    for (shell, file) in [("zsh", "zsh/site-functions/_rpd"), ("fish", "fish/vendor_completions.d/rpd.fish")]
    {
        let script = read(&dir, &format!("share/{file}"));
        assert!(script.contains("overlap") && !script.contains("disassembler"), "{file}");
        if installed(shell) {
            let checked = ran(dir.command(shell).args(["-n", &format!("share/{file}")]));
            assert_eq!(checked.expect(0).stderr, "", "{checked}");
        }
    }
    if installed("fish") {
        let script = "source share/fish/vendor_completions.d/rpd.fish; complete -C 'rpd over'; complete -C 'rpd top --perc'";
        let completed = ran(dir.command("fish").args(["--no-config", "-c", script]));
        let words: Vec<&str> =
            completed.expect(0).stdout.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(words, ["overlap", "--percentiles"], "{completed}");
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let dir = Dir::new();
    dir.write("share", "a file");
    let refused = dir.run(&["manual", "share"]);
    assert!(refused.expect(1).stderr.contains("cannot write share/"), "{refused}");
}

#[test]
fn the_version_says_what_it_was_built_from() {
    let dir = Dir::new();
    let version = dir.run(&["--version"]);
    let lines: Vec<&str> = version.expect(0).stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{version}");
    assert_eq!(lines[0], format!("rpd {}", env!("CARGO_PKG_VERSION")));
    let commit = lines[1].strip_prefix("commit ").unwrap_or_else(|| panic!("{version}"));
    let digits = commit.strip_suffix(", with changes").unwrap_or(commit);
    assert!(
        digits.len() == 12 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
            || commit.starts_with("not known"),
        "{version}"
    );
    assert!(lines[2].contains("-linux-"), "{version}");
    assert_eq!(lines[3], format!("SQLite {}", rusqlite::version()));
    assert_eq!(dir.run(&["-V"]).expect(0).stdout.trim(), lines[0]);
}

/// What a build of a copy of the sources says, by the same build script.
#[test]
fn the_commit_is_known_in_a_checkout_and_in_an_archive() {
    let dir = Dir::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
    fs::create_dir_all(dir.path("tree/cli/src")).unwrap();
    fs::create_dir_all(dir.path("tree/cli/tests")).unwrap();
    ran(dir.command("rustc").args(["--edition", "2024", "-o", "build"]).arg(&script).env("HOME", home()))
        .expect(0);
    for (file, content) in [
        ("Cargo.toml", "[workspace.dependencies]\nrpd-sql = { path = \"sql\" }\n"),
        ("cli/Cargo.toml", "[dependencies]\nrpd-sql.workspace = true\n"),
        ("cli/COMMIT", "$Format:%H$\n"),
        ("cli/src/main.rs", ""),
        ("cli/tests/a.rs", ""),
        (".gitattributes", "cli/COMMIT export-subst\n"),
    ] {
        dir.write(&format!("tree/{file}"), content);
    }
    fs::create_dir(dir.path("tree/sql")).unwrap();
    dir.write("tree/sql/lib.sql", "");
    let says = |tree: &str| {
        let mut build = dir.command(dir.path("build"));
        let said =
            ran(build.current_dir(dir.path(&format!("{tree}/cli"))).env("TARGET", "t").env("PROFILE", "p"));
        let line =
            said.expect(0).stdout.lines().find_map(|line| line.strip_prefix("cargo:rustc-env=RPD_COMMIT="));
        line.unwrap_or_else(|| panic!("{said}")).to_string()
    };
    let git = |arguments: &[&str]| {
        let mut git: Command = dir.command("git");
        git.current_dir(dir.path("tree")).args(["-c", "user.name=n", "-c", "user.email=e"]).args(arguments);
        ran(&mut git).expect(0).stdout.trim().to_string()
    };
    assert_eq!(says("tree"), "", "no checkout, no archive");
    git(&["init", "-q"]);
    assert_eq!(says("tree"), "", "no commit yet");
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    let commit = &git(&["rev-parse", "HEAD"])[..12];
    assert_eq!(says("tree"), commit);
    dir.write("tree/cli/tests/a.rs", "// Not compiled into the command.");
    assert_eq!(says("tree"), commit);
    dir.write("tree/sql/lib.sql", "select 1");
    assert_eq!(says("tree"), format!("{commit}+"), "a crate that the command needs");
    dir.write("tree/sql/lib.sql", "");
    dir.write("tree/cli/src/new.rs", "");
    assert_eq!(says("tree"), format!("{commit}+"), "a file that git does not know");
    let archive = dir.path("archive.tar").display().to_string();
    git(&["archive", "--prefix=unpacked/", "-o", &archive, "HEAD"]);
    ran(dir.command("tar").args(["xf", &archive])).expect(0);
    assert_eq!(says("unpacked"), commit);
}

/// Where rustup has the compiler.
fn home() -> std::ffi::OsString {
    std::env::var_os("HOME").unwrap_or_default()
}
