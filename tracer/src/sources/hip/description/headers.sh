#!/usr/bin/env bash
# The headers that hip_api.tsv is made from, one folder per version below INTO, as `make hip-api HIP_HEADERS=INTO` wants them.
#
#   headers.sh CLONES INTO      CLONES: a folder with clones, tags included, of github.com/ROCm/HIP, hipamd (up to 5.6) and clr (from 5.7)
#
# The library is compiled with the hip_prof_str.h that is checked in, not with the one that the build writes beside it. Later patch releases
# of these tags have the same names and layouts, and so have the versions that share a folder. 5.3.0 differs: its callbacks are those of 5.2.
# What distributions have built is taken from their packages libamdhip64-dev: put usr/include of each into INTO as
# 5.2 (Debian 12), 6.4 (Debian 14), 7.1 (Ubuntu 26.04) and 7.2 (Debian experimental).
set -euo pipefail
clones=$1 into=$2

# Version, tag, and the repository and folder that have what belongs to AMD's GPUs.
while read -r version tag repository folder; do
    tree=$into/$version/hip
    mkdir -p "$tree"
    git -C "$clones/HIP" archive "$tag" include/hip | tar -x --strip-components=2 -C "$tree"
    git -C "$clones/$repository" archive "$tag:$folder" | tar -x -C "$tree"
    IFS=.- read -r _ major minor patch <<<"$tag"
    printf '#define HIP_VERSION_MAJOR %s\n#define HIP_VERSION_MINOR %s\n#define HIP_VERSION_PATCH %s\n#define HIP_VERSION %d\n' \
        "$major" "$minor" "$patch" $((major * 10000000 + minor * 100000 + patch)) >"$tree/hip_version.h"
done <<'TAGS'
5.3-5.4 rocm-5.3.1 hipamd include/hip
5.5 rocm-5.5.0 hipamd include/hip
5.6-5.7 rocm-5.6.0 hipamd include/hip
6.0 rocm-6.0.0 clr hipamd/include/hip
6.1 rocm-6.1.0 clr hipamd/include/hip
6.2 rocm-6.2.0 clr hipamd/include/hip
6.3 rocm-6.3.0 clr hipamd/include/hip
TAGS
