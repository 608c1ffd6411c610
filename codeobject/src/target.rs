//! The processor that a code object was built for: the ELF flags of the AMDGPU back end.

use std::fmt;

/// Processor numbers in the low byte of `e_flags`.
const PROCESSORS: &[(u8, &str)] = &[
    (0x2a, "gfx803"),
    (0x2c, "gfx900"),
    (0x2d, "gfx902"),
    (0x2e, "gfx904"),
    (0x2f, "gfx906"),
    (0x30, "gfx908"),
    (0x31, "gfx909"),
    (0x32, "gfx90c"),
    (0x33, "gfx1010"),
    (0x34, "gfx1011"),
    (0x35, "gfx1012"),
    (0x36, "gfx1030"),
    (0x37, "gfx1031"),
    (0x38, "gfx1032"),
    (0x39, "gfx1033"),
    (0x3d, "gfx1035"),
    (0x3e, "gfx1034"),
    (0x3f, "gfx90a"),
    (0x40, "gfx940"),
    (0x41, "gfx1100"),
    (0x42, "gfx1013"),
    (0x43, "gfx1150"),
    (0x44, "gfx1103"),
    (0x45, "gfx1036"),
    (0x46, "gfx1101"),
    (0x47, "gfx1102"),
    (0x48, "gfx1200"),
    (0x4a, "gfx1151"),
    (0x4b, "gfx941"),
    (0x4c, "gfx942"),
    (0x4e, "gfx1201"),
    (0x4f, "gfx950"),
    (0x51, "gfx9-generic"),
    (0x52, "gfx10-1-generic"),
    (0x53, "gfx10-3-generic"),
    (0x54, "gfx11-generic"),
    (0x55, "gfx1152"),
    (0x58, "gfx1153"),
    (0x59, "gfx12-generic"),
    (0x5f, "gfx9-4-generic"),
];

/// How a code object was built with regard to a feature that a processor can have switched on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// The processor lacks it; in ABI version 3 also: it has it, and the code is built for off.
    Absent,
    /// The code runs with either setting.
    Any,
    /// The code needs it off.
    Off,
    /// The code needs it on.
    On,
}

impl Feature {
    /// Meaning of the two bits that ABI version 4 and later use.
    fn from_two_bits(bits: u32) -> Feature {
        match bits & 3 {
            0 => Feature::Absent,
            1 => Feature::Any,
            2 => Feature::Off,
            _ => Feature::On,
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Feature::Absent | Feature::Any => "",
            Feature::Off => "-",
            Feature::On => "+",
        }
    }
}

/// The processor a code object runs on and the features it insists on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Such as `gfx90a`; `amdgpu-0x7a` for a number that is not in this crate's table.
    pub processor: String,
    /// Error correction of the register file and LDS.
    pub sramecc: Feature,
    /// Retry after a page fault.
    pub xnack: Feature,
    /// Version of a generic target (`gfx11-generic`), from 1; 0 for all others.
    pub generic_version: u8,
}

impl Target {
    /// Decodes `e_flags` for a code object ABI version (3 and later; 2 has the layout of 3).
    pub(crate) fn from_flags(flags: u32, abi_version: u8) -> Target {
        let number = (flags & 0xff) as u8;
        let processor = match PROCESSORS.iter().find(|(known, _)| *known == number) {
            Some((_, name)) => (*name).to_string(),
            None => format!("amdgpu-{number:#04x}"),
        };
        let on = |bit: u32| if flags & bit != 0 { Feature::On } else { Feature::Absent };
        let (xnack, sramecc) = match abi_version {
            0..=3 => (on(0x100), on(0x200)),
            _ => (Feature::from_two_bits(flags >> 8), Feature::from_two_bits(flags >> 10)),
        };
        let generic_version = if abi_version >= 6 { (flags >> 24) as u8 } else { 0 };
        Target { processor, sramecc, xnack, generic_version }
    }

    /// Whether vector and accumulation registers share one file, and are counted together.
    pub fn has_one_register_file(&self) -> bool {
        ["gfx90a", "gfx940", "gfx941", "gfx942", "gfx950", "gfx9-4-generic"]
            .contains(&self.processor.as_str())
    }
}

/// From the spelling of compilers and runtimes: `gfx90a:sramecc+:xnack-`. Words that this crate does not know are left out.
impl From<&str> for Target {
    fn from(text: &str) -> Target {
        let mut words = text.split(':');
        let processor = words.next().unwrap_or_default().to_string();
        let mut target = Target { processor, sramecc: Feature::Any, xnack: Feature::Any, generic_version: 0 };
        for word in words {
            let setting = if word.ends_with('+') { Feature::On } else { Feature::Off };
            match word.trim_end_matches(['+', '-']) {
                "sramecc" => target.sramecc = setting,
                "xnack" => target.xnack = setting,
                _ => {}
            }
        }
        target
    }
}

/// The spelling of compilers and runtimes: `gfx90a:sramecc+:xnack-`, features that do not matter left out.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.processor)?;
        for (name, feature) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            if !feature.suffix().is_empty() {
                write!(f, ":{name}{}", feature.suffix())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_seen_in_real_objects() {
        assert_eq!(Target::from_flags(0x32f, 3).to_string(), "gfx906:sramecc+:xnack+");
        let any = Target::from_flags(0x52f, 4);
        assert_eq!((any.xnack, any.sramecc), (Feature::Any, Feature::Any));
        assert_eq!(any.to_string(), "gfx906");
        assert_eq!(Target::from_flags(0x53f, 5).to_string(), "gfx90a");
        assert_eq!(Target::from_flags(0xe3f, 5).to_string(), "gfx90a:sramecc+:xnack-");
        assert_eq!(Target::from_flags(0x36, 5).xnack, Feature::Absent);
    }

    #[test]
    fn spellings_are_read_as_they_are_written() {
        for text in ["gfx906", "gfx90a:sramecc+:xnack-", "gfx908:xnack+", "gfx11-generic", ""] {
            assert_eq!(Target::from(text).to_string(), text);
        }
        assert_eq!(Target::from("gfx906:new+:xnack-").to_string(), "gfx906:xnack-");
    }

    #[test]
    fn generic_targets_and_unknown_numbers() {
        let generic = Target::from_flags(0x0100_0054, 6);
        assert_eq!((generic.processor.as_str(), generic.generic_version), ("gfx11-generic", 1));
        assert_eq!(Target::from_flags(0x0100_0036, 5).generic_version, 0);
        assert_eq!(Target::from_flags(0x07, 5).processor, "amdgpu-0x07");
    }

    #[test]
    fn no_number_is_listed_twice() {
        let mut numbers: Vec<u8> = PROCESSORS.iter().map(|(number, _)| *number).collect();
        numbers.dedup();
        assert_eq!(numbers.len(), PROCESSORS.len());
        assert!(numbers.is_sorted());
    }
}
