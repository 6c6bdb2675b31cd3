#!/usr/bin/env bash
# fuzz.sh FUZZER SECONDS SEED...: runs a fuzzer that long, from the seeds and from what once made it fail
# (regressions/). CORPUS=DIR keeps what it finds from one run to the next. Prints the number of
# executions. A crash, a leak, 20 s for one input or 2 GiB of memory is a failure; its input is kept in CORPUS or $TMPDIR and belongs
# into regressions/ with the fix.
set -eu
fuzzer=$(realpath "$1") seconds=$2
shift 2
name=$(basename "$fuzzer")
name=${name#fuzz_}
here=$(dirname "$(realpath "$0")")
kept=$(realpath "${CORPUS:-${TMPDIR:-/tmp}}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
corpus=${CORPUS:+$kept/$name}
mkdir -p "${corpus:=$work/corpus}" "$work/seeds"
for seed in "$@" "$here/regressions/$name"/*; do
	[ ! -e "$seed" ] || cp "$seed" "$work/seeds/"
done
mkdir "$work/cwd"
cd "$work/cwd"
# an absurd size makes an allocation fail, as it does without the sanitizer
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
if ! "$fuzzer" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -close_fd_mask=3 \
	-artifact_prefix="$kept/$name-" "$corpus" "$work/seeds" > "$work/log" 2>&1; then
	tail -n 60 "$work/log"
	exit 1
fi
grep -E 'number_of_executed_units|new_units_added' "$work/log"
