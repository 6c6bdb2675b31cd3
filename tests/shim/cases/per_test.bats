#!/usr/bin/env bats
# Test suites that mark each test (examples/per-test): one process, a gate for each test, and what was
# allocated since a mark.

load ../helpers

# Only the third test fails, with 12,288 bytes; the first is the warm-up.
gates() {
	"$REPORT" check --leaks off --per-mark --warmup 1 --json --junit "$work/junit.xml" \
		"$work/out.gmt" > "$work/document" && status=0 || status=$?
	[ "$status" -eq 1 ]
	is '[.gates[] | select(.gate | startswith("mark:")) | [.gate[5:], .passed, .value]]' "$1"
}

@test "C, with cmocka" {
	[ -x "$PROGRAMS/test_suite" ] || skip "no cmocka"
	traced "$PROGRAMS/test_suite" 2> "$work/error"
	gates '[["cleans_up",true,0],["forgets_a_block",false,12288],["cleans_up_too",true,0],["end of tests",true,0]]'
	python3 - "$work/junit.xml" <<-'END'
		import sys, xml.etree.ElementTree as tree
		cases = {c.get("name"): c.find("failure") for c in tree.parse(sys.argv[1]).iter("testcase")}
		assert cases["mark:cleans_up"] is None and cases["mark:forgets_a_block"] is not None, cases
		assert "forgets_a_block" in cases["mark:forgets_a_block"].text
	END
}

@test "Python, by ctypes" {
	traced python3 "$SOURCE/examples/per-test/test_suite.py" 2> "$work/error"
	gates '[["test_2_cleans_up",true,0],["test_3_forgets_a_block",false,12288],["test_4_cleans_up_too",true,0],["end of tests",true,0]]'
	"$REPORT" check --leaks off --per-mark --warmup 1 "$work/out.gmt" > "$work/text" || true
	grep -q 'test_suite.py:[0-9]*' "$work/text"
}

@test "in one line, with the program's own status kept" {
	run "$REPORT" run -q -o "$work/one.gmt" --check "leaks=off --per-mark --warmup 1" -- \
		python3 "$SOURCE/examples/per-test/test_suite.py"
	[ "$status" -eq 1 ]
}

@test "in one line, as one document, the gates in it" {
	"$REPORT" run --json -o "$work/one.gmt" --check "leaks=off --per-mark --warmup 1" -- \
		python3 "$SOURCE/examples/per-test/test_suite.py" > "$work/document" 2> "$work/error" || [ $? -eq 1 ]
	[ "$(jq -s 'map([.schema_version, (.gates | length > 0)]) | tostring' -r "$work/document")" = '[[1,true]]' ]
}

@test "leaks --since and --until: what was allocated between two marks and is live" {
	traced python3 "$SOURCE/examples/per-test/test_suite.py" 2> "$work/error"
	"$REPORT" leaks --since test_3_forgets_a_block --json "$work/out.gmt" > "$work/document"
	is '[.sites[] | select(.since_bytes > 0) | [.since_bytes, .since_count]]' '[[12288,1]]'
	"$REPORT" leaks --until test_2_cleans_up --json "$work/out.gmt" > "$work/document"
	is '[.sites[] | select(.since_bytes > 0) | [.since_bytes, .since_count]]' '[[1048576,1]]'
	"$REPORT" leaks --since test_2_cleans_up --until test_3_forgets_a_block "$work/out.gmt" > "$work/text"
	grep -q '^0 B in 0 blocks' "$work/text"
	"$REPORT" check --leaks exit --since test_4_cleans_up_too "$work/out.gmt"
	run "$REPORT" leaks --since nowhere "$work/out.gmt"
	[ "$status" -eq 3 ]
	[[ $output == *'no mark "nowhere"'* ]]
}

@test "MARK#2 is the second mark of a name" {
	traced "$PROGRAMS/cases" leaking
	"$REPORT" leaks --since step#11 --json "$work/out.gmt" > "$work/document"
	is '[.sites[].since_bytes] | add' $((2 << 20))
	"$REPORT" leaks --since step --json "$work/out.gmt" > "$work/document"
	is '[.sites[].since_bytes] | add' $((11 * 2 << 20))
}
