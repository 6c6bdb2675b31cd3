#!/usr/bin/env bash
# What merging the files of a large job costs: run.sh BUILD [RANKS] makes a job of eight ranks on the
# simulated GPU, copies it to RANKS (1000) ranks, and prints time, memory and, where perf or valgrind is
# there, instructions of `summary` on the folder, as text and as JSON. A benchmark: nothing is asserted.
set -eu
build=$(realpath "$1") ranks=${2:-1000}
report=$build/tools/gpumem-report/gpumem-report
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$build/tests/sim GPUMEMTRACE_QUIET=1 GPUSIM_DEVICES=8

for rank in 0 1 2 3 4 5 6 7; do
	RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=8 GPUMEMTRACE_OUT=$work/small/rank%r.gmt \
		LD_PRELOAD=$build/src/interpose/libgpumemtrace.so "$build/tests/shim/jobs/job_rank" \
		device "$rank" keep $((100 << 20)) use $((300 << 20)) keep $(((rank + 1) << 20))
done
"$build/tests/bench/job/copy_ranks" "$ranks" "$work/job" "$work"/small/*.gmt
echo "$ranks files, $(du -sh --apparent-size "$work/job" | cut -f1) of which $(du -sh "$work/job" | cut -f1) on disk"

measure() { # WHAT COMMAND...
	local what=$1 python='
import os, resource, subprocess, sys, time
begun = time.monotonic()
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=False).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{time.monotonic() - begun:.2f} s, {used.ru_utime + used.ru_stime:.2f} s of CPU, "
      f"{used.ru_maxrss / 1024:.0f} MiB of memory, status {status}")'
	shift
	echo "$what: $(python3 -c "$python" "$@")"
}
measure "summary" "$report" summary "$work/job"
measure "summary --json" "$report" summary --json "$work/job"
measure "check" "$report" check --max-peak 1TiB --leaks off -q "$work/job"
measure "export sqlite" "$report" export --format sqlite -o "$work/week.db" "$work/job"
if command -v valgrind > /dev/null; then
	valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null "$report" summary "$work/job" \
		2>&1 > /dev/null | sed -n 's/.*I *refs: */instructions of summary: /p'
fi
