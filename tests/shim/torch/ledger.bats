#!/usr/bin/env bats
# The ledger: what the driver says the process uses = context, code, tracked, unexplained.
load ../helpers

trace=$TRACES/streams.trace

# adds_up: the rows and the unexplained part are the driver's figure.
adds_up() {
	is '[.ledger[] | .process_used_bytes - .unexplained_bytes - ([.rows[].bytes] | add)] |
		map(. == 0) | all' true
}

@test "by pid: context, segments, nothing unexplained" {
	GPUSIM_OTHERS=1GiB traced "$PROGRAMS/replay" "$trace" 0 "$work"
	report
	is '.ledger | length' 1
	is '.ledger[0] | [.source, .process_used_bytes, .unexplained_bytes]' \
		"[\"nvml-process\",$(((512 << 20) + 253755392)),0]"
	is '[.ledger[0].rows[] | select(.what == "context") | .bytes]' "[$((512 << 20))]"
	is '[.ledger[0].rows[] | select(.what == "PyTorch reserved") | .bytes] | add' 253755392
	adds_up
}

@test "pids that cannot be matched: the device's figure less what was used before" {
	GPUSIM_PID=0 GPUSIM_OTHERS=1GiB traced "$PROGRAMS/replay" "$trace" 0 "$work"
	report
	is '.ledger[0] | [.source, .process_used_bytes, .unexplained_bytes]' \
		"[\"device-delta\",$(((512 << 20) + 253755392)),0]"
	adds_up
}

@test "every mark is a sample, the end is none" {
	# At the first mark PyTorch holds 115,343,360 bytes.
	traced "$PROGRAMS/replay" "$trace" 0 "$work"
	"$REPORT" summary --json "$work/0.gmt" > "$work/document"
	is '.ledger[0].process_used_bytes' $(((512 << 20) + 115343360))
	"$REPORT" summary --json "$work/1.gmt" > "$work/document"
	is '.ledger[0].process_used_bytes' $(((512 << 20) + 203423744))
}

@test "sampled at the first context, at new peaks of at least 32 MiB, at OOMs; all samples are kept" {
	# 20, 40, 80 and 82 MiB: the second and third are peaks that count; two calls fail, PyTorch gives up.
	printf '%s\n' 'S 1 20971520' 'S 2 20971520' 'S 3 41943040' 'S 4 2097152' 'X 1099511627776' \
		'X 1099511627776' 'O 1099511627776' 'F 3' > "$work/samples.trace"
	traced "$PROGRAMS/replay" "$work/samples.trace" 0 "$work"
	report
	is '[.ledger[0].history[] | select(.reason != "periodic") | [.reason, .process_used_bytes - 536870912, .unexplained_bytes]]' \
		"$(jq -nc --argjson m 1048576 '[["context", 0, 0], ["peak", 40*$m, 0], ["peak", 80*$m, 0],
			["oom", 82*$m, 0], ["oom", 82*$m, 0], ["oom", 82*$m, 0]]')"
	is '.ledger[0].time_s == .ledger[0].history[-1].time_s' true
}

@test "what no call explains is said plainly (llama.cpp#19639)" {
	# The first launch of a kernel is measured and named; ten more are nobody's.
	GPUSIM_LAUNCH_GROWTH=6710886 traced "$PROGRAMS/exhaust" requests
	report
	is '.ledger[0] | [.unexplained_bytes, .unexplained_growth_bytes]' '[67108860,67108860]'
	is '[.findings[] | select(.id == "ledger.unexplained") | .bytes]' '[67108860]'
	adds_up
}

@test "the context's cost is what NVML counts for the process, not what the device lost" {
	GPUSIM_UNATTRIBUTED=5872026 traced "$PROGRAMS/replay" "$trace" 0 "$work"
	report
	is '.ledger[0] | [.source, .process_used_bytes, .unexplained_bytes]' \
		"[\"nvml-process\",$(((512 << 20) + 253755392 - 5872026)),0]"
	is '[.ledger[0].rows[] | select(.what == "context") | .bytes]' "[$(((512 << 20) - 5872026))]"
	adds_up
}

@test "without a figure of its own for the process the device's counts, context and all" {
	GPUSIM_PID=0 GPUSIM_UNATTRIBUTED=5872026 traced "$PROGRAMS/replay" "$trace" 0 "$work"
	report
	is '.ledger[0] | [.source, .process_used_bytes, .unexplained_bytes]' \
		"[\"device-delta\",$(((512 << 20) + 253755392)),0]"
	adds_up
}
