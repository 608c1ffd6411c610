//! What is read from real code objects is what `llvm-readelf --notes` shows of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use rpd_codeobject::{Argument, CodeObject, FactsFrom, Feature, Kernel};

fn data(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", file].iter().collect()
}

fn object(name: &str) -> CodeObject {
    CodeObject::parse(&fs::read(data(name)).expect(name)).expect(name)
}

type Fields = BTreeMap<String, String>;

/// Keys that this crate has no use for. A key that is neither read nor listed here fails the test.
const NOT_READ: [&str; 4] = [".language", ".language_version", ".is_restrict", ".pointee_align"];

/// The kernels of readelf's text: fields, and fields of each argument. The text is indented in one fixed way.
fn shown(text: &str) -> Vec<(Fields, Vec<Fields>)> {
    let mut kernels: Vec<(Fields, Vec<Fields>)> = Vec::new();
    let mut list = String::new();
    let lines = text.lines().skip_while(|line| *line != "amdhsa.kernels:").skip(1);
    for line in lines.take_while(|line| line.starts_with(' ')) {
        let item = line.trim_start();
        let indent = line.len() - item.len();
        let (is_item, item) = match item.strip_prefix("- ") {
            Some(item) => (true, item),
            None => (false, item),
        };
        if indent == 2 && is_item {
            kernels.push(Default::default());
        }
        let (fields, arguments) = kernels.last_mut().expect("a kernel begins with a dash");
        let Some((key, value)) = item.split_once(':') else {
            // An element of a list of numbers.
            fields.entry(list.clone()).or_default().push_str(&format!("{item} "));
            continue;
        };
        let value = value.trim().trim_matches('\'').to_string();
        if indent <= 4 {
            list = key.to_string();
            // An empty list of arguments is written on the line of its key.
            if !value.is_empty() && value != "[]" {
                fields.insert(key.to_string(), value);
            }
        } else {
            if is_item {
                arguments.push(Default::default());
            }
            arguments.last_mut().expect("an argument begins with a dash").insert(key.to_string(), value);
        }
    }
    for (fields, arguments) in &mut kernels {
        fields.retain(|key, _| !NOT_READ.contains(&key.as_str()));
        arguments.iter_mut().for_each(|argument| argument.retain(|key, _| !NOT_READ.contains(&key.as_str())));
    }
    kernels
}

/// Our view of a kernel in the note's own words; what a note may leave out only where it says something.
fn kernel_fields(kernel: &Kernel, shown: &Fields) -> Fields {
    let mut fields = Fields::new();
    let numbers = [
        (".kernarg_segment_size", kernel.kernarg_segment_size),
        (".kernarg_segment_align", kernel.kernarg_segment_align),
        (".group_segment_fixed_size", kernel.group_segment_fixed_size),
        (".private_segment_fixed_size", kernel.private_segment_fixed_size),
        (".vgpr_count", kernel.vgpr_count),
        (".sgpr_count", kernel.sgpr_count),
        (".vgpr_spill_count", kernel.vgpr_spill_count),
        (".sgpr_spill_count", kernel.sgpr_spill_count),
        (".wavefront_size", kernel.wavefront_size),
        (".max_flat_workgroup_size", kernel.max_flat_workgroup_size),
    ];
    fields.extend(numbers.map(|(key, number)| (key.to_string(), number.to_string())));
    fields.insert(".symbol".into(), kernel.symbol.clone());
    fields.insert(".name".into(), kernel.name.clone());
    if shown.contains_key(".agpr_count") || kernel.agpr_count != 0 {
        fields.insert(".agpr_count".into(), kernel.agpr_count.to_string());
    }
    if shown.contains_key(".uses_dynamic_stack") || kernel.uses_dynamic_stack {
        fields.insert(".uses_dynamic_stack".into(), kernel.uses_dynamic_stack.to_string());
    }
    if let Some(size) = kernel.reqd_workgroup_size {
        fields.insert(".reqd_workgroup_size".into(), size.map(|side| format!("{side} ")).concat());
    }
    fields
}

fn argument_fields(argument: &Argument) -> Fields {
    let mut fields = Fields::new();
    fields.insert(".offset".into(), argument.offset.to_string());
    fields.insert(".size".into(), argument.size.to_string());
    fields.insert(".value_kind".into(), argument.value_kind.clone());
    let texts = [
        (".name", &argument.name),
        (".type_name", &argument.type_name),
        (".address_space", &argument.address_space),
        (".access", &argument.access),
    ];
    fields.extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_string(), text.clone()?))));
    if argument.is_const {
        fields.insert(".is_const".into(), "true".into());
    }
    fields
}

fn same_as_readelf(name: &str, kernels: usize) {
    let object = object(&format!("{name}.co"));
    let shown = shown(&fs::read_to_string(data(&format!("{name}.notes"))).expect(name));
    assert_eq!(object.source, FactsFrom::Metadata);
    assert_eq!((shown.len(), object.kernels.len()), (kernels, kernels), "{name}");
    for (kernel, (fields, arguments)) in object.kernels.iter().zip(&shown) {
        assert_eq!(&kernel_fields(kernel, fields), fields, "{name}: {}", kernel.name);
        let read: Vec<Fields> = kernel.args.iter().map(argument_fields).collect();
        assert_eq!(&read, arguments, "{name}: arguments of {}", kernel.name);
    }
}

#[test]
fn every_field_of_every_version() {
    same_as_readelf("gfx900-v3", 5);
    same_as_readelf("gfx906-v4", 5);
    same_as_readelf("gfx908-v4", 6);
    same_as_readelf("gfx90a-v5", 6);
    same_as_readelf("gfx1030-v5", 5);
    same_as_readelf("named-v5", 1);
}

#[test]
fn targets_and_versions() {
    let facts = |name: &str| {
        let object = object(name);
        (object.target.to_string(), object.abi_version, object.metadata_version)
    };
    assert_eq!(facts("gfx900-v3.co"), ("gfx900:xnack+".into(), 3, Some((1, 0))));
    assert_eq!(facts("gfx906-v4.co"), ("gfx906".into(), 4, Some((1, 1))));
    assert_eq!(facts("gfx908-v4.co"), ("gfx908".into(), 4, Some((1, 1))));
    assert_eq!(facts("gfx90a-v5.co"), ("gfx90a".into(), 5, Some((1, 2))));
    assert_eq!(facts("gfx1030-v5.co"), ("gfx1030".into(), 5, Some((1, 2))));
    assert_eq!(facts("named-v5.co"), ("gfx906:sramecc+:xnack-".into(), 5, Some((1, 2))));
    let target = object("gfx906-v4.co").target;
    assert_eq!((target.sramecc, target.xnack), (Feature::Any, Feature::Any));
    assert_eq!(object("gfx1030-v5.co").target.sramecc, Feature::Absent);
}

#[test]
fn fields_that_only_some_kernels_have() {
    let object = object("gfx90a-v5.co");
    let kernel = |name: &str| object.kernel(name).unwrap();
    assert_eq!(kernel("_Z10accumulatePfff").agpr_count, 32);
    assert!(kernel("_Z10accumulatePfff").vgpr_count > 32, "on gfx90a both kinds are counted together");
    assert!(kernel("_Z8spillingPf").vgpr_spill_count > 0);
    assert!(kernel("_Z8indirectPFiiEPi").uses_dynamic_stack);
    assert!(!kernel("plain").uses_dynamic_stack);
    assert_eq!(kernel("_Z8reversedIdLi128EEvPT_PKS0_").group_segment_fixed_size, 1024);
    assert_eq!(kernel("_Z8reversedIdLi128EEvPT_PKS0_").max_flat_workgroup_size, 128);
    let named = self::object("named-v5.co");
    assert_eq!(named.kernels[0].reqd_workgroup_size, Some([8, 4, 2]));
    assert_eq!(named.kernels[0].args[0].type_name.as_deref(), Some("float*"));
}

#[test]
fn a_note_of_each_object_that_was_linked() {
    let object = object("linked-v4.co");
    let symbols: Vec<_> = object.kernels.iter().map(|kernel| kernel.symbol.as_str()).collect();
    assert_eq!(symbols, ["first.kd", "second.kd"]);
    assert_eq!((object.source, object.metadata_version), (FactsFrom::Metadata, Some((1, 1))));
    let bytes = fs::read(data("linked-v4.co")).unwrap();
    let owners: Vec<_> = (0..bytes.len() - 8).filter(|&at| &bytes[at..at + 8] == b"AMDGPU\0\0").collect();
    assert_eq!(owners.len(), 2);
    let parsed = |damaged: &[usize]| {
        let mut bytes = bytes.clone();
        // No MessagePack value begins with this.
        damaged.iter().for_each(|note| bytes[owners[*note] + 8] = 0xc1);
        CodeObject::parse(&bytes)
    };
    for (damaged, left) in [(1, "first.kd"), (0, "second.kd")] {
        let kernels = parsed(&[damaged]).unwrap().kernels;
        assert_eq!(kernels.len(), 1);
        assert_eq!(kernels[0].symbol, left, "the other's note is damaged");
    }
    assert!(parsed(&[0, 1]).is_err());
}

#[test]
fn kernels_are_found_with_and_without_suffix() {
    let object = object("gfx906-v4.co");
    assert_eq!(object.kernel("plain.kd"), object.kernel("plain"));
    assert_eq!(object.kernel("plain").unwrap().symbol, "plain.kd");
    assert_eq!(object.kernel("plai"), None);
    let demangled: Vec<String> = object.kernels.iter().map(Kernel::demangled).collect();
    assert!(demangled.contains(&"void reversed<double, 128>(double*, double const*)".to_string()));
}

#[test]
fn hidden_arguments_begin_behind_those_of_the_source() {
    // Two pointers and an int: 20 bytes, which are followed at 24.
    let object = object("gfx90a-v5.co");
    let hidden = object.kernel("plain").unwrap().args.iter().find(|argument| argument.is_hidden()).unwrap();
    assert_eq!((hidden.offset, hidden.value_kind.as_str()), (24, "hidden_block_count_x"));
}

#[test]
fn version_2_is_refused_in_words() {
    let error = CodeObject::parse(&fs::read(data("named-v2.co")).unwrap()).unwrap_err().to_string();
    assert!(error.contains("version 2") && error.contains("-mcode-object-version"), "{error}");
}
