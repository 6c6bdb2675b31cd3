#!/usr/bin/env bash
# Makes the files that the tests look at, and of each its page and its document. SHIM, SIM, REPORT,
# GOLDEN, HISTORY, REPLAY and TRACES come from meson. make_pages.sh FOLDER
set -eu
work=$1 root=$(cd "$(dirname "$0")/../.." && pwd)
export GPUMEMTRACE_QUIET=1

traced() {
	local name=$1
	shift
	LD_LIBRARY_PATH=$SIM GPUMEMTRACE_OUT=$work/$name.gmt LD_PRELOAD=$SHIM "$@" > /dev/null
}

traced train python3 "$root/examples/train.py" 60
traced forgetful env GPUMEMTRACE_EVENTS=off python3 "$root/examples/train.py" 60
traced longer python3 "$root/examples/train.py" 90
traced many python3 "$root/tests/viewer/many_sites.py" 4000 24
traced hostile python3 "$root/tests/viewer/many_sites.py" 8 3 '</script><script>window.hit = 1</script>' \
	$'\u2028<img src=x onerror="window.hit = 1">'
# A device on which the requests fail that failed on the device of the trace.
mkdir "$work/marks" "$work/golden"
GPUSIM_MEMORY=$((148245577728 + 1077018624 + (512 << 20))) \
	traced replay "$REPLAY" "$TRACES/native.trace" 0 "$work/marks"
"$GOLDEN" "$work/golden"

cd "$work"
cp golden/{leaks,killed,clean,torch,timeline,rank0,rank1}.gmt .
for name in train forgetful many hostile replay leaks killed clean torch timeline; do
	"$REPORT" html -o "$name.html" "$name.gmt"
	"$REPORT" export --format json -o "$name.json" "$name.gmt"
done
for format in collapsed perfetto pprof; do
	"$REPORT" export --format $format -o train.$format train.gmt
done
# Over 10 MB of data in the page: every event of a long run.
"$HISTORY" "$work/large.gmt" 900000 1000000000
"$REPORT" html --no-symbols -o large.html large.gmt
"$REPORT" export --no-symbols --format json -o large.json large.gmt
time=$(python3 -c 'import json; print(json.load(open("large.json"))["marks"][0]["time_s"])')
"$REPORT" export --no-symbols --format json --at "$time" -o large-half.json large.gmt
"$REPORT" html -o compare.html train.gmt longer.gmt
"$REPORT" diff --json train.gmt longer.gmt > compare.json
"$REPORT" html -o ranks.html rank0.gmt rank1.gmt
"$REPORT" summary --json rank0.gmt rank1.gmt > ranks.json
