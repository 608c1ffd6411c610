//! A first word that is no verb: what was probably meant. A value that cannot be: why not, in one line.

use std::env;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::num::ParseIntError;
use std::path::Path;

use clap::Command;
use clap::error::{ContextKind, Error, ErrorKind};
use rpd_postprocess::text;

use super::region::OPTIONS;
use super::replacement;
use crate::record::executable;

/// What to say of a value that cannot be, and of an unknown verb that is the name of a trace or of a program. Nothing where clap's own words serve: its tip
/// would be whichever verb has similar letters. `why_no_part`: why a verb that reads a trace takes no part of it.
pub(crate) fn explained(
    error: &Error,
    cli: &Command,
    why_no_part: impl Fn(&str) -> Option<&'static str>,
) -> Option<String> {
    if error.kind() == ErrorKind::ValueValidation {
        let context = |kind| error.get(kind).map(|value| text::escape(&value.to_string()).into_owned());
        let (option, value) = (context(ContextKind::InvalidArg)?, context(ContextKind::InvalidValue)?);
        let why = error.source()?;
        let why = if why.is::<ParseIntError>() { "must be a whole number".into() } else { why.to_string() };
        return Some(format!("{option}: {value}: {}", text::escape(&why)));
    }
    if error.kind() == ErrorKind::UnknownArgument {
        let option = error.get(ContextKind::InvalidArg)?.to_string();
        let words: Vec<String> = env::args().skip(1).take(2).collect();
        let verb = words.iter().find(|word| *word != "export")?;
        let why = OPTIONS.contains(&&*option).then(|| why_no_part(verb)).flatten()?;
        return Some(format!("{option} does not serve here: {why}"));
    }
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let mut words = env::args_os().skip(1);
    let word = words.next()?;
    let rest = words.next();
    let name = text::escape_path(&word);
    if is_trace(&word) {
        let verb = rest.as_deref().and_then(OsStr::to_str).filter(|rest| cli.find_subcommand(rest).is_some());
        return Some(match verb {
            Some(verb) => format!("the verb comes before the trace: rpd {verb} {name}"),
            None => format!(
                "{name} is no verb; to open a trace: rpd info {name} (what it holds), rpd top {name} (where GPU time went)"
            ),
        });
    }
    let is_path = word.as_encoded_bytes().contains(&b'/');
    let has_tip = error.get(ContextKind::SuggestedSubcommand).is_some();
    if !is_path && has_tip {
        return None;
    }
    match executable::resolve(&word, env::var_os("PATH").as_deref()) {
        Ok(_) => {
            let more = if rest.is_some() { " ..." } else { "" };
            Some(format!("{name} is a program: to record it: rpd record -- {name}{more}"))
        }
        Err(_) if is_path => Some(format!(
            "{name} is neither a verb nor a program that can be run; rpd record -- COMMAND records one, rpd --help lists the verbs"
        )),
        Err(_) => None,
    }
}

/// What to say where the value of an option that takes it with `=` is behind the option, and so became the command. `words` are
/// those of the command line; `is_runnable`: there is such a program.
pub(crate) fn value_without_equals(words: &[OsString], command: &OsStr, is_runnable: bool) -> Option<String> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let place = words[..end].windows(2).position(|two| {
        two[1] == command && ["--alternate", "--save-code"].iter().any(|option| two[0] == *option)
    })?;
    let (option, behind) = (words[place].to_string_lossy(), words.get(place + 2)?);
    let is_value = match &*option {
        "--alternate" => {
            command.to_str().is_some_and(|value| replacement::alternate(value).is_ok())
                && (behind == "--" || !is_runnable)
        }
        _ => !is_runnable,
    };
    let value = text::escape_path(command);
    is_value
        .then(|| format!("{value} would be the command: {option} takes its value with =: {option}={value}"))
}

fn is_trace(word: &OsStr) -> bool {
    let file = Path::new(word);
    file.extension() == Some(OsStr::new("rpd")) || (file.is_file() && rpd_schema::identify(file).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_distinguished_from_a_command() {
        let explanation = |line: &str, command: &str, is_runnable: bool| {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            value_without_equals(&words, OsStr::new(command), is_runnable)
        };
        let random = "random would be the command: --alternate takes its value with =: --alternate=random";
        assert_eq!(
            explanation("rpd record --alternate random -- app", "random", true).as_deref(),
            Some(random)
        );
        assert_eq!(
            explanation("rpd record --alternate random app", "random", false).as_deref(),
            Some(random)
        );
        assert_eq!(
            explanation("rpd record --alternate random app", "random", true),
            None,
            "a program of that name"
        );
        assert_eq!(
            explanation("rpd record --alternate random", "random", false),
            None,
            "no command behind it"
        );
        assert_eq!(explanation("rpd record --alternate -- random app", "random", false), None);
        assert_eq!(explanation("rpd record --alternate app x", "app", false), None, "no value");
        assert_eq!(explanation("rpd record -o x app --save-code app x", "x", false), None);
        assert!(explanation("rpd record --save-code code/ -- app", "code/", false).is_some());
        assert_eq!(explanation("rpd record --save-code make -- all", "make", true), None);
    }
}
