#!/usr/bin/env bats
# A file that is full: what has no room of its own counts in overflow sites, and the figures are the program's.
load ../helpers

figures() { # the totals are the program's own, and the file says that it is not complete
	report
	same allocations '[.usage[] | select(.kind == "device") | .allocations] | add'
	same live '[.usage[] | select(.kind == "device") | .current_bytes] | add'
	same peak '[.totals[] | .peak_bytes] | max'
	same live '[.sites[].live_bytes] | add'
	is '.file.complete' false
}

@test "more places than 16 MiB hold" {
	GPUMEMTRACE_MAX_FILE=16MiB traced "$PROGRAMS/full" 60000 50
	figures
	run "$REPORT" check --leaks exit "$work/out.gmt"
	[ "$status" -ne 0 ]
	is '.file.totals_exact' true
	"$REPORT" check --json --leaks off --max-peak 100MiB "$work/out.gmt" > "$work/document"
	same peak '.gates[] | select(.gate == "max-peak") | .value'
	run "$REPORT" check --leaks off --max-peak 1MiB "$work/out.gmt"
	[ "$status" -eq 5 ]
	"$REPORT" summary "$work/out.gmt" > "$work/text"
	! grep 'nothing to do' "$work/text"
	grep -q 'places that did not fit into the file of 16.00 MiB' "$work/text"
	is '[.sites[] | select(.overflow) | [.verdict, (.stack | length)]] | unique' '[["held",0]]'
}

@test "places that did not fit are not judged as if they were one" {
	GPUMEMTRACE_MAX_FILE=8MiB traced "$PROGRAMS/full" 60000 4
	figures
	is '[.findings[] | select(.id == "leak.grow")] | length' 0
	run "$REPORT" check --leaks grow "$work/out.gmt"
	[ "$status" -eq 3 ]
	# each place leaves 1 KiB, all those without a place of their own far more
	run "$REPORT" check --leaks exit --min-bytes 10KiB "$work/out.gmt"
	[ "$status" -eq 3 ]
}

@test "who frees everything leaves nothing, also in a full file" {
	GPUMEMTRACE_MAX_FILE=8MiB traced "$PROGRAMS/full" 40000
	figures
	is '[.usage[] | .current_count] | add' 0
	"$REPORT" check --leaks exit "$work/out.gmt"
	# a total is measured, what is judged by places is not
	run "$REPORT" check --leaks grow "$work/out.gmt"
	[ "$status" -eq 3 ]
	"$REPORT" check --json --allow-unmeasured --leaks grow "$work/out.gmt" > "$work/document"
	is '.gates[] | select(.gate == "leaks") | [.passed, .value]' '[null,null]'
}

@test "the smallest file" {
	GPUMEMTRACE_MAX_FILE=1MiB traced "$PROGRAMS/full" 40000
	figures
	is '.file.totals_exact' true
	"$REPORT" check --leaks exit --max-peak 1MiB "$work/out.gmt"
}

@test "more live allocations than the file can hold" {
	GPUMEMTRACE_MAX_FILE=1MiB traced "$PROGRAMS/full" 40000 3
	figures
	is '.file.totals_exact' true
	[ "$("$REPORT" blocks --json "$work/out.gmt" | jq '.blocks | length')" -lt 13000 ]
	"$REPORT" check --json --leaks off --max-peak 100MiB "$work/out.gmt" > "$work/document"
	same peak '.gates[] | select(.gate == "max-peak") | .value'
}

@test "handles have to be in the file: more of them are in no total, and no gate about totals is measured" {
	GPUSIM_MEMORY=64GiB GPUMEMTRACE_MAX_FILE=1MiB traced "$PROGRAMS/full" 12000 0 handles
	report
	is '.file.totals_exact' false
	run "$REPORT" check --leaks off --max-peak 100GiB "$work/out.gmt"
	[ "$status" -eq 3 ]
	"$REPORT" check --json --allow-unmeasured --leaks off --max-peak 100GiB "$work/out.gmt" > "$work/document"
	is '.gates[] | select(.gate == "max-peak") | [.passed, .value]' '[null,null]'
}

@test "a disk that fills up" {
	mkdir "$work/small"
	mount -t tmpfs -o size=8m none "$work/small" 2> /dev/null || skip "mounting a tmpfs takes root"
	GPUMEMTRACE_OUT=$work/small/out.gmt traced "$PROGRAMS/full" 40000
	mv "$work/small/out.gmt" "$work/out.gmt"
	umount "$work/small"
	figures
}
