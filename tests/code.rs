//! `rpd code` against LLVM's own tools: facts of kernels, instructions, lines of the source, basic blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Dir, command, llvm, llvm_tool, not_tested, program, rpd, tool, unbundled};
use crate::resources::{code_object, kernels};

/// What `rpd code` says with these options, as JSON.
#[track_caller]
fn said(file: &Path, options: &[&str]) -> Vec<Value> {
    let file = file.to_str().unwrap();
    let arguments = [&["code", "--json"], options, &[file]].concat();
    serde_json::from_str(&tool(rpd().to_str().unwrap(), &arguments)).unwrap()
}

/// The sample kernels, with debug information, for a processor.
fn sample(dir: &Dir, gfx: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../codeobject/tests/data/kernels.hip");
    let bundle = dir.path(&format!("{gfx}.bundle"));
    let arch = format!("--offload-arch={gfx}");
    let compile = ["--genco", "-O2", "-g", &arch, source.to_str().unwrap(), "-o", bundle.to_str().unwrap()];
    tool("hipcc", &compile);
    bundle
}

#[test]
fn the_table_says_what_the_notes_say() {
    for name in ["demo", "streams", "graph"] {
        let program = program(name);
        let dir = Dir::new();
        let said = said(&program, &["--args"]);
        let mut compared = 0;
        for gfx in ["gfx900", "gfx906"] {
            for (symbol, facts) in kernels(&code_object(&dir, &program, gfx)) {
                let is_it = |kernel: &&Value| {
                    kernel["target"] == gfx && format!("{}.kd", kernel["symbol"].as_str().unwrap()) == symbol
                };
                let kernel = said.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {symbol}"));
                for (field, key) in [
                    ("vgpr", "vgpr_count"),
                    ("sgpr", "sgpr_count"),
                    ("vgpr_spills", "vgpr_spill_count"),
                    ("sgpr_spills", "sgpr_spill_count"),
                    ("lds", "group_segment_fixed_size"),
                    ("scratch", "private_segment_fixed_size"),
                    ("kernarg", "kernarg_segment_size"),
                    ("wavefront", "wavefront_size"),
                    ("max_workgroup", "max_flat_workgroup_size"),
                ] {
                    assert_eq!(kernel[field].to_string(), facts[key], "{name}: {symbol}: {field}");
                }
                compared += 1;
            }
        }
        assert_eq!(compared, said.len(), "{name}");
    }
}

/// What llvm-objdump says of an object: instructions by address, with their words and where they branch to, and the symbols.
struct Dump {
    instructions: BTreeMap<u64, Dumped>,
    /// Labels of several kernels may have one name.
    symbols: BTreeMap<String, BTreeSet<u64>>,
}

struct Dumped {
    text: String,
    words: String,
    /// Of a direct branch: a symbol and the distance behind it.
    target: Option<(String, u64)>,
    /// The line of the source that was named last.
    line: Option<String>,
}

impl Dump {
    fn of(object: &Path) -> Dump {
        let text = tool(&llvm_tool("llvm-objdump"), &["-d", "-z", "-l", object.to_str().unwrap()]);
        let mut dump = Dump { instructions: BTreeMap::new(), symbols: BTreeMap::new() };
        // ADDRESS TYPE NAME; llvm-objdump shows one name of each address.
        let names = tool(&llvm_tool("llvm-nm"), &[object]);
        for line in names.lines() {
            let mut words = line.split_whitespace();
            let (Some(address), _, Some(name)) = (words.next(), words.next(), words.next()) else { continue };
            let address = u64::from_str_radix(address, 16).unwrap();
            dump.symbols.entry(name.to_string()).or_default().insert(address);
        }
        let mut named = None;
        for line in text.lines() {
            if line.ends_with(">:") {
                named = None;
            }
            if let Some(place) = line.strip_prefix("; ").filter(|line| !line.ends_with("():")) {
                named = Some(place.to_string());
            }
            let Some((text, comment)) = line.strip_prefix('\t').and_then(|line| line.split_once("// "))
            else {
                continue;
            };
            let (address, rest) = comment.split_once(": ").unwrap();
            let (words, target) = rest.split_once(" <").unwrap_or((rest, ""));
            let target = target.strip_suffix('>').map(|target| match target.rsplit_once("+0x") {
                Some((symbol, distance)) => (symbol.to_string(), u64::from_str_radix(distance, 16).unwrap()),
                None => (target.to_string(), 0),
            });
            let text = text.trim();
            // Where a symbol is at the very place, it is the operand.
            let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
            let operand = operands.rsplit([' ', ',']).next().filter(|_| is_direct(name));
            let operand = operand.filter(|operand| operand.parse::<i64>().is_err());
            let target = target.or(operand.map(|symbol| (symbol.to_string(), 0)));
            let dumped = Dumped {
                text: text.to_string(),
                words: words.trim().to_lowercase(),
                target,
                line: named.clone(),
            };
            dump.instructions.insert(u64::from_str_radix(address, 16).unwrap(), dumped);
        }
        dump
    }

    /// Addresses at which blocks begin between two: targets of branches as llvm-objdump resolves them, and what follows a branch, a call or
    /// the end.
    fn leaders(&self, from: u64, to: u64) -> BTreeSet<u64> {
        let mut leaders = BTreeSet::from([from]);
        let mut after = false;
        for (address, instruction) in self.instructions.range(from..to) {
            if after {
                leaders.insert(*address);
            }
            let name = instruction.text.split(' ').next().unwrap();
            after =
                ["s_branch", "s_call_b64", "s_swappc_b64", "s_setpc_b64", "s_rfe_b64", "s_rfe_restore_b64"]
                    .contains(&name)
                    || ["s_cbranch", "s_endpgm", "s_subvector_loop"]
                        .iter()
                        .any(|begin| name.starts_with(begin));
            if let Some((symbol, distance)) = instruction.target.as_ref().filter(|_| after) {
                let words = u16::from_str_radix(&instruction.words[4..8], 16).unwrap().cast_signed();
                let target = (address + 4).wrapping_add_signed(4 * i64::from(words));
                assert!(
                    self.symbols[symbol].contains(&(target - distance)),
                    "{address:#x}: {}",
                    instruction.text
                );
                leaders.insert(target);
            }
        }
        leaders.retain(|leader| (from..to).contains(leader) && self.instructions.contains_key(leader));
        leaders
    }
}

/// Whether the instruction of that name has a target in it.
fn is_direct(name: &str) -> bool {
    let is_indirect = ["s_cbranch_g_fork", "s_cbranch_join"].contains(&name);
    let direct = ["s_branch", "s_cbranch_", "s_call_", "s_subvector_loop_"];
    !is_indirect && direct.iter().any(|begin| name.starts_with(begin))
}

/// What was compared.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Compared {
    functions: usize,
    instructions: usize,
    lines: usize,
    blocks: usize,
    /// Branches that say where they lead.
    direct: usize,
    /// Branches through registers whose target rpd worked out.
    resolved: usize,
    unresolved: usize,
}

/// The address to which an edge leads.
fn leads_to(edge: &Value, blocks: &[Value]) -> u64 {
    match edge["block"].as_u64() {
        Some(block) => blocks[block as usize]["address"].as_u64().unwrap(),
        None => edge["address"].as_u64().unwrap(),
    }
}

/// Compares each function of `file`, which rpd reads, with `object`, its code object, which llvm-objdump reads.
fn compare(file: &Path, object: &Path) -> Compared {
    let dump = Dump::of(object);
    let labels: BTreeSet<u64> = dump.symbols.values().flatten().copied().collect();
    let mut compared = Compared::default();
    for function in said(file, &[&["--disasm", "--cfg"], &llvm().1[..]].concat()) {
        compared.functions += 1;
        let name = &function["symbol"];
        let blocks = function["blocks"].as_array().unwrap();
        let begin = function["address"].as_u64().unwrap();
        let end = blocks.last().map_or(begin, |block| block["end"].as_u64().unwrap());
        let instructions = function["instructions"].as_array().unwrap();
        let theirs: Vec<_> = dump.instructions.range(begin..end).collect();
        assert_eq!(instructions.len(), theirs.len(), "{name}");
        for (instruction, (address, dumped)) in instructions.iter().zip(&theirs) {
            assert_eq!(instruction["address"].as_u64(), Some(**address), "{name}");
            assert_eq!(instruction["bytes"].as_str().unwrap(), dumped.words, "{name} {address:#x}");
            let text = instruction["text"].as_str().unwrap();
            match &dumped.target {
                // llvm-objdump may name what a branch leads to.
                Some(_) => {
                    assert_eq!(text.split(' ').next(), dumped.text.split(' ').next(), "{name} {address:#x}")
                }
                None => assert_eq!(text, dumped.text, "{name} {address:#x}"),
            }
            if let (Some(file), Some(line)) = (instruction["file"].as_str(), instruction["line"].as_u64()) {
                assert_eq!(Some(format!("{file}:{line}")), dumped.line, "{name} {address:#x}");
                compared.lines += 1;
            }
        }
        compared.instructions += theirs.len();
        let mut expected = dump.leaders(begin, end);
        for block in blocks {
            let last = block["first"].as_u64().unwrap() + block["instructions"].as_u64().unwrap() - 1;
            let text = instructions[last as usize]["text"].as_str().unwrap();
            let said = theirs[last as usize]
                .1
                .target
                .as_ref()
                .filter(|_| is_direct(text.split(' ').next().unwrap()));
            for edge in block["edges"].as_array().unwrap() {
                let kind = edge["kind"].as_str().unwrap();
                if let Some((symbol, distance)) = said.filter(|_| ["branch", "call", "taken"].contains(&kind))
                {
                    compared.direct += 1;
                    let leads_to = leads_to(edge, blocks);
                    let is_it = |symbol: &u64| symbol + distance == leads_to;
                    assert!(dump.symbols[symbol].iter().any(is_it), "{name}: {text} leads to {leads_to:#x}");
                }
                compared.unresolved += usize::from(kind.starts_with("indirect"));
                if !["branch", "call"].contains(&kind)
                    || !["s_setpc", "s_swappc"].iter().any(|name| text.starts_with(name))
                {
                    continue;
                }
                // Whoever wrote the assembly put a label where it leads, and llvm-objdump knows that.
                compared.resolved += 1;
                let target = leads_to(edge, blocks);
                assert!(labels.contains(&target), "{name}: {text} leads to {target:#x}");
                expected.extend((begin..end).contains(&target).then_some(target));
            }
        }
        let ours: BTreeSet<u64> = blocks.iter().map(|block| block["address"].as_u64().unwrap()).collect();
        assert_eq!(ours, expected, "{name}");
        assert_eq!(ours.len(), blocks.len(), "{name}");
        compared.blocks += blocks.len();
    }
    compared
}

#[test]
fn instructions_lines_and_blocks_are_those_of_objdump() {
    for gfx in ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx1010", "gfx1030"] {
        let dir = Dir::new();
        let bundle = sample(&dir, gfx);
        let compared = compare(&bundle, &unbundled(&bundle, gfx));
        assert!(compared.functions >= 5 && compared.blocks > compared.functions, "{gfx}: {compared:?}");
        assert!(compared.lines > 30, "{gfx}: {compared:?}");
    }
}

/// What ends a block; `@` stands for a label.
const BRANCHES: [&str; 26] = [
    "s_branch @",
    "s_cbranch_scc0 @",
    "s_cbranch_scc1 @",
    "s_cbranch_vccz @",
    "s_cbranch_vccnz @",
    "s_cbranch_execz @",
    "s_cbranch_execnz @",
    "s_cbranch_cdbgsys @",
    "s_cbranch_cdbguser @",
    "s_cbranch_cdbgsys_or_user @",
    "s_cbranch_cdbgsys_and_user @",
    "s_cbranch_i_fork s[0:1], @",
    "s_subvector_loop_begin s0, @",
    "s_subvector_loop_end s0, @",
    "s_call_b64 s[20:21], @",
    "s_cbranch_g_fork s[0:1], s[2:3]",
    "s_cbranch_join s0",
    "s_setpc_b64 s[30:31]",
    "s_swappc_b64 s[30:31], s[8:9]",
    "s_rfe_b64 s[0:1]",
    "s_rfe_restore_b64 s[0:1], s2",
    "s_endpgm",
    "s_endpgm_saved",
    "s_endpgm_ordered_ps_done",
    // The address of a label made of the instruction's own, up or down.
    "s_getpc_b64 s[4:5]\nH!: s_add_u32 s4, s4, @-H!\ns_addc_u32 s5, s5, 0\ns_setpc_b64 s[4:5]",
    "s_getpc_b64 s[4:5]\nH!: s_sub_u32 s4, s4, H!-@\ns_subb_u32 s5, s5, 0\ns_swappc_b64 s[30:31], s[4:5]",
];

/// A function of these, with a label in front of each, to which they lead back and forth.
fn of_branches(branches: &[&str]) -> String {
    let mut text = String::from(".text\n.globl f\n.type f,@function\nf:\n");
    for (number, branch) in branches.iter().enumerate() {
        // Up for what can only go up, and down for what can only go down.
        let to = match branch {
            branch if branch.contains("s_add_u32") => branches.len() - 1,
            branch if branch.contains("s_sub_u32") => 0,
            _ => (number * 7 + 3) % branches.len(),
        };
        let branch = branch.replace('@', &format!("T{to}")).replace('!', &number.to_string());
        text += &format!("T{number}: s_nop 0\n{branch}\n");
    }
    text + "s_endpgm\n.size f, .-f\n.rodata\n.p2align 6\n.amdhsa_kernel f\n.amdhsa_next_free_vgpr 1\n\
            .amdhsa_next_free_sgpr 40\n.amdhsa_reserve_vcc 0\n@MORE@.end_amdhsa_kernel\n"
}

/// Every instruction that branches, on every processor that the assembler knows.
#[test]
fn every_branch_of_every_processor() {
    let mut processors = [
        "gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a", "gfx90c", "gfx940", "gfx1010",
        "gfx1011", "gfx1012", "gfx1013", "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035",
        "gfx1036", "gfx1100", "gfx1101", "gfx1102", "gfx1103",
    ]
    .to_vec();
    if llvm().0 == "21" {
        // Which this one knows no more.
        processors.retain(|gfx| *gfx != "gfx940");
        processors
            .extend(["gfx942", "gfx950", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1200", "gfx1201"]);
    }
    for gfx in processors {
        let dir = Dir::new();
        let (assembly, object, linked) = (dir.path("f.s"), dir.path("f.o"), dir.path("f.co"));
        let more = if gfx.starts_with("gfx90a") || gfx.starts_with("gfx94") || gfx == "gfx950" {
            ".amdhsa_accum_offset 4\n"
        } else {
            ""
        };
        let write =
            |branches: &[&str]| fs::write(&assembly, of_branches(branches).replace("@MORE@", more)).unwrap();
        let cpu = format!("--mcpu={gfx}");
        let options = [&*cpu, "--triple=amdgcn-amd-amdhsa", "--filetype=obj", "-o"];
        let mut known = BRANCHES.to_vec();
        // Those that the processor does not have, one after the other.
        loop {
            write(&known);
            let mut assembler = command(llvm_tool("llvm-mc"));
            let run = assembler.args(options).args([&object, &assembly]).output().unwrap();
            let errors = String::from_utf8_lossy(&run.stderr).into_owned();
            if run.status.success() {
                break;
            }
            let text = fs::read_to_string(&assembly).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            let place = errors.split(".s:").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
            let wrong = lines[place.parse::<usize>().unwrap() - 1].split(' ').next().unwrap();
            let before = known.len();
            known.retain(|branch| branch.split(' ').next() != Some(wrong));
            assert!(known.len() < before, "{gfx}: {errors}");
        }
        tool(
            &llvm_tool("ld.lld"),
            &["-shared".as_ref(), "-o".as_ref(), linked.as_os_str(), object.as_os_str()],
        );
        let compared = compare(&linked, &linked);
        let direct = known.iter().filter(|branch| branch.contains('@') && !branch.contains("getpc")).count();
        assert_eq!((compared.functions, compared.direct), (1, direct), "{gfx}: {known:?}");
        assert_eq!(compared.resolved, 2, "{gfx}: {compared:?}");
        // gfx9 forks waves, gfx10 has loops over halves of them, gfx11 neither; gfx12 has no debugger's branches.
        let least = if gfx.starts_with("gfx12") { 14 } else { 19 };
        assert!(known.len() >= least, "{gfx}: {known:?}");
    }
}

#[test]
fn programs_of_the_fixtures() {
    for name in ["demo", "streams", "graph", "events", "long"] {
        let (dir, program) = (Dir::new(), program(name));
        let object = code_object(&dir, &program, "gfx906");
        let compared = compare(&object, &object);
        assert!(compared.functions > 0 && compared.instructions > 10, "{name}: {compared:?}");
    }
}

/// Where the kernels of rocBLAS are: those of this machine, or of the tree that `make matrix` makes.
fn rocblas() -> Option<PathBuf> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/matrix/sid/usr/lib/x86_64-linux-gnu");
    let places = [PathBuf::from("/usr/lib/x86_64-linux-gnu"), PathBuf::from("/opt/rocm/lib"), tree];
    let versions =
        places.iter().filter_map(|place| fs::read_dir(place.join("rocblas")).ok()).flatten().flatten();
    versions.map(|version| version.path()).find_map(|version| {
        [version.join("library"), version]
            .into_iter()
            .find(|folder| folder.join("TensileLibrary_lazy_gfx906.dat").exists())
    })
}

/// Those in some files of middling size; `make soak` takes all.
#[test]
fn all_kernels_of_rocblas_for_gfx906() {
    let soak = std::env::var_os("RPD_SOAK").is_some();
    let Some(library) = rocblas() else {
        return not_tested("no rocBLAS (package librocblas0): `make matrix` makes a tree with one");
    };
    let mut files: Vec<PathBuf> = fs::read_dir(library).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| {
        let name = file.file_name().unwrap().to_string_lossy();
        name.contains("gfx906") && [".co", ".hsaco"].iter().any(|end| name.ends_with(end))
    });
    files.sort();
    assert!(files.len() > 50, "{files:?}");
    if !soak {
        files.retain(|file| (50_000..400_000).contains(&fs::metadata(file).unwrap().len()));
        files = files.into_iter().step_by(3).collect();
    }
    let mut all = Compared::default();
    for file in &files {
        let dir = Dir::new();
        // What hipcc made of rocBLAS's sources is a bundle.
        let object = match fs::read(file).unwrap().starts_with(b"\x7fELF") {
            true => file.clone(),
            false => {
                let bundle = dir.path("rocblas.bundle");
                fs::copy(file, &bundle).unwrap();
                unbundled(&bundle, "gfx906")
            }
        };
        let compared = compare(file, &object);
        all.functions += compared.functions;
        all.instructions += compared.instructions;
        all.blocks += compared.blocks;
        all.direct += compared.direct;
        all.resolved += compared.resolved;
        all.unresolved += compared.unresolved;
    }
    println!("{} files: {all:?}", files.len());
    let least = if soak { 5000 } else { 50 };
    assert!(all.functions > least && all.direct > least, "{all:?}");
    assert_eq!(all.unresolved, 0, "{all:?}");
}
