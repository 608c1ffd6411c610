#!/bin/sh
# Loads the recorder into a command, paused until the command calls rpdstart: loadTracer.sh [-o FILE] COMMAND [ARGUMENT...]
# Otherwise as runTracer.sh.
RPDT_AUTOSTART=0
export RPDT_AUTOSTART
exec "$(dirname "$0")/runTracer.sh" "$@"
