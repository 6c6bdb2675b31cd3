#!/usr/bin/env bats
# The ledger at the end of the work: what grows beside the allocations is sampled, divided and told.
load ../helpers

# described: the latest sample is the program's own figure, but for the request that is under way, and nothing is
# unexplained or counted twice
described() {
	report
	is '.ledger | length' 1
	same used '.ledger[0] | .process_used_bytes - ([.rows[] | select(.what == "allocations") | .bytes] | add // 0)'
	is '.ledger[0] | [.unexplained_bytes, .later_calls]' '[0,0]'
	is '.ledger[0] | .process_used_bytes - ([.rows[].bytes] | add)' 0
}

row() { # NAME: is the program's rise
	same rise '[.ledger[0].rows[] | select(.what == "'"$1"'") | .bytes] | add'
}

grows() { # FUNCTION BYTES
	is '[.findings[] | select(.id == "cost.grow") | .title | test("'"$1"'")]' '[true]'
}

quiet() {
	is '[.findings[] | select(.id == "cost.grow" or .id == "ledger.unexplained")]' '[]'
}

@test "a stream for each request" {
	GPUSIM_STREAM=256KiB traced "$PROGRAMS/costs" streams
	described
	row streams
	grows open_stream
	is '[.ledger[0].objects[] | select(.what == "streams") | [.made, .bytes]]' '[[200,52428800]]'
}

@test "streams made faster than readings can be afforded" {
	GPUSIM_LISTING=10000 GPUSIM_STREAM=256KiB traced "$PROGRAMS/costs" burst 1000
	described
	row streams
	is '[.ledger[0].objects[] | select(.what == "streams") | [.made, .bytes]]' '[[1000,262144000]]'
}

@test "modules and first launches faster than readings can be afforded, and now and then a stream" {
	GPUSIM_STREAM=256KiB GPUSIM_LISTING=10000 traced "$PROGRAMS/costs" code 1000
	described
	# one module was there before
	same rise '[.ledger[0].rows[] | select(.what == "first launches of kernels" or .what == "modules and limits" or .what == "streams") | .bytes] | add - 2097152'
	is '.ledger[0].rows[] | select(.what == "streams") | .bytes' "$((2 * 256 << 10))"
}

@test "a refused stream after many that were not measured" {
	GPUSIM_FAIL=cuStreamCreate:1000=2 GPUSIM_LISTING=10000 GPUSIM_STREAM=256KiB traced "$PROGRAMS/costs" burst 1000
	report
	same used '.ledger[0].history[] | select(.reason == "oom") | .process_used_bytes'
	is '.ledger[0].history[] | select(.reason == "oom") | .unexplained_bytes' 0
}

@test "a context for each request" {
	GPUSIM_CONTEXT=8MiB traced "$PROGRAMS/costs" contexts 100
	described
	grows make_context
	is '[.ledger[0].rows[] | select(.what == "context") | .bytes]' "[$((101 * 8 << 20))]"
	is '[.findings[] | select(.id == "context.several") | [.bytes, (.evidence | test("100 at make_context"))]]' \
		"[[$((101 * 8 << 20)),true]]"
}

@test "a module compiled for each request" {
	GPUSIM_MEMORY=16GiB traced "$PROGRAMS/costs" modules
	described
	grows compile
	is '[.ledger[0].objects[] | select(.what == "modules") | [.made, .live]] | sort' '[[1,1],[200,200]]'
}

@test "a module that is unloaded again is nothing" {
	traced "$PROGRAMS/costs" reloaded
	described
	quiet
}

@test "graphs: each line's bill, without what others take" {
	GPUSIM_GRAPH=2307 traced "$PROGRAMS/costs" graphs 70
	described
	row 'CUDA graphs'
	same rise '[.findings[] | select(.id == "graphs.cost") | .bytes] | add'
	is '[.ledger[0].objects[] | select(.what == "graphs") | [.made, .live, .nodes]]' '[[70,70,94150]]'
	is '[.findings[] | select(.id == "graphs.cost") | .title | test("capture")]' '[true]'
}

@test "graphs that are destroyed leave what the driver keeps" {
	GPUSIM_GRAPH=2307 traced "$PROGRAMS/costs" recaptured 70
	described
	row 'CUDA graphs'
	is '[.ledger[0].objects[] | select(.what == "graphs") | [.made, .destroyed, .live]]' '[[70,70,0]]'
	quiet
}

@test "what launches take and no call explains is seen to the end" {
	GPUSIM_LAUNCH_GROWTH=2MiB traced "$PROGRAMS/costs" launches
	report
	is '.ledger[0].unexplained_bytes > 300 * 1048576' true
	is '[.findings[] | select(.id == "ledger.unexplained")] | length' 1
	[ "$(jq .ledger[0].process_used_bytes "$work/document")" -gt $(($(jq .used "$work/said") * 3 / 4)) ]
}

@test "the first line says which moment it is about" {
	GPUSIM_STREAM=256KiB traced "$PROGRAMS/costs" streams
	"$REPORT" summary "$work/out.gmt" | head -n 1 | grep -qE ' at [0-9.]+ m?s of [0-9.]+ m?s$'
}
