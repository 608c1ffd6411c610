//! The comparison as a comment of a pull request.

use std::io::{self, Write};

use rpd_postprocess::report::diff::{ChangeVerdict, DiffRow, UnitKind};
use rpd_postprocess::text;

use super::Shown;
use super::tables::{below, clocks, interval, parted, result, sample, signed, summary};
use crate::output::quantity::duration;

/// Characters of a name in a table at most.
const NAME: usize = 120;

/// Writes the tables.
///
/// # Errors
/// When `out` cannot be written.
pub(super) fn write(out: &mut impl Write, shown: &Shown<'_>) -> io::Result<()> {
    for (side, files) in ["A", "B"].iter().zip(&shown.files) {
        let files: Vec<String> = files.iter().map(|file| code(file)).collect();
        writeln!(out, "- {side}: {}", files.join(", "))?;
    }
    writeln!(out, "- {}", plain(&sample(shown.found)))?;
    for clock in clocks(shown.found) {
        writeln!(out, "- {}", plain(&clock))?;
    }
    let (totals, rows) = parted(shown);
    table(out, &totals)?;
    table(out, &rows[..rows.len().min(shown.most)])?;
    writeln!(out)?;
    if rows.len() > shown.most {
        writeln!(out, "{} more rows are not shown.\n", rows.len() - shown.most)?;
    }
    writeln!(out, "{}", plain(&summary(shown)))
}

fn table(out: &mut impl Write, rows: &[&DiffRow]) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| result | A | B | change | % | 95 % interval | values | group | what |")?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---|---|")?;
    for row in rows {
        let of_side = |missing: ChangeVerdict, ns: f64| {
            if row.result == missing { String::new() } else { duration(ns) }
        };
        let percent = row.change_percent.map(|percent| format!("{percent:+.1}")).unwrap_or_default();
        let what = match row.kind {
            UnitKind::Total => row.name.clone(),
            kind => format!("{} {}", kind.name(), code(&row.name)),
        };
        let further: String = below(row).iter().map(|line| format!("<br>{}", plain(line))).collect();
        writeln!(
            out,
            "| {} | {} | {} | {} | {percent} | {} | {}, {} | {} | {what}{further} |",
            result(row),
            of_side(ChangeVerdict::New, row.a_ns),
            of_side(ChangeVerdict::Gone, row.b_ns),
            signed(row.change_ns),
            interval(row),
            row.a_samples,
            row.b_samples,
            row.group,
        )?;
    }
    Ok(())
}

/// A name from a trace, which is no Markdown and no HTML.
fn code(name: &str) -> String {
    format!("<code>{}</code>", plain(&text::shorten(&text::escape(name), NAME)))
}

/// A text in which nothing means anything to Markdown or HTML.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text::escape(text).chars() {
        if c.is_ascii_punctuation() && !"/,.;:%()+-'=".contains(c) {
            plain.push_str(&format!("&#{};", u32::from(c)));
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_neither_markdown_nor_html() {
        assert_eq!(code("a|b`<b>"), "<code>a&#124;b&#96;&#60;b&#62;</code>");
        assert_eq!(
            plain("@someone *x* [y](z) _u_ \n"),
            "&#64;someone &#42;x&#42; &#91;y&#93;(z) &#95;u&#95; &#92;n"
        );
    }
}
