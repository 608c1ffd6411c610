#!/bin/sh
# Runs a program where /dev/shm has 64 MB, as containers have it.
#
# Usage: small_shm.sh full|empty PROGRAM ARGUMENTS...     with RECORDER, the library; in mount namespaces of its own
# A trace that was written there is moved here, with its journal where it has one. Status 77: nothing can be mounted.
mount -t tmpfs -o size=64m none /dev/shm || exit 77
[ "$1" = full ] && dd if=/dev/zero of=/dev/shm/filler bs=1M count=65 2>/dev/null
shift
LD_PRELOAD=$RECORDER:$LD_PRELOAD "$@"
status=$?
[ ! -e /dev/shm/trace.rpd ] || mv /dev/shm/trace.rpd* .
exit $status
