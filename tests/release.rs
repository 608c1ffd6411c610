//! What `make release` says is in it, of bills that stand for those of cargo-cyclonedx.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Dir, tool};

const SERDE: &str = "registry+https://github.com/rust-lang/crates.io-index#serde@1.0.0";

/// A crate of the workspace in folder `folder`, as a package at `from` sees it.
fn component(dir: &Dir, folder: &str, name: &str, from: &str, scope: &str) -> Value {
    json!({
        "type": "library",
        "bom-ref": format!("path+file://{}#{name}@0.1.0", dir.path(folder).display()),
        "name": name,
        "version": "0.1.0",
        "scope": scope,
        "purl": format!("pkg:cargo/{name}@0.1.0?download_url=file:%2F%2F{from}"),
    })
}

fn bill(dir: &Dir, folder: &str, mut own: Value, components: &[Value]) {
    let named = |component: &Value| component["bom-ref"].as_str().unwrap().to_string();
    let target = format!("{} bin-target-0", named(&own));
    let purl = format!("{}#src/main.rs", own["purl"].as_str().unwrap());
    let mut needs: Vec<Value> = components.iter().map(|part| json!({ "ref": named(part) })).collect();
    let of_own: Vec<String> = components.iter().map(named).collect();
    needs.push(json!({ "ref": named(&own), "dependsOn": of_own }));
    own["type"] = "application".into();
    own["components"] = json!([{ "type": "application", "bom-ref": target, "name": "main", "purl": purl }]);
    let text = json!({
        "bomFormat": "CycloneDX",
        "serialNumber": "urn:uuid:1",
        "metadata": { "timestamp": "2026-01-01T00:00:00Z", "component": own },
        "components": components,
        "dependencies": needs,
    });
    fs::create_dir_all(dir.path(folder)).unwrap();
    fs::write(dir.path(folder).join("rpd.json"), text.to_string()).unwrap();
}

#[test]
fn one_bill_has_the_crates_of_all_packages_and_no_paths() {
    let dir = Dir::new();
    let serde = |scope: &str| json!({ "bom-ref": SERDE, "name": "serde", "scope": scope, "purl": "pkg:cargo/serde@1.0.0" });
    let library = component(&dir, "library", "rpd-library", ".", "required");
    let seen = component(&dir, "library", "rpd-library", "..%2Flibrary", "required");
    let shared = component(&dir, "shared", "rpd-shared", "..%2Fshared", "required");
    bill(&dir, "cli", component(&dir, "cli", "rpd-cli", ".", "required"), &[seen, serde("excluded")]);
    bill(&dir, "library", library, &[shared, serde("required")]);
    bill(&dir, "tests", component(&dir, "tests", "rpd-tests", ".", "required"), &[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("scripts/merge_bills.py");
    let (script, source) = (script.display().to_string(), dir.path("").display().to_string());
    let merged = tool("python3", &[&script[..], &source, "0.1.0", "rpd-cli", "rpd-library"]);
    assert!(!merged.contains("file:") && !merged.contains("serialNumber"), "{merged}");
    let merged: Value = serde_json::from_str(&merged).unwrap();
    assert_eq!(merged["metadata"]["component"]["bom-ref"], "pkg:generic/rpd@0.1.0");
    assert_eq!(merged["metadata"]["timestamp"], "2026-01-01T00:00:00Z");
    let (cli, library, shared) =
        ("pkg:cargo/rpd-cli@0.1.0", "pkg:cargo/rpd-library@0.1.0", "pkg:cargo/rpd-shared@0.1.0");
    let components = merged["components"].as_array().unwrap();
    let names: Vec<&Value> = components.iter().map(|component| &component["bom-ref"]).collect();
    assert_eq!(names, [cli, library, shared, SERDE]);
    assert!(components.iter().all(|component| component["scope"] == "required"), "{merged}");
    // What the package's own bill says of it.
    assert_eq!(components[1]["components"][0]["purl"], "pkg:cargo/rpd-library@0.1.0#src/main.rs");
    let needs = json!([
        { "ref": cli, "dependsOn": [library, SERDE] },
        { "ref": library, "dependsOn": [shared, SERDE] },
        { "ref": shared, "dependsOn": [] },
        { "ref": "pkg:generic/rpd@0.1.0", "dependsOn": [cli, library] },
        { "ref": SERDE, "dependsOn": [] },
    ]);
    assert_eq!(merged["dependencies"], needs);
}
