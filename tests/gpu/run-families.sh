#!/usr/bin/env bash
# Runs the family programs on a real GPU under the shim and holds each report against the program's own
# books and the driver's figures. Prints PASS, FAIL, SKIP and fact lines and a sum; then the leaking
# programs under compute-sanitizer, whose leaks must be those of the report.
#   run-families.sh FOLDER     made by bundle.sh: shim, report tool, programs, check.py
# What compute-sanitizer cannot see is said by lines beginning "sanitizer".
set -u
folder=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GPUMEMTRACE_QUIET=1
passed=0 failed=0 skipped=0

report() {
	"$folder/gpumem-report" "$@"
}

count() {
	case $1 in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*) failed=$((failed + 1)) ;;
	esac
}

# run NAME: leaves the program's words in NAME.said and the document in NAME.json.
run() {
	local name=$1 pid status
	GPUMEMTRACE_OUT=$work/%p.gmt LD_PRELOAD=$folder/libgpumemtrace.so "$folder/family_$name" \
		> "$work/$name.said" 2> "$work/$name.error" &
	pid=$!
	wait $pid
	status=$?
	if [ $status -ne 0 ] && ! grep -q 'process.end.killed 1' "$work/$name.said"; then
		echo "$name: FAIL status $status: $(tail -n 2 "$work/$name.error" | tr '\n' ' ')"
		grep '^fact' "$work/$name.said" | sed "s/^/$name: /"
		return 1
	fi
	if grep -q ^skip "$work/$name.said"; then
		echo "$name: SKIP $(sed -n 's/^skip //p' "$work/$name.said")"
		return 77
	fi
	if ! report summary --json "$work/$pid.gmt" > "$work/$name.json"; then
		echo "$name: FAIL no report"
		return 1
	fi
	python3 "$folder/check.py" "$name" "$work/$name.said" "$work/$name.json"
}

# sanitizer NAME: the leaks that compute-sanitizer finds, as count and bytes, beside the report's.
sanitizer() {
	local name=$1
	compute-sanitizer --tool memcheck --leak-check full --print-limit 100000 "$folder/family_$name" \
		> "$work/$name.sanitizer" 2>&1
	python3 - "$name" "$work/$name.sanitizer" "$work/$name.json" <<'PYTHON'
import json
import re
import sys

name, said, path = sys.argv[1:]
text = open(said, errors="replace").read()
leaks = [int(m[1]) for m in re.finditer(r"Leaked ([0-9,]+) bytes at 0x", text.replace(",", ""))]
document = json.load(open(path))
kinds = {}
for site in document["sites"]:
    if site["live_count"] and site["level"] == "driver":
        entry = kinds.setdefault(site["kind"], [0, 0])
        entry[0] += site["live_count"]
        entry[1] += site["live_bytes"]
ours = [sum(k[0] for k in kinds.values()), sum(k[1] for k in kinds.values())]
device = kinds.get("device", [0, 0])
theirs = [len(leaks), sum(leaks)]
print(f"sanitizer {name}: it names {theirs[0]} leaks, {theirs[1]} bytes; the report "
      f"{ours[0]}, {ours[1]}; by kind {json.dumps(kinds)}")
for subset in ("all", "device"):
    if theirs == (ours if subset == "all" else device):
        print(f"sanitizer {name}: PASS the same leaks ({subset})")
        sys.exit(0)
unseen = {k: v for k, v in kinds.items()}
print(f"sanitizer {name}: DIFFERS, see what it cannot name among {sorted(unseen)}")
if not leaks:
    print("\n".join("  | " + line for line in text.splitlines()[-12:]))
PYTHON
}

for program in "$folder"/family_*; do
	run "$(basename "$program" | sed s/^family_//)"
	count $?
done
echo "families: $passed passed, $failed failed, $skipped skipped"
if command -v compute-sanitizer > /dev/null; then
	for name in arrays async device graphs host managed vmm; do
		[ -e "$work/$name.json" ] && sanitizer "$name"
	done
else
	echo "sanitizer: SKIP no compute-sanitizer here"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
