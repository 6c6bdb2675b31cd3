#!/bin/bash
# A long history played to its end gives what the tracker had there, from the plain and the zstd form:
# replay.sh MAKE_HISTORY REPORT COMPARE
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" "$work/long.gmt" 300000 100000000
"$2" summary --json --no-symbols "$work/long.gmt" > "$work/end"
time=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["process"]["duration_s"])' "$work/end")
"$2" export --format zst -o "$work/long.zst" "$work/long.gmt"
# more than a ring holds: exports have every event
"$2" export --format sqlite --no-symbols -o "$work/long.db" "$work/long.gmt"
python3 - "$work/long.db" "$work/end" << 'EOF'
import json, sqlite3, sys
counts = dict(sqlite3.connect(sys.argv[1]).execute("SELECT op, count(*) FROM events GROUP BY op"))
sites = json.load(open(sys.argv[2]))["sites"]
assert counts == {"alloc": sum(s["allocations"] for s in sites), "free": sum(s["frees"] for s in sites)}, counts
assert sum(counts.values()) > 200000
EOF
for file in long.gmt long.zst; do
	"$2" summary --json --no-symbols --at "$time" "$work/$file" > "$work/then"
	python3 "$3" "$work/then" "$work/end"
done
# From a ring that has lost its beginning, as from the complete history; peaks aside. How far back it reaches is told.
mv "$work/long.gmt.events" "$work/events"
if "$2" summary --at 0.001 "$work/long.gmt" 2> "$work/said"; then
	exit 1
fi
reach=$(sed -n 's/.* reaches back to \([0-9.]*\) s only.*/\1/p' "$work/said")
late=$(python3 -c 'import sys; print((float(sys.argv[1]) + float(sys.argv[2])) / 2)' "$reach" "$time")
"$2" summary --json --no-symbols --at "$late" "$work/long.gmt" > "$work/then"
mv "$work/events" "$work/long.gmt.events"
"$2" summary --json --no-symbols --at "$late" "$work/long.gmt" > "$work/end"
python3 "$3" "$work/then" "$work/end" ring no-peaks
# A moment from a checkpoint is the moment played from the start, which is how a compressed history is read.
checkpoints() {
	od -An -tu4 -j92 -N4 "$1.events" | tr -d ' '
}
moments_equal() {
	local end moment number
	"$2" export --format zst -o "$1.zst" "$1"
	end=$("$2" summary --json --no-symbols "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["process"]["duration_s"])')
	for number in "${@:3}"; do
		moment=$(python3 -c "print($end * $number / 7)")
		"$2" blocks --json --full --no-symbols --at "$moment" "$1.zst" | sed "s#$1.zst#$1#" > "$work/played"
		"$2" blocks --json --full --no-symbols --at "$moment" "$1" | cmp - "$work/played"
	done
}
"$1" "$work/far.gmt" 450000 1000000000
[ "$(checkpoints "$work/far.gmt")" -ge 3 ]
moments_equal "$work/far.gmt" "$2" 3 5 7
# A process that is killed while it writes a checkpoint, or between two.
for number in 1 3; do
	rm -f "$work/killed.gmt"*
	"$1" "$work/killed.gmt" 100000000 1000000000 &
	until [ -e "$work/killed.gmt.events" ] && [ "$(checkpoints "$work/killed.gmt")" -ge $number ]; do
		kill -0 $!
	done
	kill -KILL $!
	wait $! 2> "$work/said" || true
	moments_equal "$work/killed.gmt" "$2" 7
done
