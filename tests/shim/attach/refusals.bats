#!/usr/bin/env bats
# What cannot be attached to, and the sentence that says why.

load ../helpers
load helpers

# refuses SENTENCE COMMAND ARG...: exit status 3 and the sentence on stderr.
refuses() {
	local sentence=$1
	shift
	run "$REPORT" "$@"
	[ "$status" = 3 ] && [[ "$output" == *"$sentence"* ]] || { echo "$status: $output"; false; }
}

sleeper() {
	"$@" > "$work/said" 3>&- &
	pid=$!
	until grep -q . /proc/$pid/cmdline; do kill -0 $pid; done
}

@test "no such process, one that is not attached, one that has ended" {
	refuses "there is no process 999999999 to attach to" attach 999999999
	sleeper sleep 100
	refuses "process $pid is not attached" detach $pid
	kill $pid
	run "$REPORT" attach
	[ "$status" = 2 ]
	run "$REPORT" attach one
	[ "$status" = 2 ]
}

@test "a static program" {
	sleeper "$PROGRAMS/static"
	refuses "process $pid is a static program" attach $pid
}

@test "a program without CUDA: nothing is recorded, and that is said" {
	cat > "$work/busy.py" <<-'PY'
		print("ready", flush=True)
		while True:
		    sum(range(1000))
	PY
	sleeper python3 "$work/busy.py"
	until_done [ -s "$work/said" ]
	refuses "nothing is recorded yet" attach --wait 500ms $pid
	refuses "is attached already" attach $pid
	"$REPORT" detach $pid > "$work/answer"
	grep -q "made no call that was recorded" "$work/answer"
	kill -0 $pid
}

@test "a thread that would see EINTR is not stopped unless that is asked for" {
	cat > "$work/waits.py" <<-'PY'
		import select
		print("ready", flush=True)
		select.epoll().poll(1000)
	PY
	sleeper python3 "$work/waits.py"
	until_done [ -s "$work/said" ]
	refuses "a stop would end with EINTR" attach --wait 300ms $pid
	refuses "nothing is recorded yet" attach --interrupt --wait 300ms $pid
	kill -0 $pid
}

@test "another tracer" {
	sleeper sleep 100
	"$WORDS" trace $pid > "$work/traced" 3>&- &
	tracer=$!
	until [ -s "$work/traced" ]; do kill -0 $tracer; done
	refuses "process $pid is traced by process $tracer" attach $pid
	kill $tracer
}

@test "another user, and no capability" {
	[ "$(id -u)" = 0 ] || skip "needs root to become another user"
	sleeper sleep 100
	chmod 755 "$work"
	run setpriv --reuid 65534 --regid 65534 --clear-groups "$PLAIN_REPORT" attach $pid
	[ "$status" = 3 ]
	[[ "$output" == *"belongs to user 0 and this one is user 65534"* ]] || { echo "$output"; false; }
	run setpriv --bounding-set -sys_ptrace --inh-caps -all "$PLAIN_REPORT" attach $pid
	[ "$status" = 3 ]
	[[ "$output" == *"has capabilities that this one lacks"* ]] || { echo "$output"; false; }
}

@test "a shim that was switched off" {
	GPUMEMTRACE_DISABLE=1 begin_under_nothing
	refuses "GPUMEMTRACE_DISABLE=1" attach $pid
	end
}

begin_under_nothing() {
	begin
}
