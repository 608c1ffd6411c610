//! LLVM's disassembler on instructions.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::faithful::Words;

/// How many instructions there are, all of which LLVM knows.
///
/// # Panics
/// When it does not know one of them.
pub(crate) fn knows(processor: &str, instructions: &BTreeSet<Words>) -> usize {
    // LLVM 15 does not know the number of gfx942.
    let processor = if processor.starts_with("gfx94") { "gfx940" } else { processor };
    let mut text = String::new();
    for (first, second) in instructions {
        let bytes = [Some(*first), *second].into_iter().flatten().flat_map(u32::to_le_bytes);
        let bytes: Vec<String> = bytes.map(|byte| format!("{byte:#04x}")).collect();
        // What is in brackets is decoded by itself.
        writeln!(text, "[{}]", bytes.join(" ")).expect("a text");
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), text).expect("as before");
    let mut command = Command::new("llvm-mc-15");
    command
        .args(["-disassemble", "-triple=amdgcn-amd-amdhsa", &format!("-mcpu={processor}")])
        .arg(file.path());
    let output = command.output();
    let output =
        output.unwrap_or_else(|error| panic!("cannot run llvm-mc-15 ({error}); install the package llvm-15"));
    let (shown, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(errors.is_empty(), "{}", errors.lines().take(20).collect::<Vec<_>>().join("\n"));
    let count = shown.lines().filter(|line| line.starts_with('\t') && !line.starts_with("\t.")).count();
    assert_eq!(count, instructions.len(), "{processor}");
    count
}
