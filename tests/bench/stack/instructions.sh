#!/bin/sh
# Instructions of one capture (and its interning, a hit), with and without the cache of walks:
#     instructions.sh INSTRUCTIONS [TIMING_LIBRARY PYTHON...]
# Counted by valgrind: two runs of different length, so that what comes before and after falls out.
set -eu
program=$1
shift
here=$(dirname "$0")
command -v valgrind >/dev/null || { echo "needs valgrind (package valgrind)"; exit 77; }

count() {
	PYTHONHASHSEED=0 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 |
		awk '/Collected/ { print $4 }'
}

native() {
	a=$(count "$program" "$1" "$2" 1000 "$3")
	b=$(count "$program" "$1" "$2" 3000 "$3")
	echo $(((b - a) / 2000))
}

python() {
	a=$(count "$2" -B "$here/instructions.py" "$1" 100 "$3")
	b=$(count "$2" -B "$here/instructions.py" "$1" 300 "$3")
	echo $(((b - a) / 4200))
}

printf '%-34s %8s %8s\n' "native frames, changed" on off
for depth in 36 60; do
	for changed in 0 1 5 "$depth" -1 -5 "-$depth"; do
		printf '%-34s %8d %8d\n' "$depth, $changed" "$(native "$depth" "$changed" on)" \
			"$(native "$depth" "$changed" off)"
	done
done
echo "(in turn; negative: in other places each time)"
[ $# -gt 0 ] || exit 0
timing=$1
shift
for interpreter; do
	printf '%-34s %8d %8d\n' "$("$interpreter" "$here/instructions.py")" \
		"$(python "$timing" "$interpreter" on)" "$(python "$timing" "$interpreter" off)"
done
