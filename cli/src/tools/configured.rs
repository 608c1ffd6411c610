//! Tools as they are configured: their commands in front of the program, their scripts before and after it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rpd_postprocess::text;

use super::configuration::{Script, ToolConfiguration};

/// How long a script may run, as madengine has it.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often it is looked whether a script has ended.
const LOOK: Duration = Duration::from_millis(20);

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
            bail!("there is no script {}", text::escape(&script.path.to_string_lossy()));
        };
        script.path = std::path::absolute(place)?;
        Ok(script)
    };
    scripts.into_iter().map(place).collect()
}

/// Runs a script to its end.
///
/// # Errors
/// When it cannot be run, fails, or takes longer than it may.
pub(crate) fn run(script: &Script, environment: &[(String, String)]) -> Result<()> {
    let shown = text::escape(&script.path.to_string_lossy()).into_owned();
    let line = format!("exec bash \"$0\" {}", script.arguments);
    let variables = environment.iter().map(|(name, value)| (name, value));
    let mut shell = Command::new("bash")
        .args(["-c", &line])
        .arg(&script.path)
        .envs(variables)
        // What is written to rpd is the program's to read.
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {shown}"))?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = shell.try_wait().with_context(|| format!("cannot wait for {shown}"))? {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            // It has ended meanwhile, or ends now.
            let _ = shell.kill();
            shell.wait().with_context(|| format!("cannot wait for {shown}"))?;
            bail!("{shown} has not ended within {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(LOOK);
    };
    if !status.success() {
        bail!("{shown} failed: {status}");
    }
    Ok(())
}

/// Lists of places, to which a tool adds its own.
const LISTS: [&str; 2] = ["LD_LIBRARY_PATH", "LD_PRELOAD"];

/// Variables for the command and the scripts. Where madengine puts a list of its own in the place of the one that is there, and the
/// program loses its libraries, ours is in front of it.
pub(crate) fn variables(configuration: &ToolConfiguration) -> Vec<(String, String)> {
    let value = |(name, value): (&String, &String)| {
        let there = env::var(name).ok().filter(|there| LISTS.contains(&name.as_str()) && !there.is_empty());
        (name.clone(), there.map_or_else(|| value.clone(), |there| format!("{value}:{there}")))
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
