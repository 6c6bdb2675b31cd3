#!/usr/bin/env bash
# Makes the files that the tests look at, and of each its page and its document. SHIM, SIM, REPORT,
# GOLDEN, HISTORY, RANGES, REPLAY and TRACES come from meson. make_pages.sh FOLDER
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
traced held env GPUMEMTRACE_HOLDERS=grow:40MiB python3 "$root/examples/train.py" 60
traced ranges "$RANGES" steps
# The copy of the process that looks for holders may outlive the process.
for _ in $(seq 600); do
	[ -e "$work/held.gmt.holders1" ] && break
	sleep 0.1
done
traced many python3 "$root/tests/viewer/many_sites.py" 4000 24
traced hostile python3 "$root/tests/viewer/many_sites.py" 8 3 '</script><script>window.hit = 1</script>' \
	$'\u2028<img src=x onerror="window.hit = 1">'
# A device on which the requests fail that failed on the device of the trace.
mkdir "$work/marks" "$work/golden" "$work/expandable-marks"
GPUSIM_MEMORY=$((148245577728 + 1077018624 + (512 << 20))) \
	traced replay "$REPLAY" "$TRACES/native.trace" 0 "$work/marks"
# The same device; what fails first is the fabric handle that PyTorch tries. The complete history tells
# neighbouring expandable segments apart, which the ring does not.
GPUSIM_MEMORY=$((148245577728 + 1077018624 + (512 << 20))) GPUSIM_FAIL=cuMemCreate:1=800 \
	GPUMEMTRACE_EVENTS=all traced expandable "$REPLAY" "$TRACES/expandable.trace" 0 "$work/expandable-marks"
"$GOLDEN" "$work/golden"

cd "$work"
cp golden/{leaks,killed,clean,torch,timeline,rank0,rank1}.gmt .
for name in train ranges forgetful many hostile replay expandable held leaks killed clean torch timeline; do
	"$REPORT" html -o "$name.html" "$name.gmt"
	"$REPORT" export --format json -o "$name.json" "$name.gmt"
done
# Of two runs with PyTorch the page of a moment: that of the fourth mark.
for name in replay expandable; do
	time=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["marks"][3]["time_s"])' $name.json)
	"$REPORT" html --at "$time" -o $name-then.html $name.gmt
	"$REPORT" export --format json --at "$time" -o $name-then.json $name.gmt
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
