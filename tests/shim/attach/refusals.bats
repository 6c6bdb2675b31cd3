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

@test "a wait is no obstacle: the program sees no error, whichever call it waits in" {
	local way
	for way in epoll poll sigtimedwait recv; do
		rm -f "$work/in" "$work/said"
		mkfifo "$work/in"
		"$PROGRAMS/waits" $way < "$work/in" > "$work/said" 3>&- &
		pid=$!
		exec 4> "$work/in"
		until_done grep -q ready "$work/said"
		until_done grep -q "$(printf '^%d ' "$(call_of $way)")" /proc/$pid/syscall
		# Without CUDA nothing is recorded; the calls into the thread are made all the same.
		refuses "nothing is recorded yet" attach --interrupt --wait 100ms $pid
		"$REPORT" detach -q --interrupt $pid
		if [ $way = sigtimedwait ]; then kill -USR1 $pid; else echo go >&4; fi
		exec 4>&-
		wait $pid
		pid=
		[ "$(tail -n 1 "$work/said")" = "1 good" ] || { echo "$way: $(cat "$work/said")"; false; }
	done
}

# call_of WAY: the number of the system call [arch/x86/entry/syscalls/syscall_64.tbl].
call_of() {
	case $1 in epoll) echo 232 ;; poll) echo 7 ;; sigtimedwait) echo 128 ;; recv) echo 45 ;; esac
}

@test "threads in waits are passed over at first, and will do before the time is up" {
	mkfifo "$work/in"
	"$PROGRAMS/waits" epoll < "$work/in" > "$work/said" 3>&- &
	pid=$!
	exec 4> "$work/in"
	until_done grep -q ready "$work/said"
	refuses "nothing is recorded yet" attach --wait 2s $pid
	echo go >&4
	exec 4>&-
	wait $pid
	pid=
	[ "$(tail -n 1 "$work/said")" = "1 good" ]
}

@test "a thread in fork holds malloc's lock, and is left alone" {
	mkfifo "$work/in"
	"$PROGRAMS/waits" fork < "$work/in" > "$work/said" 3>&- &
	pid=$!
	exec 4> "$work/in"
	until_done grep -q ready "$work/said"
	refuses "it is in fork, which holds malloc's lock" attach --interrupt --wait 100ms $pid
	echo go >&4
	exec 4>&-
	wait $pid
	pid=
	[ "$(tail -n 1 "$work/said")" = "1 good" ]
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
