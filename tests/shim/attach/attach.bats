#!/usr/bin/env bats
# gpumem-report attach, detach and watch, on a busy program that was started without the shim.

load ../helpers
load helpers

allocations='[.usage[].allocations] | add // 0'
leak='[.sites[] | select(.stack | map(.function) | index("leak_here"))]'
survivors="($leak | map(.live_count) | add // 0)"

# may_attach: skips where this machine forbids to attach to one's own processes.
may_attach() {
	"$WORDS" mappings $$ > "$work/mappings" 2>&1 || skip "this machine does not let a process be attached to"
}

# words PID: the words of its objects' writable data and relocation slots that point into the shim.
words() {
	"$WORDS" words "$1"
}

@test "attach records from then on, by slots and tables, and detach leaves no word behind" {
	begin 64
	may_attach
	"$WORDS" mappings $pid > "$work/before"
	"$REPORT" attach -o "$work/out.gmt" $pid > "$work/attached"
	grep -q "is recorded into $work/out.gmt" "$work/attached"
	[ "$(words $pid)" -gt 0 ]
	touch "$work/run/leak"
	# The verdict takes survivors all along the period: a leak of one block is none.
	until_true "$survivors >= 100 and ($allocations) > 1000"
	is .tracer.period.attached true
	is '.tracer.period | .slots > 0 and .table_words > 0 and .process_age_s > 0' true
	is '.ledger[0].before_bytes >= 568 * 1048576 and .ledger[0].before_bytes < 584 * 1048576' true
	# That thread calls by addresses which it looked up itself before: attach says that it sees none of these.
	is '.sites | map(.stack | map(.function) | index("driver_thread")) | map(select(. != null))' '[]'
	is '.sites | map(.stack | map(.module) | map(select(endswith("plugin13.so")))) | flatten | length > 0' true
	"$REPORT" detach $pid > "$work/detached"
	grep -q "is not recorded any more; the file is $work/out.gmt" "$work/detached"
	[ "$(words $pid)" = 0 ]
	"$WORDS" mappings $pid > "$work/after"
	diff "$work/before" "$work/after"
	look
	is .process.end '"detached"'
	is .tracer.recording '"ended"'
	is .file.complete true
	is .file.clean_exit false
	is .leaks.exit_bytes null
	is '[.findings[] | select(.id == "leak.grow")] | length' 1
	grep -q '^TracerPid:	0$' /proc/$pid/status
	end
	[ ! -s "$work/stderr" ]
	look
	is .process.end '"detached"'
}

@test "200 attaches and detaches under load change no result and leave no word" {
	begin 8
	may_attach
	"$PROGRAMS/cycles" attach $pid 200 "$SHIM" "GPUMEMTRACE_OUT=$work/out.gmt" "$work/out.gmt" > "$work/pauses"
	[ "$(jq length "$work/pauses")" = 400 ]
	[ "$(words $pid)" = 0 ]
	look
	is .process.end '"detached"'
	is .file.dropped_events 0
	is .tracer.period.number 200
	end
	[ ! -s "$work/stderr" ]
}

@test "a second attach writes another file, and the first stays as it was" {
	begin
	may_attach
	"$REPORT" attach -o "$work/first.gmt" $pid
	touch "$work/run/leak"
	until_true "$leak | length > 0" "$work/first.gmt"
	rm "$work/run/leak"
	"$REPORT" detach $pid
	cp "$work/first.gmt" "$work/copy"
	"$REPORT" attach -o "$work/out.gmt" $pid
	until_true "($allocations) > 1000"
	is "$leak | map(.live_count) | add // 0 | . <= 3" true # of each thread that was about to
	"$REPORT" detach $pid
	cmp "$work/first.gmt" "$work/copy"
	end
}

@test "memory from before can be freed: no error, and the row falls by what the driver confirmed" {
	begin 64
	may_attach
	"$REPORT" attach -o "$work/out.gmt" $pid
	until_true ".ledger[0].before_bytes >= 56 * 1048576"
	touch "$work/run/free"
	until_done [ -e "$work/run/freed" ]
	look
	is '.tracer.period.before_freed_bytes >= 64 * 1048576' true
	is .errors '[]'
	"$REPORT" detach -q $pid
	end
}

@test "the tool may be killed at any moment: the program lives, and can be attached to" {
	begin 8
	may_attach
	for ((i = 0; i < 60; i++)); do
		timeout -s KILL "0.0$((RANDOM % 90 + 10))" "$REPORT" attach -q -o "$work/out.gmt" $pid || true
		timeout -s KILL "0.0$((RANDOM % 90 + 10))" "$REPORT" detach -q $pid || true
	done 2> "$work/killed"
	kill -0 $pid
	"$REPORT" detach -q $pid || true
	"$REPORT" attach -q -o "$work/last.gmt" $pid
	"$REPORT" detach -q $pid
	[ "$(words $pid)" = 0 ]
	end
}

@test "a tool waits for another one that is about to end" {
	begin 8
	may_attach
	flock "/proc/$pid" bash -c 'touch "$1"; sleep 0.5' - "$work/claimed" &
	until_done [ -e "$work/claimed" ]
	"$REPORT" attach -q -o "$work/out.gmt" $pid
	"$REPORT" detach -q $pid
	end
}

@test "watch records for a while, judges the period, and leaves the program" {
	begin
	may_attach
	touch "$work/run/leak"
	"$REPORT" watch --for 1h --check "--leaks grow" -o "$work/out.gmt" $pid > "$work/watched" 3>&- &
	tool=$!
	until [ -s "$work/out.gmt" ]; do kill -0 $tool; sleep 0.02; done
	until_true "$survivors >= 100 and ($allocations) > 1000"
	kill -TERM $tool # as Ctrl-C, which bash has a program in the background ignore
	wait $tool || status=$?
	[ "$status" = 1 ] || { echo "$status $(cat "$work/watched")"; false; }
	grep -q leak_here "$work/watched"
	grep -q "covers a period" "$work/watched"
	[ "$(words $pid)" = 0 ]
	rm "$work/run/leak"
	run "$REPORT" watch --for 500ms --check "--leaks grow" -o "$work/second.gmt" $pid
	[ "$status" = 0 ] || { echo "$status $output"; false; }
	end
}

@test "watch ends with the process, also if its parent does not wait for it" {
	mkdir "$work/run"
	# The shell becomes a program that waits for no child.
	WORK=$work sh -c '"$@" > "$WORK/said" & echo $! > "$WORK/number"; exec sleep 1000' sh \
		"$PROGRAMS/load" "$work/run" "$PLUGIN" "$SIM/libcuda.so.1" 2> "$work/stderr" 3>&- &
	parent=$!
	until [ -e "$work/run/ready" ]; do kill -0 $parent; sleep 0.02; done
	pid=$(cat "$work/number")
	may_attach
	"$REPORT" watch --for 1000s -o "$work/out.gmt" $pid > "$work/watched" 3>&- &
	tool=$!
	until_done [ -s "$work/out.gmt" ]
	until_true "($allocations) > 10"
	kill -KILL $pid
	wait $tool
	grep -q '^State:	Z' /proc/$pid/status
	kill $parent
}

@test "watch wakes a process that sleeps under the shim, and puts it back to sleep" {
	GPUMEMTRACE_START=asleep begin_under "$SHIM"
	run "$REPORT" watch --for 300ms --check "--leaks grow" $pid
	[ "$status" = 0 ] || { echo "$status $output"; false; }
	look
	is .tracer.recording '"asleep"'
	is .tracer.period.number 1
	end
}

@test "attach wakes a process under the shim by its file" {
	GPUMEMTRACE_START=asleep begin_under "$SHIM"
	"$REPORT" attach $pid
	look
	is .tracer.recording '"recording"'
	is .tracer.period.attached false
	end
}

@test "a process in another mount namespace, which does not see the shim's file, gets its bytes" {
	unshare -m true 2> "$work/denied" || skip "this machine makes no mount namespaces"
	may_attach
	mkdir "$work/run"
	unshare -m sh -c "mount -t tmpfs none '$(dirname "$SHIM")' && exec \"\$@\"" sh \
		"$WORDS" allow "$PROGRAMS/load" "$work/run" "$PLUGIN" "$SIM/libcuda.so.1" > "$work/said" 2> "$work/stderr" 3>&- &
	pid=$!
	until_done [ -e "$work/run/ready" ]
	"$REPORT" attach -o "$work/out.gmt" $pid > "$work/attached"
	grep -q "the shim copied into its memory" "$work/attached"
	until_true "($allocations) > 1000"
	"$REPORT" detach -q $pid
	"$REPORT" attach -q -o "$work/second.gmt" $pid
	"$REPORT" detach -q $pid
	# descriptors of the program's own come and go meanwhile
	find /proc/$pid/fd -lname '/memfd:*' > "$work/descriptors" 2> /dev/null || true
	[ ! -s "$work/descriptors" ]
	end
}
