//! Why nothing of a file of the cache has run.

use std::collections::BTreeMap;

use rpd_transport::records::KernelId;

use super::{CacheFile, Loader, may_run};
use crate::gpu::kernels;

/// Kernels that a reason names, and characters of each name.
const NAMED: usize = 2;
const NAME: usize = 120;

/// Why a kernel of the application is not to be replaced.
#[derive(Clone, Copy)]
pub(super) enum LeftOut {
    /// LOGDUR_FILTER does not select it.
    Filter,
    /// LOGDUR_LIBRARY_FILTER does not select its library.
    Library,
}

/// Why nothing has run in the place of a kernel. Where a file has several reasons, the first of these is named.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Idle {
    NotLaunched,
    LibraryFilter,
    Filter,
    OtherGpu,
    Gone,
    NotLoaded,
}

impl Loader {
    /// Why nothing of the file has run, which is for one of the GPUs. Files whose kernels are loaded have been `loaded` in vain.
    pub(super) fn why_unused(&self, file: &CacheFile, is_loaded: bool) -> String {
        if let Some(why) = file.unused.filter(|_| !is_loaded) {
            return why.into();
        }
        let mut kernels: BTreeMap<Idle, Vec<String>> = BTreeMap::new();
        for part in &file.candidate.parts {
            for kernel in &part.code.kernels {
                let symbol = match &self.config.probe {
                    Some(_) => rpd_codeobject::original_symbol(&kernel.symbol),
                    None => Some(kernel.symbol.clone()),
                };
                let Some(symbol) = symbol else { continue };
                let can_run = |gpu: u32| {
                    self.runtime.gpus.all().iter().any(|one| one.index == gpu && may_run(&part.code, one))
                };
                let idle = self.why_idle(&kernels::loaded_as(&symbol), can_run, is_loaded);
                let names = kernels.entry(idle).or_default();
                let name = rpd_codeobject::demangle(&symbol);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let Some((idle, names)) = kernels.into_iter().next() else {
            return "it has no kernel that could run in the place of one".into();
        };
        let names = named(&names);
        match idle {
            Idle::NotLaunched => format!("the program has launched none of its kernels: {names}"),
            Idle::LibraryFilter => {
                format!(
                    "LOGDUR_LIBRARY_FILTER does not select where the program has its kernels from: {names}"
                )
            }
            Idle::Filter => format!("LOGDUR_FILTER does not select its kernels: {names}"),
            Idle::OtherGpu => format!("the program has loaded its kernels for other GPUs alone: {names}"),
            Idle::Gone => format!("the program had unloaded its kernels when the file was there: {names}"),
            Idle::NotLoaded => format!("the program has loaded no kernel of the names that it has: {names}"),
        }
    }

    /// Why nothing has run in the place of these kernels of the application, which all have one name.
    fn why_idle(&self, loaded: &[(u32, KernelId)], can_run: impl Fn(u32) -> bool, is_loaded: bool) -> Idle {
        let reason = |(gpu, kernel): &(u32, KernelId)| match self.left_out.get(kernel) {
            Some(LeftOut::Library) => Idle::LibraryFilter,
            Some(LeftOut::Filter) => Idle::Filter,
            None if !can_run(*gpu) => Idle::OtherGpu,
            None if is_loaded => Idle::NotLaunched,
            None => Idle::Gone,
        };
        loaded.iter().map(reason).min().unwrap_or(Idle::NotLoaded)
    }
}

/// The first of these names, and how many more there are.
fn named(names: &[String]) -> String {
    let shown = |name: &String| match name.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.clone(),
    };
    let shown: Vec<String> = names.iter().take(NAMED).map(shown).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_are_enough() {
        let names = |count: usize| (0..count).map(|number| format!("k{number}")).collect::<Vec<_>>();
        assert_eq!([1, 2, 5].map(|count| named(&names(count))), ["k0", "k0, k1", "k0, k1 and 3 more"]);
        let long = named(&["\u{e9}".repeat(NAME + 1)]);
        assert!(long.ends_with("\u{e9}...") && long.chars().count() == NAME + 3);
    }
}
