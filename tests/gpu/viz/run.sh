#!/usr/bin/env bash
# The torch-snapshot export of a training run, opened by torch/cuda/_memory_viz.py, against PyTorch's own
# snapshot of the same moment: segments, blocks, lines, events, totals.
#   run.sh BUNDLE OUT
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"

record() { # NAME [SETTING=VALUE...]
	local name=$1
	shift
	ran "$name" 100 "$@" "$python" "$here/train.py" "$out" "$name" || return
	if report export --format torch-snapshot -o "$out/$name.ours.pickle" "$out/$name.moment.gmt" \
		> "$out/$name.export" 2>&1; then
		echo "ok $name: exported, $(stat -c %s "$out/$name.ours.pickle") B"
	else
		echo "FAIL $name: export: $(tail -n 1 "$out/$name.export")"
	fi
}

against() { # NAME
	compare "$here/compare.py" "$1" "$out/$1.said" "$out/$1.ours.pickle" "$out/$1.theirs.pickle"
}

piece record-native record native
piece record-expandable record expandable PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
together
for name in native expandable; do # one after the other: both put a script where the viewer looks for it
	piece "$name" against "$name"
	together
done
finish viz
