#!/usr/bin/env bats
# Graphs that PyTorch captures: what their private pools and executables take, against the trace's own books.
load ../helpers

MIB=$((1 << 20))

# server CAPTURES MODE: as a server captures its batch sizes, the largest first: one large segment that all use again,
# and of each capture an output of 1 MiB in a segment of its own, every seventh taken by a thread of autograd's. Eager
# memory comes before and after, and during the captures of threads that do not capture.
server() {
	awk -v n="$1" -v mode="$2" -v M=$MIB 'BEGIN {
		print "S 1 " 40 * M; print "A 2 1 0 " 30 * M " 0"
		for (i = n; i; i--) {
			print "G " mode
			if (i == n) print "S 3 " 64 * M
			print "A 4 3 0 " i * M / 2 + M " 1"
			print (i % 7 == 3 ? "T " : "S ") 10 * i + 10 " " 2 * M
			print "A " 10 * i + 11 " " 10 * i + 10 " 0 " M " 2"
			if (mode && i % 10 == 5) print "T " 10 * i + 12 " " 20 * M " 1"
			print "J " 10 * i + 11 " 1000"; print "D 4"; print "V " 10 * i + 13
			if (n - i == 2) print "K three"
		}
		print "S 5 " 20 * M; print "A 6 5 0 " 20 * M " 0"; print "K end"
	}'
}

replay() {
	GPUSIM_GRAPH=2307 traced "$PROGRAMS/replay" "$work/trace" 0 "$work"
}

@test "70 captures in one pool, and what was to come after three of them" {
	server 70 0 > "$work/trace"
	replay
	report
	is '[.graph_pools[] | [.device, .private, .captures, .graphs, .live_graphs, .nodes]]' '[[0,true,70,70,70,70000]]'
	is '.graph_pools[0] | [.reserved_bytes, .taken_bytes, .used_bytes, .segments]' \
		"[$((204 * MIB)),$((204 * MIB)),$((70 * MIB)),71]"
	is '[.graph_pools[0].each[].taken_bytes] | [add, .[0], (.[1:] | unique[])]' \
		"[$((204 * MIB)),$((66 * MIB)),$((2 * MIB))]"
	# what the driver has beyond the context and all segments is the executables'
	is '.ledger[0].process_used_bytes - .graph_pools[0].executable_bytes - .torch[0].reserved_bytes' $((512 * MIB))
	is '[.ledger[0].rows[] | select(.what == "private pools of graphs") | .bytes] | add' $((204 * MIB))
	is '[.ledger[0].rows[] | select(.what == "PyTorch reserved") | .bytes] | add' $((60 * MIB))
	is '[.findings[] | select(.id == "graphs.cost") | .bytes] == [.graph_pools[0] | .reserved_bytes + .executable_bytes]' true
	all=$(jq '.graph_pools[0] | .reserved_bytes + .executable_bytes' "$work/document")
	"$REPORT" summary --json "$work/0.gmt" > "$work/document"
	is '.graph_pools[0].captures' 3
	jq -e --argjson all "$all" '.graph_pools[0] | (.reserved_bytes + .executable_bytes + 67 * .next_bytes) / $all |
		. > 0.9 and . < 1.1' "$work/document"
	"$REPORT" summary "$work/0.gmt" | grep -q 'each further capture would take about'
}

@test "threads that do not capture take no memory for the pool" {
	server 20 1 > "$work/trace"
	replay
	report
	is '[.graph_pools[] | [.captures, .reserved_bytes]]' "[[20,$((104 * MIB))]]"
}

@test "two pools, of which one is given back" {
	{
		server 3 0
		echo "G 0"; echo "S 201 $((8 * MIB))"; echo "A 202 201 0 $MIB 3"; echo "V 203"
		echo "G 0"; echo "A 204 201 $((2 * MIB)) $MIB 3"; echo "V 205"
		echo "W 203"; echo "W 205"
	} > "$work/trace"
	replay
	report
	is '[.graph_pools[] | [.captures, .live_graphs, .reserved_bytes, .used_bytes]]' \
		"[[3,3,$((70 * MIB)),$((3 * MIB))],[2,0,$((8 * MIB)),$((2 * MIB))]]"
	printf '%s\n' "D 202" "D 204" "F 201" >> "$work/trace"
	replay
	report
	is '[.graph_pools[] | [.captures, .live_graphs, .reserved_bytes, .taken_bytes]]' \
		"[[3,3,$((70 * MIB)),$((70 * MIB))],[2,0,0,$((8 * MIB))]]"
}

@test "expandable segments: what is mapped during a capture" {
	{
		echo "R 1 $((64 * MIB)) $((2 * MIB))"; echo "M 1 0 $((10 * MIB))"; echo "A 2 1 0 $((9 * MIB)) 0"
		echo "R 3 $((64 * MIB)) $((2 * MIB))"
		echo "G 0"; echo "M 3 0 $((6 * MIB))"; echo "A 4 3 0 $((5 * MIB)) 1"; echo "V 5"
		echo "G 0"; echo "M 3 $((6 * MIB)) $((2 * MIB))"; echo "A 6 3 $((5 * MIB)) $((3 * MIB)) 1"; echo "D 6"
		echo "A 7 3 $((5 * MIB)) $MIB 1"; echo "V 8"; echo "K end"
	} > "$work/trace"
	replay
	report
	is '[.graph_pools[] | [.captures, .segments, .reserved_bytes, .used_bytes]]' "[[2,4,$((8 * MIB)),$((6 * MIB))]]"
	is '[.ledger[0].rows[] | select(.what == "private pools of graphs") | .bytes] | add' $((8 * MIB))
}

@test "captures from the smallest up: the next one takes more than the latest" {
	awk -v M=$MIB 'BEGIN {
		print "S 1 " 40 * M; print "A 2 1 0 " 30 * M " 0"
		for (i = 1; i <= 4; i++) {
			print "G 0"; print "S " 10 * i " " (2 + 4 * i) * M
			print "A " 10 * i + 1 " " 10 * i " 0 " M " 2"
			if (i > 1) print "A " 10 * i + 2 " 10 " i * M " " M " 2"
			print "J " 10 * i + 1 " 1000"; print "V " 10 * i + 3
		}
	}' > "$work/trace"
	replay
	report
	is '.graph_pools[0].captures' 4
	is '[.graph_pools[0].each[].taken_bytes]' "[$((6 * MIB)),$((10 * MIB)),$((14 * MIB)),$((18 * MIB))]"
	is ".graph_pools[0] | .next_bytes >= $((22 * MIB)) and .next_bytes <= $((26 * MIB))" true
}
