//! Opening the page in the browser of whoever runs the command.
//!
//! Every user of a machine can see a command line, so the browser is not given the address: it opens a file that only its owner
//! may read, and that leads there.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempPath;

/// What opens files in the user's browser.
const OPENERS: [&str; 3] = ["xdg-open", "open", "wslview"];

/// A browser was asked to open the page; the file that leads there is gone when this is.
pub struct Opened {
    _file: TempPath,
}

fn found(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|place| place.join(program)).find(|file| file.is_file())
}

/// Whether a browser that is started here can be seen by whoever starts it.
fn has_screen() -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("SSH_CONNECTION") && (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") || cfg!(target_os = "macos"))
}

/// Opens `url`. None where there is no browser, or no screen.
pub fn open(url: &str) -> Option<Opened> {
    let opener = OPENERS.into_iter().find_map(found).filter(|_| has_screen())?;
    let private = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|directory| directory.is_dir());
    let file = leading_file(url, private.as_deref().unwrap_or(&env::temp_dir())).ok()?;
    let mut browser = Command::new(opener);
    browser.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut browser = browser.spawn().ok()?;
    // It ends when a browser has the file; who asks for its status is a thread of no other use.
    std::thread::spawn(move || browser.wait());
    Some(Opened { _file: file })
}

/// A file in `directory` that only its owner may read and that leads to `url`.
pub(super) fn leading_file(url: &str, directory: &Path) -> std::io::Result<TempPath> {
    // Its rights are 0600.
    let mut file = tempfile::Builder::new().prefix("rpd-view-").suffix(".html").tempfile_in(directory)?;
    writeln!(
        file,
        "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer><title>rpd view</title>\
         <meta http-equiv=refresh content=\"0;url={url}\"><a href=\"{url}\">rpd view</a>"
    )?;
    Ok(file.into_temp_path())
}
