//! What `rpd --version` says that the command was built from: RPD_COMMIT, RPD_TARGET and RPD_PROFILE.
//!
//! The commit is the one that was checked out when the sources of the command were last compiled: a later commit that leaves them as they
//! are compiles nothing. No date, so that two builds of a commit are equal.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the command is built from beside its own crates: what all crates share, and what it includes of others.
const SHARED: [&str; 4] =
    ["Cargo.toml", "Cargo.lock", "python/rpd/handler.py", "tracer/src/sources/hip/description/hip_api.tsv"];
/// `git archive` puts the commit into it.
const ARCHIVED: &str = "cli/COMMIT";
/// Digits of a commit that are shown.
const DIGITS: usize = 12;

fn main() {
    let root = Path::new("..");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    let mut sources: BTreeSet<String> = SHARED.map(String::from).into();
    let mut crates = vec!["cli".to_string()];
    while let Some(folder) = crates.pop() {
        let needed = fs::read_to_string(root.join(&folder).join("Cargo.toml")).unwrap_or_default();
        if sources.insert(folder) {
            crates.extend(own_crates(&needed, &manifest));
        }
    }
    let sources: Vec<PathBuf> = sources.iter().flat_map(|source| parts(root, source)).collect();
    for source in &sources {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
    }
    let commit = checked_out(root, &sources).or_else(|| archived(&root.join(ARCHIVED))).unwrap_or_default();
    println!("cargo:rustc-env=RPD_COMMIT={commit}");
    println!("cargo:rustc-env=RPD_TARGET={}", env::var("TARGET").unwrap_or_default());
    println!("cargo:rustc-env=RPD_PROFILE={}", env::var("PROFILE").unwrap_or_default());
}

/// Folders of the workspace's crates among the dependencies of a manifest.
fn own_crates(needed: &str, workspace: &str) -> Vec<String> {
    let dependencies = needed.split("[dependencies]").nth(1).unwrap_or_default();
    let dependencies = dependencies.lines().take_while(|line| !line.starts_with("[dev-dependencies]"));
    let names = dependencies.filter_map(|line| line.split(['.', ' ', '=']).next());
    let names = names.filter(|name| name.starts_with("rpd-"));
    let folder = |name: &str| {
        let declared = workspace.lines().find(|line| line.starts_with(&format!("{name} = ")))?;
        Some(declared.split("path = \"").nth(1)?.split('"').next()?.to_string())
    };
    names.filter_map(folder).collect()
}

/// What of a source is compiled into the command, from the root: tests and benches are not.
fn parts(root: &Path, source: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root.join(source)) else { return vec![source.into()] };
    let parts = entries.flatten().map(|entry| Path::new(source).join(entry.file_name()));
    parts.filter(|part| !part.ends_with("tests") && !part.ends_with("benches")).collect()
}

/// The commit of the checkout, with a `+` where the sources differ from it; nothing where this is none.
fn checked_out(root: &Path, sources: &[PathBuf]) -> Option<String> {
    // Sources that were unpacked inside of somebody's own repository are not in it.
    if !root.join(".git").exists() {
        return None;
    }
    let git = |arguments: &[&str], files: &[PathBuf]| {
        let mut git = Command::new("git");
        git.current_dir(root).env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").args(arguments).args(files);
        let output = git.output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    let commit = git(&["rev-parse", "HEAD"], &[])?;
    let changes = git(&["--no-optional-locks", "status", "--porcelain", "--"], sources)?;
    let mark = if changes.is_empty() { "" } else { "+" };
    Some(format!("{}{mark}", shortened(commit.trim())))
}

/// The commit of an archive.
fn archived(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let commit = text.trim();
    (commit.len() >= DIGITS && commit.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .then(|| shortened(commit).to_string())
}

fn shortened(commit: &str) -> &str {
    commit.get(..DIGITS).unwrap_or(commit)
}
