//! Texts for fields of CSV.

use std::borrow::Cow;

use crate::escape;

/// `text` for a field of a CSV file (quoting is the writer's): escaped as on a terminal, and with an
/// apostrophe in front where a spreadsheet would otherwise take the field for a formula. Some look behind blanks, and take the
/// wide forms of the signs as well. A number is none, and stays as it is for programs.
pub fn csv_field(text: &str) -> Cow<'_, str> {
    let escaped = escape(text);
    let begin = escaped.trim_start();
    let is_formula = begin.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
        && begin.trim_end().parse::<f64>().map_or(true, |number| !number.is_finite());
    if is_formula { Cow::Owned(format!("'{escaped}")) } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_no_formula() {
        assert_eq!(csv_field("=cmd()"), "'=cmd()");
        assert_eq!(csv_field("@x"), "'@x");
        assert_eq!(csv_field("a=b"), "a=b");
        for formula in [" =1", "\u{a0}+1+1", "＝1", "-x", "-", "+inf", "--1", "-1+1", "@1", "=1"] {
            assert!(csv_field(formula).starts_with('\''), "{formula}");
        }
        for blank in ["\t=1", "\r=1", "\n-x"] {
            assert!(csv_field(blank).starts_with('\\'), "{blank:?}");
        }
        for number in ["-5", "+3.5e2", "-0.25", "7", ""] {
            assert_eq!(csv_field(number), number);
        }
    }
}
