# shellcheck shell=bash disable=SC2034
# Shared by the scripts of the suite `gpu`; sourced with the script's own arguments:
#   . lib.sh BUNDLE OUT        BUNDLE: see bundle.sh; OUT: reports, files and logs
# A piece prints lines `ok NAME: figures` or `FAIL NAME: figures`; finish counts them. A piece that prints
# none, nor `skip NAME: why`, has checked nothing, which is a failure.
set -u
bundle=$(cd "$1" && pwd) out=$(mkdir -p "$2" && cd "$2" && pwd)
suite=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
export PYTHONDONTWRITEBYTECODE=1 GPUMEMTRACE_QUIET=1

report() { timeout -k 5 90 "$bundle/gpumem-report" "$@"; }

# judged NAME SECONDS COMMAND...: its lines; an end with an error that no FAIL line tells is one
judged() {
	local name=$1 limit=$2 said status
	shift 2
	said=$(timeout -k 5 "$limit" "$@" 2>&1)
	status=$?
	printf '%s\n' "$said"
	[ $status -eq 0 ] || grep -q '^FAIL ' <<< "$said" ||
		echo "FAIL $name: ended with $status: $(tail -n 1 <<< "$said")"
}

# compare SCRIPT ARG...: a comparer, which may import holds.py
compare() {
	local folder=${1%/*}
	PYTHONPATH=$suite judged "${folder##*/}/${1##*/}${2:+ $2}" 60 "$python" "$@"
}

# traced NAME SECONDS [SETTING=VALUE...] PROGRAM ARG...: under the shim. What it says is in NAME.said,
# its errors in NAME.err, the file is NAME.gmt. Status: the program's, 124 past the time.
traced() {
	local name=$1 limit=$2
	shift 2
	rm -f "$out/$name.gmt"
	timeout -k 5 "$limit" env LD_PRELOAD="$bundle/libgpumemtrace.so" \
		GPUMEMTRACE_OUT="$out/$name.gmt" "$@" > "$out/$name.said" 2> "$out/$name.err"
}

# ran NAME SECONDS ...: traced, which must succeed
ran() {
	local status
	traced "$@"
	status=$?
	[ $status -eq 0 ] && return
	echo "FAIL $1: the program ended with $status: $(tail -n 2 "$out/$1.err" | tr '\n' ' ')"
	return 1
}

# document NAME [ARG...]: the report as NAME.json and, cut, as NAME.txt
document() {
	local name=$1
	shift
	report summary --json "$@" "$out/$name.gmt" > "$out/$name.json" 2> "$out/$name.report.err" &&
		report summary "$@" "$out/$name.gmt" 2>&1 | sed -n 1,160p > "$out/$name.txt" && return
	echo "FAIL $name: no report: $(head -n 2 "$out/$name.report.err" | tr '\n' ' ')"
	return 1
}

# checked STATUS NAME [GATE...]: `check` ends with STATUS; its text is in NAME.check
checked() {
	local wanted=$1 name=$2 got
	shift 2
	report check "$@" "$out/$name.gmt" > "$out/$name.check" 2>&1
	got=$?
	if [ $got -eq "$wanted" ]; then
		echo "ok $name: check exits $got ($(head -n 1 "$out/$name.check"))"
	else
		echo "FAIL $name: check exits $got, not $wanted: $(head -n 4 "$out/$name.check" | tr '\n' '|')"
	fi
}

# piece NAME COMMAND...: in the background, its lines kept apart; together prints them in order
pieces=() running=()
piece() {
	local name=$1
	shift
	pieces+=("$name")
	"$@" > "$out/$name.lines" 2>&1 &
	running+=($!)
}

# together: waits for the pieces begun since the last time and prints their lines
: > "$out/lines.txt"
together() {
	local name
	[ ${#running[@]} -eq 0 ] || wait "${running[@]}"
	for name in "${pieces[@]}"; do
		cat "$out/$name.lines"
		grep -qE '^(ok|FAIL|skip) ' "$out/$name.lines" || echo "FAIL $name: nothing was checked"
	done | tee -a "$out/lines.txt"
	pieces=() running=()
}

# finish WHAT: the last lines, then the count; status 1 if anything failed or nothing was checked
finish() {
	local checked failed
	together
	checked=$(grep -c '^ok ' "$out/lines.txt") failed=$(grep -c '^FAIL ' "$out/lines.txt")
	echo "$1: $checked ok, $failed failed, ${SECONDS} s"
	[ "$checked" -gt 0 ] && [ "$failed" -eq 0 ]
}
