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
	is_documented "$sentence"
}

# is_documented SENTENCE: docs/attach.md has it, with N for the process and M for its tracer.
is_documented() {
	local sentence=${1//"process ${tracer:-none}"/process M}
	sentence=${sentence//"process ${pid:-none}"/process N}
	grep -qF -- "${sentence//"process 999999999"/process N}" "$DOCUMENT" || { echo "docs/attach.md lacks: $sentence"; false; }
}


# sleeper COMMAND ARG...: in the background, as `pid`; the shell that was forked for it runs the command now.
sleeper() {
	"$WORDS" allow "$@" > "$work/said" 3>&- &
	pid=$!
	until_done runs_neither "$WORDS" /proc/$$/exe
}

# runs_neither PROGRAM PROGRAM: the process `pid` has become something else.
runs_neither() {
	[ ! /proc/$pid/exe -ef "$1" ] && [ ! /proc/$pid/exe -ef "$2" ]
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
	refuses "nothing is recorded yet" attach --wait 3s $pid # each of the calls into the process has that long
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
		"$WORDS" allow "$PROGRAMS/waits" $way < "$work/in" > "$work/said" 3>&- &
		pid=$!
		exec 4> "$work/in"
		until_done grep -q ready "$work/said"
		until_done grep -q "$(printf '^%d ' "$(call_of $way)")" /proc/$pid/syscall
		INTERRUPT=1 attached_and_left
		if [ $way = sigtimedwait ]; then kill -USR1 $pid; else echo go >&4; fi
		exec 4>&-
		wait $pid
		pid=
		[ "$(tail -n 1 "$work/said")" = "1 good" ] || { echo "$way: $(cat "$work/said")"; false; }
	done
}

# attached_and_left: without CUDA nothing is recorded; the calls into the thread are made all the same.
attached_and_left() {
	"$PROGRAMS/cycles" attach $pid 1 "$SHIM" "GPUMEMTRACE_OUT=$work/out.gmt" > "$work/pauses"
}

# call_of WAY: the number of the system call [arch/x86/entry/syscalls/syscall_64.tbl].
call_of() {
	case $1 in epoll) echo 232 ;; poll) echo 7 ;; sigtimedwait) echo 128 ;; recv) echo 45 ;; esac
}

@test "threads in waits are passed over at first, and will do before the time is up" {
	mkfifo "$work/in"
	"$WORDS" allow "$PROGRAMS/waits" epoll < "$work/in" > "$work/said" 3>&- &
	pid=$!
	exec 4> "$work/in"
	until_done grep -q ready "$work/said"
	attached_and_left
	echo go >&4
	exec 4>&-
	wait $pid
	pid=
	[ "$(tail -n 1 "$work/said")" = "1 good" ]
}

@test "a thread in fork holds malloc's lock, and is left alone" {
	mkfifo "$work/in"
	"$WORDS" allow "$PROGRAMS/waits" fork < "$work/in" > "$work/said" 3>&- &
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

# in_state STATE [LIBRARY]: the program `states` in the background, as `pid`; a line to descriptor 4 ends the state.
in_state() {
	rm -f "$work/in" "$work/said"
	mkfifo "$work/in"
	"$PROGRAMS/states" "$@" < "$work/in" > "$work/said" 3>&- &
	pid=$!
	exec 4> "$work/in"
	until_done grep -q -e ready -e none "$work/said"
}

# goes_on: the program ends as it would have without us, and nothing was loaded into it.
goes_on() {
	[ -n "${loaded:-}" ] || ! grep -q libgpumemtrace /proc/$pid/maps
	echo go >&4
	exec 4>&-
	wait $pid
	pid=
	[ "$(tail -n 1 "$work/said")" = good ] || { cat "$work/said"; false; }
}

# in_system_call CALL: the main thread waits in it.
in_system_call() {
	grep -q "^$1 " /proc/$pid/syscall
}

@test "a stopped process is left alone, also when it goes on" {
	in_state small
	kill -STOP $pid
	until_done grep -q '^State:	T' /proc/$pid/status
	refuses "process $pid is stopped (SIGSTOP, Ctrl-Z) and has to go on first" attach $pid
	kill -CONT $pid
	goes_on
}

@test "a frozen process: what was laid into it is taken back" {
	local group=
	mkfifo "$work/in"
	"$PROGRAMS/waits" epoll < "$work/in" > "$work/said" 3>&- &
	pid=$!
	exec 4> "$work/in"
	until_done grep -q ready "$work/said"
	until_done in_system_call 232
	freeze || { echo go >&4; exec 4>&-; wait $pid; pid=; skip "this machine makes no control groups"; }
	# The second version lets tracers stop a frozen thread, the first does not.
	if [ -e "$group/cgroup.freeze" ]; then
		refuses "process $pid does not run: it is stopped or frozen (docker pause, cgroup.freeze) and has to go on first" \
			attach --interrupt --wait 100ms $pid
	else
		refuses "it waits in the kernel and cannot be stopped (state D: vfork, a frozen container, a device)" \
			attach --interrupt --wait 100ms $pid
	fi
	thaw
	grep -q '^TracerPid:	0$' /proc/$pid/status
	! grep -q libgpumemtrace /proc/$pid/maps
	echo go >&4
	exec 4>&-
	wait $pid
	pid=
	remove_group
	[ "$(tail -n 1 "$work/said")" = "1 good" ] || { cat "$work/said"; false; }
}

# freeze: the process is in a frozen control group of its own, `group`; remove_group, when it has ended.
freeze() {
	local base
	for base in /sys/fs/cgroup /sys/fs/cgroup/unified "$work/groups" /sys/fs/cgroup/freezer; do
		if [ "$base" = "$work/groups" ]; then
			mkdir "$base" && mount -t cgroup2 none "$base" 2> "$work/denied" || continue
		fi
		group=$base/attach_test_$pid
		[ -e "$base/cgroup.procs" ] && mkdir "$group" 2> "$work/denied" || continue
		if [ -e "$group/cgroup.freeze" ] && enters_group; then
			echo 1 > "$group/cgroup.freeze"
			until_done grep -q '^frozen 1' "$group/cgroup.events"
			return 0
		elif [ -e "$group/freezer.state" ] && enters_group; then
			echo FROZEN > "$group/freezer.state"
			until_done grep -q '^FROZEN' "$group/freezer.state"
			return 0
		fi
		rmdir "$group"
	done
	return 1
}

enters_group() {
	sh -c 'echo $1 > "$2/cgroup.procs"' sh $pid "$group" 2> "$work/denied"
}

thaw() {
	if [ -e "$group/cgroup.freeze" ]; then echo 0 > "$group/cgroup.freeze"; else echo THAWED > "$group/freezer.state"; fi
}

remove_group() {
	until rmdir "$group" 2> "$work/denied"; do sleep 0.02; done
	if [ "$(dirname "$group")" = "$work/groups" ]; then umount "$work/groups"; fi
}

@test "threads in vfork, the loader, malloc, code without tables and on a small stack are left alone" {
	local state
	local -A why=([vfork]="it waits in the kernel and cannot be stopped (state D: vfork, a frozen container, a device)"
		[loader]="it is in the loader" [malloc]="it is in malloc" [small]="its stack is small"
		[jit]="its stack cannot be unwound to its end")
	for state in vfork loader malloc small jit; do
		in_state $state "$PROGRAMS/libheld_in_$state.so"
		until_done blocked $state
		refuses "no thread of process $pid came to a place where a call can be made, within " attach --interrupt --wait 100ms $pid
		[[ "$output" == *"of the last one: ${why[$state]}"* ]] || { echo "$state: $output"; false; }
		is_documented "${why[$state]}"
		goes_on
	done
}

# blocked STATE: the main thread is where it is to be found.
blocked() {
	if [ $1 = vfork ]; then grep -q '^State:	D' /proc/$pid/status; else in_system_call 0; fi
}

@test "a wait that only the kernel can resume, after a stop by a signal" {
	mkfifo "$work/in"
	"$PROGRAMS/waits" poll < "$work/in" > "$work/said" 3>&- &
	pid=$!
	exec 4> "$work/in"
	until_done grep -q ready "$work/said"
	until_done in_system_call 7
	kill -STOP $pid
	until_done grep -q '^State:	T' /proc/$pid/status
	kill -CONT $pid
	until_done in_system_call 219 # restart_syscall
	refuses "it waits in a call that only the kernel can resume" attach --interrupt --wait 100ms $pid
	echo go >&4
	exec 4>&-
	wait $pid
	pid=
	[ "$(tail -n 1 "$work/said")" = "1 good" ]
}

@test "a process whose main thread has ended" {
	in_state leader
	until_done grep -q '^State:	Z' /proc/$pid/status
	refuses "the main thread of process $pid has ended, and with it what /proc shows of the process" attach $pid
	loaded=unknown goes_on
}

@test "a process whose seccomp filter or memory forbids to load the shim lives on" {
	local state sentence
	for state in seccomp memory; do
		in_state $state
		sentence="process $pid could not load the shim: its loader refused $SHIM. Most often its static thread-local storage is exhausted (start it with GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096), its memory is limited (RLIMIT_AS, mlockall), its C library is older than 2.17, or a security module or seccomp forbids it"
		run "$REPORT" attach --interrupt $pid
		[ "$status" = 3 ] && [ "$output" = "gpumem-report: $sentence" ] || { echo "$status: $output"; false; }
		is_documented "${sentence//"$SHIM"/FILE}"
		goes_on
	done
}

@test "a thread that holds the lock of thread stacks, which dlopen takes, is left alone" {
	in_state stacks
	! grep -q none "$work/said" || skip "this C library has no such lock"
	until_done in_system_call 0
	refuses "no thread of process $pid came to a place where a call can be made, within " attach --interrupt --wait 100ms $pid
	[[ "$output" == *"of the last one: the list of the threads' stacks is changing"* ]] || { echo "$output"; false; }
	is_documented "the list of the threads' stacks is changing"
	goes_on
}

@test "many short-lived threads are no obstacle" {
	local number
	# Each process loads the shim once only, and about one in ten would hang if that lock were not heeded.
	for number in {1..12}; do
		in_state threads
		refuses "nothing is recorded yet" attach --wait 1s $pid
		"$REPORT" detach -q $pid
		loaded=yes goes_on
	done
}

@test "nothing in the program leads to the shim" {
	sleeper "$PROGRAMS/pausing"
	refuses "no loaded object calls CUDA by a name or a table that can be led to the shim: CUDA is linked privately, or not loaded yet" \
		attach --interrupt $pid
	kill -0 $pid
}

@test "a shim that the process's loader refuses, and one of another version" {
	local sentence
	sleeper python3 -c 'print("ready", flush=True); [sum(range(1000)) for _ in iter(int, 1)]'
	until_done [ -s "$work/said" ]
	echo "no library" > "$work/libgpumemtrace.so"
	SECONDS=0
	run "$PROGRAMS/cycles" attach $pid 1 "$work/libgpumemtrace.so" "GPUMEMTRACE_OUT=$work/out.gmt" "$work/out.gmt"
	sentence="process $pid could not load the shim: its loader refused "
	[ "$status" = 1 ] && [[ "$output" == *"$sentence$work"* ]] || { echo "$status: $output"; false; }
	is_documented "$sentence"
	[ $SECONDS -lt 9 ] # that dlopen has returned is seen: a load is waited for 10 s
	grep -q '^TracerPid:	0$' /proc/$pid/status
	kill $pid
	sleeper python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1]); print("ready", flush=True); [sum(range(1000)) for _ in iter(int, 1)]' \
		"$PROGRAMS/libgpumemtrace.so"
	until_done [ -s "$work/said" ]
	refuses "process $pid has another version of the shim" attach $pid
	refuses "process $pid has another version of the shim" detach $pid
}

# tries WAY: an attach in the background, as `tool`, that tries again and again to stop a thread in fork, where no call can
# be made; its words are in $work/refused. The program waits for a line to descriptor 4.
tries() {
	local switches
	mkfifo "$work/in"
	"$WORDS" allow "$PROGRAMS/waits" $1 < "$work/in" > "$work/said" 3>&- &
	pid=$!
	exec 4> "$work/in"
	until_done grep -q ready "$work/said"
	switches=$(switches)
	"$REPORT" attach --interrupt --wait 100s $pid 2> "$work/refused" 3>&- 4>&- &
	tool=$!
	until [ "$(switches)" -gt $((switches + 3)) ]; do kill -0 $tool; done
}

# switches: how often the process gave the processor away, which each stop makes it do.
switches() {
	sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' /proc/$pid/status
}

@test "the process begins another program meanwhile" {
	tries exec
	printf g >&4 # a second byte would end the wait of the other program
	! wait $tool
	grep -q "process $pid has begun another program (exec) meanwhile" "$work/refused" || { cat "$work/refused"; false; }
	is_documented "process $pid has begun another program (exec) meanwhile"
	echo go >&4
	exec 4>&-
	wait $pid
	pid=
	[ "$(tail -n 1 "$work/said")" = "1 good" ]
}

@test "the process ends meanwhile" {
	tries fork
	kill -KILL $pid
	! wait $tool
	exec 4>&-
	grep -q "process $pid has ended" "$work/refused" || { cat "$work/refused"; false; }
	is_documented "process $pid has ended"
}

@test "two tools at once: the second is refused, and the first goes on" {
	tries fork
	refuses "another gpumem-report is attaching to process $pid or detaching from it" attach $pid
	kill -0 $tool
	kill $tool
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
