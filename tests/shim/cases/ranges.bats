#!/usr/bin/env bats
# Named ranges: peaks, what was retained, and where; by the public header, by NVTX and by marks.

load ../helpers

mib=1048576

# of PATH EXPRESSION: the jq expression on the range of that path
of() {
	jq -c --arg path "$1" '[.ranges[] | select(.path == $path)] | if length == 1 then .[0] else error("\(length) ranges \($path)") end | '"$2" "$work/document"
}

# has PATH EXPRESSION VALUE
has() {
	local found
	found=$(of "$1" "$2")
	[ "$found" = "$3" ] || { echo "$1: $2 is $found, not $3"; return 1; }
}

@test "steps, passes and layers: lowest, median and highest peak, and what was retained" {
	traced "$PROGRAMS/ranges" steps
	report
	has 'step #' .closed 10
	has 'step #' .source '"header"'
	# 16 MiB are there before, a step has 8 and at most 24 more; step 4 has 96
	has 'step #' .lowest_peak_bytes $((48 * mib))
	has 'step #' .median_peak_bytes $((48 * mib))
	has 'step #' .peak_bytes $((120 * mib))
	has 'step #' .highest.name '"step 4"'
	has 'step #' .highest.start_bytes $((16 * mib))
	has 'step #' .retained_bytes $((3 * mib))
	has 'step #' .most_retained.name '"step 7"'
	has 'step #' .median_retained_bytes 0
	has 'step #' .work_bytes $((3 * mib))
	has 'step #' '[.sites[].bytes]' "[$((3 * mib))]"
	has 'step #' '[.most_retained.sites[].bytes]' "[$((3 * mib))]"
	has 'step 7' '[.closed, .retained_bytes]' "[1,$((3 * mib))]"
	has 'step #' '[.names, .names_complete]' '[10,true]'
	has 'step # / forward' '[.closed, .peak_bytes, .retained_bytes]' "[10,$((39 * mib)),$((80 * mib))]"
	has 'step # / backward' '[.closed, .peak_bytes, .retained_bytes]' "[10,$((120 * mib)),-$((80 * mib))]"
	has 'step # / forward / layer 2' '[.closed, .lowest_peak_bytes, .retained_bytes]' "[10,$((36 * mib)),0]"
	has 'step # / forward / layer #' '[.closed, .lowest_peak_bytes]' "[30,$((28 * mib))]"
	is '[.ranges[] | select(.opened != .closed)]' '[]'
	"$REPORT" export --format sqlite -o "$work/runs.db" "$work/out.gmt"
	python3 - "$work/runs.db" "$work/document" <<- 'END'
		import json, sqlite3, sys
		rows = sqlite3.connect(sys.argv[1]).execute("SELECT name, path, parent, grouped_in, times, lowest_peak_bytes, median_peak_bytes,"
		    "peak_bytes, retained_bytes, peak_name, most_retained_name, most_retained_bytes, live_bytes FROM ranges ORDER BY number").fetchall()
		wanted = [(r["name"], r["path"], r["parent"], r["group"], r["closed"], r["lowest_peak_bytes"], r["median_peak_bytes"],
		           r["peak_bytes"], r["retained_bytes"], r["highest"]["name"], r["most_retained"]["name"], r["most_retained"]["retained_bytes"],
		           r["work_bytes"]) for r in json.load(open(sys.argv[2]))["ranges"]]
		assert rows == wanted, (rows, wanted)
	END
	"$REPORT" export --format csv-ranges -o "$work/ranges.csv" "$work/out.gmt"
	"$REPORT" export --format perfetto -o "$work/trace.json" "$work/out.gmt"
	python3 - "$work/ranges.csv" "$work/trace.json" "$work/document" <<- 'END'
		import csv, json, sys
		ranges = json.load(open(sys.argv[3]))["ranges"]
		rows = [(r["path"], int(r["times"]), int(r["peak_bytes"]), r["peak_name"], int(r["retained_bytes"]), int(r["live_bytes"]))
		        for r in csv.DictReader(open(sys.argv[1], newline=""))]
		assert rows == [(r["path"], r["closed"], r["peak_bytes"], r["highest"]["name"], r["retained_bytes"], r["work_bytes"])
		                for r in ranges], rows
		events = json.load(open(sys.argv[2]))["traceEvents"]
		tracks = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
		for r in ranges:
		    track = tracks[f"range {r['path']}, device 0"]
		    (slice,) = [e for e in events if e["ph"] == "X" and e["tid"] == track and e["name"] in ("highest peak", "only one")]
		    assert slice["args"]["peak_bytes"] == r["peak_bytes"], (slice, r)
		    assert abs(slice["ts"] - 1e6 * r["highest"]["start_s"]) < 0.01, (slice, r)
		    drawn = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X" and e["tid"] == track)
		    assert all(a[1] <= b[0] for a, b in zip(drawn, drawn[1:])), drawn
	END
	"$REPORT" ranges "$work/out.gmt" > "$work/said"
	grep -q 'highest peak: step 4, 120.0 MiB' "$work/said"
	grep -q 'retained most: step 7, 3.00 MiB' "$work/said"
	grep -q '3.00 MiB  1 block  keep (ranges_program.c:[0-9]*) from steps (ranges_program.c:[0-9]*)' "$work/said"
}

@test "PyTorch's numbers of operators are left out of the text, and places that read alike are one" {
	traced "$PROGRAMS/ranges" operators
	report
	has 'evaluation, op_id = # / aten::addmm, seq = #, op_id = #' '[.closed, .names, .retained_bytes]' "[3,3,$((9 * mib))]"
	has 'evaluation, op_id = # / aten::addmm, seq = #, op_id = #' '[.sites[].bytes]' "[$((6 * mib)),$((3 * mib))]"
	"$REPORT" ranges "$work/out.gmt" > "$work/said"
	[ "$(grep -c op_id "$work/said")" = 0 ]
	grep -q '^  evaluation  *1 ' "$work/said"
	[ "$(grep -c '^    aten::addmm  *3 ' "$work/said")" = 1 ]
	grep -q '^evaluation / aten::addmm$' "$work/said"
	grep -q '^  highest peak: 9.00 MiB at ' "$work/said"
	[ "$(grep -c '^ *9.00 MiB  6 blocks  keep .* from keep_deeper ' "$work/said")" = 2 ]
}

@test "an out-of-memory event names the ranges that its thread was in" {
	traced "$PROGRAMS/ranges" oom
	report
	is '[.ooms[].ranges]' '[["step 3","forward"]]'
	"$REPORT" oom "$work/out.gmt" | grep -q '^  in the range  *step 3 / forward$'
	rm "$work/out.gmt"
	GPUMEMTRACE_RANGES=off traced "$PROGRAMS/ranges" oom
	report
	is '[.ooms[].ranges]' '[[]]'
	[ "$("$REPORT" oom "$work/out.gmt" | grep -c 'in the range')" = 0 ]
}

@test "a million names that differ in a number: a group, its worst by name, in bounded memory" {
	traced "$PROGRAMS/ranges" requests 1000000
	report
	has 'request #' '[.closed, .names, .names_complete]' '[1000000,128,false]'
	has 'request #' .most_retained.name '"request 471"'
	has 'request #' .most_retained.retained_bytes $((5 * mib))
	has 'request #' '[.most_retained.sites[].bytes]' "[$((5 * mib))]"
	has 'request #' '[.highest.name, .peak_bytes]' "[\"request 999900\",$((85 * mib))]"
	has 'request #' .median_peak_bytes $((21 * mib))
	has 'request #' .lowest_peak_bytes $((16 * mib))
	is '[.ranges[].names] | length' 129
	[ "$(stat -c %s "$work/out.gmt")" -lt $((2 * mib)) ]
	"$REPORT" ranges "$work/out.gmt" > "$work/said"
	[ "$(grep -c '^  request' "$work/said")" = 1 ]
}

@test "threads: what is in use counts for all, an allocation for its own thread's range" {
	traced "$PROGRAMS/ranges" threads
	report
	# all are open while all allocate: 16 and twice 1, 2, 4 and 8 MiB
	is '[.ranges[] | select(.group != null) | .peak_bytes] | unique' "[$((46 * mib))]"
	is '[.ranges[] | select(.group != null) | .work_bytes] | sort' \
		"[$mib,$mib,$((2 * mib)),$((2 * mib)),$((4 * mib)),$((4 * mib)),$((8 * mib)),$((8 * mib))]"
	has 'worker #' '[.closed, .work_bytes]' "[8,$((30 * mib))]"
	is '[.ranges[] | select(.group != null) | .highest.thread] | unique | length' 8
}

@test "a range that is older than the file, and ranges that are not closed" {
	traced "$PROGRAMS/ranges" early
	report
	has train '[.closed, .peak_bytes, .retained_bytes]' "[1,$((48 * mib)),$((16 * mib))]"
	# the summary leaves out ranges with nothing in use
	"$REPORT" summary "$work/out.gmt" > "$work/text"
	grep -q '^  train ' "$work/text"
	! grep -E '^ +(read|sort) ' "$work/text"
	grep -q '2 more, in which no memory was in use' "$work/text"
	"$REPORT" ranges "$work/out.gmt" | grep -cE '^ +(read|sort) ' | grep -qx 2
	rm "$work/out.gmt"
	traced "$PROGRAMS/ranges" unclosed
	report
	# 64 levels are kept, of which the innermost 36 of 100 are not; 40 were closed: 36 and 4
	is '[.ranges[] | .opened] | add' 64
	is '[.ranges[] | .closed] | add' 4
	is '.file.warnings | map(select(test("36 ranges were not recorded"))) | length' 1
	# what is allocated inside belongs to the innermost one that is still open
	is '[.ranges[] | select(.work_bytes > 0) | .work_bytes]' "[$((4 * mib))]"
}

@test "NVTX: every form, nested, with its domain; and GPUMEMTRACE_RANGES=off" {
	traced "$PROGRAMS/nvtx"
	report
	[ "$(jq .injected "$work/said")" = 1 ]
	is '[.ranges[] | select(.source != "nvtx")]' '[]'
	is '[.ranges[] | select(.name == "step") | .closed] | add' "$(jq .steps "$work/said")"
	has 'step / forward' '[.closed, .retained_bytes]' "[3,$((3 * 4096))]"
	is '.marks' '[]'
	rm -f "$work"/out.gmt*
	GPUMEMTRACE_RANGES=off traced "$PROGRAMS/ranges" steps
	report
	is .ranges '[]'
}

@test "a run without ranges has none, and says how there could be" {
	GPUMEMTRACE_RANGES=off traced "$PROGRAMS/nvtx"
	report
	is .ranges '[]'
	"$REPORT" ranges "$work/out.gmt" | grep -q 'No range was closed'
}
