//! Which line of which source an instruction was compiled from: the line tables of DWARF.

use std::collections::{HashMap, HashSet};

use gimli::{Dwarf, EndianSlice, LineProgramHeader, LittleEndian, SectionId, Unit};

use crate::elf::ElfImage;
use crate::{CodeObject, Error};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Bytes of abbreviations that are read for all units together. They may share them, and each reads them anew: a small hostile file
/// could cost a large time.
const MAX_ABBREVIATIONS: usize = 1 << 28;
/// Bytes of the name of a file or folder; longer ones are left out.
const MAX_NAME: usize = 4096;

/// The lines of a code object; none where it has no debug information.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceLines {
    /// In the order of addresses. Each holds up to the next.
    rows: Vec<LineRow>,
    files: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineRow {
    address: u64,
    /// Place among the files; `None` behind the end of a sequence.
    file: Option<u32>,
    line: u32,
    ends_sequence: bool,
}

fn damaged(error: gimli::Error) -> Error {
    Error::malformed("debug information", error.to_string())
}

impl SourceLines {
    /// Reads those of the code object that `bytes` are.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::TooLarge`] where debug information is damaged, and those of [`CodeObject::parse`] for what is
    /// no code object.
    pub fn of(bytes: &[u8]) -> Result<SourceLines, Error> {
        let image = ElfImage::open(bytes)?;
        CodeObject::check(&image)?;
        let section = |id: SectionId| {
            let contents = image.section(id.name()).unwrap_or_default();
            Ok::<_, Error>(EndianSlice::new(contents, LittleEndian))
        };
        let dwarf = Dwarf::load(section)?;
        let mut reader = LineReader::default();
        let mut abbreviations = MAX_ABBREVIATIONS;
        let mut programs = image.section(SectionId::DebugLine.name()).unwrap_or_default().len();
        let all_abbreviations = image.section(SectionId::DebugAbbrev.name()).unwrap_or_default().len();
        let mut seen = HashSet::new();
        let mut units = dwarf.units();
        while let Some(header) = units.next().map_err(damaged)? {
            let cost = all_abbreviations - header.debug_abbrev_offset().0.min(all_abbreviations);
            abbreviations = abbreviations.checked_sub(cost.max(1)).ok_or(Error::TooLarge {
                part: "what units of debug information share, in bytes,",
                limit: MAX_ABBREVIATIONS,
            })?;
            let unit = dwarf.unit(header).map_err(damaged)?;
            let Some(program) = unit.line_program.clone() else { continue };
            if !seen.insert(program.header().offset().0) {
                continue;
            }
            let length = program.header().raw_program_buf().len();
            let overlap = || Error::malformed("debug information", "its line tables overlap");
            programs = programs.checked_sub(length).ok_or_else(overlap)?;
            reader.rows.truncate(reader.sequence);
            let mut rows = program.rows();
            while let Some((header, row)) = rows.next_row().map_err(damaged)? {
                reader.row(&dwarf, &unit, header, row);
            }
        }
        Ok(reader.lines())
    }

    /// File and line of the instruction at an address.
    pub fn at(&self, address: u64) -> Option<(&str, u32)> {
        let behind = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows.get(behind.checked_sub(1)?)?;
        Some((self.files.get(row.file? as usize)?, row.line))
    }

    /// Files that instructions were compiled from.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// What has been read of all line tables so far.
#[derive(Default)]
struct LineReader {
    rows: Vec<LineRow>,
    /// Rows of the sequence that is being read begin here.
    sequence: usize,
    files: Vec<String>,
    /// By the table's offset and the file's number in it.
    places: HashMap<(usize, u64), Option<u32>>,
    /// By their names: tables of several units name the same.
    names: HashMap<String, u32>,
}

impl LineReader {
    fn row(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        header: &LineProgramHeader<Slice<'_>>,
        row: &gimli::LineRow,
    ) {
        let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
        let file = match line {
            Some(_) if !row.end_sequence() => self.file(dwarf, unit, header, row.file_index()),
            // Line 0 is code that no line of the source stands for.
            _ => None,
        };
        let (address, ends_sequence) = (row.address(), row.end_sequence());
        self.rows.push(LineRow { address, file, line: line.unwrap_or(0), ends_sequence });
        if row.end_sequence() {
            // What the linker left out is at 0, where code never is.
            if self.rows[self.sequence].address == 0 {
                self.rows.truncate(self.sequence);
            }
            self.sequence = self.rows.len();
        }
    }

    fn file(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        header: &LineProgramHeader<Slice<'_>>,
        number: u64,
    ) -> Option<u32> {
        let key = (header.offset().0, number);
        if let Some(known) = self.places.get(&key) {
            return *known;
        }
        let text = |value| {
            let text = dwarf.attr_string(unit, value).ok().filter(|text| text.len() <= MAX_NAME)?;
            Some(String::from_utf8_lossy(text.slice()).into_owned())
        };
        let name = header.file(number).and_then(|file| {
            let mut name = text(file.path_name())?;
            let folder = file.directory(header).and_then(text).unwrap_or_default();
            let root = unit.comp_dir.map(|root| String::from_utf8_lossy(root.slice()).into_owned());
            for folder in [folder, root.unwrap_or_default()] {
                if !name.starts_with('/') && !folder.is_empty() && folder != "." {
                    name = format!("{folder}/{name}");
                }
            }
            Some(name)
        });
        let place = name.map(|name| {
            *self.names.entry(name).or_insert_with_key(|name| {
                self.files.push(name.clone());
                (self.files.len() - 1) as u32
            })
        });
        self.places.insert(key, place);
        place
    }

    fn lines(mut self) -> SourceLines {
        // A sequence without an end says nothing.
        self.rows.truncate(self.sequence);
        // Where one sequence ends another may begin: the ends come first. Rows of one address are in the order of the table.
        self.rows.sort_by_key(|row| (row.address, !row.ends_sequence));
        SourceLines { rows: self.rows, files: self.files }
    }
}
