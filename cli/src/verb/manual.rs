//! `rpd manual`: the manual pages and completions of both commands, from what `--help` says. `make install` runs this.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

/// Write manual pages and completions for bash, zsh and fish
#[derive(Args)]
#[command(
    hide = true,
    after_help = "\
The files of rpd and rpdRemote are written to man/man1, bash-completion/completions, zsh/site-functions and
fish/vendor_completions.d below DIR.

Example:
  rpd manual /usr/local/share"
)]
pub(crate) struct Manual {
    /// Where they belong: PREFIX/share
    #[arg(value_name = "DIR")]
    share: PathBuf,
}

/// Where each shell looks for completions of a command, below the directory `share`.
fn completions(share: &Path, name: &str) -> [(Shell, PathBuf); 3] {
    [
        (Shell::Bash, share.join("bash-completion/completions").join(name)),
        (Shell::Zsh, share.join("zsh/site-functions").join(format!("_{name}"))),
        (Shell::Fish, share.join("fish/vendor_completions.d").join(format!("{name}.fish"))),
    ]
}

impl Manual {
    /// Writes the files, over those that are there.
    ///
    /// # Errors
    /// When one cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        for (name, command) in [("rpd", super::command()), ("rpdRemote", rpd_remote_command::command())] {
            let mut shown = without_hidden(name, &command);
            for (shell, file) in completions(&self.share, name) {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut shown, name, &mut script);
                write(&file, &script)?;
            }
            let mut command = command.disable_help_subcommand(true);
            command.build();
            write_pages(&command, &self.share.join("man/man1"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Shells would offer the verbs that are for rpd itself.
fn without_hidden(name: &'static str, command: &Command) -> Command {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    Command::new(name)
        .version(env!("CARGO_PKG_VERSION"))
        .args(command.get_arguments().cloned())
        .subcommands(shown)
}

/// The page of the command, and those of its verbs: rpd-top.1, rpd-export-csv.1.
fn write_pages(command: &Command, folder: &Path) -> Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write_pages(verb, folder)?;
    }
    let page = Man::new(command.clone()).source(concat!("rpd ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page_of(&page, command, &mut text).context("cannot write a manual page")?;
    write(&folder.join(page.get_filename()), &text)
}

fn page_of(page: &Man, command: &Command, out: &mut Vec<u8>) -> io::Result<()> {
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    if command.get_subcommands().any(|verb| !verb.is_hide_set()) {
        page.render_subcommands_section(out)?;
    }
    let help = command.get_after_long_help().or_else(|| command.get_after_help());
    sections(&help.map(ToString::to_string).unwrap_or_default()).to_writer(out)
}

/// What is below the options in --help. `Columns:` and its like become headings, as does `Exit status:` in front of a sentence;
/// lines that begin with blanks stay as they are.
fn sections(help: &str) -> Roff {
    let mut page = Roff::new();
    let (mut is_headed, mut is_verbatim) = (false, false);
    let mut after_blank = true;
    for line in help.lines() {
        if line.trim().is_empty() {
            after_blank = true;
            continue;
        }
        let (heading, line) = match line.split_once(':') {
            Some((heading, rest)) if rest.is_empty() && !line.starts_with(' ') => (Some(heading), ""),
            Some(("Exit status", rest)) => (Some("Exit status"), rest.trim_start()),
            _ if !is_headed => (Some("Notes"), line),
            _ => (None, line),
        };
        let verbatim = line.starts_with(' ');
        if is_verbatim && !verbatim {
            page.control("fi", []);
        }
        if let Some(heading) = heading {
            page.control("SH", [heading.to_uppercase().as_str()]);
        } else if after_blank {
            page.control("PP", []);
        }
        if verbatim && !is_verbatim {
            page.control("nf", []);
        }
        if !line.is_empty() {
            page.text([roman(line)]);
        }
        (is_headed, is_verbatim, after_blank) = (true, verbatim, false);
    }
    if is_verbatim {
        page.control("fi", []);
    }
    page
}

fn write(file: &Path, content: &[u8]) -> Result<()> {
    let shown = || format!("cannot write {}", file.display());
    fs::create_dir_all(file.parent().unwrap_or(Path::new("."))).with_context(shown)?;
    fs::File::create(file).and_then(|mut file| file.write_all(content)).with_context(shown)
}
