#!/usr/bin/env bats
# cache.thrash: memory that is given back and taken again, whenever in the run that was.
load ../helpers

# rounds COUNT MIB: a segment is taken, used, emptied and given back
rounds() {
	awk -v n="$1" -v bytes=$(($2 << 20)) 'BEGIN { for (i = 0; i < n; i++)
		printf "S 1 %d\nA 2 1 0 2097152 1\nD 2\nF 1\n", bytes }'
}

# quiet EVENTS: blocks come and go in one segment
quiet() {
	awk -v n="$1" 'BEGIN { print "S 3 20971520"; for (i = 0; i < n / 2; i++) print "A 4 3 0 512 2\nD 4" }'
}

thrashes() { # EXPECTED: number of findings
	traced "$PROGRAMS/replay" "$work/trace" 0 "$work"
	report
	is '[.findings[] | select(.id == "cache.thrash")] | length' "$1"
}

@test "an hour ago, by what follows: more events than the ring has" {
	{ rounds 64 20; quiet 70000; } > "$work/trace"
	thrashes 1
	is '.findings[] | select(.id == "cache.thrash") | .bytes' $((64 * 20 << 20))
	is '.tracer.history.source' '"ring"'
	is '.findings[] | select(.id == "cache.thrash") | .evidence | test("64 segments in 64 rounds")' true
	is '.findings[] | select(.id == "cache.thrash") | .advice[0] | test("most is given back at")' true
}

@test "a part of the reserve, over and over" {
	{ echo 'S 9 419430400'; echo 'A 8 9 0 419430400 3'; rounds 30 20; } > "$work/trace"
	thrashes 1 # 600 MiB, less than four times 440
}

@test "given back at the end, or a few times, is none" {
	{ quiet 100; rounds 1 400; } > "$work/trace"
	thrashes 0
	{ echo 'S 9 419430400'; echo 'A 8 9 0 419430400 3'; rounds 15 40; } > "$work/trace"
	thrashes 0
	# Many segments in one go: four times the peak cannot be had in one round.
	{ for i in $(seq 100 130); do echo "S $i 20971520"; done
	  for i in $(seq 100 130); do echo "F $i"; done; } > "$work/trace"
	thrashes 0
}

@test "mappings of expandable segments" {
	{
		echo 'R 1 1073741824 20971520'
		for i in $(seq 20); do
			printf 'M 1 0 41943040\nA 2 1 0 2097152 1\nD 2\nU 1 0 41943040\n'
		done
	} > "$work/trace"
	thrashes 1
	is '.findings[] | select(.id == "cache.thrash") | .evidence | test("40 segments in 19 rounds")' true
}
