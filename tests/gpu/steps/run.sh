#!/usr/bin/env bash
# Ranges of NVTX against PyTorch's own figures, and a plan of a transformer against a search by running it.
#   run.sh BUNDLE OUT          some two minutes; needs transformers for the second part
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"
capacity=12GiB

ranges() {
	ran ranges 120 "$python" "$here/ranges.py" && document ranges || return
	compare "$here/compare.py" ranges "$out/ranges.json" "$out/ranges.said"
	report ranges "$out/ranges.gmt" > "$out/ranges.txt" 2>&1
}

plan() {
	local batch
	if ! "$python" -c 'import transformers' 2> "$out/plan.err"; then
		echo "skip plan: no transformers here"
		return
	fi
	for batch in 2 6; do
		ran "plan-$batch" 120 "$python" "$here/language_model.py" --batch "$batch" || return
	done
	report plan --json --batch 2,6 --capacity $capacity "$out/plan-2.gmt" "$out/plan-6.gmt" > "$out/plan.json"
	timeout -k 5 400 "$bundle/gpumem-report" plan --search --json --capacity $capacity --batch 4 -- \
		"$python" "$here/language_model.py" --batch {} > "$out/search.json" 2> "$out/search.err"
	compare "$here/compare.py" plan "$out/plan.json" "$out/search.json"
}

piece ranges ranges
together
piece plan plan
finish steps
