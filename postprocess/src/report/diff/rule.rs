//! A rule that makes rpd diff fail: `kernel:gemm +5%`.

use std::collections::BTreeMap;

use regex::Regex;

use super::compare::WHOLE_RUN;
use super::{ChangeVerdict, DiffRow, EFFECT_PERCENT, FALSE_DISCOVERIES, UnitKind};
use crate::pattern::pattern;

/// A rule.
#[derive(Debug, Clone)]
pub struct ChangeRule {
    text: String,
    kind: UnitKind,
    names: Regex,
    condition: Condition,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Condition {
    /// Takes longer by that many percent or more.
    Longer(f64),
    /// Takes less by that many.
    Shorter(f64),
    /// One of the two.
    Other(f64),
    New,
    Gone,
}

/// What came of a rule.
#[derive(Debug, PartialEq, Eq)]
pub enum Judged<'a> {
    /// It holds for these names.
    Holds(Vec<&'a str>),
    /// It holds for none.
    HoldsNot,
    /// Of these names there are too few values to tell.
    TooFew(Vec<&'a str>),
    /// Nothing has such a name.
    NoMatch,
}

/// How rules are written, for messages.
const FORM: &str = "not KIND:REGEX CHANGE: kernel:gemm +5%; kinds are total, kernel, copy, call and marker, changes +5%, -5%, 5%, new and gone";

impl std::str::FromStr for ChangeRule {
    type Err = String;

    fn from_str(text: &str) -> Result<ChangeRule, String> {
        let (what, condition) = text.trim().rsplit_once(char::is_whitespace).ok_or(FORM)?;
        let (kind, names) = what.trim().split_once(':').ok_or(FORM)?;
        let kinds = [UnitKind::Total, UnitKind::Kernel, UnitKind::Copy, UnitKind::Call, UnitKind::Marker];
        let kind = kinds.into_iter().find(|known| known.name() == kind.trim()).ok_or(FORM)?;
        let percent = |text: &str| -> Result<f64, String> {
            let number =
                text.strip_suffix('%').filter(|number| number.starts_with(|c: char| c.is_ascii_digit()));
            number.and_then(|number| number.parse().ok()).ok_or_else(|| FORM.to_string())
        };
        let condition = match condition {
            "new" => Condition::New,
            "gone" => Condition::Gone,
            change => match (change.strip_prefix('+'), change.strip_prefix('-')) {
                (Some(change), _) => Condition::Longer(percent(change)?),
                (_, Some(change)) => Condition::Shorter(percent(change)?),
                _ => Condition::Other(percent(change)?),
            },
        };
        Ok(ChangeRule { text: text.trim().to_string(), kind, names: pattern(names.trim())?, condition })
    }
}

impl Condition {
    fn holds(self, row: &DiffRow) -> bool {
        match self {
            Condition::New => row.result == ChangeVerdict::New,
            Condition::Gone => row.result == ChangeVerdict::Gone,
            _ => is_sure(row) && self.is_reached(row),
        }
    }

    /// Whether the measured change is that large, sure or not.
    fn is_reached(self, row: &DiffRow) -> bool {
        match self {
            Condition::New | Condition::Gone => false,
            Condition::Longer(percent) => change(row) >= percent && change(row) > 0.0,
            Condition::Shorter(percent) => change(row) <= -percent && change(row) < 0.0,
            Condition::Other(percent) => change(row).abs() >= percent && change(row) != 0.0,
        }
    }
}

fn is_sure(row: &DiffRow) -> bool {
    row.q.is_some_and(|q| q < FALSE_DISCOVERIES)
}

/// In percent; of what took no time before without end.
fn change(row: &DiffRow) -> f64 {
    row.change_percent.unwrap_or(if row.change_ns > 0.0 { f64::INFINITY } else { 0.0 })
}

impl ChangeRule {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it holds for what was found.
    ///
    /// Of what takes a share of the run that counts, two things leave a rule about its time undecided: a name that was tested in no group of
    /// iterations, and one that was not tested in some group, or is new or gone there, where what was measured is as large a change.
    pub fn judge<'a>(&self, rows: &'a [DiffRow]) -> Judged<'a> {
        let is_meant = |row: &&DiffRow| {
            let of = row.replaced_by.as_deref().is_some_and(|name| self.names.is_match(name));
            row.kind == self.kind && (of || self.names.is_match(&row.name))
        };
        let meant: Vec<&DiffRow> = rows.iter().filter(is_meant).collect();
        if meant.is_empty() {
            let asks_for_presence = matches!(self.condition, Condition::New | Condition::Gone);
            return if asks_for_presence { Judged::HoldsNot } else { Judged::NoMatch };
        }
        let names = |rows: &mut dyn Iterator<Item = &&'a DiffRow>| -> Vec<&'a str> {
            let mut names: Vec<&str> = Vec::new();
            for row in rows {
                if !names.contains(&row.name.as_str()) {
                    names.push(&row.name);
                }
            }
            names
        };
        let holding = names(&mut meant.iter().filter(|row| self.condition.holds(row)));
        if !holding.is_empty() {
            return Judged::Holds(holding);
        }
        if matches!(self.condition, Condition::New | Condition::Gone) {
            return Judged::HoldsNot;
        }
        let mut is_known: BTreeMap<&str, bool> = BTreeMap::new();
        for row in &meant {
            *is_known.entry(&row.name).or_default() |= row.q.is_some();
        }
        // A whole run is one value: it takes longer if it has more iterations.
        let is_doubtful = |row: &DiffRow| {
            let is_large = row.group != WHOLE_RUN && self.condition.is_reached(row);
            row.q.is_none() && (!is_known[row.name.as_str()] || is_large)
        };
        let unknown =
            names(&mut meant.iter().filter(|row| row.share_percent >= EFFECT_PERCENT && is_doubtful(row)));
        if unknown.is_empty() { Judged::HoldsNot } else { Judged::TooFew(unknown) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Result<ChangeRule, String> {
        text.parse()
    }

    #[test]
    fn rules_are_read() {
        let condition = |text: &str| rule(text).map(|rule| (rule.kind, rule.condition));
        assert_eq!(condition("kernel:gemm +5%"), Ok((UnitKind::Kernel, Condition::Longer(5.0))));
        assert_eq!(condition(" call:^hip.*  -0.5% "), Ok((UnitKind::Call, Condition::Shorter(0.5))));
        assert_eq!(condition("total:wall 3%"), Ok((UnitKind::Total, Condition::Other(3.0))));
        assert_eq!(condition("marker:a b: c new"), Ok((UnitKind::Marker, Condition::New)));
        assert_eq!(condition("copy:. gone"), Ok((UnitKind::Copy, Condition::Gone)));
        for wrong in [
            "",
            "gemm",
            "gemm +5%",
            "kernel:gemm",
            "kernel:gemm 5",
            "kernel:gemm +x%",
            "kernel:gemm +-5%",
            "kernel:gemm +inf%",
            "gpu:x +5%",
        ] {
            assert_eq!(rule(wrong).unwrap_err(), FORM, "{wrong}");
        }
        assert!(rule("kernel:( +5%").unwrap_err().contains("unclosed group"));
    }
}
