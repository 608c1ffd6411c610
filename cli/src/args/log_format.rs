//! The format of lines of the duration log, as an option's value.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use rpd_duration_log::LogFormat;

/// `csv` or `json`.
pub(crate) fn parser() -> impl TypedValueParser<Value = LogFormat> {
    let names = LogFormat::ALL.map(|(_, name)| name);
    PossibleValuesParser::new(names).map(|name| LogFormat::named(&name).unwrap_or_default())
}
