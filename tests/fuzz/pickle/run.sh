#!/usr/bin/env bash
# Builds the harness with clang's libFuzzer and sanitizers and lets it run: run.sh SOURCE WORK [RUNS].
# The three real snapshots are the corpus it begins with. Status 77 (skipped) without clang's libFuzzer.
set -eu
source=$1 work=$2 runs=${3:-20000}
mkdir -p "$work/corpus"
cd "$source"
if ! clang -g -O1 -std=gnu11 -D_GNU_SOURCE -Isrc -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=undefined -o "$work/fuzz_pickle" tests/fuzz/pickle/fuzz_pickle.c \
	src/report/import/*.c src/report/render/intern.c src/report/memory.c src/report/progress.c src/store/reader.c \
	src/store/reader_site.c \
	2> "$work/clang.log"; then
	grep -q 'error: unsupported\|cannot find.*fuzzer' "$work/clang.log" && exit 77
	cat "$work/clang.log"
	exit 1
fi
cp tests/golden/torch-2.11/*.pickle "$work/corpus"
cd "$work"
exec ./fuzz_pickle -runs="$runs" -seed=1 -rss_limit_mb=1024 -max_len=32768 -print_final_stats=1 corpus
