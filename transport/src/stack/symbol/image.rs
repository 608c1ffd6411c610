//! A file that code was loaded from, as far as names need it.

use std::fs::File;
use std::path::{Path, PathBuf};

use object::elf::{FileHeader64, ProgramHeader64};
use object::read::elf::ElfFile;
use object::{LittleEndian, Object, ReadCache};

use super::demangle::demangle;
use super::lines::Lines;
use super::source::FileReader;
use super::table::SymbolTable;
use crate::stack::module::{FileIdentity, Module};
use crate::stack::table::Demangle;

/// An ELF file of this machine, read piece by piece.
pub(super) type Elf<'a> = ElfFile<'a, FileHeader64<LittleEndian>, &'a ReadCache<&'a File>>;

#[derive(Default)]
pub(super) struct Image {
    /// Its last component.
    file_name: String,
    lines: Option<Lines>,
    symbols: Option<SymbolTable>,
}

impl Image {
    /// Reads what `module`'s file says. A file that is missing, damaged or another one than was loaded says nothing.
    pub(super) fn open(module: &Module) -> Image {
        let Some(identity) = module.identity.as_ref().filter(|_| module.path.is_absolute()) else {
            return Image::default();
        };
        let Some((mut image, elsewhere)) = Image::read(&module.path, identity) else {
            return Image::default();
        };
        // Distributions put debug information, and symbols that nobody links to, into files of their own.
        if image.lines.is_none() && matches!(identity, FileIdentity::BuildId(_)) {
            let separate = elsewhere.iter().find_map(|path| Image::read(path, identity));
            if let Some((separate, _)) = separate {
                image.lines = separate.lines;
                image.symbols = separate.symbols.or(image.symbols);
            }
        }
        image.file_name = module.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        image
    }

    /// What the file at `path` says if it is the one that was loaded, and where there may be more.
    fn read(path: &Path, identity: &FileIdentity) -> Option<(Image, Vec<PathBuf>)> {
        let (source, file) = FileReader::open(path)?;
        let cache = ReadCache::new(&file);
        let elf = Elf::parse(&cache).ok().filter(|elf| is(elf, identity))?;
        let image = Image {
            file_name: String::new(),
            lines: Lines::read(&elf, &file),
            symbols: SymbolTable::read(&elf, &file, source),
        };
        Some((image, separate(&elf, path)))
    }

    /// The names at an address of the file: as many as functions were put into each other there, the innermost first.
    pub(super) fn names(&self, address: u64, cpp: Demangle) -> Vec<String> {
        let frames = self.lines.as_ref().map(|lines| lines.at(address)).unwrap_or_default();
        let symbol = || Some(demangle(&self.symbols.as_ref()?.at(address)?, cpp));
        let names: Option<Vec<_>> = frames
            .into_iter()
            .map(|frame| {
                let function = frame.function.map(|function| demangle(&function, cpp)).or_else(symbol)?;
                Some(match frame.place {
                    Some(place) => format!("{function} {place}"),
                    None => format!("{function} ({})", self.file_name),
                })
            })
            .collect();
        match names {
            Some(names) if !names.is_empty() => names,
            _ => symbol().map(|function| format!("{function} ({})", self.file_name)).into_iter().collect(),
        }
    }

    /// Bytes of memory it takes, about.
    pub(super) fn size(&self) -> usize {
        self.symbols.as_ref().map_or(0, SymbolTable::size) + self.lines.as_ref().map_or(0, Lines::size)
    }
}

/// Whether this is the file that was loaded.
fn is(elf: &Elf<'_>, identity: &FileIdentity) -> bool {
    match identity {
        FileIdentity::BuildId(id) => elf.build_id().is_ok_and(|found| found == Some(id)),
        FileIdentity::Headers(headers) => {
            let found: &[ProgramHeader64<LittleEndian>] = elf.elf_program_headers();
            object::pod::bytes_of_slice(found) == headers
        }
    }
}

/// Where the file's separate debug information may be, by the conventions of GDB: by build id, and by name.
fn separate(elf: &Elf<'_>, path: &Path) -> Vec<PathBuf> {
    let mut places = vec![];
    if let Ok(Some([first, rest @ ..])) = elf.build_id() {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        places.push(format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug").into());
    }
    if let (Ok(Some((name, _))), Some(folder)) = (elf.gnu_debuglink(), path.parent()) {
        let name = String::from_utf8_lossy(name).into_owned();
        places.extend([folder.join(&name), folder.join(".debug").join(&name)]);
    }
    places.retain(|place| place != path);
    places
}
