#!/usr/bin/env bash
# What the shim costs a call: without it, disabled, recording. benchmark.sh BUILD
set -eu
build=$(cd "${1:?usage: benchmark.sh BUILD}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$build/tests/sim GPUMEMTRACE_OUT=$work/out.gmt GPUMEMTRACE_QUIET=1
shim=$build/src/interpose/libgpumemtrace.so program=$build/tests/unit/budget/guest_idle
echo -n 'without the shim: '; "$program"
echo -n 'disabled:         '; GPUMEMTRACE_DISABLE=1 LD_PRELOAD=$shim "$program"
echo -n 'recording:        '; LD_PRELOAD=$shim "$program"
