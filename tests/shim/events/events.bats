#!/usr/bin/env bats
# GPUMEMTRACE_EVENTS: what the history holds.

load ../helpers

# events: how many the file's history has, by the export that lists them.
events() {
	rm -f "$work/events.db"
	"$REPORT" export --format sqlite -o "$work/events.db" "$work/out.gmt"
	python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM events WHERE op = ?", (sys.argv[2],)).fetchone()[0])' \
		"$work/events.db" "$1"
}

@test "ring: every allocation of a short run is in the history" {
	LD_PRELOAD=$SHIM "$PROGRAMS/runtime13_O2" > "$work/said"
	allocations=$("$REPORT" summary --json "$work/out.gmt" | jq '[.sites[].allocations] | add')
	[ "$allocations" -gt 0 ]
	[ "$(events alloc)" = "$allocations" ]
}

@test "a driver free's event says how much it freed" {
	LD_PRELOAD=$SHIM "$PROGRAMS/runtime13_O2" > "$work/said"
	freed=$("$REPORT" summary --json "$work/out.gmt" | jq '[.usage[].freed_bytes] | add')
	events free > /dev/null
	sum=$(python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT sum(bytes) FROM events WHERE op = ? AND site IS NOT NULL AND kind IS NOT ?", ("free", "none")).fetchone()[0])' "$work/events.db")
	[ "$sum" = "$freed" ]
}

@test "off: there is no history" {
	GPUMEMTRACE_EVENTS=off LD_PRELOAD=$SHIM "$PROGRAMS/runtime13_O2" > "$work/said"
	[ "$(events alloc)" = 0 ]
}

@test "all: the complete history is beside the file, and as much in the ring" {
	GPUMEMTRACE_EVENTS=all LD_PRELOAD=$SHIM "$PROGRAMS/runtime13_O2" > "$work/said" 2> "$work/errors"
	[ ! -s "$work/errors" ]
	[ "$(events alloc)" -gt 0 ]
	[ "$(head -c 7 "$work/out.gmt.events")" = GMEVENT ]
}
