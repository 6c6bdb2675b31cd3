#!/usr/bin/env bats
# What libraries keep on purpose raises no alarm; what a program makes of it again and again does.

load ../helpers

@test "one handle of cuBLAS: its workspace is suppressed, and said" {
	traced "$PROGRAMS/library"
	"$REPORT" check --leaks exit --json "$work/out.gmt" > "$work/document"
	is '.leaks.suppressed' '[{"pattern":"/libcublas.so","bytes":8519680,"count":1}]'
	is '.leaks.unused_suppressions' '[]'
	run "$REPORT" check --leaks exit --no-shipped-suppressions "$work/out.gmt"
	[ "$status" -eq 1 ]
}

@test "a handle in each step is the program's leak" {
	traced "$PROGRAMS/library" 40
	run "$REPORT" check --leaks exit "$work/out.gmt"
	[ "$status" -eq 1 ]
	[[ $output == *cublasCreate_v2* ]]
}

@test "a suppression of the user's own, and one that matches nothing" {
	printf '# ours\nleak:cublasCreate*\nleak:no_such_function\n' > "$work/list"
	traced "$PROGRAMS/library" 40
	"$REPORT" check --leaks exit --suppressions "$work/list" --json "$work/out.gmt" > "$work/document"
	is '.leaks.unused_suppressions' '["no_such_function"]'
	is '[.leaks.suppressed[].count]' '[40]'
	# several lists add up
	echo leak:neither_this > "$work/more"
	"$REPORT" check --leaks exit --suppressions "$work/list" --suppressions "$work/more" --json "$work/out.gmt" \
		> "$work/document"
	is '.leaks.unused_suppressions' '["no_such_function","neither_this"]'
	is '[.leaks.suppressed[].count]' '[40]'
}

@test "every shipped line has a reason above it" {
	awk '/^#/ { reason = 1 } /^$/ { reason = 0 } /^leak:/ && !reason { print; bad = 1 } END { exit bad }' \
		"$SOURCE/src/report/judge/suppressions.txt"
}
