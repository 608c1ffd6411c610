#!/bin/sh
# Runs a program twice at once, in a directory of a file system that refuses shared mappings: FUSE with direct_io.
#
# Usage: no_mappings.sh PROGRAM ARGUMENTS...     in mount namespaces of its own; what is written is in ./behind
# Status 77: not here; 78: no such program; the last line on standard error says why.
cannot() {
    umount mounted 2>/dev/null
    echo "$*" >&2
    exit 77
}

command -v bindfs >/dev/null || { echo "no bindfs" >&2; exit 78; }
mkdir behind mounted
bindfs -o direct_io behind mounted || cannot "bindfs cannot mount"
python3 - mounted/probe <<PYTHON || cannot "bindfs has shared mappings"
import errno, mmap, os, sys
probe = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(probe, 4096)
try:
    mmap.mmap(probe, 4096, mmap.MAP_SHARED)
except OSError as refused:
    sys.exit(refused.errno != errno.ENODEV)
sys.exit(1)
PYTHON
rm mounted/probe
RPDT_FILENAME=$PWD/mounted/trace.rpd
export RPDT_FILENAME
LD_PRELOAD=$RECORDER:$LD_PRELOAD "$@" &
LD_PRELOAD=$RECORDER:$LD_PRELOAD "$@"
status=$?
wait $! || status=$?
umount mounted
exit $status
