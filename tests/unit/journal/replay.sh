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
# A moment from a state in the cache is the moment played from the start, whatever has become of the state's file.
export XDG_CACHE_HOME=$work/cache
"$1" "$work/states.gmt" 2600000 1000000000
moment() {
	"$2" summary --json --no-symbols --at "$1" "${@:3}" "$work/states.gmt"
}
states() {
	find "$work/cache" -name 'history-*.state' | wc -l
}
"$2" summary --json --no-symbols "$work/states.gmt" > "$work/end"
read -r end half third < <(python3 -c 'import json, sys
end = json.load(open(sys.argv[1]))["process"]["duration_s"]
print(end, end / 2, end / 3)' "$work/end")
for time in "$end" "$half" "$third"; do
	moment "$time" "$2" --no-symbol-cache > "$work/played.$time"
done
[ "$(states)" = 0 ]
moment "$half" "$2" | cmp - "$work/played.$half"
before=$(states)
[ "$before" -ge 1 ]
moment "$end" "$2" | cmp - "$work/played.$end"
[ "$(states)" -gt "$before" ]
for time in "$end" "$half" "$third"; do
	moment "$time" "$2" | cmp - "$work/played.$time"
done
python3 - "$work/cache/gpumemtrace" << 'EOP'
import pathlib, sys
for number, state in enumerate(sorted(pathlib.Path(sys.argv[1]).glob("*.state"))):
    data = bytearray(state.read_bytes())
    if number % 2:
        data[len(data) // 2] ^= 1
    else:
        del data[len(data) // 2:]
    state.write_bytes(data)
EOP
for time in "$end" "$half"; do
	moment "$time" "$2" | cmp - "$work/played.$time"
done
