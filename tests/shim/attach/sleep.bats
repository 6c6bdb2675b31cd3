#!/usr/bin/env bats
# GPUMEMTRACE_START=asleep, gpumem-report start and stop, on a busy program.

load ../helpers
load helpers

asleep() {
	GPUMEMTRACE_START=asleep begin_under "$SHIM" "$@"
}

allocations='[.usage[].allocations] | add // 0'

@test "asleep the file holds the context and nothing else, and is gone at the end" {
	asleep
	look
	is .tracer.recording '"asleep"'
	is .tracer.period null
	is "$allocations" 0
	is '.ledger[0].before_bytes' null
	end
	[ ! -e "$work/out.gmt" ]
	[ ! -s "$work/stderr" ]
}

@test "start records from then on, and what was there before is one row of the ledger" {
	asleep 64
	"$REPORT" start $pid
	until_true '.ledger[0].before_bytes' # other threads' calls may have kept the first sample from being taken
	is .tracer.recording '"recording"'
	is .tracer.period.number 1
	is .tracer.period.ended_s null
	# Frees of small allocations lower it by their sizes, although these lie in pages of 2 MiB.
	is '.ledger[0] | .before_bytes >= 56 * 1048576 and .before_bytes < 72 * 1048576' true
	is '.ledger[0].rows | map(.what) | index("from before the recording") != null' true
	touch "$work/run/leak"
	until_true '[.sites[] | select(.stack | map(.function) | index("leak_here"))] | length > 0'
	end
	look
	same leaked '[.sites[] | select(.stack | map(.function) | index("leak_here")) | .live_count] | add'
	is .process.end '"exit"'
}

@test "freeing what was allocated while asleep is no error, and lowers the row by its size" {
	asleep 64
	"$REPORT" start $pid
	until_true '.ledger[0].before_bytes >= 56 * 1048576'
	touch "$work/run/free"
	until_done [ -e "$work/run/freed" ]
	look
	is '.tracer.period | .before_frees >= 64 and .before_freed_bytes >= 64 * 1048576' true
	touch "$work/run/leak" # a new peak has the ledger sampled again
	until_true '.ledger[0].before_bytes < 8 * 1048576'
	is '.errors' '[]'
	# Small allocations from before and from the period share pages of 2 MiB, in the row as in what is tracked.
	is '.ledger[0].unexplained_bytes | . > -8 * 1048576 and . < 8 * 1048576' true
	end
}

@test "virtual memory from before can be freed in each way, and the row falls when the driver has the memory back" {
	local way free_before free_after falls number row fallen=0
	mkfifo "$work/in"
	GPUMEMTRACE_START=asleep LD_PRELOAD=$SHIM python3 "$PROGRAMS/before_vmm.py" "$SIM/libcuda.so.1" "$work/stated" < "$work/in" 2> "$work/stderr" 3>&- &
	pid=$!
	exec 4> "$work/in"
	has_stated() { [ -e "$work/stated" ] && [ "$(wc -l < "$work/stated")" -ge $1 ]; }
	for number in {1..13}; do
		until_done has_stated $number
		read -r way free_before free_after falls < <(sed -n ${number}p "$work/stated")
		look
		[ $number -gt 1 ] || row=$(jq '.ledger[0].before_bytes' "$work/document")
		fallen=$((fallen + falls))
		is '.tracer.period.before_freed_bytes' $fallen || { echo "$way"; false; }
		[[ $way == never_mapped || $way == new_peak || $((free_after - free_before)) = "$falls" ]] || { echo "$way"; false; }
		is '.errors' '[]'
		is '.tracer.period.before_frees > 0' "$([ $fallen -gt 0 ] && echo true || echo false)"
		[ $way != new_peak ] || is '.ledger[0].before_bytes' $((row - fallen))
		echo next >&4
	done
	exec 4>&-
	wait $pid
	pid=
	[ ! -s "$work/stderr" ]
}

@test "stop puts it to sleep: the file tells of the period, and leaks at exit are not judged" {
	asleep
	"$REPORT" start $pid
	until_true "($allocations) > 1000"
	"$REPORT" stop $pid
	look
	is .tracer.recording '"asleep"'
	is '.tracer.period | .ended_s > .started_s' true
	before=$(jq "$allocations" "$work/document")
	touch "$work/run/leak"
	end
	look
	# A call that had begun is recorded at its end: one of each of the four threads that call CUDA.
	is "($allocations) - $before | . >= 0 and . <= 4" true
	is .file.clean_exit false
	is .leaks.exit_bytes null
	is .process.end '"exit"'
	"$REPORT" summary "$work/out.gmt" | grep -q "covers a period, from .* to "
}

@test "a second start begins anew: nothing of the first period is left" {
	asleep
	"$REPORT" start $pid
	touch "$work/run/leak"
	until_true '[.sites[] | select(.stack | map(.function) | index("leak_here"))] | length > 0'
	rm "$work/run/leak"
	"$REPORT" stop $pid
	"$REPORT" start "$work/out.gmt"
	until_true "($allocations) > 1000"
	is .tracer.period.number 2
	is '[.sites[] | select(.stack | map(.function) | index("leak_here")) | .live_count] | add // 0 | . <= 3' true
	end
}

@test "a process that records from its start can be stopped and started too" {
	begin_under "$SHIM"
	look
	is .tracer.period null
	"$REPORT" stop $pid
	"$REPORT" start $pid
	look
	is .tracer.period.number 1
	end
}

@test "1,000 starts and stops under load change no result" {
	asleep 8
	"$PROGRAMS/cycles" start "$work/out.gmt" 1000
	look
	is .tracer.period.number 1000
	is .file.dropped_events 0
	end
	[ ! -s "$work/stderr" ]
}

@test "the complete history of the first period is kept" {
	export GPUMEMTRACE_EVENTS=all
	asleep
	"$REPORT" start $pid
	until_true "($allocations) > 100"
	end
	look
	is .tracer.history.source '"all"'
	rm -rf "$work/run"
	asleep
	"$REPORT" start $pid
	"$REPORT" stop $pid
	"$REPORT" start $pid
	end
	look
	is .tracer.history.source '"ring"'
	is .file.warnings '[]'
}

@test "the program itself starts and stops" {
	cat > "$work/cell.py" <<-'PY'
		import ctypes, sys
		tracer, cuda = ctypes.CDLL(None), ctypes.CDLL("libcudart.so.13")
		def allocate(count):
		    for _ in range(count):
		        assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20)) == 0
		allocate(3)
		assert tracer.gpumemtrace_active() == 0
		assert tracer.gpumemtrace_start() == 0
		allocate(5)
		assert tracer.gpumemtrace_active() == 1
		assert tracer.gpumemtrace_stop() == 0
		allocate(7)
	PY
	GPUMEMTRACE_START=asleep LD_PRELOAD=$SHIM python3 "$work/cell.py"
	look
	is "$allocations" 5
	is '.totals[0].current_bytes' 5242880
	is '.ledger[0].before_bytes' 4194304 # two pieces of 2 MiB, as the driver holds them
}

@test "a child of fork begins as its parent is" {
	cat > "$work/fork.py" <<-'PY'
		import ctypes, os
		tracer = ctypes.CDLL(None)
		def work():
		    cuda = ctypes.CDLL("libcudart.so.13")
		    assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20)) == 0
		    return tracer.gpumemtrace_active()
		for wanted in (0, 1):
		    if wanted:
		        tracer.gpumemtrace_start()
		    child = os.fork()
		    if child == 0:
		        os._exit(work())
		    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == wanted, wanted
	PY
	GPUMEMTRACE_START=asleep LD_PRELOAD=$SHIM python3 "$work/fork.py"
}

@test "refusals say why" {
	run "$REPORT" start 1
	[ "$status" = 3 ]
	[[ "$output" == *"process 1 is not traced"* || "$output" == *"belongs to someone else"* ]]
	run "$REPORT" start "$work/none.gmt"
	[ "$status" = 3 ]
	[[ "$output" == *"none.gmt"* ]]
	echo "something else" > "$work/other"
	run "$REPORT" start "$work/other"
	[ "$status" = 3 ]
	[[ "$output" == *"no file of gpumemtrace"* ]]
	begin_under "$SHIM"
	end
	run "$REPORT" start "$work/out.gmt"
	[ "$status" = 3 ]
	[[ "$output" == *"has ended"* ]]
	run "$REPORT" stop
	[ "$status" = 2 ]
}

@test "a process that makes no call is told to be waited for" {
	cat > "$work/idle.py" <<-'PY'
		import ctypes, sys
		cuda = ctypes.CDLL("libcudart.so.13")
		cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))
		print("ready", flush=True)
		sys.stdin.readline()
		cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))
	PY
	mkfifo "$work/in"
	GPUMEMTRACE_START=asleep LD_PRELOAD=$SHIM python3 "$work/idle.py" < "$work/in" > "$work/said" 3>&- &
	pid=$!
	exec 4> "$work/in"
	until_done [ -s "$work/said" ]
	run "$REPORT" start --wait 100ms $pid
	[ "$status" = 3 ]
	[[ "$output" == *"it will begin to record at its next one"* ]]
	echo go >&4
	exec 4>&-
	wait $pid
	pid=
	look
	is "$allocations" 1
}
