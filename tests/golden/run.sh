#!/bin/bash
# Runs gpumem-report as the file `cases` lists it, on files that make_files makes, and compares what it
# says and its exit status. `run.sh TOOL MAKE_FILES` prints TAP; `run.sh --accept ...` writes the
# expected texts anew: look at the difference before it is committed.
set -u
accept=
[ "$1" = --accept ] && { accept=1; shift; }
tool=$(realpath "$1") make_files=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
"$make_files" "$work" && cp "$here"/{suppressions,rules,rules.bad} "$work" && cd "$work" || exit 1
export LC_ALL=C.UTF-8
unset DEBUGINFOD_URLS NO_COLOR COLUMNS

number=0 failed=0
while IFS='|' read -r name status arguments; do
	name=${name// /}
	[ -z "$name" ] || [ "${name:0:1}" = "#" ] && continue
	number=$((number + 1))
	# shellcheck disable=SC2086 # the arguments are words
	"$tool" $arguments > "$work/said" 2>&1 < /dev/null
	got=$?
	[ -n "$accept" ] && cp "$work/said" "$here/expected/$name.txt"
	if [ $got != "${status// /}" ]; then
		echo "not ok $number - $name: exit status $got, expected ${status// /}"
		failed=1
	elif ! difference=$(diff -u "$here/expected/$name.txt" "$work/said"); then
		echo "not ok $number - $name"
		while IFS= read -r line; do echo "# $line"; done <<< "$difference"
		failed=1
	else
		echo "ok $number - $name"
	fi
done < "$here/cases"
echo "1..$number"
exit $failed
