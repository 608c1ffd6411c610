//! The files that Triton writes beside a code object. They say how its kernel is launched, which the code object does not.
//!
//! Triton's cache has a directory for each build. `NAME.json` has the options of the compiler and what the launcher needs, `NAME.ttir`
//! the program before any option of a build has a say (Triton 2.1 to 3.9, `triton/compiler/compiler.py`). The launcher runs
//! `num_warps * warp_size` work-items for each program of the grid and adds `shared` bytes of dynamic LDS
//! (`third_party/amd/backend/driver.py`).

use serde_json::Value;

/// How Triton launches one build of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TritonBuild {
    /// The kernel, as the code object names it.
    pub name: String,
    /// Work-items of a workgroup, all in its first dimension.
    pub workgroup: u32,
    /// Dynamic LDS of a workgroup, bytes.
    pub lds: u32,
    /// Why no launch of another build can be made into one of this, where that is so.
    pub obstacle: Option<String>,
}

impl TritonBuild {
    /// From the text of `NAME.json`.
    ///
    /// # Errors
    /// What is missing or wrong, in words.
    pub fn parse(json: &[u8]) -> Result<TritonBuild, String> {
        let value: Value =
            serde_json::from_slice(json).map_err(|error| format!("it is not JSON: {error}"))?;
        let number = |key: &str| {
            let number = value.get(key).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
            number.ok_or_else(|| format!("it does not say {key}"))
        };
        let name = value.get("name").and_then(Value::as_str).ok_or("it does not say name")?;
        let lanes = number("warp_size").or_else(|error| {
            let target = value.get("target").and_then(|target| target.get("warp_size"));
            target.and_then(Value::as_u64).and_then(|lanes| u32::try_from(lanes).ok()).ok_or(error)
        })?;
        let workgroup = number("num_warps")?.checked_mul(lanes).filter(|items| *items > 0);
        let workgroup = workgroup.ok_or("its workgroups have no size")?;
        // The launcher allocates these for the program's own build.
        let memory = ["global_scratch_size", "profile_scratch_size"].into_iter().find_map(|key| {
            let bytes = value.get(key).and_then(Value::as_u64).filter(|bytes| *bytes > 0)?;
            Some(format!("it needs {bytes} bytes of memory from Triton's launcher ({key})"))
        });
        let several = value.get("num_ctas").and_then(Value::as_u64).filter(|ctas| *ctas > 1);
        let several = several.map(|ctas| format!("{ctas} of its workgroups make one program (num_ctas)"));
        let together = value.get("launch_cooperative_grid").and_then(Value::as_bool).unwrap_or(false);
        let together = together.then(|| "its launch is cooperative (launch_cooperative_grid)".to_string());
        Ok(TritonBuild {
            name: name.to_string(),
            workgroup,
            lds: number("shared")?,
            obstacle: memory.or(several).or(together),
        })
    }

    /// The program of `NAME.ttir`, without where its lines were in the source: two builds have the same one if they were made of the same
    /// code for the same types, constants and properties of arguments.
    pub fn program(ttir: &str) -> String {
        let lines = ttir.lines().filter(|line| !line.starts_with("#loc"));
        let mut program = String::with_capacity(ttir.len() / 2);
        for line in lines {
            without_places(line, &mut program);
            program.push('\n');
        }
        program
    }
}

/// Adds a line of MLIR without its `loc(...)`, which may be nested and have quoted names in them.
fn without_places(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some((before, place)) = rest.split_once(" loc(") {
        out.push_str(before);
        let (mut depth, mut quoted, mut escaped) = (1, false, false);
        let end = place.char_indices().find(|(_, c)| {
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                '(' if !quoted => depth += 1,
                ')' if !quoted => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        rest = end.map_or("", |(end, _)| &place[end + 1..]);
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Triton 3.9 for gfx906, shortened.
    const JSON: &str = r#"{"hash": "e69a", "target": {"backend": "hip", "arch": "gfx906", "warp_size": 64}, "num_warps": 8,
        "num_stages": 2, "num_ctas": 1, "launch_cooperative_grid": false, "warp_size": 64, "shared": 4096,
        "global_scratch_size": 0, "profile_scratch_size": 0, "name": "add_kernel"}"#;

    #[test]
    fn what_a_launch_needs() {
        let build = TritonBuild::parse(JSON.as_bytes()).unwrap();
        let expected = TritonBuild { name: "add_kernel".into(), workgroup: 512, lds: 4096, obstacle: None };
        assert_eq!(build, expected);
        // Older ones have the size of a wavefront in the target alone.
        let older = JSON.replace("\"warp_size\": 64, \"shared\"", "\"shared\"");
        assert_eq!(TritonBuild::parse(older.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn what_only_tritons_launcher_can_do() {
        for (from, to, why) in [
            ("\"global_scratch_size\": 0", "\"global_scratch_size\": 128", "it needs 128 bytes of memory"),
            ("\"num_ctas\": 1", "\"num_ctas\": 2", "2 of its workgroups make one program"),
            (
                "\"launch_cooperative_grid\": false",
                "\"launch_cooperative_grid\": true",
                "its launch is cooperative",
            ),
        ] {
            let build = TritonBuild::parse(JSON.replace(from, to).as_bytes()).unwrap();
            assert!(build.obstacle.is_some_and(|obstacle| obstacle.starts_with(why)), "{why}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (json, why) in [
            ("", "it is not JSON"),
            ("[]", "it does not say name"),
            ("{\"name\": \"a\", \"num_warps\": 4}", "it does not say warp_size"),
            ("{\"name\": \"a\", \"warp_size\": 64}", "it does not say num_warps"),
            ("{\"name\": \"a\", \"num_warps\": 4, \"warp_size\": 64}", "it does not say shared"),
            ("{\"name\": \"a\", \"num_warps\": -4, \"warp_size\": 64}", "it does not say num_warps"),
            (
                "{\"name\": \"a\", \"num_warps\": 4294967295, \"warp_size\": 64}",
                "its workgroups have no size",
            ),
        ] {
            let refused = TritonBuild::parse(json.as_bytes()).unwrap_err();
            assert!(refused.starts_with(why), "{json}: {refused}");
        }
    }

    #[test]
    fn places_are_no_part_of_a_program() {
        let ttir = |file: &str, constant: u32| {
            format!(
                "#loc = loc(\"{file}\":3:1)\n#loc1 = loc(\"x\"(#loc))\nmodule {{\n  tt.func public @add(%x: !tt.ptr<f32> loc(\"x) \\\"\"(#loc)), \
                 %n: i32 loc(\"n\"(#loc))) {{\n    %c = arith.constant {constant} : i32 loc(#loc1)\n  }} loc(#loc)\n}} loc(#loc)\n"
            )
        };
        let program = TritonBuild::program(&ttir("/a/kernel.py", 1024));
        let text = "module {\n  tt.func public @add(%x: !tt.ptr<f32>, %n: i32) {\n    %c = arith.constant 1024 : i32\n  }\n}\n";
        assert_eq!(program, text);
        assert_eq!(program, TritonBuild::program(&ttir("/b.py", 1024)));
        assert_ne!(program, TritonBuild::program(&ttir("/a/kernel.py", 512)));
        assert_eq!(TritonBuild::program("a loc(\"never ends"), "a\n");
    }
}
