#!/usr/bin/env python3
"""One bill of materials of those that cargo-cyclonedx wrote beside the packages of a workspace, without the paths of this place.

usage: merge_bills.py SOURCE VERSION PACKAGE...     reads each rpd.json below SOURCE, writes to standard output
"""

import json
import re
import sys
from pathlib import Path


def reference(text):
    """`path+file:///DIR#NAME@VERSION`, or `#VERSION` where DIR ends with the name, as `pkg:cargo/NAME@VERSION`."""
    found = re.match(r"path\+file://([^#]*)#(.*)", text)
    if not found:
        return text
    folder, name = found.groups()
    return f"pkg:cargo/{name}" if "@" in name else f"pkg:cargo/{Path(folder).name}@{name}"


def portable(component):
    component["bom-ref"] = reference(component["bom-ref"])
    if "purl" in component:
        component["purl"] = re.sub(r"\?download_url=file[^#]*", "", component["purl"])
    for part in component.get("components", []):
        portable(part)
    return component


def merge(bills, version):
    packages = [portable(bill["metadata"]["component"]) for bill in bills]
    known = {}
    # Of a package that another one needs, its own bill says more.
    for component in [*(portable(part) for bill in bills for part in bill["components"]), *packages]:
        before = known.get(component["bom-ref"], {})
        if "required" in (before.get("scope"), component.get("scope")):
            component["scope"] = "required"
        known[component["bom-ref"]] = component
    needs = {f"pkg:generic/rpd@{version}": {package["bom-ref"] for package in packages}}
    for entry in (entry for bill in bills for entry in bill["dependencies"]):
        needs.setdefault(reference(entry["ref"]), set()).update(map(reference, entry.get("dependsOn", [])))
    merged = dict(bills[0])
    merged.pop("serialNumber", None)
    whole = {"type": "application", "bom-ref": f"pkg:generic/rpd@{version}", "name": "rpd", "version": version}
    merged["metadata"] = {**merged["metadata"], "component": whole}
    merged["components"] = [known[name] for name in sorted(known)]
    merged["dependencies"] = [{"ref": name, "dependsOn": sorted(needs[name])} for name in sorted(needs)]
    return merged


def main(source, version, *packages):
    bills = {}
    for file in sorted(Path(source).rglob("rpd.json")):
        bill = json.loads(file.read_text(encoding="utf-8"))
        bills[bill["metadata"]["component"]["name"]] = bill
    for package in packages:
        if package not in bills:
            sys.exit(f"merge_bills.py: there is no bill of {package} below {source}")
    json.dump(merge([bills[package] for package in packages], version), sys.stdout, indent=2, ensure_ascii=False)
    print()


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
