#!/usr/bin/env bash
# compute-sanitizer and cuda-gdb with the shim in the traced program: the program's own result and our file
# are those of a plain run.   run.sh BUNDLE OUT
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"

program=$bundle/static_program

against_plain() { # NAME
	document "$1" && compare "$here/compare.py" "$1" "$out/plain.said" "$out/$1.said" "$out/$1.json"
}

sanitizer() { # TOOL [OPTION...]
	local name=sanitizer-$1
	if ! command -v compute-sanitizer > /dev/null; then
		echo "skip $name: there is no compute-sanitizer"
		return
	fi
	ran "$name" 100 compute-sanitizer --tool "$@" "$program" || return
	if grep -q 'ERROR SUMMARY: 0 errors\|RACECHECK SUMMARY: 0 hazards' "$out/$name.said"; then
		echo "ok $name: $(grep 'SUMMARY' "$out/$name.said" | tail -n 1)"
	else
		echo "FAIL $name: $(grep -A 3 '=========' "$out/$name.said" | head -n 6 | tr '\n' '|')"
	fi
	against_plain "$name"
}

debugger() { # NAME COMMAND...: cuda-gdb in batch mode
	local name=$1 commands=() command
	shift
	if ! command -v cuda-gdb > /dev/null; then
		echo "skip $name: there is no cuda-gdb"
		return
	fi
	for command in "$@"; do commands+=(-ex "$command"); done
	timeout -k 5 100 cuda-gdb -batch -nx -ex 'set startup-with-shell off' \
		-ex "set environment LD_PRELOAD $bundle/libgpumemtrace.so" \
		-ex "set environment GPUMEMTRACE_OUT $out/$name.gmt" \
		"${commands[@]}" --args "$program" > "$out/$name.said" 2> "$out/$name.err" < /dev/null
	if grep -q 'exited normally' "$out/$name.said"; then
		echo "ok $name: $(grep 'exited normally' "$out/$name.said")"
	else
		echo "FAIL $name: $(tail -n 3 "$out/$name.said" "$out/$name.err" | tr '\n' '|')"
	fi
	against_plain "$name"
}

at_breakpoint() {
	debugger gdb-break 'break leak_here' run backtrace delete continue
	[ -e "$out/gdb-break.said" ] || return
	if grep -q 'leak_here' "$out/gdb-break.said" && grep -q '#1 .*main' "$out/gdb-break.said"; then
		echo "ok gdb-break: stopped in leak_here, called by main"
	else
		echo "FAIL gdb-break: $(grep '^#' "$out/gdb-break.said" | head -n 3 | tr '\n' '|')"
	fi
}

plain() {
	if timeout -k 5 60 "$program" > "$out/plain.said" 2> "$out/plain.err"; then
		echo "ok plain: $(cat "$out/plain.said")"
	else
		echo "FAIL plain: $(tail -n 1 "$out/plain.err")"
	fi
}

piece plain plain
together
# the program asks for too much on purpose: that refusal is no error of it
piece sanitizer-memcheck sanitizer memcheck --report-api-errors no
piece sanitizer-racecheck sanitizer racecheck
piece gdb-run debugger gdb-run run
piece gdb-break at_breakpoint
finish coexist
