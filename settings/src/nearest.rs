//! The known name that a misspelt one is nearest to.

/// The name of `known` that `written` is likely to stand for: the one with the fewest letters inserted, left out, changed or
/// swapped, as long as two thirds of it are right. Capital and small letters are the same here.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let small = written.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&small, &name.to_lowercase());
    let (least, name) =
        known.into_iter().map(|name| (distance(name), name)).min_by_key(|(distance, _)| *distance)?;
    (least * 3 <= written.chars().count().max(3)).then_some(name)
}

/// `; did you mean NAME?` for the end of a message, or nothing where no name of `known` is near.
pub fn tip<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(written, known).map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_seen_and_another_word_is_not() {
        let known = ["hipMalloc", "hipFree", "hipMemcpy"];
        assert_eq!(nearest("hipMaloc", known), Some("hipMalloc"));
        assert_eq!(nearest("hipmemcpy", known), Some("hipMemcpy"));
        assert_eq!(nearest("hipFere", known), Some("hipFree"));
        assert_eq!(nearest("cudaMalloc", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(tip("hipFre", known), "; did you mean hipFree?");
        assert_eq!(tip("x", []), "");
    }
}
