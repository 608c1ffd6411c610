//! Patterns for names, as people write them.

use regex::Regex;

/// The regular expression of that text.
///
/// # Errors
/// What is wrong with it, in one line.
pub fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        // The crate draws the text with a mark below it, and says what is wrong in the last line.
        let error = error.to_string();
        let last = error.lines().last().unwrap_or_default();
        format!("no regular expression: {}", last.strip_prefix("error: ").unwrap_or(last))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_one_line() {
        assert!(pattern("a|b").unwrap().is_match("xb"));
        for (text, wrong) in
            [("(", "unclosed group"), ("[a", "unclosed character class"), ("a{9999999}", "size limit")]
        {
            let error = pattern(text).unwrap_err();
            assert!(error.starts_with("no regular expression: ") && error.contains(wrong), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
