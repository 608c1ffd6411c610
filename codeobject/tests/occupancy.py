#!/usr/bin/env python3
"""What LLVM says about the occupancy of kernels with chosen needs, one line each:

    processors wavefront workgroup-processor-mode vgprs sgprs lds workgroup occupancy

Processors with the same answer share a line.
vgprs and sgprs are what LLVM makes the hardware allot, accumulation registers included where they share a file; lds and
workgroup are bytes and work-items. Compiles kernels whose only content is a claim on registers and LDS.

usage: occupancy.py [--registers] LLC...   such as llc-15; processors that it does not know are left out
       tests/data/occupancy-llvm21.tsv is of: occupancy.py chroot target/matrix/sid llc-21
"""
import re
import subprocess
import sys

GFX9 = "gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90a gfx90c gfx940 gfx941 gfx942 gfx950 gfx9-generic gfx9-4-generic".split()
RDNA = """gfx1010 gfx1011 gfx1012 gfx1013 gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 gfx1100 gfx1101 gfx1102 gfx1103
    gfx1150 gfx1151 gfx1152 gfx1153 gfx1200 gfx1201 gfx10-1-generic gfx10-3-generic gfx11-generic gfx12-generic""".split()
ACCUMULATION = {"gfx908", "gfx90a", "gfx940", "gfx941", "gfx942", "gfx950", "gfx9-4-generic"}
# A multiple of each unit that LDS is allotted in: LLVM up to 22 rounds to none.
LDS_UNIT = 5120


def kernels(processor):
    """Register claims, bytes of LDS and the workgroup of each kernel."""
    for last in [*range(0, 64, 5), *range(63, 256, 12), 255]:
        yield f"~{{v{last}}}", 0, 64
    if processor in ACCUMULATION:
        for last in [0, 3, 4, 31, 63, 100, 127, 200, 255]:
            yield f"~{{v{last // 2}}},~{{a{last}}}", 0, 64
    for last in [7, 20, 40, 47, 56]:
        yield f"~{{s{last}}}", 0, 64
    if sys.argv[1] == "--registers":
        return
    # The processors and generic targets with 64 KB get no more than that.
    for units in [0, 1, 2, 3, 4, 5, 6, 8, 12, *([13, 16, 20, 32] if processor == "gfx950" else [])]:
        for workgroup in [64, 128, 256, 320, 640, 1024]:
            yield "~{v0}", units * LDS_UNIT, workgroup


def module(processor, features):
    lines, attributes = [], {}
    for number, (claims, lds, workgroup) in enumerate(kernels(processor)):
        attribute = attributes.setdefault(workgroup, len(attributes))
        uses = f'call void asm sideeffect "", "{claims}"()'
        if lds:
            lines.append(f"@lds{number} = internal addrspace(3) global [{lds} x i8] undef")
            uses += f'\n  call void asm sideeffect "; $0", "v"(ptr addrspace(3) @lds{number})'
        lines.append(f"define amdgpu_kernel void @k{number}() #{attribute} {{\n  {uses}\n  ret void\n}}")
    for workgroup, attribute in attributes.items():
        lines.append(f'attributes #{attribute} = {{ nounwind "amdgpu-flat-work-group-size"="{workgroup},{workgroup}" '
                     f'"target-cpu"="{processor}" "target-features"="{features}" }}')
    return "\n".join(lines)


def rows(llc, processor, wavefront, mode, features):
    command = [*llc, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={processor}", "-O1", "-o", "-", "-"]
    run = subprocess.run(command, input=module(processor, features), capture_output=True, text=True)
    if "is not a recognized processor" in run.stderr:
        return
    if run.returncode != 0:
        sys.exit(f"{processor}: {run.stderr[:2000]}")
    parts = re.split(r"^; Kernel info:$", run.stdout, flags=re.M)[1:]
    needs = list(kernels(processor))
    assert len(parts) == len(needs), (processor, len(parts), len(needs))
    for part, (_, lds, workgroup) in zip(parts, needs):
        number = {name: int(value) for name, value in re.findall(r"^; (\w+): (\d+)", part, flags=re.M)}
        assert number["LDSByteSize"] == lds, (processor, lds, number)
        yield (processor, wavefront, mode, number["NumVGPRsForWavesPerEU"], number["NumSGPRsForWavesPerEU"], lds, workgroup,
               number["Occupancy"])


llc = [word for word in sys.argv[1:] if word != "--registers"]
answers = {}
for processor in GFX9 + RDNA:
    modes = [(64, 0, "")] if processor in GFX9 else [
        (wavefront, mode, f"{'-' if mode else '+'}cumode,+wavefrontsize{wavefront}") for wavefront in (32, 64) for mode in (0, 1)]
    for mode in modes:
        for row in rows(llc, processor, *mode):
            answers.setdefault(row[1:], {})[processor] = None
for answer, processors in sorted(answers.items(), key=lambda item: (list(item[1]), item[0])):
    print(",".join(processors), *answer, sep="\t")
