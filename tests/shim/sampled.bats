#!/usr/bin/env bats
# A sampled recording: what a program says of its own blocks against exact totals and estimated sites.

load helpers

# Blocks of three places, small, middling and large ones; half of them are freed, by a seeded choice.
blocks() {
	cat > "$work/blocks.py" <<-'END'
		import ctypes, json, random, sys
		ctypes.CDLL("libc10.so", ctypes.RTLD_GLOBAL)
		hook = ctypes.CDLL(None)._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
		allocated = peak = count = frees = 0
		live, address = [], 0x7f0000000000
		def change(where, size):
		    global allocated, peak
		    allocated += size
		    peak = max(peak, allocated)
		    hook(ctypes.c_void_p(where), ctypes.c_long(size), ctypes.c_ulong(allocated), ctypes.c_ulong(1 << 40), ctypes.c_uint16(1))
		def small(size):
		    change(address, size)
		def middling(size):
		    change(address, size)
		def large(size):
		    change(address, size)
		draw = random.Random(5)
		places = {small: 512, middling: 20480, large: 4 << 20}
		for size in (512, -512):  # Python is found after the first event
		    change(address, size)
		count, frees = 1, 1
		total = dict.fromkeys((place.__name__ for place in places), 0)
		for number in range(int(sys.argv[1])):
		    place = draw.choice(list(places))
		    size = places[place] * draw.randint(1, 3)
		    address += 16 << 20
		    place(size)
		    total[place.__name__] += size
		    live.append((address, size, place.__name__))
		    count += 1
		    if draw.random() < 0.5:
		        where, freed, name = live.pop(draw.randrange(len(live)))
		        change(where, -freed)
		        frees += 1
		held = dict.fromkeys(total, 0)
		for _, size, name in live:
		    held[name] += size
		print(json.dumps({"allocated": allocated, "peak": peak, "count": count, "frees": frees, "total": total, "held": held}))
	END
	GPUMEMTRACE_SAMPLE=$1 traced python3 "$work/blocks.py" "$2"
	report
}

# within PLACE WHAT ERROR SAID: an estimate is within four standard errors of what the program counted.
within() {
	jq -e --arg place "$1" --argjson said "$(jq ".$4.$1" "$work/said")" \
		'[.sites[] | select(any(.stack[]; .function == $place))]
		 | ([.[].'"$2"'] | add // 0) as $is
		 | ([.[].estimated.'"$3"' | . * .] | add // 0 | sqrt) as $error
		 | ($is - $said | fabs) <= 4 * $error + 1' "$work/document" > /dev/null ||
		{ echo "$1 $2: $(jq -c "[.sites[] | [.$2, .estimated]]" "$work/document")"; return 1; }
}

@test "sampled: totals, counts and peaks are exact, sites are estimates with their error" {
	local place seed
	for seed in 1 2 3; do
		blocks "100KiB,seed=$seed" 6000
		is .tracer.sample_bytes 102400
		same allocated '.torch[0].allocated_bytes'
		same peak '.torch[0].allocated_peak_bytes'
		same count '.torch[0].allocations'
		same frees '.torch[0].frees'
		for place in small middling large; do
			within $place allocated_bytes allocated_error_bytes total
			within $place live_bytes live_error_bytes held
		done
		jq -e '[.sites[] | select(any(.stack[]; .function == "middling"))] | length > 0' "$work/document"
	done
	"$REPORT" sites "$work/out.gmt" > "$work/text"
	grep -q 'live .* (an estimate, ± ' "$work/text"
	grep -q '^Figures of sites are estimates: the recording is sampled (GPUMEMTRACE_SAMPLE=102400)$' "$work/text"
	"$REPORT" summary "$work/out.gmt" > "$work/text"
	grep -q 'recording is sampled' "$work/text"
}

@test "sampled: a full recording has no estimates" {
	blocks 1MiB 100
	rm -f "$work"/out.gmt*
	traced python3 "$work/blocks.py" 100
	report
	is '.tracer.sample_bytes' null
	is '[.sites[] | select(.estimated)] | length' 0
	is '[.sites[] | .live_bytes] | add' "$(jq .allocated "$work/said")"
}

@test "sampled: a killed process leaves exact totals" {
	local device
	GPUMEMTRACE_SAMPLE=1MiB,seed=4 traced "$PROGRAMS/torch/blocks" 70001 || [ $? -eq 137 ]
	report
	is .process.end '"killed"'
	for device in 0 1; do
		is ".torch[] | select(.device == $device) | [.allocated_bytes, .allocated_peak_bytes, .allocations, .frees,
			.allocated_total_bytes, .freed_total_bytes]" "$(sed -n "$((device + 1))p" "$work/said")"
		is ".timeline[] | select(.device == $device and .series == \"torch_allocated\") | .last[-1]" \
			"$(jq -s ".[$device][0]" "$work/said")"
	done
}

@test "sampled: the driver's totals are exact, and sites add up to them within the error" {
	cat > "$work/driver.py" <<-'END'
		import ctypes
		cuda = ctypes.CDLL("libcudart.so.13")
		def allocate(size):
		    address = ctypes.c_void_p()
		    cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size))
		    return address
		kept = [allocate(1024 * (1 + number % 50)) for number in range(2000)]
		for address in kept[::2]:
		    cuda.cudaFree(address)
	END
	GPUMEMTRACE_SAMPLE=50KiB,seed=9 traced python3 "$work/driver.py"
	report
	is '.totals[0] | [.current_bytes, .current_count]' "[26624000,1000]"
	jq -e '[.sites[] | select(.kind == "device")] | (map(.live_bytes) | add) as $is
		| (map(.estimated.live_error_bytes) | add) as $error
		| ($is - 26624000 | fabs) < 4 * $error and $error > 0' "$work/document"
}

@test "sampled: what needs every block says so, gates on totals work" {
	local command
	blocks 1MiB,seed=2 500
	for command in blocks whatif plan holders "export --format torch-snapshot -o $work/x"; do
		run "$REPORT" $command "$work/out.gmt"
		[ "$status" -eq 3 ]
		[[ "$output" == *"the recording is sampled"* ]]
	done
	is '[.fragmentation[] | select(.level == "torch")]' '[]'
	run "$REPORT" check --leaks grow "$work/out.gmt"
	[ "$status" -eq 3 ]
	[[ "$output" == *"the recording is sampled"* ]]
	run "$REPORT" check --leaks off --max-peak 1GiB "$work/out.gmt"
	[ "$status" -eq 0 ]
}

@test "sampled: a history is refused, and a recording from the middle is whole" {
	blocks 1MiB,seed=2 10
	GPUMEMTRACE_EVENTS=all GPUMEMTRACE_SAMPLE=1MiB LD_PRELOAD=$SHIM python3 "$work/blocks.py" 10 2> "$work/errors" > "$work/said"
	grep -q 'GPUMEMTRACE_EVENTS=all needs every allocation' "$work/errors"
	report
	is .tracer.history.source '"off"'
	GPUMEMTRACE_START=asleep GPUMEMTRACE_SAMPLE=1MiB LD_PRELOAD=$SHIM "$PROGRAMS/runtime13_O2" 2> "$work/errors" > "$work/said"
	grep -q 'applies to a recording from the start' "$work/errors"
	GPUMEMTRACE_SAMPLE=2GiB LD_PRELOAD=$SHIM "$PROGRAMS/runtime13_O2" 2> "$work/errors" > "$work/said"
	grep -q 'GPUMEMTRACE_SAMPLE=2GiB: not understood' "$work/errors"
}

@test "sampled: CSV, SQLite, pprof and the metrics have the standard errors of the document" {
	blocks 100KiB,seed=4 3000
	for format in csv sqlite pprof openmetrics; do
		"$REPORT" export --format $format --level torch -o "$work/as.$format" "$work/out.gmt"
	done
	python3 - "$work" <<- 'END'
		import csv, gzip, json, sqlite3, sys
		work = sys.argv[1]
		names = "live_error_bytes", "at_peak_error_bytes", "allocated_error_bytes"
		sites = {s["id"]: tuple(s["estimated"][n] for n in names) for s in json.load(open(work + "/document"))["sites"] if s["allocations"]}
		assert any(errors[2] for errors in sites.values())
		rows = {r["id"]: tuple(int(r[n]) for n in names) for r in csv.DictReader(open(work + "/as.csv", newline=""))}
		assert rows == sites, (rows, sites)
		rows = {r[0]: r[1:] for r in sqlite3.connect(work + "/as.sqlite").execute(f"SELECT site, {', '.join(names)} FROM sites")}
		assert rows == sites, (rows, sites)
		profile = gzip.open(work + "/as.pprof").read()
		assert all(name in profile for name in (b"inuse_space_error", b"peak_space_error", b"alloc_space_error"))
		metrics = open(work + "/as.openmetrics").read()
		assert "# UNIT gpumemtrace_live_error_bytes bytes" in metrics, metrics
	END
	GPUMEMTRACE_SAMPLE='' GPUMEMTRACE_OUT=$work/full.gmt LD_PRELOAD=$SHIM "$PROGRAMS/runtime13_O2" > /dev/null
	"$REPORT" export --format csv "$work/full.gmt" | tr -d '\r' | sed 1d > "$work/rows"
	[ -s "$work/rows" ]
	[ "$(grep -vc ',,,$' "$work/rows")" = 0 ]
	[ "$("$REPORT" export --format openmetrics "$work/full.gmt" | grep -c error_bytes)" = 0 ]
}
