//! Arguments as the text of a call or an op has them: `key = value` pairs joined by `|`.
//!
//! The text is whatever a program wrote: what is no pair is passed over, never guessed at.

/// The longest key, in bytes, that is taken for one: a longer one is a sentence that has an `=` in it.
const LONGEST_KEY: usize = 128;

/// The pairs of a text in their order, without the blanks around keys and values and without quotes around keys.
pub fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split('|').filter_map(|part| {
        let (key, value) = part.split_once('=')?;
        let key = key.trim().trim_matches('"');
        let is_key = !key.is_empty() && key.len() <= LONGEST_KEY && !key.chars().any(char::is_control);
        is_key.then(|| (key, value.trim()))
    })
}

/// The value of a key; of several the last.
pub(crate) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    pairs(text).filter(|(found, _)| *found == key).last().map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read() {
        let expected = [("stream", "0x1"), ("mode", "1")];
        assert_eq!(pairs("stream = 0x1 | mode = 1").collect::<Vec<_>>(), expected);
        assert_eq!(pairs("\"stream\"=0x1|mode=1").collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_no_pair_is_passed_over() {
        let long = format!("{}=1", "k".repeat(LONGEST_KEY + 1));
        for text in ["", "|", "=", " = 1", "words", "\"\"=1", "a\0b=1", long.as_str()] {
            assert_eq!(pairs(text).count(), 0, "{text:?}");
        }
        assert_eq!(pairs("words | a=b=c | = 1").collect::<Vec<_>>(), [("a", "b=c")]);
    }

    #[test]
    fn the_last_value_of_a_key_counts() {
        assert_eq!(value("a=1|b=2|a=3", "a"), Some("3"));
        assert_eq!(value("a=1", "A"), None);
    }
}
