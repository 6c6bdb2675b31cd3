#!/bin/sh
# Runs one family program under the shim on the simulated GPU and checks its report.
#   run.sh NAME     SHIM, SIM, REPORT, PROGRAMS and CHECK come from meson
set -u
name=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH="$SIM" GPUMEMTRACE_OUT="$work/%p.gmt" GPUMEMTRACE_QUIET=1
LD_PRELOAD=$SHIM "$PROGRAMS/$name" > "$work/said" 2> "$work/error" &
pid=$! # a program may have children, each with a file of its own
wait $pid
status=$?
cat "$work/error"
if [ "$status" -ne 0 ] && ! grep -q 'process.end.killed 1' "$work/said"; then
	echo "$name: FAIL status $status"
	exit 1
fi
"$REPORT" summary --json "$work/$pid.gmt" > "$work/document" || exit 1
python3 "$CHECK" "$name" "$work/said" "$work/document"
status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || cat "$work/said"
exit $status
