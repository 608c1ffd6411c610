//! The names of candidates for people: from the kernel cache on, with the begin of the SHA-256.

use std::collections::BTreeSet;

/// Digits of a SHA-256 that tell files apart.
const DIGITS: usize = 8;

/// The directory of all candidates, which people need not read in front of each.
pub(crate) struct CacheDirectory<'a>(pub(crate) Option<&'a str>);

impl<'a> CacheDirectory<'a> {
    /// Of a trace, or of two, that had these kernel caches.
    pub(crate) fn of(kernel_caches: &'a BTreeSet<String>) -> CacheDirectory<'a> {
        CacheDirectory(kernel_caches.first().filter(|_| kernel_caches.len() == 1).map(String::as_str))
    }

    /// The path of a candidate from there.
    pub(crate) fn within<'p>(&self, path: &'p str) -> &'p str {
        let rest = self.0.and_then(|directory| path.strip_prefix(directory)?.strip_prefix('/'));
        rest.unwrap_or(path)
    }

    /// `lds/saxpy.hsaco 022ecb1e`.
    pub(crate) fn named(&self, path: &str, sha256: &str) -> String {
        format!("{} {}", self.within(path), short(sha256)).trim_end().to_string()
    }
}

/// The begin of a SHA-256, or of whatever is in its place.
pub(crate) fn short(sha256: &str) -> String {
    sha256.chars().take(DIGITS).collect()
}
