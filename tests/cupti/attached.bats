#!/usr/bin/env bats
# CUPTI as a route of gpumem-report attach: calls by addresses that a program had looked up itself before, in a process
# with the traced driver and the libcupti double.

load ../shim/helpers
load ../shim/attach/helpers

setup() {
	work=$(mktemp -d)
	export LD_LIBRARY_PATH=$TRACED:$SIM GPUMEMTRACE_OUT=$work/out.gmt GPUMEMTRACE_QUIET=1
	unset CUDA_HOME CUDA_PATH CUDA_INJECTION64_PATH
	pid=
}

# begin_python: a program that keeps the addresses of the driver's functions, as `pid`; it is at work when this returns.
# Once $work/go exists it allocates 100 MiB by the address of cuMemAlloc_v2 and 100 MiB by a library's slot of
# cudaMalloc, in pieces of 1 MiB, and goes on with `idle`, which frees NULL in both ways. With `later` it makes no call
# before that.
begin_python() {
	cat > "$work/looked_up.py" <<-'PY'
		import ctypes, pathlib, sys
		folder = pathlib.Path(sys.argv[1])
		cuda, cudart, plugin = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcudart.so.13"), ctypes.CDLL(sys.argv[2])
		allocate, release, kept = cuda.cuMemAlloc_v2, cuda.cuMemFree_v2, []
		release.argtypes = [ctypes.c_void_p]
		if sys.argv[3:] != ["later"]:
		    assert cudart.cudaFree(None) == 0
		def by_address():
		    kept.append(ctypes.c_void_p())
		    assert allocate(ctypes.byref(kept[-1]), ctypes.c_size_t(1 << 20)) == 0
		def by_slot():
		    kept.append(ctypes.c_void_p())
		    assert plugin.plugin_allocate(ctypes.byref(kept[-1]), ctypes.c_ulong(1 << 20)) == 0
		def idle():
		    if sys.argv[3:] != ["later"]:
		        assert release(None) == 0 and plugin.plugin_release(None) == 0
		(folder / "ready").touch()
		while not (folder / "go").exists():
		    idle()
		for _ in range(100):
		    by_address()
		    by_slot()
		for memory in kept[:50]:
		    assert release(memory) == 0
		(folder / "allocated").touch()
		while not (folder / "stop").exists():
		    idle()
		print("done")
	PY
	"$WORDS" allow python3 "$work/looked_up.py" "$work" "$PLUGIN" "$@" > "$work/said" 2> "$work/stderr" 3>&- &
	pid=$!
	until_done [ -e "$work/ready" ]
}

end_python() {
	touch "$work/go" "$work/stop"
	wait $pid
	pid=
	[ "$(cat "$work/said")" = "done" ] && [ ! -s "$work/stderr" ] || { cat "$work/stderr"; false; }
}

# without_cupti REASON: attach said so.
without_cupti() {
	grep -qF "not by CUPTI: $1" "$work/attached" || { cat "$work/attached"; false; }
}

# made FUNCTION: allocations at places in this Python function.
made() {
	echo "[.sites[] | select(.stack | map(.function) | index(\"$1\")) | .allocations] | add // 0"
}

allocate() {
	touch "$work/go"
	until_done [ -e "$work/allocated" ]
	look
}

@test "calls by looked-up addresses are seen, and each call once, whichever way it comes" {
	begin_python
	"$REPORT" attach -o "$work/out.gmt" $pid > "$work/attached"
	grep -Eq "words of driver tables and CUPTI \([1-9][0-9]+ functions\)" "$work/attached"
	! grep -q "had looked up itself" "$work/attached"
	allocate
	is "$(made by_address)" 100
	is "$(made by_slot)" 100
	is '.totals[0].current_bytes' $((150 << 20))
	is '[.usage[].allocations] | add' 200
	is '[.usage[].frees] | add' 50
	is .errors '[]'
	is '.tracer.period | .cupti_functions > 50' true
	is '.tracer.period | [.cupti_reason, .not_seen]' \
		"[null,[\"what a pool other than PyTorch's hands out of memory that it holds\"]]"
	"$REPORT" summary "$work/out.gmt" | grep -q "words of driver tables and CUPTI"
	"$REPORT" detach -q $pid
	"$REPORT" attach -o "$work/second.gmt" $pid > "$work/attached" # the double has room for one subscriber
	grep -q "and CUPTI (" "$work/attached"
	"$REPORT" detach -q $pid
	end_python
}

@test "another subscriber keeps CUPTI: its name is said, and the slots go on" {
	FAKE_CUPTI_HOLDER="CUPTI for Kineto" begin_python
	"$REPORT" attach -o "$work/out.gmt" $pid > "$work/attached"
	without_cupti "it has room for one subscriber, and CUPTI for Kineto is it"
	allocate
	is "$(made by_address)" 0
	is "$(made by_slot)" 100
	is .tracer.period.cupti_functions 0
	is .tracer.period.cupti_reason '"it has room for one subscriber, and CUPTI for Kineto is it"'
	is '.tracer.period.not_seen | length' 2
	"$REPORT" detach -q $pid
	end_python
}

@test "GPUMEMTRACE_BACKEND=preload leaves CUPTI alone" {
	begin_python
	GPUMEMTRACE_BACKEND=preload "$REPORT" attach -o "$work/out.gmt" $pid > "$work/attached"
	without_cupti "GPUMEMTRACE_BACKEND=preload was asked for"
	! grep -q libcupti /proc/$pid/maps
	"$REPORT" detach -q $pid
	end_python
}

@test "a process without CUDA at work is not made to initialise it" {
	begin_python later
	run "$REPORT" attach --wait 3s -o "$work/out.gmt" $pid # each of the calls into the process has that long
	[ "$status" = 3 ]
	[[ "$output" == *"not by CUPTI: the process has not initialised CUDA) and nothing is recorded yet"* ]] ||
		{ echo "$output"; false; }
	"$REPORT" detach -q $pid
	"$REPORT" detach $pid > "$work/again" 2>&1 || true
	grep -q "is not attached" "$work/again"
	touch "$work/stop"
	kill $pid
	wait $pid || true
	pid=
}

@test "refusals by GPUMEMTRACE_FAIL are the wrappers' business: CUPTI stays out" {
	begin_python
	GPUMEMTRACE_FAIL=1000000 "$REPORT" attach -o "$work/out.gmt" $pid > "$work/attached"
	without_cupti "GPUMEMTRACE_CAPACITY and GPUMEMTRACE_FAIL refuse calls"
	"$REPORT" detach -q $pid
	end_python
}

@test "attaching and detaching with CUPTI under load changes no result" {
	DRIVER=$TRACED/libcuda.so.1 begin 8
	WITH_CUPTI=1 "$PROGRAMS/cycles" attach $pid 40 "$SHIM" "GPUMEMTRACE_OUT=$work/out.gmt" "$work/out.gmt" > "$work/pauses"
	[ "$("$WORDS" words $pid)" = 0 ]
	look
	is .process.end '"detached"'
	is .tracer.period.number 40
	is '.tracer.period.cupti_functions > 50' true
	is .file.dropped_events 0
	is .errors '[]'
	"$REPORT" attach -q -o "$work/last.gmt" $pid
	until_true '.sites | map(.stack | map(.function) | index("driver_thread")) | any' "$work/last.gmt"
	until_true '([.usage[].allocations] | add // 0) > 1000' "$work/last.gmt"
	touch "$work/run/leak"
	until_true '[.sites[] | select(.stack | map(.function) | index("leak_here"))] | length > 0' "$work/last.gmt"
	end
	[ ! -s "$work/stderr" ]
}
