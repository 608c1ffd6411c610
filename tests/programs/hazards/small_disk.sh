#!/bin/sh
# Runs a program that records onto a disk on which only some 400 KB are free: until a second after the recorder has said so, of which the
# file named by UNTIL tells the program, or to the program's end.
#
# Usage: small_disk.sh KIND seconds|end PROGRAM ARGUMENTS...     with RECORDER, the library; in mount namespaces of its own
#   tmpfs        2 MB of memory
#   ext4         a file system of 8 MB in a file
#   btrfs-quota  a subvolume with a limit of 3 MB
#   ext4-quota   a user's 3 MB; quotas do not bind who may use the system's reserves (CAP_SYS_RESOURCE), so the program may not
# In the end the trace is copied to ./trace.rpd, with its journal where it has one. Status 77: not here; 78: no such program; the
# last line on standard error says why.
kind=$1
full=$2
shift 2
cannot() {
    echo "$kind: $*" >&2
    exit 77
}
need() {
    command -v "$1" >/dev/null || { echo "$kind: no $1" >&2; exit 78; }
}

PATH=$PATH:/usr/sbin:/sbin
place=$PWD/disk
without=
mkdir disk
case $kind in
tmpfs)
    mount -t tmpfs -o size=2m none disk || cannot "cannot be mounted"
    ;;
ext4)
    need mkfs.ext4
    truncate -s 8M image && mkfs.ext4 -q -m 0 image && mount -o loop image disk || cannot "cannot be mounted"
    ;;
btrfs-quota)
    need mkfs.btrfs
    need btrfs
    # Smaller ones it refuses; the file has holes.
    truncate -s 128M image && mkfs.btrfs -q image >/dev/null 2>&1 && mount -o loop image disk || cannot "cannot be mounted"
    place=$place/limited
    btrfs --quiet quota enable disk && btrfs --quiet subvolume create "$place" && btrfs qgroup limit 3M "$place" ||
        cannot "no quota"
    ;;
ext4-quota)
    need mkfs.ext4
    need setquota
    truncate -s 32M image && mkfs.ext4 -q -O quota image && mount -o loop,usrquota image disk || cannot "cannot be mounted"
    setquota -u "$(id -u)" 0 3000 0 0 "$place" || cannot "no quota"
    without="setpriv --bounding-set=-sys_resource"
    ;;
esac

dd if=/dev/zero of="$place/room" bs=1k count=400 2>/dev/null
$without dd if=/dev/zero of="$place/filler" bs=1k count=16384 2>said
tail -n 1 said | grep -q "^16777216" && cannot "takes whatever comes"
rm -rf "$place/room" "$place/lost+found"
sync -f "$place"
[ "$full" = end ] || export UNTIL=$PWD/room
RPDT_FILENAME=$place/trace.rpd RPDT_REPORT=$PWD/report LD_PRELOAD=$RECORDER:$LD_PRELOAD $without "$@" 2>said &
if [ "$full" = seconds ]; then
    until grep -q "no space left" said || ! kill -0 $!; do sleep 0.05; done
    sleep 1
    rm "$place/filler"
    touch room
fi
wait $!
status=$?
cat said >&2
rm -f said room
ls "$place" | grep -v filler > files
cp "$place"/trace.rpd* .
exit $status
