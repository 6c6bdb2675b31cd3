#!/usr/bin/env bash
# Plans on a real GPU: the largest batch that `plan` predicts from two small runs of a language model, against
# bisection under GPUMEMTRACE_CAPACITY: within 5 %, with PyTorch's native allocator and with expandable segments.
#   run.sh BUNDLE OUT          under 90 seconds
# One program at a time: what a context costs is told by the device's free memory.
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"
capacity=20GiB

plan() { # NAME [SETTING=VALUE...]
	local name=$1 batch
	shift
	for batch in 16 48; do
		ran "$name-$batch" 60 "$@" "$python" "$here/train.py" --batch "$batch" || return
	done
	ran "$name-largest" 60 "$@" GPUMEMTRACE_CAPACITY=$capacity "$python" "$here/train.py" --largest || return
	if ! report plan --json --batch 16,48 --capacity $capacity "$out/$name-16.gmt" "$out/$name-48.gmt" \
		> "$out/$name.json" 2> "$out/$name.err"; then
		echo "FAIL $name: no plan: $(head -n 2 "$out/$name.err" | tr '\n' ' ')"
		return
	fi
	report plan --batch 16,48 --capacity $capacity --params 56M --optimizer adamw --seq 256 --layers 6 \
		--hidden 768 --heads 12 --vocab 8192 "$out/$name-16.gmt" "$out/$name-48.gmt" > "$out/$name.txt" 2>&1
	compare "$here/compare.py" "$name" "$out/$name.json" "$out/$name-largest.said" "$out/$name-48.said"
}

piece native plan native
together
piece expandable plan expandable PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
finish plan
