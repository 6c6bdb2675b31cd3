#!/usr/bin/env bash
# fuzz.sh FUZZER SECONDS SEED [CORPUS]: runs a fuzzer that long, from the seed and what it found before.
# Nightly: hours and a corpus that is kept. Leaks are not looked for: rules are kept for good on
# purpose. Prints the number of executions; a crash is a failure.
set -eu
fuzzer=$(realpath "$1") seconds=$2 seed=$3 corpus=${4:+$(realpath "$4")}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -n "$corpus" ] || corpus=$work/corpus
mkdir -p "$corpus"
cp "$seed" "$corpus/"
cd "$work"
export ASAN_OPTIONS=detect_leaks=0
"$fuzzer" -max_total_time="$seconds" -max_len=4194304 -timeout=10 -print_final_stats=1 -detect_leaks=0 "$corpus" > log 2>&1 ||
	{ tail -n 60 log; ls crash-* 2> /dev/null && cp crash-* "${TMPDIR:-/tmp}"; exit 1; }
grep -E 'number_of_executed_units|new_units_added' log
