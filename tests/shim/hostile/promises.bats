#!/usr/bin/env bats
# What the documents promise about surroundings that few programs have.

load ../helpers

# calls NAME COMMAND...: the names of the system calls that it makes, in the file $work/NAME.
calls() {
	local name=$1
	shift
	strace -f -qq -o "$work/trace" "$@" > "$work/said" 2> "$work/error"
	sed -nE 's/^[0-9]+ +([a-z_0-9]+)\(.*/\1/p' "$work/trace" | sort -u > "$work/$name"
	[ -s "$work/$name" ]
}

@test "the system calls that a sandbox must allow are those of the list" {
	command -v strace > /dev/null || skip "no strace here"
	calls alone "$HOSTILE/files" copy
	calls traced env GPUMEMTRACE_SIGNAL=USR1 GPUMEMTRACE_EVENTS=all LD_PRELOAD="$SHIM" \
		"$HOSTILE/files" signal "$work/copy.gmt"
	sed -n '/^\* Programs under a seccomp filter/,/(the rest)/p' "$DOCS/evidence/reliability.md" \
		| grep -oE '`[a-z_0-9]+`' | tr -d '`' | sort -u > "$work/listed"
	[ "$(wc -l < "$work/listed")" -gt 30 ]
	comm -23 "$work/traced" "$work/alone" > "$work/added"
	[ -s "$work/added" ] # beside these, what the program itself makes of its signal:
	run comm -23 "$work/added" "$work/listed"
	[ -z "$(grep -vE '^(rt_sigreturn|tgkill)$' <<< "$output")" ] || { echo "not listed: $output"; return 1; }
}

@test "a working directory that was deleted: it is said, twice, and the program goes on" {
	mkdir "$work/gone"
	cd "$work/gone"
	rmdir "$work/gone"
	unset GPUMEMTRACE_QUIET
	GPUMEMTRACE_OUT=here.gmt traced "$HOSTILE/files" copy 2> "$work/error"
	grep -q 'cannot keep a file at here.gmt (No such file or directory): recording in memory' "$work/error"
	grep -q 'could not finish here.gmt: No such file or directory' "$work/error"
	traced "$HOSTILE/files" copy
	report
	is '.totals[0].current_bytes' $((11 << 20))
}
