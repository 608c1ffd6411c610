//! HIP's dispatch table of every size known, through rocprofiler_set_api_table. The functions' types are those of HIP's own header; what it
//! does not declare is called as the recorder's description has it.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;

use super::file;
use crate::harness::{Dir, Loading, Run, tool};

/// Bytes of the table in HIP 6.1, 6.2 and the steps up to October 2024, of a later one, and of one that ends within its first entries
/// (hip_api_trace.hpp).
const SIZES: [usize; 10] = [3504, 3544, 3552, 3560, 3624, 3696, 3704, 3712, 3824, 1736];

fn description(name: &str) -> PathBuf {
    file("tracer/src/sources/hip/description").join(name)
}

/// What HIP's header declares in C: name and type, from the compiler.
fn declared(dir: &Dir) -> HashMap<String, String> {
    let (source, list) = (dir.path("header.c"), dir.path("prototypes"));
    std::fs::write(&source, "#include <hip/hip_runtime_api.h>\n").unwrap();
    let define = "-D__HIP_PLATFORM_AMD__";
    let [source, list] = [source, list].map(|path| path.display().to_string());
    tool("gcc", &["-w", "-fsyntax-only", define, "-D__HIP_PLATFORM_HCC__", "-aux-info", &list, &source]);
    let text = std::fs::read_to_string(list).unwrap();
    let prototype = |line: &str| {
        let (_, line) = line.split_once("*/ extern ")?;
        let (result, rest) = line.split_once(' ')?;
        let (name, parameters) = rest.strip_suffix(';')?.split_once(' ')?;
        // A declaration with () is one of no parameters here.
        let parameters = if parameters.contains("???") { "()" } else { parameters };
        Some((name.to_string(), format!("{result}{parameters}")))
    };
    text.lines().filter_map(prototype).collect()
}

/// Name to the widths of its parameters, where all of them are passed in registers for integers or their like on the stack.
fn described() -> HashMap<String, Option<String>> {
    let text = std::fs::read_to_string(description("hip_api.tsv")).unwrap();
    let width = |cell: &str| {
        let mut parts = cell.split(':').skip(1);
        match (parts.next()?, parts.next()?) {
            ("z" | "p" | "s", _) | (_, "8") => Some('p'),
            ("i" | "u", "4") => Some('i'),
            ("i" | "u", "2") => Some('s'),
            ("i" | "u", "1") => Some('b'),
            (class, _) if class.starts_with(['o', 'm']) => Some('p'),
            _ => None,
        }
    };
    let lines = text.lines().filter_map(|line| line.strip_prefix("api\t"));
    let function = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        (cells[0].to_string(), cells[3..].iter().map(|cell| width(cell)).collect())
    };
    lines.map(function).collect()
}

/// hip.cpp, and how many functions of the first `size` bytes of a table it expects to be replaced.
fn built(dir: &Dir) -> (PathBuf, Vec<(usize, String)>) {
    let (declared, described) = (declared(dir), described());
    let list = std::fs::read_to_string(description("dispatch.txt")).unwrap();
    let (mut functions, mut wrapped) = (String::new(), vec![]);
    for (number, line) in list.lines().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        let (offset, name): (usize, _) = (words[1].parse().unwrap(), words[2]);
        // It returns a text.
        if name == "hipGetErrorString" {
            continue;
        }
        let base = name.strip_suffix("_spt").unwrap_or(name);
        let Some(known) = [name, base].into_iter().find(|name| described.contains_key(*name)) else {
            continue;
        };
        let prototype = declared.get(name).or_else(|| declared.get(base));
        match (prototype, &described[known]) {
            (Some(prototype), _) => writeln!(functions, "DECLARED({number}, {name}, {prototype})").unwrap(),
            (None, Some(widths)) => writeln!(functions, "PLAIN({number}, {name}, \"{widths}\")").unwrap(),
            (None, None) => panic!("{name}: the header does not declare it, and it takes a structure"),
        }
        wrapped.push((offset, name.to_string()));
    }
    std::fs::write(dir.path("functions.inc"), functions).unwrap();
    let (source, program) = (file("tests/programs/tables/hip.cpp"), dir.path("hip"));
    let include = format!("-I{}", dir.path("").display());
    let [source, output] = [&source, &program].map(|path| path.display().to_string());
    let arguments = ["-std=c++17", "-w", "-D__HIP_PLATFORM_AMD__", "-D__HIP_PLATFORM_HCC__"];
    tool("c++", &[&arguments[..], &[&include, &source, "-o", &output, "-ldl"]].concat());
    (program, wrapped)
}

#[test]
fn every_function_calls_its_original_with_what_it_was_called_with() {
    let dir = Dir::new();
    let (program, wrapped) = built(&dir);
    assert!(wrapped.len() > 300, "{}", wrapped.len());
    for size in SIZES {
        let trace = format!("{size}.rpd");
        let run = Run::new(&dir, &program).arg(description("dispatch.txt")).arg(size.to_string());
        let run = run.env("RPDT_FILENAME", &trace).env("RPDT_HIP_APIS", "all");
        let ran = run.recorded(Loading::Preload).run();
        let mut names: Vec<&str> =
            wrapped.iter().filter(|(at, _)| at + 8 <= size).map(|(_, name)| name.as_str()).collect();
        assert_eq!(ran.expect(0).stdout, format!("replaced {}\n", names.len()), "{size}{ran}");
        assert!(ran.stderr.contains("a third copy of HIP") && ran.stderr.lines().count() == 1, "{ran}");
        let trace = dir.trace(&trace);
        // One row for each copy of the library; those of streams of a thread go by the name that HIP itself gives them.
        let rows =
            trace.texts("select apiName || ' ' || count(*) from api group by apiName order by apiName");
        names.iter_mut().for_each(|name| *name = name.strip_suffix("_spt").unwrap_or(name));
        names.sort_unstable();
        let mut counted: Vec<(&str, usize)> = vec![];
        for name in names {
            match counted.last_mut() {
                Some((last, count)) if *last == name => *count += 2,
                _ => counted.push((name, 2)),
            }
        }
        let expected: Vec<String> = counted.iter().map(|(name, count)| format!("{name} {count}")).collect();
        assert_eq!(rows, expected, "{size}");
    }
}

#[test]
fn arguments_are_in_the_rows() {
    let dir = Dir::new();
    let (program, _) = built(&dir);
    let run = Run::new(&dir, program).arg(description("dispatch.txt")).arg("3712");
    let ran = run
        .env("RPDT_HIP_APIS", "none,+hipMalloc,+hipEventElapsedTime,+hipStreamQuery")
        .recorded(Loading::Preload)
        .run();
    assert_eq!(ran.expect(0).stdout, "replaced 4\n", "hipStreamQuery_spt is one of them{ran}");
    let trace = dir.trace("trace.rpd");
    let rows = trace.texts("select distinct apiName || ' ' || args from api order by 1");
    // The program's bytes: argument n consists of 0x11 + n; what pointers point to is 0.
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows[0].starts_with("hipEventElapsedTime ms=0 | start=0x"), "{rows:?}");
    assert!(rows[2].starts_with("hipStreamQuery stream=0x"), "{rows:?}");
    assert_eq!(rows[1], "hipMalloc ptr=0x0 | size=0x1212121212121212");
}
