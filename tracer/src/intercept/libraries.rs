//! The libraries whose kernels may be replaced (LOGDUR_LIBRARY_FILTER), by the file that a code object came from.
//!
//! Looked at when a code object is loaded. A library that needs another one brings that in for what is loaded from then on.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rpd_preload::library::{self, LoadedLibrary};
use rpd_settings::library_filter::{LibraryFilter, LibraryVerdict};
use rpd_transport::log;

pub(super) struct Libraries {
    filter: Option<LibraryFilter>,
    /// What is loaded, with the name of each without symbolic links.
    loaded: OnceCell<Vec<(LoadedLibrary, PathBuf)>>,
    /// What was found out of files.
    known: HashMap<Option<Arc<Path>>, bool>,
}

impl Libraries {
    /// Those that the file selects; all of them where there is no file, or a wrong one, which is said.
    pub(super) fn read(file: Option<&Path>) -> Libraries {
        let filter = file.and_then(|file| {
            let name = file.display();
            match LibraryFilter::read(file) {
                Ok((filter, complaints)) => {
                    complaints.iter().for_each(|complaint| log::problem(&format!("{name}: {complaint}")));
                    Some(filter)
                }
                Err(why) => {
                    log::problem(&format!("{name}: {why}; kernels of all libraries may be replaced"));
                    None
                }
            }
        });
        Libraries { filter, loaded: OnceCell::new(), known: HashMap::new() }
    }

    /// More may have been loaded since the last question.
    pub(super) fn look_again(&mut self) {
        self.loaded.take();
        self.known.clear();
    }

    /// Whether kernels of code from that file may be replaced; none for code that was never in a file.
    pub(super) fn allow(&mut self, origin: &Option<Arc<Path>>) -> bool {
        let Some(filter) = &self.filter else { return true };
        if let Some(known) = self.known.get(origin) {
            return *known;
        }
        let loaded = || self.loaded.get_or_init(all);
        let names = origin.as_ref().map(|path| names(loaded(), path)).unwrap_or_default();
        let allowed = match filter.verdict(&names) {
            LibraryVerdict::Passes => true,
            LibraryVerdict::Fails => false,
            LibraryVerdict::IfNeeded => is_needed(loaded(), filter, origin.as_deref()),
        };
        self.known.insert(origin.clone(), allowed);
        allowed
    }
}

fn all() -> Vec<(LoadedLibrary, PathBuf)> {
    let real = |library: LoadedLibrary| {
        let path = library.path.canonicalize().unwrap_or_else(|_| library.path.clone());
        (library, path)
    };
    library::all().into_iter().map(real).collect()
}

/// The names that a file goes by: its own, and those by which the loader has found it.
fn names(loaded: &[(LoadedLibrary, PathBuf)], path: &Path) -> Vec<PathBuf> {
    let others = loaded.iter().filter(|(_, real)| real == path).map(|(library, _)| library.path.clone());
    std::iter::once(path.to_path_buf()).chain(others).collect()
}

/// Whether a library that the filter selects with all that it needs needs this one, be it by way of others.
fn is_needed(loaded: &[(LoadedLibrary, PathBuf)], filter: &LibraryFilter, wanted: Option<&Path>) -> bool {
    let brings = |(library, real): &(LoadedLibrary, PathBuf)| {
        filter.brings_what_it_needs(&[library.path.clone(), real.clone()])
    };
    let mut reached: Vec<bool> = loaded.iter().map(brings).collect();
    let mut open: Vec<usize> = (0..loaded.len()).filter(|place| reached[*place]).collect();
    while let Some(place) = open.pop() {
        for name in &loaded[place].0.needed {
            let is_it = |(library, _): &(LoadedLibrary, PathBuf)| {
                library.soname == *name || library.path.file_name() == Some(name) || library.path == **name
            };
            for (found, _) in loaded.iter().enumerate().filter(|(_, library)| is_it(library)) {
                if !std::mem::replace(&mut reached[found], true) {
                    open.push(found);
                }
            }
        }
    }
    loaded.iter().zip(reached).any(|((_, real), reached)| reached && Some(real.as_path()) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(path: &str, soname: &str, needed: &[&str]) -> (LoadedLibrary, PathBuf) {
        let needed = needed.iter().map(Into::into).collect();
        (LoadedLibrary { path: path.into(), soname: soname.into(), needed }, format!("/real{path}").into())
    }

    #[test]
    fn a_library_brings_what_it_needs() {
        let loaded = [
            library("/program", "", &["liba.so.1", "/by/path.so"]),
            library("/lib/liba.so.1", "liba.so.1", &["libb.so", "libc.so.6"]),
            library("/lib/libb.so.3", "libb.so", &["libd.so"]),
            library("/lib/libc.so.6", "libc.so.6", &["liba.so.1"]),
            library("/lib/libd.so", "", &[]),
            library("/by/path.so", "other.so", &[]),
        ];
        let reached = |pattern: &str| {
            let (filter, _) =
                LibraryFilter::parse(format!("{{\"include_with_deps\": [{pattern:?}]}}").as_bytes()).unwrap();
            let is_needed = |(_, real): &&(LoadedLibrary, PathBuf)| is_needed(&loaded, &filter, Some(real));
            let found: Vec<_> = loaded.iter().filter(is_needed).map(|(library, _)| &*library.path).collect();
            found.iter().map(|path| path.to_str().unwrap().to_string()).collect::<Vec<_>>()
        };
        let all: Vec<&str> = loaded.iter().map(|(library, _)| library.path.to_str().unwrap()).collect();
        assert_eq!(reached("/program"), all);
        assert_eq!(reached("/real/program"), all);
        assert_eq!(reached("**/liba.so.*"), all[1..5], "in a circle");
        assert_eq!(reached("**/libb.so.3"), ["/lib/libb.so.3", "/lib/libd.so"]);
        assert_eq!(reached("/lib/libx.so"), Vec::<String>::new());
        assert_eq!(names(&loaded, Path::new("/real/lib/libd.so")).len(), 2);
        assert_eq!(names(&loaded, Path::new("/module.hsaco")).len(), 1);
    }

    /// A library that is opened later brings what it needs, for what is loaded from then on.
    #[test]
    fn an_answer_holds_until_more_is_loaded() {
        let (filter, _) = LibraryFilter::parse(b"{\"include_with_deps\": [\"/lib/libb.so\"]}").unwrap();
        let needed = library("/lib/liba.so", "liba.so", &[]);
        let code = Some(Arc::from(needed.1.as_path()));
        let loaded = OnceCell::from(vec![needed.clone()]);
        let mut libraries = Libraries { filter: Some(filter), loaded, known: HashMap::new() };
        assert!(!libraries.allow(&code) && !libraries.allow(&code));
        libraries.look_again();
        libraries.loaded = OnceCell::from(vec![needed, library("/lib/libb.so", "libb.so", &["liba.so"])]);
        assert!(libraries.allow(&code));
    }
}
