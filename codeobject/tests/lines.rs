//! Lines of the source, as llvm-dwarfdump (15) shows the line tables of these objects; and damaged ones.

use std::fs;
use std::path::PathBuf;

use rpd_codeobject::{SourceLines, functions};

fn bytes(file: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "data", file].iter().collect();
    fs::read(path).expect(file)
}

/// Addresses and lines of `named`, the same in both versions of DWARF. 0: no line of the source.
const TABLE: [(u64, u32); 22] = [
    (0x1800, 5),
    (0x1810, 0),
    (0x1820, 5),
    (0x1838, 6),
    (0x1840, 5),
    (0x1844, 6),
    (0x184c, 5),
    (0x1850, 6),
    (0x1864, 0),
    (0x1870, 7),
    (0x1874, 6),
    (0x1880, 6),
    (0x1894, 0),
    (0x18a4, 7),
    (0x18ac, 7),
    (0x18b0, 7),
    (0x18c8, 7),
    (0x18d4, 7),
    (0x18dc, 7),
    (0x18e4, 8),
    (0x18e8, 0),
    (u64::MAX, 0),
];

#[test]
fn every_address_has_the_line_of_the_table() {
    for file in ["lines-dwarf4.co", "lines-dwarf5.co"] {
        let lines = SourceLines::of(&bytes(file)).unwrap();
        assert_eq!(lines.at(0x17ff), None, "{file}");
        for pair in TABLE.windows(2) {
            let [(from, line), (to, _)] = pair else { unreachable!() };
            for address in (*from..*to).take(256) {
                let expected = Some(("/src/named.cl", *line)).filter(|(_, line)| *line > 0);
                assert_eq!(lines.at(address), expected, "{file} {address:#x}");
            }
        }
    }
}

#[test]
fn the_functions_have_lines() {
    let bytes = bytes("lines-dwarf5.co");
    let lines = SourceLines::of(&bytes).unwrap();
    let functions = functions(&bytes).unwrap();
    let named: Vec<_> =
        functions.iter().map(|function| (function.name, function.address, function.code.len())).collect();
    assert_eq!(named, [("named", 0x1800, 0xe8)]);
    assert!(functions[0].descriptor.is_some() && lines.at(functions[0].address).is_some());
}

#[test]
fn an_object_without_debug_information_has_none() {
    let lines = SourceLines::of(&bytes("gfx906-v4.co")).unwrap();
    assert!(lines.is_empty());
    assert_eq!(lines.at(0x1000), None);
}
