#!/usr/bin/env bats
# Jobs of several processes: what launchers say, names that do not collide, the merged report.

load ../helpers

# rank N ARG...: one rank of a torchrun job of four, on a host of its own for every two.
rank() {
	local number=$1
	shift
	RANK=$number LOCAL_RANK=$((number % 2)) WORLD_SIZE=4 TORCHELASTIC_RUN_ID=night \
		FAKE_HOST=node$((number / 2)) GPUMEMTRACE_OUT=$work/job/%h/rank%r.gmt GPUSIM_DEVICES=2 \
		LD_PRELOAD="$JOBS/hook_hostname.so $SHIM" "$JOBS/job_rank" "$@"
}

# job COMMAND ARG...: the document of the directory.
job() {
	"$REPORT" "$@" --json "$work/job" > "$work/document" 2> "$work/error"
}

# launched NAME=VALUE...: the document of a program that a launcher gave these variables.
launched() {
	rm -f "$work"/*.gmt
	env -i LD_LIBRARY_PATH="$LD_LIBRARY_PATH" GPUMEMTRACE_OUT="$work/x%r.gmt" GPUMEMTRACE_QUIET=1 "$@" \
		LD_PRELOAD="$SHIM" "$JOBS/job_rank" use 100
	"$REPORT" summary --json "$work"/x*.gmt > "$work/document"
}

finding='.job.findings[] | select(.id == $id)'
# found ID EXPRESSION VALUE: the jq EXPRESSION on the job's finding of that id gives VALUE.
found() {
	local got
	got=$(jq -c --arg id "$1" "$finding | $2" "$work/document")
	[ "$got" = "$3" ] || { echo "$1 $2 is $got, not $3"; return 1; }
}

@test "what each launcher says" {
	local facts='[.process | .rank, .local_rank, .world_size, .job]'
	launched RANK=3 LOCAL_RANK=1 WORLD_SIZE=8 TORCHELASTIC_RUN_ID=abc TORCHELASTIC_RESTART_COUNT=2
	is "$facts" '[3,1,8,"abc"]'
	is .process.attempt '"2"'
	[ -e "$work/x3.gmt" ]
	launched OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=2 \
		PMIX_NAMESPACE=prterun-1
	is "$facts" '[2,0,4,"prterun-1"]'
	launched PMI_RANK=5 PMI_SIZE=6 MPI_LOCALRANKID=1
	is "$facts" '[5,1,6,null]'
	launched MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_LOCAL_RANK=1 MV2_COMM_WORLD_SIZE=2
	is "$facts" '[1,1,2,null]'
	launched SLURM_PROCID=7 SLURM_LOCALID=3 SLURM_NTASKS=16 SLURM_JOB_ID=99
	is "$facts" '[7,3,16,"99"]'
	launched RAY_JOB_ID=01000000 RANK=0 LOCAL_RANK=0 WORLD_SIZE=2
	is "$facts" '[0,0,2,"01000000"]'
	launched JOB_COMPLETION_INDEX=4 JOB_NAME=train
	is "$facts" '[4,null,null,"train"]'
	launched GITHUB_SHA=0123abc
	is .process.revision '"0123abc"'
	is "$facts" '[null,null,null,null]'
}

@test "the innermost launcher counts, and what is no number does not" {
	launched RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=1 SLURM_JOB_ID=7
	is '[.process | .rank, .local_rank, .world_size, .job]' '[1,1,2,"7"]'
	launched RANK=first/../../x SLURM_PROCID=2
	is .process.rank 2
	[ -e "$work/x2.gmt" ]
}

@test "pods of an indexed Kubernetes job are called after it" {
	SHIM="$JOBS/hook_hostname.so $SHIM"
	launched FAKE_HOST=llama-12 JOB_COMPLETION_INDEX=12
	is '[.process.rank, .process.job]' '[12,"llama"]'
}

@test "two hosts and one name: two files; a restart keeps the first attempt's" {
	local name=$work/job/rank%r.gmt
	for host in node0 node1; do
		FAKE_HOST=$host RANK=0 GPUMEMTRACE_OUT=$name LD_PRELOAD="$JOBS/hook_hostname.so $SHIM" \
			"$JOBS/job_rank" keep 1000 die || true
	done
	[ "$(ls "$work/job" | wc -l)" -eq 2 ]
	job summary
	is '[.runs[].process.host] | sort' '["node0","node1"]'
	# the same host again: the process that had the name is dead, its file becomes NAME.old1
	FAKE_HOST=node0 RANK=0 GPUMEMTRACE_OUT=$name LD_PRELOAD="$JOBS/hook_hostname.so $SHIM" \
		"$JOBS/job_rank" keep 3000
	[ -e "$work/job/rank0.gmt.old1" ]
	job summary
	is .job.ranks 2
	is '[.job.totals[] | [.host, .current_bytes]] | sort' '[["node0",3000],["node1",1000]]'
	is '[.runs[] | select(.process.superseded) | .totals[0].current_bytes]' '[1000]'
}

@test "two hosts and one name on a network filesystem: each finds its way home" {
	mkdir "$work/network" "$work/local"
	export NETWORK_DIRECTORY=$work/network TMPDIR=$work/local GPUMEMTRACE_OUT=$work/network/rank%r.gmt RANK=0
	FAKE_HOST=node0 LD_PRELOAD="$JOBS/hook_hostname.so $PROGRAMS/guest/hook_statfs.so $SHIM" \
		"$JOBS/job_rank" keep 1000 die || true
	FAKE_HOST=node1 LD_PRELOAD="$JOBS/hook_hostname.so $PROGRAMS/guest/hook_statfs.so $SHIM" \
		"$JOBS/job_rank" keep 2000
	# node0's pointer is still there, and node1's file, which came home
	[ "$(ls "$work/network" | wc -l)" -eq 2 ]
	"$REPORT" --json "$work/network" > "$work/document"
	is '[.runs[] | [.process.host, .totals[0].current_bytes]] | sort' '[["node0",1000],["node1",2000]]'
}

@test "a job in a directory: rows, totals, imbalance, one finding for all ranks" {
	for number in 0 1 2 3; do
		rank $number device $((number % 2)) keep $(((number == 3 ? 900 : 200) << 20))
	done
	job summary
	[ ! -s "$work/error" ]
	is .job.ranks 4
	is '[.runs[].process.rank]' '[0,1,2,3]'
	# two hosts of two devices: four devices, whatever their numbers
	is '[.job.totals[] | [.host, .device, .current_bytes / 1048576]] | sort' \
		'[["node0",0,200],["node0",1,200],["node1",0,200],["node1",1,900]]'
	found imbalance .title '"rank 3 reaches 700.0 MiB more than rank 0"'
	# on devices 0 and 1 the site has another id, but it is the same place
	found leak.exit .ranks '[0,1,2,3]'
	found leak.exit .bytes $((1500 << 20))
	is '[.job.findings[] | select(.id == "leak.exit")] | length' 1
	"$REPORT" "$work/job" > "$work/said"
	grep -q 'rank 0, rank 1, rank 2, rank 3: together 1.46 GiB, most in rank 3' "$work/said"
	[ "$(grep -c '^ *[0-3] .* night\|^ *[0-3] *[0-9]* *node' "$work/said")" -ge 4 ]
}

@test "stray contexts on another rank's device" {
	rank 0 device 0 keep $((64 << 20))
	rank 1 device 0 device 1 keep $((64 << 20))
	rank 2 device 0 keep $((64 << 20))
	rank 3 device 0 device 1 keep $((64 << 20))
	job summary
	# the same number on two hosts: two devices
	is '[.job.findings[] | select(.id == "context.stray") | [.device, .ranks]] | sort' '[[0,[1]],[0,[3]]]'
	is '[.job.findings[] | select(.id == "context.stray") | .title] | sort | .[1]' \
		'"rank 3 keeps a context of 512.0 MiB on device 0, which rank 2 works on"'
	is '[.job.findings[] | select(.id == "context.stray") | .evidence | contains("obey")] | all' true
}

@test "exported and opened memory is matched and owned once" {
	rank 0 device 0 keep $((64 << 20)) export "$work/a" keep 4096 export "$work/b" \
		keep $((32 << 20))
	rank 1 device 0 import "$work/a" import "$work/b"
	rank 2 device 0 keep 100
	rank 3 device 0 keep 100
	job summary
	found ipc.shared .ranks '[0,1]'
	found ipc.shared .bytes $(((64 << 20) + 4096))
	found ipc.shared '.evidence | contains("2 allocations opened 2 times, the largest: 64.00 MiB of rank 0")' true
	is '[.job.totals[] | select(.host == "node0") | .current_bytes] | add' $(((96 << 20) + 4096))
	# without the owner's file nobody knows whose it is
	"$REPORT" summary --json "$work/job/node0/rank1.gmt" "$work/job/node1/rank2.gmt" > "$work/document"
	found ipc.shared '.evidence | contains("2 opened handles have an owner that is not among these files")' true
}

# shared PROGRAM MODE: the document of three processes, one of which frees what the others have open.
shared() {
	GPUMEMTRACE_OUT=$work/job/%p.gmt GPUSIM_DEVICES=1 LD_PRELOAD="$SHIM" "$1" "$2" > "$work/books"
	job summary
}

# book KEY: what the program itself says.
book() {
	jq ".$1" "$work/books"
}

@test "memory that its owner freed while others had it open" {
	shared "$JOBS/job_share" working
	local rows='[.job.freed_shares[] | select(.kind == $kind)]'
	is "${rows/\$kind/\"device\"} | map([.opener.pid, .bytes, .blocks, .matched]) | sort" \
		"$(jq -c '[[.all, .device, 1, "handle"], [.one, .device, 1, "handle"]] | sort' "$work/books")"
	is "${rows/\$kind/\"vmm\"} | map([.opener.pid, .bytes, .blocks, .matched])" \
		"$(jq -c '[[.all, .vmm, 2, "size"]]' "$work/books")"
	is "${rows/\$kind/\"async\"} | map([.opener.pid, .bytes, .blocks, .matched])" \
		"$(jq -c '[[.all, .async, 1, "handle"]]' "$work/books")"
	is '.job.freed_shares | map(.owner.pid) | unique | .[0]' "$(book owner)"
	is '.job.freed_shares | map(.while_working) | unique' '[true]'
	is "${rows/\$kind/\"device\"} | .[0] | [.allocated_at, .freed_at, .opened_at] | map(split(\" \")[0])" \
		'["allocate","let_go","open_handle"]'
	found ipc.freed-open .bytes "$(jq '.device + .vmm + .async' "$work/books")"
	found ipc.freed-open .severity '"warning"'
	found ipc.freed-open .device 0
	found ipc.freed-open ".title | contains(\"84.00 MiB that process $(book owner) freed stayed on the device\")" true
	# what is still its owner's is shared, and one handle of three
	found ipc.shared .bytes $(((8 << 20) + (2 << 20)))
	found ipc.shared '.evidence | contains("1 passed by descriptor, matched by device and size")' true
	"$REPORT" "$work/job" > "$work/said"
	grep -q "ipc.freed-open" "$work/said"
	# without the openers' files nothing is known to be open
	"$REPORT" summary --json "$work/job/$(book owner).gmt" "$work/job/$(book owner).gmt" > "$work/document"
	is '.job.freed_shares' '[]'
}

@test "memory that its owner freed at its end is a note" {
	shared "$JOBS/job_share" ending
	found ipc.freed-open .severity '"note"'
	found ipc.freed-open .bytes "$(jq '.device + .vmm + .async' "$work/books")"
	is '.job.freed_shares | map(.while_working) | unique' '[false]'
}

@test "the first rank to fail, with its out-of-memory event" {
	rank 0 device 0 keep 1000
	rank 2 device 0 keep 1000 oom $((1 << 50))
	rank 1 device 1 keep 1000 oom $((1 << 51))
	rank 3 device 1 keep 1000 die || true
	job summary
	found job.first-failure .ranks '[2]'
	found job.first-failure .severity '"error"'
	found job.first-failure '.title | startswith("rank 2 on node1 failed first: out of memory (exhausted), asked for 1.00 PiB at ")' true
	found job.first-failure '.evidence | contains("3 of 4 failed in all, next rank 1 ")' true
}

@test "a rank that was killed, where none ran out of memory" {
	rank 0 device 0 keep 1000
	rank 1 device 1 keep 1000 die || true
	job summary
	found job.first-failure '[.severity, .title]' '["warning","rank 1 on node0 was killed first"]'
}

@test "NCCL's memory: a row for each place that made communicators" {
	traced "$JOBS/job_nccl"
	"$REPORT" summary --json "$work/out.gmt" > "$work/document"
	local rows='[.ledger[0].rows[] | select(.library == "libnccl.so.2") | [.what, .bytes / 1048576]] | sort'
	is "$rows" '[["NCCL, by ncclCommInitRank at init_world (nccl_program.c:17)",18],["NCCL, by ncclCommInitRank at new_group (nccl_program.c:26)",14]]'
	is '[.findings[] | select(.id == "nccl.memory") | .id]' '[]'
}

@test "broken and foreign files in a directory: named, and the rest is used" {
	for number in 0 1 2 3; do rank $number device 0 keep 1000; done
	echo 'a log' > "$work/job/train.log"
	job summary
	is .job.ranks 4
	grep -q '1 other file left out: train.log' "$work/error"
	echo 'no output file' > "$work/job/broken.gmt"
	truncate -s 3000 "$work/job/node1/rank3.gmt"
	run job summary
	[ "$status" -eq 3 ]
	is '[.runs[] | [.process.rank, .file.complete]] | sort' '[[0,true],[1,true],[2,true],[3,false]]'
	grep -q 'broken.gmt: is not an output file' "$work/error"
	# a gate that fails outranks what could not be read
	run "$REPORT" check --leaks exit "$work/job"
	[ "$status" -eq 1 ]
	mkdir "$work/empty"
	run "$REPORT" "$work/empty"
	[ "$status" -eq 3 ]
	[[ "$output" == *"holds no output file"* ]]
}

@test "every command takes a directory" {
	for number in 0 1 2 3; do rank $number device 0 keep 1000; done
	for command in summary leaks sites fragmentation oom timeline; do
		"$REPORT" "$command" "$work/job" > "$work/said"
		grep -q '^All 4 processes' "$work/said"
	done
	run "$REPORT" check --max-peak 999 --leaks off "$work/job"
	[ "$status" -eq 5 ]
	"$REPORT" check --max-peak 4096 --leaks off "$work/job"
	"$REPORT" html -o "$work/page.html" "$work/job" || grep -q 'html:' <<< "$("$REPORT" html -o - "$work/job" 2>&1)"
}

@test "diff of two jobs: a row for each rank, the changes of all" {
	for number in 0 1 2 3; do rank $number device 0 keep 1000; done
	mv "$work/job" "$work/before"
	for number in 0 1 2 3; do rank $number device 0 keep $((number == 2 ? 6000 : 1000)); done
	"$REPORT" diff --json "$work/before" "$work/job" > "$work/document"
	is '[.diff.sites[] | select(.change != "same") | [.change, .old_live_bytes, .new_live_bytes]]' \
		'[["grew",4000,9000]]'
	is '.runs | length' 4
	"$REPORT" diff "$work/before" "$work/job" > "$work/said"
	grep -Eq '^ +2 +device 0 +5.86 KiB +1000 B' "$work/said"
}

@test "diff of the files of two ranks holds one against the other" {
	rank 0 device 0 keep 1000
	rank 1 device 0 keep 6000
	"$REPORT" diff "$work"/job/node0/rank0.gmt "$work"/job/node0/rank1.gmt > "$work/said"
	grep -Eq '^ +device 0 +5.86 KiB +1000 B' "$work/said"
}

@test "copies that a program made of its own file count once, under any name" {
	mkdir "$work/copies"
	GPUMEMTRACE_OUT=$work/copies/whole.gmt traced python3 -c '
import ctypes, sys
cuda, own = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL(None)
pointer = ctypes.c_void_p()
for name in sys.argv[1:]:
    cuda.cudaMalloc(ctypes.byref(pointer), 1000)
    assert own.gpumemtrace_snapshot(name.encode()) == 0' "$work/copies/a.gmt" "$work/copies/b.gmt"
	"$REPORT" summary --json "$work/copies" > "$work/document"
	is .job.ranks 1
	is '[.runs[] | [.process.end, .process.superseded]] | sort' \
		'[["exit",null],["running","snapshot"],["running","snapshot"]]'
	is '[.job.totals[].current_bytes] | add' 2000
	rm "$work/copies/whole.gmt"
	"$REPORT" summary --json "$work/copies" > "$work/document"
	is .job.ranks 1
	is '[.runs[] | select(.process.superseded == null) | .totals[0].current_bytes]' '[2000]'
}

@test "copies of a process in its directory are shown and not counted" {
	for number in 1 2 3; do rank $number device 0 keep 1000; done
	GPUMEMTRACE_EVENTS=all rank 0 device 0 keep 1000
	"$REPORT" export --format zst -o "$work/job/node0/rank0.gmt.zst" "$work/job/node0/rank0.gmt"
	cp "$work/job/node0/rank1.gmt" "$work/job/node0/rank1.gmt.snap1"
	[ -e "$work/job/node0/rank0.gmt.events" ]
	job summary
	[ ! -s "$work/error" ]
	is .job.ranks 4
	is '[.runs[].process.superseded] | sort' '[null,null,null,null,"archive","snapshot"]'
	is '[.job.totals[].current_bytes] | add' 4000
	# those without a history are named, the others packed
	run "$REPORT" export --format zst -o "$work/all.zst" "$work/job"
	[ "$status" -eq 2 ]
	[[ $output == *"rank1.gmt has no complete history"* ]]
	cmp "$work/all.rank0.zst" "$work/job/node0/rank0.gmt.zst"
	[ ! -e "$work/all.rank1.zst" ]
}
