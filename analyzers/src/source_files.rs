//! The files of the source that messages name, by the hash that they have instead of a name.

use std::collections::HashMap;

use rpd_codeobject::SourceLines;
use rpd_dh_comms::file_name_hash;

/// Files of a code object.
#[derive(Clone, Debug, Default)]
pub struct SourceFiles(HashMap<u64, String>);

impl SourceFiles {
    /// Those that the debug information of a code object names; none where it has none.
    pub fn of(code_object: &[u8]) -> SourceFiles {
        let lines = SourceLines::of(code_object).unwrap_or_default();
        SourceFiles::named(lines.files())
    }

    fn named<'a>(files: impl IntoIterator<Item = &'a str>) -> SourceFiles {
        let mut names = HashMap::new();
        for file in files {
            names.insert(file_name_hash(file.as_bytes()), file.to_string());
            // A compiler that was given a relative path hashes that.
            for (place, _) in file.match_indices('/') {
                names
                    .entry(file_name_hash(&file.as_bytes()[place + 1..]))
                    .or_insert_with(|| file.to_string());
            }
        }
        SourceFiles(names)
    }

    /// All of them: hashes and names.
    pub fn all(&self) -> impl Iterator<Item = (u64, &str)> {
        self.0.iter().map(|(hash, name)| (*hash, name.as_str()))
    }

    /// The name of a file; its hash in hexadecimal digits where no file has it.
    pub fn name(&self, hash: u64) -> String {
        self.0.get(&hash).cloned().unwrap_or_else(|| format!("{hash:#018x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_and_relative_paths() {
        let files = SourceFiles::named(["/home/me/src/add.hip"]);
        for written in ["/home/me/src/add.hip", "src/add.hip", "add.hip"] {
            assert_eq!(files.name(file_name_hash(written.as_bytes())), "/home/me/src/add.hip");
        }
        assert_eq!(files.name(7), "0x0000000000000007");
        assert_eq!(SourceFiles::of(b"no code object").name(7), "0x0000000000000007");
    }
}
