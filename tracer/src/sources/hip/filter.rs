//! The functions of the HIP API that are recorded: RPDT_HIP_APIS.

use std::collections::HashSet;

use super::description;

/// Left out unless asked for: what polling loops and generated code call all the time, and what says nothing by itself.
const LEFT_OUT: [&str; 14] = [
    "hipGetDevice",
    "hipSetDevice",
    "hipGetLastError",
    "hipPeekAtLastError",
    "__hipPushCallConfiguration",
    "__hipPopCallConfiguration",
    "hipCtxSetCurrent",
    "hipGetDeviceProperties",
    "hipGetDevicePropertiesR0000",
    "hipGetDevicePropertiesR0600",
    "hipModuleGetFunction",
    "hipEventQuery",
    "hipEventRecord",
    "hipEventCreateWithFlags",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HipFilter {
    /// Whether functions are recorded that are not named below.
    others: bool,
    /// Those for which the contrary holds.
    except: HashSet<String>,
}

impl Default for HipFilter {
    fn default() -> HipFilter {
        HipFilter { others: true, except: LEFT_OUT.map(String::from).into() }
    }
}

impl HipFilter {
    /// Reads `all`, `none`, or a list of `+name` and `-name`, which may begin with one of the two and otherwise changes the default.
    /// Names that no version of HIP has are left out of it and given back, each with the one that was probably meant.
    pub(crate) fn read(text: &str) -> (HipFilter, Vec<String>) {
        let mut filter = HipFilter::default();
        let mut unknown = Vec::new();
        for (place, word) in text.split(',').map(str::trim).filter(|word| !word.is_empty()).enumerate() {
            match (place, word) {
                (0, "all") => filter = HipFilter { others: true, except: HashSet::new() },
                (0, "none") => filter = HipFilter { others: false, except: HashSet::new() },
                _ => match (word.strip_prefix('+'), word.strip_prefix('-')) {
                    (Some(name), _) if is_function(name) => filter.put(name, true),
                    (_, Some(name)) if is_function(name) => filter.put(name, false),
                    _ => unknown.push(with_tip(word)),
                },
            }
        }
        (filter, unknown)
    }

    fn put(&mut self, name: &str, recorded: bool) {
        if recorded == self.others {
            self.except.remove(name);
        } else {
            self.except.insert(name.to_string());
        }
    }

    /// Whether calls of `name` are recorded.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.others != self.except.contains(name)
    }

    /// Whether no function is.
    pub(crate) fn is_empty(&self) -> bool {
        !self.others && self.except.is_empty()
    }
}

fn with_tip(word: &str) -> String {
    let (sign, name) = if let Some(name) = word.strip_prefix('-') {
        ("-", name)
    } else {
        ("+", word.trim_start_matches('+'))
    };
    let known = ["all", "none"].into_iter().filter(|_| word == name);
    match rpd_settings::nearest(name, known.chain(description::get().names())) {
        Some(known @ ("all" | "none")) => format!("{word} (did you mean {known}, in front?)"),
        Some(known) => format!("{word} (did you mean {sign}{known}?)"),
        None => word.to_string(),
    }
}

fn is_function(name: &str) -> bool {
    description::get().names().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(text: &str) -> HipFilter {
        let (filter, unknown) = HipFilter::read(text);
        assert_eq!(unknown, Vec::<String>::new());
        filter
    }

    #[test]
    fn polling_is_left_out_unless_asked_for() {
        for name in LEFT_OUT {
            assert!(!HipFilter::default().contains(name) && filter("all").contains(name), "{name}");
        }
        assert!(HipFilter::default().contains("hipMalloc"));
        assert!(filter("+hipEventQuery").contains("hipEventQuery"));
        assert!(!filter("+hipEventQuery").contains("hipEventRecord"));
    }

    #[test]
    fn lists() {
        let none = filter("none");
        assert!(none.is_empty() && !none.contains("hipMalloc"));
        let two = filter("none, +hipMalloc,+hipFree");
        assert!(!two.is_empty() && two.contains("hipFree") && !two.contains("hipMemcpy"));
        let less = filter("-hipMalloc");
        assert!(!less.contains("hipMalloc") && less.contains("hipFree") && !less.contains("hipSetDevice"));
        assert_eq!(filter("-hipMalloc,+hipMalloc"), HipFilter::default());
    }

    #[test]
    fn wrong_words_are_named() {
        let (filter, unknown) = HipFilter::read("+hipMaloc,hipFree,-hipFree,none,-cudaSomethingElse");
        assert_eq!(
            unknown,
            [
                "+hipMaloc (did you mean +hipMalloc?)",
                "hipFree (did you mean +hipFree?)",
                "none (did you mean none, in front?)",
                "-cudaSomethingElse"
            ]
        );
        assert!(!filter.contains("hipFree"), "the rest holds");
    }
}
