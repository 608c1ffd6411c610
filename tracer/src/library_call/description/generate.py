#!/usr/bin/env python3
"""Writes calls.tsv, the description of the functions of GPU libraries, from the libraries' own headers.

    generate.py INCLUDE HEADER=LIBRARY[,LIBRARY...] [-- INCLUDE HEADER=LIBRARY...]... > calls.tsv     oldest first
    generate.py INCLUDE rocsparse/rocsparse.h=rocsparse@MAJOR [-- ...]   of a library whose file's name has that number behind .so
    generate.py INCLUDE hsa_api_trace.h=hsa [-- INCLUDE hsa_api_trace.h=hsa]... > hsa.tsv             the same for the HSA runtime

INCLUDE: folders with the headers, `:` between them. The compiler tells what each parameter is, so that it is the library's own
view; of functions that a later version changes, the later one counts, and a change of what is passed is an error.

Three kinds of lines, tab-separated:

    enum TYPE NUMBER=NAME...             the names of an enumeration's values
    call LIBRARY NAME RESULT FIELD...    RESULT: the enumeration of the status, a number's class, or -
    note LIBRARY NAME RESULT FIELD...    a call that is looked at and not recorded

FIELD: class:name[:type]. Classes: p pointer or handle; s text; i4 i8 u1 u2 u4 u8 numbers; f4 f8; e an enumeration of that type;
o o4 a place for a handle; a a place for as many handles as the next parameter says; n4 n8 as many numbers as the parameter of that name says, or
the one before where none is named; b a number of as many bytes as the parameter of that name says; v a place for a scalar of that type (f2 f4 f8 c4 c8),
or of the enumeration that the parameter of that name has; z4 z8 a complex number, x16 x128 a structure of that many bytes, by value.
A field with - in front is one that not all versions have: it is passed on, and not looked at. NAME@MAJOR is the function as libraries with that
number have it, where not all have the same parameters.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

# What only asks or sets something, and says nothing about the time that a program spends: these calls are left as they are.
SILENT = re.compile(r"(get|set|is|has)_|(Get|Set|Is|Query|Check)(?=[A-Z])|[Ss]tring|[Vv]ersion|[Ww]ork(s|S)pace|_size(_query)?$|"
                    r"_buffer_size|_bufferSize|LoggerF|LoggerO|LoggerS|log_|[Dd]escr(iptor|_|$)|_desc(_|r|$)|_mat_info|_info$|Debug|Logging|xerbla|CommCount|CommCuDevice|CommUserRank")
SPOKEN = re.compile(r"_[sg]et_(vector|matrix)|(Set|Get)(Vector|Matrix)|"
                    r"(Set|Scale)Tensor$|AlgoGetHeuristic|nccl(AllReduce|ReduceScatter|Send|Recv)|ConvolutionForwardGetAlgo|"
                    r"miopenFind|solve|get(rf|rs|ri)|_set_atomics_mode$|XtExecDescriptor")
# Where scalars lie is known from these, and what descriptors say that other calls are passed.
NOTED = re.compile(r"_set_pointer_mode$|SetPointerMode(_v2)?$|Lt(MatrixLayout|MatmulDesc)(Create|Init_internal|SetAttribute|Destroy)$|"
                   r"miopen(Set(4d|Nd)?TensorDescriptor(Ex|V2|WithLayout)?|(Init|Set)Convolution(Nd)?(Descriptor|GroupCount)|Destroy(Tensor|Convolution)Descriptor)$|"
                   r"cudnn(Set(Tensor|Filter)(4d|Nd)Descriptor(Ex)?|SetConvolution((2d|Nd)Descriptor|GroupCount)|Destroy(Tensor|Filter|Convolution)Descriptor)$")
SCALARS = {"rocblas_half": "f2", "hipblasHalf": "f2", "__half": "f2", "float": "f4", "double": "f8", "rocblas_float_complex": "c4", "rocblas_double_complex": "c8", "hipblasComplex": "c4",
           "hipblasDoubleComplex": "c8", "hipComplex": "c4", "hipDoubleComplex": "c8", "cuComplex": "c4", "cuDoubleComplex": "c8",
           "rocsparse_float_complex": "c4", "rocsparse_double_complex": "c8"}
NUMBERS = {"char": "i1", "signed char": "i1", "unsigned char": "u1", "_Bool": "u1", "bool": "u1", "short": "i2", "unsigned short": "u2", "int": "i4", "unsigned int": "u4",
           "long": "i8", "unsigned long": "u8", "long long": "i8", "unsigned long long": "u8", "float": "f4", "double": "f8"}
BY_VALUE = {"ncclUniqueId": "x128", "rocsparse_float_complex": "z4", "rocsparse_double_complex": "z8",
            # The first is a union of a pointer and a file descriptor, the second has sixteen bytes.
            "hsa_amd_ais_file_handle_t": "p", "hsa_fabric_handle_t": "x16"}
PREFIX = {"rocblas": "rocblas_", "hipblas": "hipblas", "hipblaslt": "hipblasLt", "miopen": "miopen", "nccl": "nccl", "rocfft": "rocfft_",
          "rocsparse": "rocsparse_", "rocsolver": "rocsolver_", "cublas": "cublas", "cublaslt": "cublasLt", "cudnn": "cudnn", "cufft": "cufft",
          "hsa": "hsa_"}
# Of the HSA runtime: calls that put a handle or an address where their last argument but flags says.
MAKES = re.compile(r"_create|_acquire$|_handle_open$|_allocate$|_lock(_to_pool)?$|_reserve|_attach$|_get_symbol|_from_name$|_load_|_vmem_map$|_status_string$")
# Enumerations of AMD's extension go on where those of the HSA runtime end.
EXTENDED = {"hsa_agent_info_t": "hsa_amd_agent_info_t", "hsa_region_info_t": "hsa_amd_region_info_t"}


def library_of(name, wanted):
    found = [library for library in wanted if name.startswith(PREFIX[library])]
    return max(found, key=lambda library: len(PREFIX[library]), default=None)


def declarations(include, header):
    """Functions and enumerations, as the compiler has them."""
    folders = [f"-I{folder}" for folder in include.split(":")]
    # Some headers are of C++ alone, though their functions are of C.
    for language in (["-x", "c", "-std=c11"], ["-x", "c++", "-std=c++17"]):
        run = subprocess.run(["clang-15", *language, "-w", "-D__HIP_PLATFORM_AMD__", "-DROCBLAS_NO_DEPRECATED_WARNINGS", "-DAMD_INTERNAL_BUILD", "-DMIOPEN_BETA_API", *folders,
                              "-fsyntax-only", "-Xclang", "-ast-dump=json", "-"], input=f"#include <stddef.h>\n#include <{header}>\n", capture_output=True, text=True)
        if run.returncode == 0:
            break
    else:
        sys.exit(run.stderr[:2000])
    nodes = json.loads(run.stdout)["inner"]
    blocks = [node for node in nodes if node["kind"] == "LinkageSpecDecl"]
    return nodes + [inner for block in blocks for inner in block.get("inner", [])]


class Types:
    """What names stand for."""

    def __init__(self, nodes):
        self.names, self.enums, self.handles = {}, {}, set()
        ids = {}
        unnamed = []
        for node in nodes:
            if node["kind"] in ("RecordDecl", "CXXRecordDecl"):
                members = [part for part in node.get("inner", []) if part["kind"] == "FieldDecl"]
                if [part["type"]["qualType"] for part in members] == ["uint64_t"]:
                    self.handles.add(node.get("name"))
            elif node["kind"] == "EnumDecl":
                values, value = [], -1
                for constant in node.get("inner", []):
                    if constant["kind"] != "EnumConstantDecl":
                        continue
                    value = self.value(constant, value)
                    values.append((value, constant["name"]))
                ids[node["id"]] = values
                if "name" in node:
                    self.enums[f"enum {node['name']}"] = values
                else:
                    unnamed += values
            elif node["kind"] == "TypedefDecl" and "(" not in node["type"]["qualType"]:
                self.names[node["name"]] = node["type"].get("desugaredQualType", node["type"]["qualType"])
                owner = self.owned(node)
                if owner in ids:
                    self.enums[node["name"]] = ids[owner]
        for name, further in EXTENDED.items():
            if name in self.enums:
                self.enums[name] = self.enums[name] + self.enums[further]
        if "hsa_status_t" in self.enums:
            self.enums["hsa_status_t"] = self.enums["hsa_status_t"] + [value for value in unnamed if value[1].startswith("HSA_STATUS_")]

    @staticmethod
    def value(constant, last):
        expression = constant.get("inner", [])
        while expression:
            if "value" in expression[0]:
                return int(expression[0]["value"])
            expression = expression[0].get("inner", [])
        return last + 1

    @staticmethod
    def owned(node):
        stack = list(node.get("inner", []))
        while stack:
            part = stack.pop()
            for key in ("ownedTagDecl", "decl"):
                if key in part and part[key].get("kind") == "EnumDecl":
                    return part[key]["id"]
            stack += part.get("inner", [])
        return None

    def enum(self, text):
        """The enumeration that a type is, by the name that it is written with."""
        plain = text.replace("const ", "").strip()
        if plain in self.enums:
            return plain
        meant = self.names.get(plain, "")
        if meant in self.enums:
            self.enums[plain] = self.enums[meant]
            return plain
        return self.enum(meant) and plain if meant and meant != plain else None


def field(types, function, node, following):
    text = node["type"]["qualType"]
    meant = node["type"].get("desugaredQualType", text).replace("const ", "").replace("restrict", "").strip()
    name = node.get("name", "")
    plain = text.replace("const ", "").replace("*", "").strip()
    enum = types.enum(text)
    if enum:
        return f"e:{name}:{enum}", enum
    if meant in NUMBERS:
        return f"{NUMBERS[meant]}:{name}", None
    if "*" not in meant and "[" not in meant:
        size = BY_VALUE.get(plain) or ("p" if meant.removeprefix("struct ") in types.handles else None)
        return (f"{size}:{name}" if size else None), None
    if re.fullmatch(r"const char *\*", text):
        return f"s:{name}", None
    if name in ("alpha", "beta"):
        compute = next((other for other in following if re.search(r"[cC]ompute_?[tT]ype|execution_?[tT]ype|executiontype", other)), None)
        if plain in SCALARS and text.count("*") == 1:
            return f"v:{name}:{SCALARS[plain]}", None
        if plain == "void" and compute:
            return f"v:{name}:{compute}", None
    if name == "lengths":
        return f"n8:{name}", None
    if plain in ("int", "long long", "long long int") and name in ("n", "len") and following and following[0] == "plan":
        return f"{'n4' if plain == 'int' else 'n8'}:{name}", None
    if NOTED.search(function) and name == "buf":
        return f"b:{name}:sizeInBytes", None
    count = next((other for other in following if other in ("nbDims", "num_lens", "spatialDim", "arrayLength")), None)
    if NOTED.search(function) and count and plain in ("int", "size_t"):
        return f"{'n4' if plain == 'int' else 'n8'}:{name}:{count}", None
    if function.startswith("hsa_"):
        handle = types.names.get(plain, plain).removeprefix("struct ") in types.handles
        stars = 1 if handle and not text.startswith("const ") else 2
        makes = MAKES.search(function) and name != "agents" and text.count("*") == stars
        return f"{'o' if makes else 'p'}:{name}", None
    if not text.startswith("const ") and text.count("*") == 1 and re.search(r"[cC]reate|Init|Split$|Shrink$|Plan", function):
        if plain == "cufftHandle":
            return f"o4:{name}", None
        if types.names.get(plain, "").endswith("*"):
            return f"{'a' if function.endswith('CommInitAll') else 'o'}:{name}", None
    return f"p:{name}", None


def main():
    enums, calls, of_version = {}, {}, {}
    groups = " ".join(sys.argv[1:]).split(" -- ")
    for group in groups:
        include, *headers = group.split()
        for header in headers:
            header, wanted = header.split("=")
            wanted, _, major = wanted.partition("@")
            nodes = declarations(include, header)
            types = Types(nodes)
            # The tables of the core and of AMD's extension; other extensions have tables of their own.
            tables = re.findall(r"\bdecltype\((hsa_(?!ext_|ven_)\w+)\)", Path(include.split(":")[0], header).read_text()) if wanted == "hsa" else []
            for node in nodes:
                if node["kind"] != "FunctionDecl" or node.get("storageClass") == "static" or node.get("variadic") or "inline" in node:
                    continue
                name = node["name"]
                library = library_of(name, wanted.split(","))
                noted = bool(NOTED.search(name))
                silent = SILENT.search(name) and not SPOKEN.search(name) and not noted
                if not library or (name not in tables if library == "hsa" else silent):
                    continue
                parameters = [part for part in node.get("inner", []) if part["kind"] == "ParmVarDecl"]
                if any(part["kind"] == "CompoundStmt" for part in node.get("inner", [])):
                    continue
                result = node["type"]["qualType"].split("(")[0].strip()
                status = types.enum(result)
                number = NUMBERS.get(types.names.get(result, result)) if library == "hsa" else None
                if not status and types.names.get(result, result) not in ("int", "void", "size_t", "unsigned long", "long", "unsigned int"):
                    continue
                fields = []
                for place, parameter in enumerate(parameters):
                    names = [other.get("name", "") for other in parameters]
                    text, enum = field(types, name, parameter, names)
                    if text is None:
                        sys.exit(f"{name}: what is {parameter['type']}?")
                    fields.append(text)
                    if enum:
                        enums.setdefault(enum, {}).update(dict(reversed(types.enums[enum])))
                if status:
                    enums.setdefault(status, {}).update(dict(reversed(types.enums[status])))
                passed = lambda fields: [re.sub(r"^([posavb]|o4|n4|n8)$", "p", one.lstrip("-").split(":")[0].replace("e", "i4").replace("u", "i")) for one in fields]
                before = calls.get(name)
                if major:
                    of_version.setdefault(name, {})[major] = fields
                if before:
                    one, other = passed(before[3]), passed(fields)
                    called = [[part.lstrip("-").split(":")[1] for part in version] for version in (before[3], fields)]
                    # A parameter of the same kind is another one where both versions have it, at other places.
                    is_moved = lambda was, now: was != now and (was in called[1] or now in called[0])
                    differs = (place for place, (was, now, *names) in enumerate(zip(one, other, *called)) if was != now or is_moved(*names))
                    shared = next(differs, min(len(one), len(other)))
                    # Numbers and addresses are passed alike, in whichever order.
                    if one != other and any(kind[0] in "fzx" for kind in one[shared:] + other[shared:]):
                        sys.exit(f"{name} is passed other arguments: {before[3]} {fields}")
                    longer = before[3] if len(one) > len(other) else fields
                    fields = longer[:shared] + ["-" + hidden.lstrip("-") for hidden in longer[shared:]]
                calls[name] = ("note" if noted else "call", library, status or number or "-", fields)
    for name in sorted(enums):
        print("\t".join(["enum", name, *(f"{number}={text}" for number, text in sorted(enums[name].items()))]))
    lines = dict(calls)
    for name, versions in of_version.items():
        if any(field.startswith("-") for field in calls[name][3]):
            lines.update({f"{name}@{major}": (*calls[name][:3], fields) for major, fields in versions.items()})
    for name in sorted(lines):
        kind, library, status, fields = lines[name]
        print("\t".join([kind, library, name, status, *fields]))


main()
