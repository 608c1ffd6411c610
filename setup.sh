#!/bin/sh
# usage: setup.sh [tests [PACKAGE...]]
# Installs, on Debian, what building and the demo need and is not there; with `tests`, also what tests need, and those packages. Quiet and fast when nothing is missing.
set -eu

# A compiler, make, the object readers and the sqlite3 shell; Python.
packages="gcc g++ libc6-dev make binutils sqlite3 python3"
# The ROCm runtime and HIP as users have them; the compiler and headers for the sample programs; the assembler. Where AMD's ROCm is, with
# hipcc and HIP's library, it serves.
llvm="clang-tools-15 llvm-15"
rocm_path=${ROCM_PATH:-/opt/rocm}
has_rocm() {
    { [ -x "$rocm_path/bin/hipcc" ] || command -v hipcc >/dev/null; } && [ -e "$rocm_path/lib/libamdhip64.so" ]
}
# Such a machine may be no Debian, and what is needed may have come without a package.
is_there() {
    case $1 in
    gcc | g++ | make | sqlite3 | python3) command -v "$1" >/dev/null ;;
    binutils) command -v ld >/dev/null && command -v readelf >/dev/null ;;
    libc6-dev) gcc -E -x c -include stdlib.h /dev/null >/dev/null 2>&1 ;;
    *) false ;;
    esac
}
has_rocm || packages="libhsa-runtime64-1 libamdhip64-5 libhsa-runtime-dev libamdhip64-dev hipcc rocm-device-libs rocminfo $llvm $packages"
# Libraries of kernels; what installs and packs Python's packages; pgrep and kill; what makes file systems with quotas and without shared
# mappings; a browser, what drives it, and what runs modules of a page without one; what renders manual pages, and shells that complete verbs.
if [ "${1:-}" = tests ]; then
    shift
    tests=yes
    packages="$packages $llvm librocprim-dev librocrand-dev librocsparse-dev python3-pip python3-setuptools python3-wheel
procps e2fsprogs btrfs-progs quota bindfs chromium chromium-driver nodejs groff-base zsh fish $*"
fi

missing=""
for package in $packages; do
    if has_rocm && is_there "$package"; then continue; fi
    status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$status" = "install ok installed" ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null; then
        echo "setup: this needs Debian packages or their like:$missing" >&2
        exit 1
    fi
    install="apt-get install --no-install-recommends$missing"
    root=""
    if [ "$(id -u)" != 0 ]; then
        root="sudo"
        if ! command -v sudo >/dev/null; then
            echo "setup: only root can install what is missing: $install" >&2
            exit 1
        fi
    fi
    echo "setup: installing$missing"
    log=$(mktemp)
    if ! { $root apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing; } >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        echo "setup: apt-get could not install$missing" >&2
        exit 1
    fi
    rm -f "$log"
fi

if ! command -v cargo >/dev/null; then
    echo "setup: no cargo: install Rust first (https://rustup.rs, or the packages cargo and rustc of a recent Debian)" >&2
    exit 1
fi

[ "${tests:-}" = yes ] || exit 0

# NVIDIA's NVTX, as Python programs bring it, for the test of its markers. For the python3 that runs it.
nvtx=$(dirname "$0")/target/nvtx
if [ ! -d "$nvtx/nvtx" ]; then
    echo "setup: installing the Python package nvtx into target"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --target "$nvtx" nvtx ||
        echo "setup: pip could not install nvtx: the test of it will say so" >&2
fi

# What reads and draws the rows that `rpd export` writes, for the tests of that and of the Python package.
pyarrow=$(dirname "$0")/target/pyarrow
if [ ! -d "$pyarrow/pyarrow" ]; then
    echo "setup: installing the Python packages pyarrow and matplotlib into target"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --target "$pyarrow" pyarrow matplotlib ||
        echo "setup: pip could not install pyarrow and matplotlib: the tests of them will say so" >&2
fi

# What asks a dataset the queries of jobs on one machine; `make jobs` has Spark as well.
duckdb=$(dirname "$0")/target/duckdb
if [ ! -d "$duckdb/duckdb" ]; then
    echo "setup: installing the Python package duckdb into target"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --target "$duckdb" duckdb==2.0.0 ||
        echo "setup: pip could not install duckdb: the test of it will say so" >&2
fi

# NVIDIA's disassembler, which needs no GPU.
nvdisasm=$(dirname "$0")/target/nvdisasm
if [ ! -d "$nvdisasm/nvidia" ]; then
    echo "setup: installing the Python package nvidia-cuda-nvdisasm into target"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$nvdisasm" nvidia-cuda-nvdisasm==13.5.37 ||
        echo "setup: pip could not install nvidia-cuda-nvdisasm: the test of it will say so" >&2
fi

# What reads `rpd export kineto`. Of what it asks for, Jupyter is not needed; numpy and dateutil are beside matplotlib.
hta=$(dirname "$0")/target/hta
if [ ! -d "$hta/hta" ]; then
    echo "setup: installing the Python package HolisticTraceAnalysis into target"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$hta" \
        HolisticTraceAnalysis==0.5.0 pandas plotly narwhals networkx psutil pyyaml ||
        echo "setup: pip could not install HolisticTraceAnalysis: the test of it will say so" >&2
fi

# Perfetto's published definitions, which read `rpd export perfetto`.
perfetto=$(dirname "$0")/target/perfetto
if [ ! -d "$perfetto/perfetto" ]; then
    echo "setup: installing the Python package perfetto into target"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$perfetto" perfetto==0.59.1 protobuf ||
        echo "setup: pip could not install perfetto: the test of it will say so" >&2
fi
