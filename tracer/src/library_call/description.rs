//! What the libraries' functions are called, what they are passed, and where.
//!
//! The texts are calls.tsv and, for the HSA runtime, hsa.tsv. description/generate.py writes them from the libraries' own headers, and explains
//! their form. They are read when the first of these functions is called.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::descriptors::LibraryProblem;
use super::trampoline::COUNT;

static TEXTS: [&str; 2] = [include_str!("description/calls.tsv"), include_str!("description/hsa.tsv")];

/// Registers that pass numbers and addresses, and those that pass floating point numbers (System V ABI, x86-64).
pub(super) const INTEGERS: u8 = 6;
/// See above.
pub(super) const FLOATS: u8 = 8;

macro_rules! libraries {
    ($($library:ident $text:literal [$($name:literal),+] $category:literal;)*) => {
        /// Libraries that are described.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Library {
            $($library,)*
        }

        /// How many there are.
        pub(super) const LIBRARIES: usize = [$($text),*].len();

        impl Library {
            /// By the name that the description has for it.
            fn of(text: &str) -> Option<Library> {
                match text {
                    $($text => Some(Library::$library),)*
                    _ => None,
                }
            }

            /// What users call it.
            pub(crate) fn names(self) -> &'static [&'static str] {
                match self {
                    $(Library::$library => &[$($name),+],)*
                }
            }

            /// What it does.
            pub(crate) fn category(self) -> &'static str {
                match self {
                    $(Library::$library => $category,)*
                }
            }
        }
    };
}
libraries! {
    RocBlas "rocblas" ["rocblas"] "blas";
    HipBlas "hipblas" ["hipblas"] "blas";
    HipBlasLt "hipblaslt" ["hipblaslt"] "blas";
    MiOpen "miopen" ["miopen"] "dnn";
    Nccl "nccl" ["nccl", "rccl"] "collective";
    RocFft "rocfft" ["rocfft"] "fft";
    RocSparse "rocsparse" ["rocsparse"] "sparse";
    RocSolver "rocsolver" ["rocsolver"] "solver";
    CuBlas "cublas" ["cublas"] "blas";
    CuBlasLt "cublaslt" ["cublaslt"] "blas";
    CuDnn "cudnn" ["cudnn"] "dnn";
    CuFft "cufft" ["cufft"] "fft";
    Hsa "hsa" ["hsa"] "runtime";
}

/// What an argument is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArgumentClass {
    /// A pointer or handle, or a text.
    Pointer,
    /// A signed number of so many bytes.
    Signed(u8),
    /// An unsigned one.
    Unsigned(u8),
    /// float or double.
    Float(u8),
    /// A value of the enumeration of that number.
    Enumeration(usize),
    /// Where the call puts a handle of so many bytes.
    Result(u8),
    /// Where it puts as many handles as the next argument says.
    Results,
    /// As many numbers of so many bytes as that argument says.
    Numbers(u8, usize),
    /// A number of as many bytes as that argument says.
    Bits(usize),
    /// Where a scalar lies.
    Scalar(Scalar),
    /// A structure that is not shown.
    Structure,
}

impl ArgumentClass {
    /// Whether words are kept that the argument leads to.
    pub(super) fn leads_to_words(&self) -> bool {
        use ArgumentClass::{Bits, Numbers, Result, Results, Scalar};
        matches!(self, Result(_) | Results | Numbers(..) | Bits(_) | Scalar(_))
    }
}

/// Of which type a scalar is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    /// Half precision, float or double, by its bytes.
    Real(u8),
    /// A complex number, by the bytes of each part.
    Complex(u8),
    /// What the enumeration in this argument says.
    AsArgument(usize),
}

/// Where an argument is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentPlace {
    /// A general register.
    Integer(u8),
    /// A vector register.
    Float(u8),
    /// That word of the stack.
    Stack(u16),
}

/// An argument.
#[derive(Clone, Debug)]
pub(super) struct LibraryArgument {
    pub(super) name: &'static str,
    pub(super) class: ArgumentClass,
    pub(super) place: ArgumentPlace,
    /// Not all versions of the library have it: it is not looked at.
    pub(super) hidden: bool,
}

/// A function.
#[derive(Clone, Debug)]
pub(super) struct LibraryFunction {
    pub(super) name: &'static str,
    /// Of which version of the library it is, where they differ: the number behind `.so` in the name of its file. Nothing: of any.
    version: &'static str,
    pub(super) library: Library,
    /// Enumeration of the status that it returns.
    pub(super) status: Option<usize>,
    /// It returns a number, which is shown.
    pub(super) returns_number: Option<ReturnedNumber>,
    pub(super) arguments: Vec<LibraryArgument>,
    /// Places of those that lead to words, and are looked at.
    pub(super) leading: Vec<usize>,
    /// General registers, vector registers and words of the stack by which it is passed something.
    pub(super) integers: u8,
    pub(super) floats: u8,
    pub(super) words: u16,
    /// It is no call to record, and is looked at for this.
    pub(super) note: Option<Noted>,
    /// Descriptors that it is passed say more of it.
    pub(super) subject: Option<LibraryProblem>,
    /// It makes communicators.
    pub(super) makes_communicators: bool,
    /// It hands packets or a copy to the GPU. What it calls of the program's is nothing.
    pub(super) submits: bool,
}

/// What a call says that is looked at and not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// Where scalars lie.
    PointerMode,
    /// What a descriptor is.
    Descriptor,
}

/// How the number that a function returns is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReturnedNumber {
    /// hsa_signal_value_t.
    Signed64,
    /// An index of a queue.
    Unsigned64,
    /// A place.
    Unsigned32,
}

impl ReturnedNumber {
    fn of(text: &str) -> Option<ReturnedNumber> {
        match text {
            "i8" => Some(ReturnedNumber::Signed64),
            "u8" => Some(ReturnedNumber::Unsigned64),
            "u4" => Some(ReturnedNumber::Unsigned32),
            _ => None,
        }
    }
}

/// What functions of the HSA runtime that submit something begin with: a doorbell is a signal.
const SUBMITS: [&str; 3] = ["hsa_signal_store_", "hsa_signal_silent_store_", "hsa_amd_memory_async_copy"];

/// An enumeration: its values with their names.
pub(super) type Enumeration = HashMap<i32, &'static str>;

/// All that is described.
#[derive(Debug)]
pub(super) struct LibraryDescription {
    /// In the order of their names' bytes.
    pub(super) functions: Vec<LibraryFunction>,
    enumerations: Vec<Enumeration>,
    /// Their places, by their names.
    names: HashMap<&'static str, usize>,
}

/// The description, read when it is first asked for.
pub(super) fn get() -> &'static LibraryDescription {
    static DESCRIPTION: OnceLock<LibraryDescription> = OnceLock::new();
    DESCRIPTION.get_or_init(|| LibraryDescription::read(&TEXTS))
}

impl LibraryDescription {
    fn read(texts: &[&'static str]) -> LibraryDescription {
        let (mut numbers, mut enumerations) = (HashMap::new(), Vec::new());
        let mut functions = Vec::with_capacity(COUNT);
        for line in texts.iter().flat_map(|text| text.lines()) {
            let mut cells = line.split('\t');
            match cells.next() {
                Some("enum") => {
                    numbers.insert(cells.next().unwrap_or_default(), enumerations.len());
                    let value = |cell: &'static str| {
                        let (number, name) = cell.split_once('=')?;
                        Some((number.parse::<i64>().ok()? as i32, name))
                    };
                    enumerations.push(cells.filter_map(value).collect());
                }
                Some(kind @ ("call" | "note")) => functions.extend(function(kind, cells, &numbers)),
                _ => {}
            }
        }
        functions.sort_by_key(|function| (function.name, function.version));
        LibraryDescription { functions, enumerations, names: numbers }
    }

    /// The place of the enumeration called `name`.
    pub(super) fn enumeration(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The place of the function called `name`, as that version of the library has it.
    pub(super) fn place(&self, name: &str, version: &str) -> Option<usize> {
        let at = |version: &str| {
            self.functions
                .binary_search_by(|function| (function.name, function.version).cmp(&(name, version)))
        };
        at(version).or_else(|_| at("")).ok()
    }

    /// The name of a value.
    pub(super) fn value(&self, enumeration: usize, value: i32) -> Option<&'static str> {
        self.enumerations.get(enumeration)?.get(&value).copied()
    }
}

fn function(
    kind: &str,
    mut cells: std::str::Split<'static, char>,
    numbers: &HashMap<&'static str, usize>,
) -> Option<LibraryFunction> {
    let library = Library::of(cells.next()?)?;
    let (name, status) = (cells.next()?, cells.next()?);
    let (name, version) = name.split_once('@').unwrap_or((name, ""));
    let cells: Vec<&'static str> = cells.collect();
    let names: Vec<&str> =
        cells.iter().filter_map(|cell| cell.trim_start_matches('-').split(':').nth(1)).collect();
    let mut passed = Passed::default();
    let mut arguments = Vec::with_capacity(cells.len());
    for cell in cells {
        let hidden = cell.starts_with('-');
        let mut parts = cell.trim_start_matches('-').split(':');
        let (class, name, of) = (parts.next()?, parts.next()?, parts.next());
        let (class, place) = match class {
            "p" | "s" => (ArgumentClass::Pointer, passed.integer()),
            "o" => (ArgumentClass::Result(8), passed.integer()),
            "o4" => (ArgumentClass::Result(4), passed.integer()),
            "a" => (ArgumentClass::Results, passed.integer()),
            "n4" | "n8" => {
                let count = match of {
                    Some(count) => names.iter().position(|name| *name == count)?,
                    None => arguments.len().checked_sub(1)?,
                };
                (ArgumentClass::Numbers(if class == "n4" { 4 } else { 8 }, count), passed.integer())
            }
            "b" => {
                let count = names.iter().position(|name| Some(*name) == of)?;
                (ArgumentClass::Bits(count), passed.integer())
            }
            "e" => (ArgumentClass::Enumeration(*numbers.get(of?)?), passed.integer()),
            "v" => {
                let scalar = match of? {
                    "f2" => Scalar::Real(2),
                    "f4" => Scalar::Real(4),
                    "f8" => Scalar::Real(8),
                    "c4" => Scalar::Complex(4),
                    "c8" => Scalar::Complex(8),
                    other => Scalar::AsArgument(names.iter().position(|name| *name == other)?),
                };
                (ArgumentClass::Scalar(scalar), passed.integer())
            }
            "f4" => (ArgumentClass::Float(4), passed.float(1)),
            "f8" => (ArgumentClass::Float(8), passed.float(1)),
            "z4" => (ArgumentClass::Structure, passed.float(1)),
            "z8" => (ArgumentClass::Structure, passed.float(2)),
            "x16" => (ArgumentClass::Structure, passed.integers(2)),
            "x128" => (ArgumentClass::Structure, passed.stack(16)),
            _ => {
                let size = class.get(1..)?.parse().ok()?;
                let class = if class.starts_with('i') {
                    ArgumentClass::Signed(size)
                } else {
                    ArgumentClass::Unsigned(size)
                };
                (class, passed.integer())
            }
        };
        arguments.push(LibraryArgument { name, class, place, hidden });
    }
    let subject = LibraryProblem::of(name, &arguments);
    let leads = |argument: &LibraryArgument| !argument.hidden && argument.class.leads_to_words();
    let leading = (0..arguments.len()).filter(|place| leads(&arguments[*place])).collect();
    Some(LibraryFunction {
        name,
        version,
        library,
        status: numbers.get(status).copied(),
        returns_number: ReturnedNumber::of(status),
        arguments,
        leading,
        integers: passed.integers,
        floats: passed.floats,
        words: passed.words,
        note: (kind == "note").then(|| match name.to_lowercase().replace('_', "").contains("pointermode") {
            true => Noted::PointerMode,
            false => Noted::Descriptor,
        }),
        subject,
        makes_communicators: name.starts_with("ncclCommInit"),
        submits: SUBMITS.iter().any(|begin| name.starts_with(begin)),
    })
}

/// What of the registers and the stack is taken.
#[derive(Default)]
struct Passed {
    integers: u8,
    floats: u8,
    words: u16,
}

impl Passed {
    fn integer(&mut self) -> ArgumentPlace {
        self.integers(1)
    }

    fn integers(&mut self, registers: u8) -> ArgumentPlace {
        if self.integers + registers > INTEGERS {
            return self.stack(registers.into());
        }
        self.integers += registers;
        ArgumentPlace::Integer(self.integers - registers)
    }

    fn float(&mut self, registers: u8) -> ArgumentPlace {
        if self.floats + registers > FLOATS {
            return self.stack(registers.into());
        }
        self.floats += registers;
        ArgumentPlace::Float(self.floats - registers)
    }

    fn stack(&mut self, words: u16) -> ArgumentPlace {
        self.words += words;
        ArgumentPlace::Stack(self.words - words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str) -> &'static LibraryFunction {
        &get().functions[get().place(name, "").unwrap()]
    }

    /// ROCm 6 has put a parameter in front of others of the same kind.
    #[test]
    fn what_versions_pass_differently_is_looked_at_where_the_version_is_known() {
        for letter in ["s", "d", "c", "z"] {
            let shown = |version: &str| -> String {
                let place = get().place(&format!("rocsparse_{letter}bsrmv"), version).unwrap();
                let shown = get().functions[place].arguments.iter().filter(|argument| !argument.hidden);
                shown.skip(11).map(|argument| argument.name).collect::<Vec<_>>().join(" ")
            };
            assert_eq!(shown("0"), "block_dim x beta y");
            assert_eq!(shown("1"), "block_dim info x beta y");
            for unknown in ["", "2"] {
                assert_eq!(shown(unknown), "block_dim");
            }
        }
    }

    #[test]
    fn every_line_is_understood() {
        let lines = TEXTS.iter().flat_map(|text| text.lines());
        let lines = lines.filter(|line| !line.starts_with("enum\t")).count();
        assert_eq!((get().functions.len(), lines), (COUNT, COUNT));
        assert!(COUNT < usize::from(u16::MAX));
        for library in rpd_settings::library::NAMES {
            let has = get().functions.iter().filter(|function| function.library.names().contains(&library));
            assert!(has.count() > 10, "{library}");
        }
    }

    #[test]
    fn arguments_are_where_the_abi_has_them() {
        let gemm = function("rocblas_sgemm");
        let places: Vec<ArgumentPlace> = gemm.arguments.iter().map(|argument| argument.place).collect();
        let stack: Vec<ArgumentPlace> = (0..8).map(ArgumentPlace::Stack).collect();
        assert_eq!(places[..6], [0, 1, 2, 3, 4, 5].map(ArgumentPlace::Integer));
        assert_eq!(places[6..], stack);
        assert_eq!(gemm.arguments[6].class, ArgumentClass::Scalar(Scalar::Real(4)));
        let rank = function("ncclCommInitRankConfig");
        let places: Vec<ArgumentPlace> = rank.arguments.iter().map(|argument| argument.place).collect();
        let (memory, integer) = (ArgumentPlace::Stack(0), ArgumentPlace::Integer);
        assert_eq!(places, [integer(0), integer(1), memory, integer(2), integer(3)]);
        assert_eq!(rank.words, 16);
        let longer = function("rocblas_strmm");
        assert!(longer.arguments.last().unwrap().hidden, "ROCm 5 has fewer");
    }
}
