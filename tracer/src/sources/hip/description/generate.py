#!/usr/bin/env python3
"""Writes hip_api.tsv, the description of the HIP API, from HIP's own headers.

    generate.py VERSION=INCLUDE [VERSION=INCLUDE...] > hip_api.tsv      oldest version first

INCLUDE is a folder with hip/hip_runtime_api.h and hip/amd_detail/hip_prof_str.h of that version; headers.sh fetches them. The layout of
the arguments comes from the compiler, so that it is the runtime's own. `make hip-api` runs it on all versions.

Two kinds of lines, tab-separated:

    version NAME SIZE IDS HASH      sizeof(hip_api_data_t), largest id, FNV-1a of all "id name" in order
    api     NAME SINCE ROW FIELD...  one line per layout: those of later versions follow where they differ

ROW: `kernel` one kernel is launched, `kernels` one per device, `graph`, `copy`; `-` otherwise; for copies with `,sync` where the
call waits, and `,kind=N` where the name says the direction. FIELD: offset:class:size:name[:role]. Classes: p pointer or handle,
s text, z size_t, i and u integers, f float, d dim3, t hipExtent, x another structure; o and a class: a place for a result of that
class; m:TYPE a structure that says what to copy or launch. Roles: the column of the row that the field fills.
"""

import os
import re
import subprocess
import sys
import tempfile

KERNEL = {"hipLaunchKernel", "hipExtLaunchKernel", "hipLaunchCooperativeKernel", "hipModuleLaunchKernel",
          "hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel", "hipModuleLaunchCooperativeKernel",
          "hipLaunchKernel_spt", "hipLaunchCooperativeKernel_spt", "hipLaunchKernelExC", "hipDrvLaunchKernelEx"}
KERNELS = {"hipExtLaunchMultiKernelMultiDevice", "hipLaunchCooperativeKernelMultiDevice",
           "hipModuleLaunchCooperativeKernelMultiDevice"}
ITEMS = {"hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"}
# Batches are many copies; of a copy between devices in three dimensions, no structure is looked into.
COPY = re.compile(r"hip(Drv)?Memcpy(?!3DPeer|\w*Batch)")
DIRECTION = {"HtoD": 1, "HtoA": 1, "DtoH": 2, "AtoH": 2, "DtoD": 3, "DtoA": 3, "AtoD": 3, "AtoA": 3, "Peer": 3}
LAUNCH_ROLES = {"function_address": "function", "f": "function", "fPtr": "function", "config": "what", "numBlocks": "grid", "dimBlocks": "block", "gridDim": "grid",
                "blockDim": "block", "sharedMemBytes": "shared", "sharedMem": "shared", "stream": "stream", "hStream": "stream"}
COPY_ROLES = {"dst": "dst", "src": "src", "dstArray": "dst", "srcArray": "src", "dstHost": "dst", "srcHost": "src",
              "dstDevice": "dst", "srcDevice": "src", "sizeBytes": "size", "count": "size", "ByteCount": "size",
              "width": "width", "height": "height", "kind": "kind", "stream": "stream",
              "dstDeviceId": "dstDevice", "srcDeviceId": "srcDevice"}
STRUCTURES = {"hipMemcpy3DParms", "hip_Memcpy2D", "HIP_MEMCPY3D", "hipLaunchParams", "hipKernelNodeParams", "hipLaunchConfig_t",
              "HIP_LAUNCH_CONFIG"}
# Places for many results, or for what goes in.
ARRAYS = {"nodes", "from", "to", "pDependencies", "pRootNodes", "pDependentNodes", "dependencies", "dependencies_out", "attributes",
          "data", "data_sizes", "pHipDevices", "cuMask", "pLogBuffer", "resources", "options", "optionsValues", "option", "args",
          "kernelParams", "extra", "params", "mapInfoList", "pBorderColor", "handles", "optionPtr", "optionVals", "sizes", "dsts",
          "srcs", "objects", "attrs", "attrsIdxs", "edgeData", "jitOptions", "jitOptionsValues", "libraryOptions", "libraryOptionValues",
          "kernels", "device_arr"}


def structures(header):
    """(api, [(type, name)]) in the order of the header, parameters only."""
    start = header.index("typedef struct hip_api_data_s")
    body = header[start:header.index("} hip_api_data_t;")]
    for fields, api in re.findall(r"struct \{\n(.*?)\} (\w+);", body, re.S):
        found = [re.match(r"\s*(.*?)\s*(\w+);$", line).groups() for line in fields.strip().split("\n")]
        yield api, [(kind, name) for kind, name in found if not name.endswith("__val")]


def measured(include, apis):
    """What the compiler says of each field: offset, size, category, category and size of what it points to."""
    lines = ["#include <hip/hip_runtime_api.h>", "#include <hip/amd_detail/hip_prof_str.h>", "#include <cstddef>", "#include <cstdio>",
             "#include <type_traits>",
             "template <class T> char category() {",
             "  if (std::is_void<T>::value) return 'v';",
             "  if (std::is_pointer<T>::value) return 'p';",
             "  if (std::is_enum<T>::value) return 'i';",
             "  if (std::is_floating_point<T>::value) return 'f';",
             "  if (std::is_integral<T>::value) return std::is_unsigned<T>::value ? 'u' : 'i';",
             "  return 'x';", "}",
             "template <class T, bool B = std::is_void<T>::value || std::is_function<T>::value> struct Size {",
             "  static constexpr int value = 0; };",
             "template <class T> struct Size<T, false> { static constexpr int value = sizeof(T); };",
             "struct Unknown {};", "template <class T, class = void> struct Whole { typedef Unknown type; };",
             "template <class T> struct Whole<T, decltype((void)sizeof(T))> { typedef T type; };",
             "template <class T> void field(int offset) {",
             "  typedef typename std::remove_pointer<T>::type Raw; typedef typename Whole<Raw>::type To;",
             "  bool points = std::is_pointer<T>::value;",
             "  std::printf(\"%d %d %c %c %d %d\\n\", offset, (int)sizeof(T), category<T>(), points ? category<To>() : '-',",
             "    points ? Size<To>::value : 0, points && std::is_const<Raw>::value);", "}",
             "int main() {", "  std::printf(\"%d\\n\", (int)sizeof(hip_api_data_t));"]
    for api, fields in apis:
        for _, name in fields:
            place = f"args.{api}.{name}"
            lines.append(f"  field<decltype(((hip_api_data_t*)0)->{place})>(offsetof(hip_api_data_t, {place}));")
    lines += ["}"]
    with tempfile.TemporaryDirectory() as folder:
        source, program = f"{folder}/layout.cpp", f"{folder}/layout"
        with open(source, "w") as out:
            out.write("\n".join(lines))
        # Only HIP's headers are taken from there: the C library's may be of another system.
        os.symlink(os.path.abspath(f"{include}/hip"), f"{folder}/hip")
        subprocess.run(["g++", "-std=c++17", "-w", "-O0", "-D__HIP_PLATFORM_AMD__", "-DUSE_PROF_API", f"-I{folder}", source, "-o", program], check=True)
        size, *rows = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split("\n")
    return int(size), iter(rows)


def row(api):
    if api in KERNEL:
        return "kernel"
    if api in KERNELS:
        return "kernels"
    if api.startswith("hipGraphLaunch"):
        return "graph"
    if COPY.match(api):
        waits = "" if "Async" in api else ",sync"
        kind = next((f",kind={number}" for text, number in DIRECTION.items() if text in api), "")
        return f"copy{waits}{kind}"
    return "-"


def role(api, row, name, kind):
    if row == "kernel":
        axis = re.match(r"(gridDim|globalWorkSize|blockDim|localWorkSize)([XYZ])$", name)
        if axis and kind != "d":
            what = {"globalWorkSize": "items", "gridDim": "grid"}.get(axis[1], "block")
            return what + axis[2]
        return "block" if name == "blockDimX" else LAUNCH_ROLES.get(name, "")
    if row == "kernels":
        return "launches" if kind.startswith("m") else ""
    if row.startswith("copy"):
        if name == "symbol":
            return "dst" if "ToSymbol" in api else "src"
        # hipMemcpyPeerAsync calls the number of the device so; elsewhere it is an address.
        if name == "srcDevice" and kind == "i":
            return "srcDevice"
        return "what" if kind.startswith("m") else COPY_ROLES.get(name, "")
    return ""


def described(api, fields, rows):
    out = []
    kind_of_row = row(api)
    for text, name in fields:
        offset, size, category, pointee, pointee_size, const = next(rows).split()
        plain = text.replace("const ", "").replace("*", "").replace("struct ", "").strip()
        if text in ("dim3",):
            kind = "d"
        elif text == "hipExtent":
            kind = "t"
        elif text == "size_t":
            kind = "z"
        elif category == "p" and text.replace(" ", "") == "constchar*":
            kind = "s"
        elif category == "p" and plain in STRUCTURES and text.count("*") == 1:
            kind, size = f"m{plain}", pointee_size
        elif category == "p" and "*" in text and const == "0" and name not in ARRAYS and pointee in "piuf" and plain != "char":
            kind = "oz" if text.replace(" ", "") == "size_t*" else "o" + pointee
            size = pointee_size
        else:
            kind = category
        the_role = role(api, kind_of_row, name, kind)
        out.append(f"{offset}:{kind}:{size}:{name}" + (f":{the_role}" if the_role else ""))
    return kind_of_row, out


def fnv(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


def main():
    versions, lines, last = [], {}, {}
    for argument in sys.argv[1:]:
        version, include = argument.split("=", 1)
        with open(f"{include}/hip/amd_detail/hip_prof_str.h") as file:
            header = file.read()
        names = re.findall(r"case HIP_API_ID_(\w+): return \"(\w+)\";", header)
        numbers = dict(re.findall(r"HIP_API_ID_(\w+) = (\d+),", header))
        ids = sorted((int(numbers[constant]), name) for constant, name in names)
        table = "".join(f"{number} {name}\n" for number, name in ids)
        apis = list(structures(header))
        size, rows = measured(include, apis)
        if any(line.endswith(f"\t{fnv(table):016x}") for line in versions):
            sys.exit(f"{version}: an earlier version has the same names, by which versions are told apart")
        versions.append(f"version\t{version}\t{size}\t{ids[-1][0]}\t{fnv(table):016x}")
        for api, fields in apis:
            kind_of_row, described_fields = described(api, fields, rows)
            if last.get(api) != described_fields:
                last[api] = described_fields
                lines.setdefault(api, []).append("\t".join(["api", api, version, kind_of_row, *described_fields]))
        for _, name in ids:
            if name not in last:
                last[name] = []
                lines.setdefault(name, []).append("\t".join(["api", name, version, row(name)]))
    print("\n".join(versions))
    for api in sorted(lines):
        print("\n".join(lines[api]))


main()
