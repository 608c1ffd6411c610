//! The choice of the analyzers that work on a dispatch.

/// An analyzer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnalyzerKind {
    /// Each message, as a line.
    MessageLogger,
    /// Accesses by page.
    Heatmap,
    /// Cache lines and LDS banks, by line of the source.
    MemoryAnalysis,
    /// Intervals that kernels measure.
    TimeInterval,
    /// Basic blocks: how often, how long.
    BasicBlockAnalysis,
}

use AnalyzerKind::*;

/// Names, in the order of reports. Behind them are other names that omniprobe has for them, and those of its libraries.
const NAMES: [(&str, &[AnalyzerKind]); 11] = [
    ("MessageLogger", &[MessageLogger]),
    ("Heatmap", &[Heatmap]),
    ("MemoryAnalysis", &[MemoryAnalysis]),
    ("TimeInterval", &[TimeInterval]),
    ("BasicBlockAnalysis", &[BasicBlockAnalysis]),
    ("AddressLogger", &[MessageLogger]),
    ("BasicBlockLogger", &[MessageLogger]),
    ("libLogMessages64.so", &[MessageLogger]),
    ("libMemAnalysis64.so", &[MemoryAnalysis]),
    ("libBasicBlocks64.so", &[BasicBlockAnalysis]),
    ("libdefaultMessageHandlers64.so", &[Heatmap, TimeInterval]),
];

impl AnalyzerKind {
    /// As reports and the file have it.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].0
    }
}

/// Those that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analyzers(Vec<AnalyzerKind>);

impl Analyzers {
    /// Those of a list of names between commas, and what is wrong with it. For an empty list: all but the one that writes each message.
    pub fn named(list: &str) -> (Analyzers, Vec<String>) {
        let (mut kinds, mut wrong) = (Vec::new(), Vec::new());
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        for name in names {
            let file = name.rsplit('/').next().unwrap_or(name);
            match NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(file)) {
                Some((_, known)) => kinds
                    .extend(known.iter().filter(|kind| !kinds.contains(*kind)).copied().collect::<Vec<_>>()),
                None if file.contains(".so") => wrong.push(format!(
                    "{name} is a handler of omniprobe's for C++, which rpd does not load; rpd's own are {}",
                    built_in()
                )),
                None => wrong.push(format!("{name} is no analyzer; there are {}", built_in())),
            }
        }
        if kinds.is_empty() {
            kinds = vec![Heatmap, MemoryAnalysis, TimeInterval, BasicBlockAnalysis];
        }
        (Analyzers(kinds), wrong)
    }

    /// None: the user has analyzers of their own.
    pub fn none() -> Analyzers {
        Analyzers(Vec::new())
    }

    /// In the order in which they were named.
    pub fn kinds(&self) -> &[AnalyzerKind] {
        &self.0
    }
}

fn built_in() -> String {
    NAMES[..5].iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_libraries() {
        let kinds = |list: &str| Analyzers::named(list).0.0;
        assert_eq!(kinds("MemoryAnalysis,heatmap"), [MemoryAnalysis, Heatmap]);
        assert_eq!(
            kinds("/opt/omniprobe/lib/libdefaultMessageHandlers64.so, Heatmap"),
            [Heatmap, TimeInterval]
        );
        assert_eq!(kinds("AddressLogger,BasicBlockLogger"), [MessageLogger]);
        assert_eq!(kinds(""), [Heatmap, MemoryAnalysis, TimeInterval, BasicBlockAnalysis]);
        for kind in kinds("libLogMessages64.so,libMemAnalysis64.so,libBasicBlocks64.so") {
            assert_eq!(kinds(kind.name()), [kind]);
        }
        let wrong = |list: &str| Analyzers::named(list).1.join("; ");
        assert!(
            wrong("./libMine64.so").contains("a handler of omniprobe's for C++, which rpd does not load")
        );
        assert!(wrong("Heatmaps").starts_with("Heatmaps is no analyzer; there are MessageLogger, Heatmap, "));
    }
}
