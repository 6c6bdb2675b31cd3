#!/usr/bin/env bash
# Verdicts on a real GPU: clean loops pass `check`, a loop that keeps its graphs fails with 1.
#   run.sh BUNDLE OUT
set -u
bundle=$(cd "$1" && pwd) out=$(mkdir -p "$2" && cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
status=0

# expect STATUS NAME PROGRAM...
expect() {
	local wanted=$1 name=$2 got
	shift 2
	LD_PRELOAD=$bundle/libgpumemtrace.so GPUMEMTRACE_QUIET=1 GPUMEMTRACE_OUT=$out/$name.gmt "$@" \
		> /dev/null 2> "$out/$name.err" || { echo "FAIL  $name: the program failed"; status=1; return; }
	LD_LIBRARY_PATH=$bundle "$bundle/gpumem-report" check "$out/$name.gmt" > "$out/$name.check" 2>&1
	got=$?
	if [ $got -eq "$wanted" ]; then
		echo "PASS  $name: check exits $got"
	else
		echo "FAIL  $name: check exits $got, not $wanted"
		status=1
	fi
	sed -n 1,14p "$out/$name.check" | sed 's/^/      /'
}

expect 0 torch-clean python3 "$here/torch_loop.py"
expect 1 torch-leak python3 "$here/torch_loop.py" leak
expect 0 cupy-clean python3 "$here/cupy_loop.py"
expect 0 jax-clean python3 "$here/jax_loop.py"
expect 0 jax-growing-clean env XLA_PYTHON_CLIENT_PREALLOCATE=false python3 "$here/jax_loop.py"
exit $status
