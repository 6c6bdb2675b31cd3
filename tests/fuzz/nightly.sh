#!/usr/bin/env bash
# nightly.sh HOURS [CORPUS [BUILD]]: all harnesses side by side for that long (0.1 is six minutes), under
# the address and the undefined behaviour sanitizer. CORPUS (fuzz-corpus) keeps what they find for the
# next night, BUILD (build-sanitized) is a build of tests/sanitizers.sh. Prints the executions of each;
# status 1 and the input's path if one of them failed.
set -eu
hours=${1:?usage: nightly.sh HOURS [CORPUS [BUILD]]} corpus=${2:-fuzz-corpus} build=${3:-build-sanitized}
source=$(realpath "$(dirname "$0")/../..")
mkdir -p "$corpus"
corpus=$(realpath "$corpus")
"$source/tests/sanitizers.sh" --build-only "$build"
build=$(realpath "$build")
seconds=$(awk -v hours="$hours" 'BEGIN { printf "%d", hours * 3600 }')

run() {
	local name=$1
	shift
	CORPUS=$corpus "$source/tests/fuzz/fuzz.sh" "$build/tests/fuzz/fuzz_$name" "$seconds" "$@" \
		> "$corpus/$name.log" 2>&1
}

cd "$source/tests/fuzz"
names=() processes=() failed=0
start() {
	names+=("$1")
	run "$@" &
	processes+=($!)
}
start reader "$build/tests/fuzz/seed.gmt"
start commands "$build"/tests/fuzz/{seed,torch,leaks,over,killed}.gmt
start report "$build"/tests/fuzz/{seed,torch,leaks,over,killed}.gmt ../golden/torch-2.11/*.pickle
start pickle ../golden/torch-2.11/*.pickle
start journal "$build/tests/fuzz/history.gmt.events"
start symbols seeds/symbols/answers
start text seeds/text/*
start cli seeds/cli/*
for i in "${!names[@]}"; do
	status=0
	wait "${processes[i]}" || status=$?
	[ "$status" -eq 0 ] || failed=1
	echo "${names[i]}: $([ "$status" -eq 0 ] && echo fine || echo FAILED)"
	cat "$corpus/${names[i]}.log"
done
exit $failed
