//! Values of an answer of SQLite in forms for programs.

use std::borrow::Cow;

use anyhow::Result;
use rpd_escape::{csv_field, json};
use rpd_postprocess::query::value::{hexadecimal, infinite, number};
use rpd_schema::text::text_of;
use rusqlite::types::ValueRef;

/// A text; bytes that are none as SQL writes them.
pub(crate) fn in_words(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Blob(bytes) => hexadecimal(bytes).into(),
        other => text_of(other),
    }
}

/// A field of a CSV file; NULL is empty.
pub(crate) fn field(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Real(real) => number(real),
        value => csv_field(&in_words(value)).into_owned(),
    }
}

/// A row as an object of JSON on one line.
///
/// # Errors
/// When the name of a column cannot be written.
pub(crate) fn object(columns: &[String], values: &[ValueRef<'_>]) -> Result<String> {
    let mut object = String::from("{");
    for (title, value) in columns.iter().zip(values) {
        let value = match *value {
            ValueRef::Null => serde_json::Value::Null,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) if number.is_finite() => number.into(),
            ValueRef::Real(number) => infinite(number).into(),
            value => in_words(value).into(),
        };
        let separator = if object.len() > 1 { ", " } else { "" };
        object.push_str(&format!("{separator}{}: {value}", serde_json::to_string(title)?));
    }
    object.push('}');
    Ok(json(object))
}
