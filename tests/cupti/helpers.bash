# Shared by the tests of the CUPTI backend. SHIM, SIM, TRACED, REPORT, DUMP, PROGRAMS, SHIM_PROGRAMS and
# EQUIVALENCE come from meson. TRACED holds the traced driver and the libcupti doubles.

setup() {
	work=$(mktemp -d)
	mkdir "$work/lib"
	ln -s "$TRACED/libcuda.so.1" "$TRACED/libcupti.so.13" "$work/lib"
	export LD_LIBRARY_PATH=$work/lib:$SIM GPUMEMTRACE_QUIET=1
	unset CUDA_HOME CUDA_PATH CUDA_INJECTION64_PATH
}

teardown() {
	rm -rf "$work"
}

# seen BACKEND PROGRAM ARG...: runs it with the shim preloaded; $work/BACKEND.json has what was seen.
seen() {
	local backend=$1
	shift
	rm -f "$work/out.gmt"
	LD_PRELOAD=$SHIM GPUMEMTRACE_BACKEND=$backend GPUMEMTRACE_OUT=$work/out.gmt "$@" \
		> "$work/said" 2> "$work/error"
	"$DUMP" "$work/out.gmt" > "$work/$backend.json"
}

# injected PROGRAM ARG...: the same with no preload, in $work/injected.json.
injected() {
	rm -f "$work/out.gmt"
	CUDA_INJECTION64_PATH=$SHIM GPUMEMTRACE_OUT=$work/out.gmt "$@" > "$work/said" 2> "$work/error"
	"$DUMP" "$work/out.gmt" > "$work/injected.json"
}

# is FILE EXPRESSION VALUE: the jq EXPRESSION gives VALUE on $work/FILE.json.
is() {
	local found
	found=$(jq -c "$2" "$work/$1.json")
	[ "$found" = "$3" ] || { echo "$1: $2 is $found, not $3"; return 1; }
}

# alike A B: compare.py finds no difference between $work/A.json and $work/B.json.
alike() {
	python3 "$EQUIVALENCE/compare.py" "$work/$1.json" "$work/$2.json"
}
