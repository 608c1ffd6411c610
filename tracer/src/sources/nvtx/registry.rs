//! Domains and strings that an application registers, and refers to by handles from then on.
//!
//! Handles are addresses of what is kept for ever: an application may use one on any thread, also after it destroyed it. The same
//! name gives the same handle, so an application that registers in a loop takes memory once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rpd_preload::lock::lock_within;
use rpd_transport::records::Stack;

/// A registered string: `nvtxStringHandle_t` points to it.
pub(crate) struct RegisteredText(pub(super) Box<[u8]>);

/// A domain: `nvtxDomainHandle_t` points to it. Ranges nest within each.
pub(crate) struct Domain {
    pub(super) stack: Stack,
}

/// A child forked while another thread of its parent registered something finds the lock taken for ever.
const PATIENCE: Duration = Duration::from_millis(100);

/// The string with that text.
pub(super) fn text(bytes: &[u8]) -> &'static RegisteredText {
    static TEXTS: Registrations<Box<[u8]>, RegisteredText> = Registrations(Mutex::new(None));
    TEXTS.get(bytes.into(), |bytes| RegisteredText(bytes.clone()))
}

/// The domain of that name.
pub(super) fn domain(name: &[u8]) -> &'static Domain {
    static DOMAINS: Registrations<Box<[u8]>, Domain> = Registrations(Mutex::new(None));
    static NEXT: AtomicU32 = AtomicU32::new(Stack::FIRST_DOMAIN.0);
    DOMAINS.get(name.into(), |_| Domain { stack: Stack(NEXT.fetch_add(1, Ordering::Relaxed)) })
}

struct Registrations<K, V: 'static>(Mutex<Option<HashMap<K, &'static V>>>);

impl<K: Eq + Hash, V> Registrations<K, V> {
    fn get(&self, key: K, make: impl FnOnce(&K) -> V) -> &'static V {
        let Some(mut known) = lock_within(&self.0, PATIENCE) else { return Box::leak(Box::new(make(&key))) };
        let known = known.get_or_insert_default();
        if let Some(value) = known.get(&key) {
            return value;
        }
        let value = Box::leak(Box::new(make(&key)));
        known.insert(key, value);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_is_the_same_handle() {
        assert!(std::ptr::eq(text(b"a"), text(b"a")));
        assert!(!std::ptr::eq(text(b"a"), text(b"b")));
        assert_eq!(domain(b"a").stack, domain(b"a").stack);
        assert_ne!(domain(b"a").stack, domain(b"b").stack);
    }
}
