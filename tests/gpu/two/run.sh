#!/usr/bin/env bash
# What needs two GPUs: programs on two devices, NCCL and data-parallel PyTorch with two ranks (one that leaks,
# one that opens a context on the other's device), IPC, and both backends on NCCL.
#   run.sh BUNDLE OUT
# Prints each step's lines when it ends. OUT/two.tar.gz has every file, for reports made later, also of a run
# that is ended before its time.
# shellcheck disable=SC2317 # pieces are called by name
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"

if [ "$(nvidia-smi -L | wc -l)" -lt 2 ]; then
	echo "skip two: there is one GPU"
	exit 77
fi

# A program that forks leaves two files: %p tells them apart.
family() { # NAME
	local words pid name=family-$1
	LD_PRELOAD=$bundle/libgpumemtrace.so GPUMEMTRACE_OUT=$out/$name.%p.gmt "$bundle/family_$1" \
		> "$out/$name.said" 2> "$out/$name.err" &
	pid=$!
	timeout 60 tail --pid="$pid" -f /dev/null || kill -9 "$pid"
	if ! wait "$pid"; then
		echo "FAIL family $1: $(tail -n 1 "$out/$name.err")"
		return
	fi
	mv "$out/$name.$pid.gmt" "$out/$name.gmt"
	document "$name" || return
	words=$(timeout 30 "$python" "$bundle/check.py" "$1" "$out/$name.said" "$out/$name.json" 2>&1)
	case $words in
	*": PASS") echo "ok family $1: $(grep -c '^=' "$out/$name.said") figures" ;;
	*) echo "FAIL family $1: $words" ;;
	esac
}

# ranks FOLDER SCRIPT ARG...: two ranks by torchrun, rank%r.gmt of each in FOLDER
ranks() {
	local folder=$out/$1 script=$2 status
	shift 2
	mkdir -p "$folder"
	timeout -k 5 120 env "${settings[@]}" LD_PRELOAD="$bundle/libgpumemtrace.so" \
		GPUMEMTRACE_OUT="$folder/rank%r.gmt" "$python" -m torch.distributed.run --nnodes 1 \
		--nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint localhost:0 \
		"$script" "$@" > "$folder/output" 2>&1
	status=$?
	[ "$status" -eq 0 ] && return
	echo "FAIL $(basename "$folder"): torchrun ended with $status: $(grep -v '^W\|^\*' "$folder/output" | tail -n 3 | tr '\n' '|')"
	return 1
}
settings=()

pack() {
	tar -C "$out" --sparse --warning=no-file-changed --exclude two.tar.gz -czf "$out.tar.gz" .
	mv "$out.tar.gz" "$out/two.tar.gz"
	ls -l "$out/two.tar.gz"
}

# cut: what had begun says what it knows; then all is packed
cut() {
	echo "FAIL two: ended before its time, after ${SECONDS} s"
	for name in "${pieces[@]}"; do sed 's/^/      /' "$out/$name.lines"; done
	exit 143
}
trap pack EXIT
trap cut TERM INT HUP

documents() { # FOLDER NAME...: NAME.gmt to NAME.json
	local folder=$1 name
	shift
	for name in "$@"; do
		report summary --json "$folder/$name.gmt" > "$folder/$name.json" 2> "$folder/$name.err" ||
			echo "FAIL $(basename "$folder"): no report of $name: $(tail -n 1 "$folder/$name.err")"
		report summary "$folder/$name.gmt" 2>&1 | head -n 120 > "$folder/$name.txt"
	done
}

gate() { # STATUS NAME FILE...
	local wanted=$1 name=$2 got
	shift 2
	report check "$@" > "$out/$name.check" 2>&1
	got=$?
	if [ "$got" -eq "$wanted" ]; then
		echo "ok $name: check exits $got"
	else
		echo "FAIL $name: check exits $got, not $wanted: $(head -n 4 "$out/$name.check" | tr '\n' '|')"
	fi
}

ddp() { # MODE STATUS-OF-RANK-1
	local folder=$out/ddp-$1
	ranks "ddp-$1" "$here/ddp_loop.py" "$folder" "$1" || return
	documents "$folder" rank0 rank1
	report summary --json "$folder/rank0.gmt" "$folder/rank1.gmt" > "$folder/job.json" 2> "$folder/job.err"
	report summary "$folder" 2>&1 | head -n 160 > "$folder/job.txt"
	compare "$here/compare.py" ranks "$folder" "$folder/job.json" "$1"
	gate 0 "ddp-$1-rank0" "$folder/rank0.gmt"
	gate "$2" "ddp-$1-rank1" "$folder/rank1.gmt"
	gate "$2" "ddp-$1-job" "$folder/rank0.gmt" "$folder/rank1.gmt"
}

all_reduce() {
	ranks allreduce "$here/allreduce.py" "$out/allreduce" || return
	documents "$out/allreduce" one.0 one.1 two.0 two.1 after.0 after.1
	compare "$here/compare.py" nccl "$out/allreduce"
}

share() {
	local file
	mkdir -p "$out/share"
	timeout -k 5 100 env LD_PRELOAD="$bundle/libgpumemtrace.so" GPUMEMTRACE_OUT="$out/share/%p.gmt" \
		"$python" "$here/share.py" > "$out/share/said" 2> "$out/share/err" ||
		echo "FAIL share: $(tail -n 1 "$out/share/err")"
	for file in "$out"/share/*.gmt; do
		report summary --json "$file" > "${file%.gmt}.json" 2> /dev/null
	done
	report summary "$out/share" 2>&1 | head -n 120 > "$out/share/job.txt"
	compare "$here/compare.py" share "$out/share/said" "$out"/share/*.json
}

backends() {
	local mode rank folder=$out/backends
	mkdir -p "$folder"
	for mode in preload cupti control; do
		settings=(GPUMEMTRACE_LOG=info "GPUMEMTRACE_BACKEND=${mode/control/preload}")
		ranks "backends.$mode" "$suite/equivalence/ddp.py" || return
		for rank in 0 1; do
			timeout 60 "$bundle/dump" "$out/backends.$mode/rank$rank.gmt" > "$folder/nccl_rank$rank.$mode.json"
		done
	done
	if timeout 60 "$python" "$suite/equivalence/compare.py" --table "$folder" > "$folder/table" 2>&1; then
		echo "ok backends: NCCL alike"
	else
		echo "FAIL backends: not alike"
	fi
	sed -n 1,25p "$folder/table" | sed 's/^/      /'
}

for name in devices stray ipc; do piece "$name" family "$name"; done
piece share share
together
for name in clean:0 leak:1 stray:0; do
	piece "ddp-${name%:*}" ddp "${name%:*}" "${name#*:}"
	together
done
piece allreduce all_reduce
together
piece backends backends
finish two
