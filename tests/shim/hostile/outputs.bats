#!/usr/bin/env bats
# What the report writes: whole or not at all, readable to whom the files are; and whose shim it preloads.

load ../helpers

OUTPUTS=("html -o page" "export --format torch-snapshot -o page" "export --format sqlite -o page" "export --format json -o page"
	"export --format perfetto -o page" "export --format pprof -o page" "export --format zst -o page"
	"check --leaks exit --junit page" "check --leaks exit --sarif page")

setup_file() {
	export LD_LIBRARY_PATH=$SIM GPUMEMTRACE_QUIET=1 GPUMEMTRACE_EVENTS=all GPUMEMTRACE_OUT=$BATS_FILE_TMPDIR/out.gmt
	LD_PRELOAD=$SHIM "$HOSTILE/names" "$HOSTILE/names_plugin.so"
}

writes() {
	"$TOOL" "$@" "$BATS_FILE_TMPDIR/out.gmt" > "$work/texts" 2> "$work/error"
}

@test "a write that fails half way: the earlier file stays, and nothing is left beside it" {
	local half
	mkdir "$work/folder"
	cd "$work/folder"
	for what in "${OUTPUTS[@]}"; do
		rm -f page
		writes $what || [ $? -eq 1 ]
		cp page ../good
		half=$(($(stat -c %s page) / 2048)) # in KiB
		touch -d 2020-01-01 page
		(ulimit -f $half; writes $what) && return 1
		cmp page ../good
		[ "$(ls -A)" = page ]
		rm page
		(ulimit -f $half; writes $what) && return 1
		[ -z "$(ls -A)" ] || { echo "$what leaves $(ls -A)"; return 1; }
	done
}

@test "the mode of an output is that of what it was made from" {
	cd "$work"
	for what in "${OUTPUTS[@]}"; do
		for mode in 600 644 640; do
			rm -f page
			chmod $mode "$BATS_FILE_TMPDIR/out.gmt"
			(umask 022; writes $what) || [ $? -eq 1 ]
			[ "$(stat -c %a page)" = $mode ] || { echo "$what: $(stat -c %a page), not $mode"; return 1; }
		done
	done
	chmod 600 "$BATS_FILE_TMPDIR/out.gmt"
}

@test "a link keeps leading to the output; a device and a pipe are written in place" {
	cd "$work"
	echo old > target
	ln -s target page
	writes export --format json -o page
	[ -L page ] && jq . target > document
	writes export --format json -o /dev/null
	[ -c /dev/null ]
	mkfifo pipe
	jq .process.pid < pipe > pid 3>&- &
	writes export --format json -o pipe
	wait $!
	[ -p pipe ] && [ "$(cat pid)" = "$(jq .process.pid document)" ]
	mkdir folder
	writes export --format json -o folder && return 1
	[ -d folder ]
}

@test "ended by a signal while it writes: the earlier file stays, and nothing is left" {
	mkdir "$work/folder"
	cd "$work/folder"
	echo earlier > page
	for i in $(seq 20); do
		"$TOOL" html -o page "$BATS_FILE_TMPDIR/out.gmt" 2> ../error &
		sleep 0.0$i
		kill -TERM $! 2> ../error || true
		wait $! || true
		[ "$(ls -A)" = page ] || { ls -A; return 1; }
		grep -q 'earlier\|</html>' page
	done
}

@test "run preloads the shim that was installed with it, and none that others own" {
	cd "$work"
	mkdir -p a/bin a/lib src/interpose lib
	cp "$TOOL" a/bin/gpumem-report
	cp "$SHIM" a/lib/
	cp "$GUEST/hook_malloc.so" src/interpose/libgpumemtrace.so
	cp "$GUEST/hook_malloc.so" lib/libgpumemtrace.so
	a/bin/gpumem-report run -o run.gmt -- env > texts 2>&1
	grep -qx "LD_PRELOAD=$work/a/lib/libgpumemtrace.so" texts
	# writable by others, it is not taken
	chmod o+w a/lib
	! a/bin/gpumem-report run -o run.gmt -- env > texts 2>&1
	! grep -q '^LD_PRELOAD=' texts
	chmod o-w a/lib
	if [ "$(id -u)" -eq 0 ]; then
		chown 65534 a/lib/libgpumemtrace.so
		! a/bin/gpumem-report run -o run.gmt -- env > texts 2>&1
		! grep -q '^LD_PRELOAD=' texts
	fi
}

@test "run: the program's signals are as they were" {
	"$REPORT" run -q -o "$work/run.gmt" -- grep SigIgn /proc/self/status > "$work/texts"
	grep SigIgn /proc/self/status > "$work/alone"
	cmp "$work/texts" "$work/alone"
}
