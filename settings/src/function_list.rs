//! A list of functions: `all`, `none`, names, and the beginnings of names with `*` behind them. A word with `-` in front leaves functions out
//! of what the words before it name.

use crate::nearest::tip;

/// The functions of `known` that the list names, in the order of their names, and the words that name none.
pub fn read<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> (Vec<&'a str>, Vec<String>) {
    let mut names: Vec<&str> = known.into_iter().collect();
    names.sort_unstable();
    names.dedup();
    let (mut named, mut unknown) = (vec![false; names.len()], Vec::new());
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let name = word.strip_prefix(['+', '-']).unwrap_or(word);
        let is_meant = |function: &str| match name.strip_suffix('*') {
            Some(begin) => function.starts_with(begin),
            None => matches!(name, "all" | "none") || function == name,
        };
        let is_in = !word.starts_with('-') && name != "none";
        let mut found = false;
        for (named, _) in named.iter_mut().zip(&names).filter(|(_, function)| is_meant(function)) {
            (*named, found) = (is_in, true);
        }
        if !found {
            unknown.push(format!("{word}{}", tip(name, names.iter().copied().chain(["all", "none"]))));
        }
    }
    (names.into_iter().zip(named).filter_map(|(name, named)| named.then_some(name)).collect(), unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] =
        ["hsa_signal_load_relaxed", "hsa_init", "hsa_queue_create", "hsa_init", "hsa_signal_load_scacquire"];

    fn named(text: &str) -> Vec<&'static str> {
        let (named, unknown) = read(text, KNOWN);
        assert_eq!(unknown, Vec::<String>::new());
        named
    }

    #[test]
    fn lists() {
        assert_eq!(named("hsa_queue_create, +hsa_init"), ["hsa_init", "hsa_queue_create"]);
        assert_eq!(named(","), Vec::<&str>::new());
        assert_eq!(named("all").len(), 4, "each once");
        assert_eq!(named("all,-hsa_signal_*"), ["hsa_init", "hsa_queue_create"]);
        assert_eq!(named("hsa_init,none,hsa_queue*"), ["hsa_queue_create"]);
        assert_eq!(named("all,-all,hsa_init"), ["hsa_init"]);
    }

    #[test]
    fn wrong_words_are_named() {
        let (named, unknown) = read("hsa_queue_creat,hsa_init,hip*,-", KNOWN);
        assert_eq!(named, ["hsa_init"]);
        assert_eq!(unknown, ["hsa_queue_creat; did you mean hsa_queue_create?", "hip*", "-"]);
    }
}
