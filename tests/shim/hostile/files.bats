#!/usr/bin/env bats
# Names that are taken: every file that the shim makes is new, and what is there stays or is kept.

load ../helpers

BUSY=16 EXISTS=17 LOOP=40 NOT_FOUND=2

# whole FILE BYTES: it is a whole output file in which so many bytes are live.
whole() {
	"$REPORT" summary --json "$1" > "$work/document"
	is '.totals[0].current_bytes' "$2"
	is .file.warnings '[]'
	[ "$(stat -c %a "$1")" = 600 ]
}

# waiting FILE: a traced process that waits, with FILE as its output; $waiter is its pid.
waiting() {
	mkfifo "$work/wait"
	GPUMEMTRACE_OUT=$1 LD_PRELOAD=$SHIM "$HOSTILE/files" wait < "$work/wait" > "$work/ready" &
	waiter=$!
	exec 8> "$work/wait"
	until grep -q ready "$work/ready"; do kill -0 $waiter; done
}

# done_waiting: its end, which is in order.
done_waiting() {
	exec 8>&-
	wait $waiter
	rm "$work/wait"
}

answers() {
	[ "$(tr '\n' ' ' < "$work/said")" = "$1 " ] || { cat "$work/said"; return 1; }
}

@test "a copy onto the live file, by every name it has" {
	cd "$work"
	ln -s out.gmt link.gmt
	ln -s . same
	LD_PRELOAD=$SHIM bash -c 'ln out.gmt hard.gmt 2> "$0/error"; exec "$1" copy out.gmt ./out.gmt "$0/same/out.gmt" link.gmt' \
		"$work" "$HOSTILE/files" > said
	answers "$BUSY $BUSY $BUSY $LOOP"
	whole out.gmt $((11 << 20))
	[ "$(ls | grep -c '\.gmt')" -eq 2 ]
}

@test "a copy onto the live file of another process, a history, a pipe, a device, a directory" {
	cd "$work"
	GPUMEMTRACE_EVENTS=all waiting other.gmt
	ln other.gmt hard.gmt
	mkfifo pipe
	mkdir folder
	LD_PRELOAD=$SHIM "$HOSTILE/files" copy other.gmt hard.gmt other.gmt.events pipe /dev/null folder nowhere/x.gmt > said
	# another user than root may make no file beside the device
	answers "$BUSY $BUSY $BUSY 95 $([ -w /dev ] && echo 95 || echo 13) 21 $NOT_FOUND"
	done_waiting
	whole other.gmt $((11 << 20))
	[ -p pipe ] && [ -c /dev/null ] && [ -d folder ]
	[ -z "$(ls -A | grep -v '^\(error\|said\|ready\|document\|pipe\|folder\|\(out\|hard\|other\)\.gmt\(\.events\)\?\)$')" ]
}

@test "a copy onto a file that is not ours, with its mode and owner: it is left; onto one of ours: kept" {
	cd "$work"
	echo notes > notes
	chmod 666 notes
	: > empty
	LD_PRELOAD=$SHIM "$HOSTILE/files" copy notes copy.gmt copy.gmt copy.gmt empty > said
	answers "$EXISTS 0 0 0 0"
	[ "$(cat notes)" = notes ] && [ "$(stat -c %a notes)" = 666 ]
	for copy in copy.gmt copy.gmt.old1 copy.gmt.old2 empty; do whole $copy $((1 << 20)); done
}

@test "copies on a signal: foreign, linked, earlier and live files of their names" {
	cd "$work"
	export GPUMEMTRACE_SIGNAL=USR1
	echo notes | tee notes > out.gmt.snap1
	ln -s notes out.gmt.snap2
	traced "$HOSTILE/files" signal 2> error
	[ "$(cat notes out.gmt.snap1)" = $'notes\nnotes' ] && [ -L out.gmt.snap2 ]
	whole out.gmt.snap3 $((1 << 20))
	rm out.gmt* notes
	traced "$HOSTILE/files" signal
	waiting out.gmt.snap2
	traced "$HOSTILE/files" signal
	done_waiting
	whole out.gmt.snap1 $((1 << 20))
	whole out.gmt.snap1.old1 $((1 << 20))
	whole out.gmt.snap2 $((11 << 20))
	whole out.gmt.snap3 $((1 << 20))
}

@test "descriptors 0 to 2 closed: the program's reads and writes fail as alone, and its numbers are free" {
	for i in $(seq 10); do
		rm -f "$work"/*.gmt
		GPUMEMTRACE_EVENTS=all traced "$HOSTILE/files" closed "$work/copy.gmt"
		answers 0
		whole "$work/out.gmt" $((22 << 20))
		whole "$work/copy.gmt" $((20 << 20))
		! grep -q "own text" "$work"/*.gmt*
	done
}

@test "a live process's file whose pid means nothing here: two pid namespaces with one name and one host" {
	local space="unshare -fp --mount-proc"
	$space true 2> /dev/null || space="unshare -Urfp --mount-proc"
	$space true 2> /dev/null || skip "no pid namespaces here"
	cd "$work"
	mkfifo wait
	GPUMEMTRACE_OUT=$work/job.gmt $space env LD_PRELOAD="$SHIM" "$HOSTILE/files" wait < wait > ready &
	local first=$!
	exec 8> wait
	until grep -q ready ready; do kill -0 $first; done
	for i in 1 2 3; do
		GPUMEMTRACE_OUT=$work/job.gmt $space env LD_PRELOAD="$SHIM" "$HOSTILE/files" wait < /dev/null > said
	done
	exec 8>&-
	wait $first
	whole job.gmt $((11 << 20))
	whole job.gmt.1 $((11 << 20))
	whole job.gmt.1.old2 $((11 << 20))
	[ ! -e job.gmt.old1 ]
}

@test "a killed process's lock is gone with it, whoever has its pid now" {
	cd "$work"
	waiting "$work/out.gmt"
	kill -KILL $waiter
	wait $waiter || true
	exec 8>&-
	traced "$HOSTILE/files" copy
	whole out.gmt $((11 << 20))
	"$REPORT" summary --json out.gmt.old1 > document
	is .process.end '"killed"'
}

@test "names of 246 to 255 bytes, and a character at the cut" {
	local name first
	for bytes in 246 250 254 255; do
		name=$(printf "%$((bytes - 5))s" | tr ' ' n)é.gm
		for i in 1 2; do
			GPUMEMTRACE_OUT=$work/$name traced "$HOSTILE/files" copy
			whole "$work/$name" $((11 << 20))
		done
		[ "$(ls "$work" | grep -c '\.old1$')" -eq 1 ]
		ls "$work" | iconv -f utf8 -t utf8 > "$work/error"
		rm "$work"/n*
	done
}

@test "killed in its first milliseconds: nothing but the file, or nothing at all" {
	cd "$work"
	mkdir folder
	for i in $(seq 60); do
		GPUMEMTRACE_OUT=$work/folder/out.gmt GPUMEMTRACE_EVENTS=all LD_PRELOAD=$SHIM "$HOSTILE/files" copy > said &
		sleep 0.00$((i % 10))
		kill -KILL $! 2> error || true
		wait $! 2> error || true
		for file in $(ls -A folder); do
			[[ $file = out.gmt || $file = out.gmt.old* || $file = out.gmt.events ]] || { echo "left: $file"; return 1; }
			[[ $file = *.events* ]] || "$REPORT" summary --json folder/$file > document 2> error || { cat error; return 1; }
		done
		rm -f folder/*
	done
}
