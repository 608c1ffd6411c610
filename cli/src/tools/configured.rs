//! Tools as they are configured: their commands in front of the program, their scripts before and after it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, Result, anyhow, bail};
use rpd_postprocess::text;

use super::configuration::{Script, ToolConfiguration};
use crate::record::executable;
use crate::system::descendants;
use crate::system::signals::{self, Signals};

/// How long a script may run, as madengine has it.
const PATIENCE: Duration = Duration::from_secs(600);

/// Why a script did not do its work.
#[derive(Debug)]
pub(crate) enum ScriptFailure {
    /// By this signal somebody ended the run.
    Interrupted(i32),
    /// Anything else.
    Other(anyhow::Error),
}

/// What is run: a shell, in which the commands of the tools are in front of the program, which keeps its arguments to the byte.
pub(crate) fn command(configuration: &ToolConfiguration, command: &[OsString]) -> Vec<OsString> {
    let mut words = String::new();
    let mut seen: Vec<&str> = Vec::new();
    // The first tool is the innermost; one that is there already is not put there again.
    for tool in configuration.tools.iter().filter_map(|tool| tool.command.as_deref()) {
        if !seen.contains(&tool) {
            seen.push(tool);
            words.insert_str(0, &format!("{} ", tool.trim()));
        }
    }
    if words.is_empty() {
        return command.to_vec();
    }
    words.push_str("\"$@\"");
    let shell = ["bash", "-c", words.as_str(), "bash"].map(OsString::from);
    shell.into_iter().chain(command.iter().cloned()).collect()
}

/// The scripts before the program, those of later tools first.
pub(crate) fn before(configuration: &ToolConfiguration) -> Vec<Script> {
    configuration.tools.iter().rev().flat_map(|tool| tool.before.iter().cloned()).collect()
}

/// The scripts after it.
pub(crate) fn after(configuration: &ToolConfiguration) -> Vec<Script> {
    configuration.tools.iter().flat_map(|tool| tool.after.iter().cloned()).collect()
}

/// Where the scripts are: as their paths say, or as they say from the directory above, where madengine's tree is.
///
/// # Errors
/// When one is not there.
pub(crate) fn found(scripts: Vec<Script>) -> Result<Vec<Script>> {
    let place = |mut script: Script| {
        let places: [PathBuf; 2] = [script.path.clone(), Path::new("..").join(&script.path)];
        let Some(place) = places.into_iter().find(|place| place.is_file()) else {
            bail!("there is no script {}", text::escape_path(&script.path));
        };
        script.path = std::path::absolute(place)?;
        Ok(script)
    };
    scripts.into_iter().map(place).collect()
}

/// Runs a script to its end. It gets the signals that come meanwhile, with all that it has started.
///
/// # Errors
/// When it cannot be run, fails, or takes longer than it may; when a signal came that asks programs to end.
pub(crate) fn run(script: &Script, environment: &[(String, OsString)]) -> Result<(), ScriptFailure> {
    let shown = text::escape_path(&script.path);
    let line = format!("exec bash \"$0\" {}", script.arguments);
    let mut shell = Command::new("bash");
    shell.args(["-c", &line]).arg(&script.path);
    // What is written to rpd is the program's to read.
    shell.envs(environment.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
    let mut asked_to_end = None;
    let mut run = || -> Result<_> {
        let signals = Signals::take(None).context("cannot take signals")?;
        let mut shell = signals.spawn(&mut shell).with_context(|| format!("cannot run {shown}"))?;
        let cannot_wait = || format!("cannot wait for {shown}");
        let pid = shell.id();
        let waited = signals.wait(&shell, Some(PATIENCE), |signal| descendants::reach(pid, signal));
        let waited = waited.with_context(cannot_wait)?;
        asked_to_end = waited.asked_to_end;
        if !waited.is_ended {
            for process in descendants::of(pid) {
                signals::send(process.pid, libc::SIGKILL);
            }
        }
        let status = shell.wait().with_context(cannot_wait)?;
        if !waited.is_ended {
            bail!("{shown} has not ended within {} s", PATIENCE.as_secs());
        }
        Ok(status)
    };
    let ended = run();
    if let Some(signal) = asked_to_end {
        return Err(ScriptFailure::Interrupted(signal));
    }
    match ended.map_err(ScriptFailure::Other)? {
        status if status.success() => Ok(()),
        status => Err(ScriptFailure::Other(anyhow!("{shown} failed: {status}"))),
    }
}

/// Passes a signal on to the program that runs somewhere below `shell`. While no process there is it, before its start or where a tool
/// changes its arguments, all of them get the signal.
pub(crate) fn pass_on(command: &[OsString], shell: u32, signal: i32) {
    let Some((name, arguments)) = command.split_first() else { return };
    let file = executable::resolve(name, env::var_os("PATH").as_deref());
    let interpreter = file.map(|file| executable::interpreter_words(&file)).unwrap_or_default();
    // Who looks a program up may put its whole path there, and so does the kernel with a script's.
    let is_path_of = |word: &[u8], name: &[u8]| {
        Path::new(OsStr::from_bytes(word)).ends_with(Path::new(OsStr::from_bytes(name)))
    };
    let is_program = |pid: u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> =
            words.strip_suffix(&[0]).unwrap_or_default().split(|byte| *byte == 0).collect();
        let Some((before, own)) = words.len().checked_sub(command.len()).map(|before| words.split_at(before))
        else {
            return false;
        };
        let Some(skipped) = interpreter.len().checked_sub(before.len()) else { return false };
        let is_interpreter =
            before.iter().zip(&interpreter[skipped..]).all(|(word, name)| is_path_of(word, name));
        let has_arguments =
            own.iter().skip(1).zip(arguments).all(|(word, argument)| *word == argument.as_bytes());
        is_interpreter && has_arguments && own.first().is_some_and(|word| is_path_of(word, name.as_bytes()))
    };
    match descendants::of(shell).into_iter().find(|process| is_program(process.pid)) {
        Some(program) => signals::send(program.pid, signal),
        None => descendants::reach(shell, signal),
    }
}

/// Lists of places, to which a tool adds its own.
const LISTS: [&str; 2] = ["LD_LIBRARY_PATH", "LD_PRELOAD"];

/// Variables for the command and the scripts. Where madengine puts a list of its own in the place of the one that is there, and the
/// program loses its libraries, ours is in front of it.
pub(crate) fn variables(configuration: &ToolConfiguration) -> Vec<(String, OsString)> {
    let value = |(name, value): (&String, &String)| {
        let mut value = OsString::from(value);
        let there = env::var_os(name).filter(|there| LISTS.contains(&name.as_str()) && !there.is_empty());
        if let Some(there) = there {
            value.push(":");
            value.push(there);
        }
        (name.clone(), value)
    };
    configuration.environment.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::super::configuration::Tool;
    use super::*;

    fn tool(command: &str) -> Tool {
        Tool { command: Some(command.to_string()), ..Tool::default() }
    }

    #[test]
    fn the_first_tool_is_the_innermost() {
        let configuration = ToolConfiguration {
            tools: vec![tool("echo A &&"), tool("echo B && "), tool("echo A &&")],
            ..ToolConfiguration::default()
        };
        let arguments = ["python3", "-c", "print(\"a  b\", '$X')", "--", "x y"].map(OsString::from);
        let made = command(&configuration, &arguments);
        assert_eq!(made[..4], ["bash", "-c", "echo B && echo A && \"$@\"", "bash"]);
        assert_eq!(made[4..], arguments);
        assert_eq!(command(&ToolConfiguration::default(), &arguments), arguments);
    }
}
