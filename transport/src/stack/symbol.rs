//! From addresses to names: `function file:line` where the file has debug information, `function (file)` where it has symbols only,
//! `file+0xaddress` where it has neither.
//!
//! The writer's thread does this, once per address. What that may cost is bounded: files are read, never mapped (a file that
//! shrinks under a mapping ends the process), debug information and symbols only up to a size, and what was read is dropped when
//! it is too much or no longer asked for.

mod demangle;
mod image;
mod lines;
mod source;
mod table;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::module::Module;
use super::table::{Demangle, Stacks};
use super::word;
use image::Image;

/// Addresses remembered with their names.
const MOST_KNOWN: usize = 1 << 16;
/// Bytes of files kept in memory for the next address.
const CACHE_BYTES: usize = 64 << 20;
/// How long they are kept when nobody asks.
const CACHE_TIME: Duration = Duration::from_secs(10);

/// Names by address.
#[derive(Default)]
pub(crate) struct Symbols {
    names: FxHashMap<u64, Arc<[String]>>,
    images: FxHashMap<u16, Image>,
    asked: Option<Instant>,
}

impl Symbols {
    /// The names of a frame, if they are known: the function last, those the compiler put into it before, innermost first.
    pub(crate) fn get(&self, word: u64) -> Option<&Arc<[String]>> {
        self.names.get(&word)
    }

    /// Works out the names of those of these frames that have none yet. Reads files.
    pub(crate) fn name(&mut self, stacks: &Stacks, mut words: Vec<u64>) {
        // By module, so that each file is opened once.
        words.sort_unstable();
        words.dedup();
        if self.names.len() + words.len() > MOST_KNOWN {
            self.names.clear();
        }
        words.retain(|word| !self.names.contains_key(word));
        for group in words.chunk_by(|one, other| word::parts(*one).0 == word::parts(*other).0) {
            let (id, _) = word::parts(group[0]);
            let module = stacks.module(id);
            for word in group {
                let names = match &module {
                    Some(module) => self.names_in(id, module, word::parts(*word).1, stacks.demangle),
                    None => vec![format!("{:#x}", word::parts(*word).1)],
                };
                self.names.insert(*word, names.into());
            }
            self.forget_too_much(id);
        }
        self.asked = Some(Instant::now());
    }

    /// Gives back memory that nobody has needed for a while.
    pub(crate) fn rest(&mut self) {
        if self.asked.is_some_and(|at| at.elapsed() > CACHE_TIME) {
            self.asked = None;
            self.images = FxHashMap::default();
        }
    }

    fn names_in(&mut self, id: u16, module: &Module, address: u64, demangle: Demangle) -> Vec<String> {
        let image = self.images.entry(id).or_insert_with(|| Image::open(module));
        let names = image.names(address, demangle);
        if !names.is_empty() {
            return names;
        }
        let file = module.path.file_name().unwrap_or_default().to_string_lossy();
        vec![format!("{file}+{address:#x}")]
    }

    /// Keeps the files read last, of which `newest` is one.
    fn forget_too_much(&mut self, newest: u16) {
        let size = |images: &FxHashMap<u16, Image>| images.values().map(Image::size).sum::<usize>();
        if size(&self.images) > CACHE_BYTES {
            self.images.retain(|id, _| *id == newest);
        }
        if size(&self.images) > CACHE_BYTES {
            self.images.clear();
        }
    }
}

#[cfg(test)]
mod tests;
