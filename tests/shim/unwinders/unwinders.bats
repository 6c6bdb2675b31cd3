# GPUMEMTRACE_UNWINDER: each unwinder that can be asked for, and the comparison of two.
load ../helpers

setup_file() {
	[ "$(uname -m)" = x86_64 ] || skip "unwind tables are read on x86-64 alone"
}

# recorded UNWINDER PROGRAM ARG...: what it prints on stderr goes to $work/error
recorded() {
	local unwinder=$1
	shift
	rm -f "$work"/out.gmt*
	GPUMEMTRACE_UNWINDER=$unwinder traced "$@" 2> "$work/error" || return 1
	report
}

# without_libunwind: the loader finds a library of its name without anything in it
without_libunwind() {
	echo > "$work/empty.c"
	cc -shared -fPIC -Wl,-soname,libunwind.so.8 -o "$work/libunwind.so.8" "$work/empty.c"
	export LD_LIBRARY_PATH=$work:$SIM
}

@test "each unwinder that is asked for is used, and finds the same stacks" {
	local shape unwinder
	for shape in frames signals coroutines; do
		recorded auto "$SHAPES" $shape
		is .tracer.unwinder '"unwind tables"'
		jq -S '[.sites[] | [.stack[] | [.module, .offset]]] | sort' "$work/document" > "$work/stacks"
		for unwinder in tables libunwind libgcc; do
			recorded $unwinder "$SHAPES" $shape
			is .tracer.unwinder "\"${unwinder/#tables/unwind tables}\""
			is '[.usage[].allocations] | add' "$(jq .allocations "$work/said")"
			jq -S '[.sites[] | [.stack[] | [.module, .offset]]] | sort' "$work/document" |
				diff "$work/stacks" - > "$work/diff" ||
				{ echo "$shape by $unwinder"; head -n 20 "$work/diff"; return 1; }
		done
		[ ! -s "$work/error" ]
	done
	recorded fp "$PROGRAMS/runtime13_O2"
	is .tracer.unwinder '"frame pointers"'
}

@test "an unwinder that is not there is named once, and the usual one is used" {
	local unwinder
	without_libunwind
	for unwinder in libunwind check; do
		recorded $unwinder "$SHAPES" frames
		is .tracer.unwinder '"unwind tables"'
		is .tracer.unwinder_check null
		[ "$(grep -c "libunwind cannot be used here, as GPUMEMTRACE_UNWINDER asks; stacks come from unwind tables" \
			"$work/error")" = 1 ]
	done
}

# agree MINIMUM PROGRAM ARG...: so many walks were compared, and all were the same by both
agree() {
	local minimum=$1
	shift
	recorded check "$@"
	is .tracer.unwinder '"unwind tables, compared with libunwind"'
	is '.tracer.unwinder_check | [.differing, .not_compared]' '[0,0]' ||
		{ echo "$*"; head -n 80 "$work/error"; return 1; }
	is ".tracer.unwinder_check.compared >= $minimum" true
}

@test "check: frames of all shapes, threads, signals at each instruction, coroutines, switched stacks" {
	agree 350 "$SHAPES" frames
	agree 120 "$SHAPES" signals
	agree 50 "$SHAPES" instructions
	agree 40 "$SHAPES" coroutines
	agree 10 "$SHAPES" switches
}

@test "check: a library that comes back elsewhere, and another in its place" {
	agree 80 "$SHAPES" reloading
}

@test "check: exceptions, plug-ins, the runtimes, the driver alone, blocks of PyTorch" {
	local program
	for program in runtime12_O0 runtime13_O2 runtime_static_O0 driver_O2; do
		agree 10 "$PROGRAMS/$program"
	done
	[ ! -x "$GUEST/guest_throw" ] || SHIM=$SHIM:$GUEST/hook_throw.so agree 100 "$GUEST/guest_throw" through
	agree 30 "$PROGRAMS/plugins" "$PROGRAMS/plugin13.so" 13 "$PROGRAMS/plugin12.so" 12
	export GPUSIM_MEMORY=2GiB
	agree 8 "$TORCH/replay" "$TRACES/fragmented.trace" 0 "$work"
}

# libunwind knows nothing of code that is registered with libgcc: its walk ends there, ours goes on to main.
@test "check: where libunwind ends at code made at run time, both stacks are printed once" {
	recorded check "$SHAPES" made_code
	is '.tracer.unwinder_check | .compared > 0 and .differing == .compared' true
	is '[.file.warnings[] | select(test("two unwinders walked differ"))] | length' 1
	[ "$(grep -c "unwinders differ" "$work/error")" = 1 ]
	[ "$(grep -c "tables    #.*the program+0x" "$work/error")" -ge 4 ]
	[ "$(grep -c "libunwind #1 .* in no object" "$work/error")" = 1 ]
	[ "$(grep -c "libunwind #2" "$work/error")" = 0 ]
}

# A lock of libunwind's may be held by a thread that a child does not have.
@test "check: children of forks walk by the tables alone" {
	GPUMEMTRACE_UNWINDER=check traced "$GUEST/guest_forks" record 10 2> "$work/error"
	for file in "$work"/out.gmt*; do
		"$REPORT" summary --json "$file" | jq -c '[.tracer.unwinder, .tracer.unwinder_check.differing // 0]'
	done | sort | uniq -c | sed 's/^ *//' > "$work/kinds"
	[ "$(cat "$work/kinds")" = '10 ["unwind tables",0]
1 ["unwind tables, compared with libunwind",0]' ] || { cat "$work/kinds"; return 1; }
}
