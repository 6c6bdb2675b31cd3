#!/bin/sh
# rename.sh OUTPUT NAMES OBJECT...: the objects as one, in which each "old new" of NAMES is renamed.
set -eu
output=$1 names=$2
shift 2
xargs -n 2 < "$names" > "$output.names"
ld -r -o "$output.joined" "$@"
objcopy --redefine-syms="$output.names" "$output.joined" "$output"
