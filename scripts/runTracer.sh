#!/bin/sh
# Records a command and its children: runTracer.sh [-o FILE] COMMAND [ARGUMENT...]
# FILE is trace.rpd by default; an older trace of that name is replaced. What `rpd record` can do besides: rpd record --help.
set -eu

file=trace.rpd
if [ "${1-}" = -o ]; then
    file=${2-}
    [ $# -lt 2 ] && set -- || shift 2
fi
if [ $# -eq 0 ] || [ -z "$file" ]; then
    echo "usage: ${0##*/} [-o FILE] COMMAND [ARGUMENT...]" >&2
    exit 2
fi
rpd=$(dirname "$0")/rpd
[ -x "$rpd" ] || rpd=rpd
exec "$rpd" record --force -o "$file" -- "$@"
