//! The duration log: a line for each kernel that has run, with the columns of logduration's log. The recorder writes it while the
//! program runs, and `rpd durations` from a trace: the same lines.
//!
//! A name has no line end in a line, whatever it is made of, so each line end of the text is the end of a kernel's line.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, Write};

use rpd_escape::{csv_field, json};
use serde::Serialize;
use serde_json::value::RawValue;

/// Columns of CSV, keys of JSON.
const COLUMNS: [&str; 4] = ["kernel", "dispatch", "startNs", "endNs"];

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Comma-separated values.
    #[default]
    Csv,
    /// A JSON object.
    Json,
}

impl LogFormat {
    /// All of them, with the words for them.
    pub const ALL: [(LogFormat, &'static str); 2] = [(LogFormat::Csv, "csv"), (LogFormat::Json, "json")];

    /// The format that is called so.
    pub fn named(name: &str) -> Option<LogFormat> {
        LogFormat::ALL.into_iter().find(|(_, known)| *known == name).map(|(format, _)| format)
    }

    /// The first line of a log, with its end; empty where there is none.
    pub fn header(self) -> String {
        match self {
            LogFormat::Csv => format!("{}\n", COLUMNS.join(",")),
            LogFormat::Json => String::new(),
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(LogFormat::ALL[*self as usize].1)
    }
}

/// The name of a kernel as lines of one format have it, worked out once for many lines.
#[derive(Clone, Debug)]
pub struct LineName(NameText);

#[derive(Clone, Debug)]
enum NameText {
    /// Not quoted yet.
    Csv(String),
    Json(Box<RawValue>),
}

impl LineName {
    /// The demangled name of a kernel, of which nothing is expected.
    ///
    /// # Errors
    /// None that is known: JSON has a form for each text.
    pub fn new(format: LogFormat, kernel: &str) -> io::Result<LineName> {
        Ok(LineName(match format {
            LogFormat::Csv => NameText::Csv(csv_field(kernel).into_owned()),
            LogFormat::Json => NameText::Json(RawValue::from_string(json(serde_json::to_string(kernel)?))?),
        }))
    }
}

/// When a kernel was launched and ran, ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTimes {
    /// The call began that launched it; where no call did, see who writes the log.
    pub launched: i64,
    /// It began.
    pub start: i64,
    /// It ended.
    pub end: i64,
}

/// Writes lines.
pub struct LineWriter<W: Write>(Form<W>);

enum Form<W: Write> {
    Csv(Box<csv::Writer<W>>),
    Json(W),
}

/// A line of JSON.
#[derive(Serialize)]
struct Object<'a> {
    kernel: &'a RawValue,
    dispatch: i64,
    #[serde(rename = "startNs")]
    start: i64,
    #[serde(rename = "endNs")]
    end: i64,
}

impl<W: Write> LineWriter<W> {
    /// To `out`, without a header.
    pub fn new(format: LogFormat, out: W) -> LineWriter<W> {
        LineWriter(match format {
            LogFormat::Csv => {
                Form::Csv(Box::new(csv::WriterBuilder::new().has_headers(false).from_writer(out)))
            }
            LogFormat::Json => Form::Json(out),
        })
    }

    /// The line of a kernel, whose name was made for the same format.
    ///
    /// # Errors
    /// Those of the output.
    pub fn line(&mut self, name: &LineName, times: LineTimes) -> io::Result<()> {
        let LineTimes { launched, start, end } = times;
        match (&mut self.0, &name.0) {
            (Form::Csv(csv), NameText::Csv(name)) => {
                csv.serialize((name, launched, start, end)).map_err(cause)
            }
            (Form::Json(out), NameText::Json(kernel)) => {
                serde_json::to_writer(&mut *out, &Object { kernel, dispatch: launched, start, end })?;
                out.write_all(b"\n")
            }
            _ => Err(io::Error::other("a name of another format")),
        }
    }

    /// Hands on what is kept back.
    ///
    /// # Errors
    /// Those of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Form::Csv(csv) => csv.flush(),
            Form::Json(out) => out.flush(),
        }
    }
}

/// Why CSV could not be written: a closed pipe stays one.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: LogFormat, kernel: &str) -> String {
        let (mut text, times) = (vec![], LineTimes { launched: 1, start: -2, end: 3 });
        let mut writer = LineWriter::new(format, &mut text);
        writer.line(&LineName::new(format, kernel).unwrap(), times).unwrap();
        writer.flush().unwrap();
        drop(writer);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_line_has_no_line_end_but_its_own_and_nothing_that_moves_a_cursor() {
        let name = "gemm<float, 4>\n\"\x1b[2J\u{2028}";
        assert_eq!(line(LogFormat::Csv, name), "\"gemm<float, 4>\\n\"\"\\x1b[2J\\u{2028}\",1,-2,3\n");
        let json = line(LogFormat::Json, name);
        assert_eq!(
            json,
            "{\"kernel\":\"gemm<float, 4>\\n\\\"\\u001b[2J\\u2028\",\"dispatch\":1,\"startNs\":-2,\"endNs\":3}\n"
        );
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["kernel"], name);
        assert_eq!(line(LogFormat::Csv, "saxpy"), "saxpy,1,-2,3\n");
        assert_eq!(line(LogFormat::Csv, "=1+1"), "'=1+1,1,-2,3\n", "no formula");
    }

    #[test]
    fn formats_have_names_and_headers() {
        assert_eq!(LogFormat::named("json"), Some(LogFormat::Json));
        assert_eq!(LogFormat::named("JSON"), None);
        assert_eq!(LogFormat::Json.to_string() + &LogFormat::Csv.to_string(), "jsoncsv");
        assert_eq!(LogFormat::Csv.header() + &LogFormat::Json.header(), "kernel,dispatch,startNs,endNs\n");
    }
}
