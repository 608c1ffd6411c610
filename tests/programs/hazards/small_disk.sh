#!/bin/sh
# Runs a program that records onto a disk of 2 MB on which only some 400 KB are free. After a while there is room again.
#
# Usage: small_disk.sh PROGRAM ARGUMENTS...     with RECORDER, the library; needs root: the disk is mounted
# In the end ./disk/trace.rpd is copied to ./trace.rpd. Status 77: no disk can be mounted.
mkdir disk && mount -t tmpfs -o size=2m none disk || exit 77
dd if=/dev/zero of=disk/filler bs=1k count=1600 2>/dev/null
RPDT_FILENAME=disk/trace.rpd RPDT_REPORT=$PWD/report LD_PRELOAD=$RECORDER "$@" &
sleep 2
rm disk/filler
wait $!
status=$?
ls disk > files
cp disk/trace.rpd trace.rpd
exit $status
