//! A first word that is no verb: what was probably meant. A value that cannot be: why not, in one line.

use std::env;
use std::error::Error as _;
use std::ffi::OsStr;
use std::path::Path;

use clap::Command;
use clap::error::{ContextKind, Error, ErrorKind};
use rpd_postprocess::text;

use crate::record::executable;

/// What to say of a value that cannot be, and of an unknown verb that is the name of a trace or of a program. Nothing where clap's own words serve: its tip
/// would be whichever verb has similar letters.
pub(crate) fn explained(error: &Error, cli: &Command) -> Option<String> {
    if error.kind() == ErrorKind::ValueValidation {
        let context = |kind| error.get(kind).map(|value| text::escape(&value.to_string()).into_owned());
        let (option, value) = (context(ContextKind::InvalidArg)?, context(ContextKind::InvalidValue)?);
        return Some(format!("{option}: {value}: {}", text::escape(&error.source()?.to_string())));
    }
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let mut words = env::args_os().skip(1);
    let word = words.next()?;
    let rest = words.next();
    let name = text::escape(&word.to_string_lossy()).into_owned();
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

fn is_trace(word: &OsStr) -> bool {
    let file = Path::new(word);
    file.extension() == Some(OsStr::new("rpd")) || (file.is_file() && rpd_schema::identify(file).is_ok())
}
