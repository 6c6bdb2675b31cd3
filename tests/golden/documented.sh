#!/bin/bash
# Every finding that the sources can make has its section with an example in docs/reading-a-report.md, and
# every section of a finding there is one that they make. Prints TAP. documented.sh TOP_DIRECTORY
set -u
cd "$1" || exit 1
made=$(grep -rhoE '"(leak\.(grow|exit|pinned)|error\.[a-z-]+)"' src/report/judge/*.c | tr -d '"'
	tr -d '\n' < <(cat src/report/judge/*.c src/report/job/*.c) |
		grep -oE 'gm(_job)?_finding_new\([[:space:]]*(doc|job),[[:space:]]*"[a-z.-]+"' |
		grep -oE '"[a-z.-]+"' | tr -d '"')
made=$(sort -u <<< "$made")
told=$(sed -n '/^## Findings/,$s/^### //p' docs/reading-a-report.md | sort -u)
if [ -n "$made" ] && difference=$(diff <(echo "$made") <(echo "$told")); then
	echo "ok 1 - $(wc -l <<< "$made") findings are documented"
else
	echo "not ok 1 - findings of the sources (<) and sections of the document (>)"
	while IFS= read -r line; do echo "# $line"; done <<< "$difference"
fi
# an example begins as the report prints it, in the finding's own section
shown=$(awk '/^### /{id=$2} /^    (error|warning|note) +[a-z]/ && $2 == id {print id}' docs/reading-a-report.md | sort -u)
if difference=$(diff <(echo "$made") <(echo "$shown")); then
	echo "ok 2 - each with an example"
else
	echo "not ok 2 - findings of the sources (<) and those with an example (>)"
	while IFS= read -r line; do echo "# $line"; done <<< "$difference"
fi
echo 1..2
