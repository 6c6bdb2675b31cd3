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
	run "$REPORT" check --leaks off --max-peak 100MiB "$work/out.gmt"
	[ "$status" -eq 3 ]
	"$REPORT" summary "$work/out.gmt" > "$work/text"
	! grep 'nothing to do' "$work/text"
}

@test "who frees everything leaves nothing, also in a full file" {
	GPUMEMTRACE_MAX_FILE=8MiB traced "$PROGRAMS/full" 40000
	figures
	is '[.usage[] | .current_count] | add' 0
}

@test "a disk that fills up" {
	mkdir "$work/small"
	mount -t tmpfs -o size=8m none "$work/small" 2> /dev/null || skip "mounting a tmpfs takes root"
	GPUMEMTRACE_OUT=$work/small/out.gmt traced "$PROGRAMS/full" 40000
	mv "$work/small/out.gmt" "$work/out.gmt"
	umount "$work/small"
	figures
}
