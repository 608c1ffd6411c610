#!/bin/sh
# Makes the code objects and bundles of this directory, and what llvm-readelf says about each. Run with the compilers of
# Debian 12: hipcc 5.2.3, clang, lld and llvm 15, rocm-device-libs. The test compares the two; neither needs remaking.
set -e
cd "$(dirname "$0")"
libraries=$(dirname "$(dpkg -L rocm-device-libs | grep '/ockl.bc$')")
one() { # NAME PROCESSOR ABI_VERSION PREFIX_OF_ID
    hipcc --genco --offload-arch=$2 -mcode-object-version=$3 -O2 -o $1.bundle kernels.hip
    clang-offload-bundler-15 --unbundle --type=o --targets=$4-amdgcn-amd-amdhsa--$2 --input=$1.bundle --output=$1.co
    rm $1.bundle
}
one gfx900-v3 gfx900 3 hip
one gfx906-v4 gfx906 4 hipv4
one gfx908-v4 gfx908 4 hipv4
one gfx90a-v5 gfx90a 5 hipv4
one gfx1030-v5 gfx1030 5 hipv4
clang-15 --rocm-device-lib-path="$libraries" -x cl -cl-std=CL2.0 -cl-kernel-arg-info \
    -target amdgcn-amd-amdhsa -mcpu=gfx906:sramecc+:xnack- -mcode-object-version=5 -O2 \
    -o named-v5.co named.cl
clang-15 --rocm-device-lib-path="$libraries" -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa \
    -mcpu=gfx900 -mcode-object-version=2 -O2 -o named-v2.co named.cl
for version in 4 5; do
    clang-15 -gdwarf-$version -fdebug-compilation-dir=/src --rocm-device-lib-path="$libraries" -x cl -cl-std=CL2.0 \
        -target amdgcn-amd-amdhsa -mcpu=gfx906 -mcode-object-version=4 -O2 -o lines-dwarf$version.co named.cl
done
# Two objects linked into one, with a note of each.
for unit in first second; do
    echo "kernel void $unit(global int *p) { *p = 1; }" > $unit.cl
    clang-15 --rocm-device-lib-path="$libraries" -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx900 \
        -mcode-object-version=4 -O2 -c -o $unit.o $unit.cl
done
ld.lld-15 -shared -o linked-v4.co first.o second.o
rm first.cl second.cl first.o second.o
for object in *.co; do
    case $object in named-v2.co | lines-*) continue ;; esac
    llvm-readelf-15 --notes $object > ${object%.co}.notes
done
# A library of two translation units: two bundles in one section.
printf '#include <hip/hip_runtime.h>\n__global__ void first(int *p) { *p = 1; }\n' > first.hip
printf '#include <hip/hip_runtime.h>\n__global__ void second(int *p) { *p = 2; }\n' > second.hip
hipcc -shared -fPIC -s -O2 --offload-arch=gfx900 --offload-arch=gfx90a:xnack- -o two_units.so first.hip second.hip
rm first.hip second.hip
# Kernel names, and what GNU c++filt (binutils 2.40) makes of them. Those of names.real are mangled ones of a vLLM trace
# (rocmProfileData, raptor/tests/mytrace.rpd.gz, MIT) and the like of PyTorch and rocPRIM.
hipcc --genco -std=c++17 --offload-arch=gfx900 -O1 -o names.bundle names.hip
clang-offload-bundler-15 --unbundle --type=o --targets=hipv4-amdgcn-amd-amdhsa--gfx900 --input=names.bundle --output=names.elf
llvm-readelf-15 --symbols --wide names.elf | sed -n 's/.* \(_Z.*\)\.kd$/\1/p' | sort -u | cat - names.real > names.mangled
c++filt < names.mangled | paste names.mangled - > names.tsv
rm names.bundle names.elf names.mangled
# Compressed bundles are clang-offload-bundler's of LLVM 21 (Debian sid), with COMPRESSED_BUNDLE_FORMAT_VERSION=2 and 3:
#   clang-offload-bundler-21 -compress -type=o -input=/dev/null -input=gfx906-v4.co -input=gfx900-v3.co -output=compressed-v2.bundle \
#       -targets=host-x86_64-unknown-linux-gnu-,hipv4-amdgcn-amd-amdhsa--gfx906,hipv4-amdgcn-amd-amdhsa--gfx900
# occupancy-llvm21.tsv is made by ../occupancy.py.
# Kernels whose blocks are counted.
for variant in gfx900:O2 gfx906:O2 gfx906:O0 gfx90a:O2; do
    processor=${variant%%:*} level=${variant##*:}
    hipcc --genco --offload-arch=$processor -mcode-object-version=4 -$level -o counting.bundle counting.hip
    clang-offload-bundler-15 --unbundle --type=o --targets=hipv4-amdgcn-amd-amdhsa--$processor --input=counting.bundle \
        --output=counting-$processor-$(echo $level | tr O o).co
    rm counting.bundle
done
clang-15 -target amdgcn-amd-amdhsa -mcpu=gfx906 -mcode-object-version=4 -nogpulib -o counting-asm.co counting.s
# By hipcc of Debian sid (HIP 6.4.3, clang 21), whose kernels have preloaded arguments:
#   hipcc --genco --offload-arch=gfx942 -mcode-object-version=5 -O2 -mllvm -amdgpu-kernarg-preload-count=8 --no-gpu-bundle-output \
#       -o counting-gfx942-o2.co counting.hip
