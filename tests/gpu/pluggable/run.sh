#!/usr/bin/env bash
# Allocators that a program gives to PyTorch, on a real GPU: our figures are that allocator's own counters,
# and PyTorch's where it keeps any. Needs a C compiler.
#   run.sh BUNDLE OUT
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"

on() { # MODE
	mkdir -p "$out/$1" && ran "pluggable-$1" 120 "$python" "$here/tensors.py" "$1" "$out/$1" &&
		document "pluggable-$1" &&
		compare "$here/compare.py" "$1" "$out/pluggable-$1.said" "$out/pluggable-$1.json"
}

piece current on current
piece mempool on mempool
together
finish pluggable
