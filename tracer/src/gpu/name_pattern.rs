//! A regular expression for demangled names of kernels, from a variable. One that is found in no name is most likely misspelt, which the
//! user hears at the end.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::Regex;
use rpd_transport::env::Env;
use rpd_transport::log;
use rpd_transport::recorder::Recorder;

use super::kernels;

pub(crate) struct NamePattern {
    variable: &'static str,
    regex: Regex,
    /// A kernel of the program was asked about, and the answer was yes once.
    asked: AtomicBool,
    found: AtomicBool,
    /// That it was found in no name was said.
    said: AtomicBool,
}

impl NamePattern {
    /// What the variable has. `otherwise` says what happens where that is no regular expression.
    pub(crate) fn read(
        env: &mut Env<'_>,
        variable: &'static str,
        otherwise: &'static str,
    ) -> Option<NamePattern> {
        let text = env.text(variable)?;
        let text = text.to_string_lossy();
        match Regex::new(&text) {
            Ok(regex) => Some(NamePattern {
                variable,
                regex,
                asked: AtomicBool::new(false),
                found: AtomicBool::new(false),
                said: AtomicBool::new(false),
            }),
            Err(_) => {
                env.complain(format!("{variable}={text} is not a regular expression; {otherwise}"));
                None
            }
        }
    }

    /// Whether it is found in the name.
    pub(crate) fn is_in(&self, name: &str) -> bool {
        let found = self.regex.is_match(name);
        if !kernels::is_runtimes(name) {
            self.asked.store(true, Ordering::Relaxed);
        }
        if found {
            self.found.store(true, Ordering::Relaxed);
        }
        found
    }

    /// It was found in the name of a kernel.
    pub(crate) fn was_found(&self) -> bool {
        self.found.load(Ordering::Relaxed)
    }

    /// This is a forked child, which has loaded nothing yet.
    pub(crate) fn forked(&self) {
        [&self.asked, &self.found].iter().for_each(|flag| flag.store(false, Ordering::Relaxed));
    }

    /// The process ends: says that no kernel of it has such a name, where it has kernels.
    pub(crate) fn say_if_in_vain(&self, recorder: &Recorder) {
        let is_in_vain = self.asked.load(Ordering::Relaxed) && !self.was_found();
        if is_in_vain && !self.said.swap(true, Ordering::Relaxed) {
            let trace = recorder.config.filename.expanded();
            log::problem(&format!(
                "{self}: no kernel of the program has that in its demangled name; rpd top {} shows the names",
                trace.display()
            ));
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}={}", self.variable, self.regex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_the_runtime_do_not_make_a_pattern_vain() {
        let get = |name: &str| (name == "LOGDUR_FILTER").then(|| "^add".into());
        let pattern = NamePattern::read(&mut Env::new(&get), "LOGDUR_FILTER", "").unwrap();
        assert!(!pattern.is_in("__amd_rocclr_copyBuffer") && !pattern.asked.load(Ordering::Relaxed));
        assert!(!pattern.is_in("sub(int)") && pattern.asked.load(Ordering::Relaxed));
        assert!(pattern.is_in("add(int)") && pattern.was_found());
        pattern.forked();
        assert!(!pattern.was_found() && !pattern.asked.load(Ordering::Relaxed));
    }
}
