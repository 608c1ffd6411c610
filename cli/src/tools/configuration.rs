//! The tools that the user asks for: madengine's `--additional-context`, as JSON or a Python literal, and its
//! `scripts/common/tools.json`, which says what a tool is where the configuration does not.
//!
//! As madengine's `apply_tools` (2.1.1): an entry's `cmd` replaces the tool's own, its `env_vars` are added over the tool's own; the
//! variables of all tools are in one dictionary, of which the later wins, and `docker_env_vars` over all.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rpd_postprocess::text;
use serde::Deserialize;
use serde_json::Value;

/// Where madengine keeps what its tools are, from the directory of a model or its own.
const DEFINITIONS: [&str; 2] = ["scripts/common/tools.json", "../scripts/common/tools.json"];

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolConfiguration {
    /// The tools, the first of which is the innermost.
    pub(crate) tools: Vec<Tool>,
    /// Variables for the command.
    pub(crate) environment: BTreeMap<String, String>,
    /// Those of them that win over every tool's: `docker_env_vars`.
    pub(crate) overriding: BTreeMap<String, String>,
}

/// One tool.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// What is in front of the program, if anything does.
    pub(crate) command: Option<String>,
    /// Whether the configuration, not the definitions, has that command.
    pub(crate) has_own_command: bool,
    /// Its variables.
    pub(crate) environment: BTreeMap<String, String>,
    /// What runs before the program.
    pub(crate) before: Vec<Script>,
    /// What runs after it.
    pub(crate) after: Vec<Script>,
}

/// A script of bash.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Script {
    pub(crate) path: PathBuf,
    /// As a shell has them.
    #[serde(default, rename = "args")]
    pub(crate) arguments: String,
}

/// The configuration as it is written; what else is in there is not of tools.
#[derive(Deserialize)]
struct Written {
    tools: Vec<Entry>,
    #[serde(default)]
    docker_env_vars: BTreeMap<String, Value>,
}

/// An entry of the configuration, or what the definitions have of a tool.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Entry {
    name: String,
    cmd: Option<String>,
    env_vars: BTreeMap<String, Value>,
    pre_scripts: Vec<Script>,
    post_scripts: Vec<Script>,
}

/// What all tools are.
#[derive(Default, Deserialize)]
pub(crate) struct Definitions {
    tools: BTreeMap<String, Entry>,
}

impl Definitions {
    /// Those of a file, or of madengine's tree around the working directory; none where there is no such file.
    ///
    /// # Errors
    /// When the file cannot be read, or is something else.
    pub(crate) fn read(file: Option<&Path>) -> Result<Definitions> {
        let found = DEFINITIONS.iter().map(Path::new).find(|file| file.is_file());
        let Some(file) = file.or(found) else { return Ok(Definitions::default()) };
        let shown = text::escape_path(file);
        let bytes = fs::read(file).with_context(|| format!("cannot read {shown}"))?;
        serde_json::from_slice(&bytes).with_context(|| format!("{shown} does not say what tools are"))
    }

    fn has(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }
}

impl ToolConfiguration {
    /// What `given` asks for: a file, JSON or a Python literal, or names with commas between them. `is_known` knows tools that the
    /// definitions may lack.
    ///
    /// # Errors
    /// When it cannot be read, or names a tool that nobody knows.
    pub(crate) fn read(
        given: &str,
        definitions: &Definitions,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<ToolConfiguration> {
        let is_there = |name: &str| is_known(name) || definitions.has(name);
        let written = written(given, is_there)?;
        if written.tools.is_empty() {
            bail!("the configuration names no tool; rpd run --help lists those that there are");
        }
        let mut configuration = ToolConfiguration::default();
        for entry in written.tools {
            if !is_there(&entry.name) {
                bail!("there is no tool {:?}{}", entry.name, closest(&entry.name, definitions));
            }
            if configuration.tools.iter().any(|tool| tool.name == entry.name) {
                bail!("the tool {:?} is there twice", entry.name);
            }
            let defined = definitions.tools.get(&entry.name).cloned().unwrap_or_default();
            let mut environment = texts(&entry.name, &defined.env_vars)?;
            environment.extend(texts(&entry.name, &entry.env_vars)?);
            configuration.environment.extend(environment.clone());
            configuration.tools.push(Tool {
                has_own_command: entry.cmd.is_some(),
                command: entry.cmd.or(defined.cmd).filter(|command| !command.trim().is_empty()),
                environment,
                before: if entry.pre_scripts.is_empty() { defined.pre_scripts } else { entry.pre_scripts },
                after: if entry.post_scripts.is_empty() { defined.post_scripts } else { entry.post_scripts },
                name: entry.name,
            });
        }
        configuration.overriding = texts("docker_env_vars", &written.docker_env_vars)?;
        configuration.environment.extend(configuration.overriding.clone());
        Ok(configuration)
    }
}

/// Reads the configuration, in whichever form it is. Names of tools that are there are no file, whatever the directory has.
fn written(given: &str, is_there: impl Fn(&str) -> bool) -> Result<Written> {
    let text = given.trim();
    let names = || text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let of_names = || {
        let tools = names().map(|name| Entry { name: name.to_string(), ..Entry::default() }).collect();
        Ok(Written { tools, docker_env_vars: BTreeMap::new() })
    };
    if names().next().is_some() && names().all(is_there) {
        return of_names();
    }
    let (from, text) = match text.starts_with(['{', '[']) {
        true => ("the configuration".to_string(), text.to_string()),
        // A pipe too, as a shell makes one of `<(command)`.
        false if fs::metadata(given).is_ok_and(|file| !file.is_dir()) => {
            let shown = text::escape(given).into_owned();
            (shown.clone(), fs::read_to_string(given).with_context(|| format!("cannot read {shown}"))?)
        }
        false if text.ends_with(".json") || text.contains('/') => {
            bail!("there is no file {}", text::escape(given));
        }
        false => return of_names(),
    };
    let value: Value = match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(error) => literal(&text).with_context(|| format!("{from} is no JSON ({error})"))?,
    };
    let mut value = match value {
        list @ Value::Array(_) => serde_json::json!({ "tools": list }),
        other => other,
    };
    if value.get("tools").is_some_and(Value::is_object) {
        bail!(
            "{from} says what tools are, not which of them to run: name it with --definitions, and the tools with --tools NAME,NAME"
        );
    }
    for entry in value.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::String(name) = entry {
            *entry = serde_json::json!({ "name": name });
        }
    }
    let wanted = "an object with a list \"tools\", whose entries have a \"name\"";
    serde_json::from_value(value).with_context(|| format!("{from} is not {wanted}"))
}

/// A Python literal as JSON, by Python itself.
fn literal(text: &str) -> Result<Value> {
    const PROGRAM: &str = "import ast, json, sys\njson.dump(ast.literal_eval(sys.stdin.read()), sys.stdout)";
    // What is in the current directory is not a part of Python.
    let mut python = Command::new("python3")
        .args(["-I", "-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("python3, which would read it as a Python literal, cannot be run")?;
    if let Some(mut input) = python.stdin.take() {
        // Where python3 has ended already, its status says so.
        let _ = input.write_all(text.as_bytes());
    }
    let said = python.wait_with_output()?;
    if !said.status.success() {
        bail!("nor is it a Python literal");
    }
    Ok(serde_json::from_slice(&said.stdout)?)
}

/// Variables with their values as Python's `str` has them.
fn texts(of: &str, values: &BTreeMap<String, Value>) -> Result<BTreeMap<String, String>> {
    let text = |(name, value): (&String, &Value)| {
        if name.is_empty() || name.contains(['=', '\0']) {
            bail!("{of}: {name:?} is no name of a variable");
        }
        let value = match value {
            Value::String(text) if text.contains('\0') => bail!("{of}: the value of {name:?} has a NUL byte"),
            Value::String(text) => text.clone(),
            Value::Bool(true) => "True".to_string(),
            Value::Bool(false) => "False".to_string(),
            Value::Null => "None".to_string(),
            Value::Number(number) => number.to_string(),
            Value::Array(_) | Value::Object(_) => bail!("{of}: the value of {name:?} is no text"),
        };
        Ok((name.clone(), value))
    };
    values.iter().map(text).collect()
}

fn closest(name: &str, definitions: &Definitions) -> String {
    let defined = definitions.tools.keys().map(String::as_str);
    let mut known: Vec<&str> = super::ours::names().collect();
    known.extend(defined);
    format!("{}; rpd run --help lists those that rpd knows", rpd_settings::tip(name, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions() -> Definitions {
        serde_json::from_str(
            r#"{"tools": {
                "a": {"cmd": "run_a", "env_vars": {"X": "1", "Y": "2"}, "pre_scripts": [{"path": "before.sh", "args": "a b"}]},
                "b": {"cmd": "", "env_vars": {"X": "3"}, "post_scripts": [{"path": "after.sh"}]}}}"#,
        )
        .unwrap()
    }

    fn read(given: &str) -> Result<ToolConfiguration> {
        ToolConfiguration::read(given, &definitions(), |name| name == "known")
    }

    #[test]
    fn variables_of_later_tools_win_and_dockers_over_all() {
        let given = r#"{"tools": [{"name": "a", "env_vars": {"Y": "own", "N": 5}}, {"name": "b"}],
            "docker_env_vars": {"Y": "docker", "T": true}, "guest_os": "UBUNTU"}"#;
        let read = read(given).unwrap();
        let variables: Vec<_> =
            read.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(variables, ["N=5", "T=True", "X=3", "Y=docker"]);
        let a = &read.tools[0];
        assert_eq!((a.command.as_deref(), a.has_own_command), (Some("run_a"), false));
        assert_eq!(a.environment["Y"], "own");
        assert_eq!((a.before[0].path.as_path(), &*a.before[0].arguments), (Path::new("before.sh"), "a b"));
        assert_eq!((read.tools[1].command.as_deref(), read.tools[1].after.len()), (None, 1));
    }

    #[test]
    fn it_is_json_a_python_literal_or_names() {
        let names = |given: &str| -> Vec<String> {
            read(given).unwrap().tools.into_iter().map(|tool| tool.name).collect()
        };
        assert_eq!(names("a, known"), ["a", "known"]);
        assert_eq!(names(r#"[{"name": "b"}, "a"]"#), ["b", "a"]);
        assert_eq!(names("{'tools': [{'name': 'a', 'cmd': None}, {'name': 'b'}], 'x': True}"), ["a", "b"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (given, why) in [
            ("nothing", "there is no tool \"nothing\""),
            ("a,a", "is there twice"),
            ("", "names no tool"),
            ("{\"tools\": [{\"name\": 5}]}", "whose entries have a \"name\""),
            ("{\"tools\": [{\"cmd\": \"x\"}]}", "there is no tool \"\""),
            ("{\"tools\": {\"rpd\": {\"cmd\": \"x\"}}}", "name it with --definitions"),
            ("{'tools': ", "nor is it a Python literal"),
            ("no/tools.json", "there is no file no/tools.json"),
            (r#"[{"name": "a", "env_vars": {"A=B": "1"}}]"#, "is no name of a variable"),
            (r#"[{"name": "a", "env_vars": {"A": [1]}}]"#, "is no text"),
        ] {
            let said = format!("{:#}", read(given).unwrap_err());
            assert!(said.contains(why), "{given}: {said}");
        }
    }
}
