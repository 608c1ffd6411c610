//! A page with what the reports say of a trace: one file that needs no other and no network.
//!
//! The page is made of the files in `html/page/`, which have no dependencies. Its content security policy lets run what they are, by their
//! hashes, and nothing else. What comes from the trace is data: JSON in an element that is no script, whose texts the page shows as texts.

mod operators;
mod tables;

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rpd_schema::Version;
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::Exported;
use crate::notes::Notes;
use crate::region::Region;
use crate::text::escape;

const STYLE: &str = include_str!("html/page/style.css");

/// The page's program, in the order in which its files need each other.
const PROGRAM: [&str; 5] = [
    include_str!("html/page/values.js"),
    include_str!("html/page/model.js"),
    include_str!("html/page/table.js"),
    include_str!("html/page/overview.js"),
    include_str!("html/page/page.js"),
];

/// Writes the page of the part `region` of the trace `file`, which is open as `trace`, to `out`.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, when a signal came (`notes`), or when `out` cannot be written: then an
/// [`std::io::Error`] is in the chain.
pub fn export(
    file: &Path,
    trace: (&Connection, Version),
    region: &Region,
    notes: &dyn Notes,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    let title = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    let mut out = BufWriter::new(out);
    let program = format!("\"use strict\";\n{{\n{}}}\n", PROGRAM.join("\n"));
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{} - rpd</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <noscript>This page needs JavaScript; it loads nothing.</noscript>\n<div id=\"page\"></div>\n\
         <script id=\"data\" type=\"application/json\">\n",
        hash(&program),
        hash(STYLE),
        markup(&escape(&title)),
    )?;
    let exported = tables::write(&title, trace, region, notes, &mut out)?;
    write!(out, "</script>\n<script>{program}</script>\n</body>\n</html>\n")?;
    out.flush()?;
    Ok(exported)
}

/// A text as HTML has it.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_program_ends_its_element() {
        assert!(PROGRAM.iter().all(|part| !part.contains("</script") && !part.contains("<!--")));
        assert!(!STYLE.contains("</style"));
    }

    #[test]
    fn the_program_takes_no_text_for_markup() {
        for dangerous in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"]
        {
            assert!(PROGRAM.iter().all(|part| !part.contains(dangerous)), "{dangerous}");
        }
    }

    #[test]
    fn markup_stays_text() {
        assert_eq!(markup("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }
}
