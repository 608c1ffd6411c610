//! Operations in categories that a user names by patterns, after an idea of raptor, whose files are read.
//!
//! A file is a JSON object: names of categories, each with a list of regular expressions. An operation is of the last category in the file of
//! which one is found in its name or in its type. What is of none is `_Other`, and what is left of the GPUs' spans is `_GPU_Idle`.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fmt;

use anyhow::{Result, bail};
use regex::RegexSet;
use rusqlite::Connection;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::gpu_time::{GpuOps, LeftOut, OpName, OpTexts};
use crate::pattern::pattern;
use crate::region::Selected;
use crate::text::escape;

/// The category of operations that are of no other.
const OTHER: &str = "_Other";
/// The time in which nothing ran.
const IDLE: &str = "_GPU_Idle";

/// The categories where no file names others, as such a file has them.
pub const RULES: &str = r#"{
    "GEMM": ["^Cijk_", "(?i)gemm", "(?i)matmul"],
    "Convolution": ["(?i)conv[0-9]d", "(?i)convolution", "^miopen", "(?i)winograd"],
    "Attention": ["(?i)attention", "(?i)attn", "(?i)fmha"],
    "Normalization": ["(?i)(layer|batch|group|rms)_?norm"],
    "Softmax": ["(?i)softmax"],
    "Reduction": ["(?i)reduce_kernel"],
    "Elementwise": ["(?i)elementwise"],
    "Copy": ["^Copy", "^__amd_rocclr_copy"],
    "Fill": ["^Fill", "^__amd_rocclr_fill"],
    "_Collective": ["(?i)nccl|rccl|msccl|(all|cross_device)_?reduce|all_?gather|reduce_?scatter|all_?to_?all"]
}"#;

/// Patterns of categories, in the order of the file.
#[derive(Debug)]
pub struct Rules {
    names: Vec<String>,
    /// All patterns, and the category of each.
    patterns: RegexSet,
    of: Vec<usize>,
}

/// The members of an object in their order: the last match counts.
struct Members(Vec<(String, Vec<String>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of categories, each with a list of regular expressions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

impl Rules {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn parse(text: &str) -> Result<Rules> {
        let Members(members) = match serde_json::from_str(text) {
            Ok(members) => members,
            Err(error) => bail!(
                "no object of categories, each with a list of regular expressions: {}",
                escape(&error.to_string())
            ),
        };
        let (mut names, mut all, mut of): (Vec<String>, Vec<String>, Vec<usize>) = Default::default();
        for (name, patterns) in members {
            if [OTHER, IDLE].contains(&name.as_str()) {
                bail!("{name} is what is of no category: give yours another name");
            }
            if names.contains(&name) {
                bail!("the category {} is there twice", escape(&name));
            }
            for text in patterns {
                if let Err(error) = pattern(&text) {
                    bail!("category {}: {}: {}", escape(&name), escape(&text), escape(&error));
                }
                all.push(text);
                of.push(names.len());
            }
            names.push(name);
        }
        match RegexSet::new(&all) {
            Ok(patterns) => Ok(Rules { names, patterns, of }),
            Err(_) => bail!("the regular expressions are too large together"),
        }
    }

    /// The category of an operation: the last that has a match.
    fn category(&self, (name, kind): (&str, &str)) -> Option<usize> {
        let last = |text: &str| self.patterns.matches(text).iter().next_back().map(|at| self.of[at]);
        last(name).max(last(kind))
    }
}

/// The categories, and what could not be counted.
#[derive(Debug)]
pub struct Categories {
    /// Most time first, idle time last.
    pub categories: Vec<Category>,
    /// Operations that count nowhere.
    pub left_out: LeftOut,
}

/// A category. The busy times of all but `_GPU_Idle` add up to the time in which the GPUs were busy, and with it to their spans.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Category {
    /// Its name.
    pub category: String,
    /// Different names of its operations.
    pub names: u64,
    /// Operations.
    pub calls: u64,
    /// Sum of their durations, ns; of idle time that time.
    pub total_ns: u64,
    /// The part in which none ran on the same GPU that began before, ns; of idle time that time.
    pub busy_ns: u64,
    /// Share of that in the spans of the GPUs.
    pub percent: f64,
}

#[derive(Default)]
struct Sums {
    names: BTreeSet<String>,
    calls: u64,
    total_ns: u64,
    busy_ns: u64,
}

impl Categories {
    /// Puts the operations of a part of a trace into categories.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub fn of(trace: &Connection, rules: &Rules, selected: &Selected) -> Result<Categories> {
        let GpuOps { mut ops, left_out } = GpuOps::of(trace, selected)?;
        let mut texts = OpTexts::of(trace)?;
        let mut known: HashMap<OpName, usize> = HashMap::new();
        let other = rules.names.len();
        let mut sums: Vec<Sums> = (0..=other).map(|_| Sums::default()).collect();
        let (mut idle_ns, mut covered) = (0_u64, None);
        while let Some(op) = ops.next()? {
            let category = match known.get(&op.name) {
                Some(category) => *category,
                None => {
                    let (name, kind) = texts.description_and_type(op.name)?;
                    let category = rules.category((&name, &kind)).unwrap_or(other);
                    sums[category].names.insert(texts.name(op.name)?);
                    known.insert(op.name, category);
                    category
                }
            };
            let until = match covered {
                Some((gpu, until)) if gpu == op.gpu => until,
                _ => op.start,
            };
            idle_ns = idle_ns.saturating_add((op.start - until).max(0).unsigned_abs());
            covered = Some((op.gpu, until.max(op.end)));
            let of = &mut sums[category];
            of.calls += 1;
            of.total_ns = of.total_ns.saturating_add(op.end.abs_diff(op.start));
            of.busy_ns = of.busy_ns.saturating_add((op.end - until.max(op.start)).max(0).unsigned_abs());
        }
        let busy: f64 = sums.iter().map(|of| of.busy_ns as f64).sum();
        let span = busy + idle_ns as f64;
        let percent = |ns: u64| if span > 0.0 { 100.0 * ns as f64 / span } else { 0.0 };
        let names = rules.names.iter().map(String::as_str).chain([OTHER]);
        let mut categories: Vec<Category> = names
            .zip(sums)
            .filter(|(_, of)| of.calls > 0)
            .map(|(name, of)| Category {
                category: name.to_string(),
                names: of.names.len() as u64,
                calls: of.calls,
                total_ns: of.total_ns,
                busy_ns: of.busy_ns,
                percent: percent(of.busy_ns),
            })
            .collect();
        categories.sort_by_key(|category| Reverse(category.busy_ns));
        if !categories.is_empty() {
            categories.push(Category {
                category: IDLE.to_string(),
                names: 0,
                calls: 0,
                total_ns: idle_ns,
                busy_ns: idle_ns,
                percent: percent(idle_ns),
            });
        }
        Ok(Categories { categories, left_out })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_match_in_the_file_counts() {
        let rules = Rules::parse(r#"{"b": ["gemm"], "a": ["^Copy", "gemm_k"], "z": []}"#).unwrap();
        let category = |name, kind| rules.category((name, kind)).map(|at| rules.names[at].as_str());
        assert_eq!(category("x_gemm_y", "KernelExecution"), Some("b"));
        assert_eq!(category("x_gemm_k", "KernelExecution"), Some("a"));
        assert_eq!(category("", "CopyHostToDevice"), Some("a"));
        assert_eq!(category("gemm", "CopyHostToDevice"), Some("a"));
        assert_eq!(category("relu", "Task"), None);
        assert!(Rules::parse(RULES).is_ok());
    }

    #[test]
    fn what_is_wrong_is_one_line() {
        for (text, wrong) in [
            ("", "list of regular expressions"),
            ("[]", "list of regular expressions"),
            (r#"{"a": "b"}"#, "list of regular expressions"),
            (r#"{"a": ["("]}"#, "category a: (: no regular expression: unclosed group"),
            (r#"{"a": ["(?=x)"]}"#, "category a"),
            (r#"{"a": [], "a": []}"#, "the category a is there twice"),
        ] {
            let error = Rules::parse(text).unwrap_err().to_string();
            assert!(error.contains(wrong) && error.lines().count() == 1, "{error}");
        }
    }
}
