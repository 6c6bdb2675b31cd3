#!/usr/bin/env bats
# SARIF by its schema's rules, JUnit by a real parser, for each kind of failing gate and for none.

load ../helpers

# formats FAILED OPTION...: writes both for the last program and holds them against their rules.
formats() {
	local failed=$1
	shift
	"$REPORT" check -q --sarif "$work/sarif.json" --junit "$work/junit.xml" "$@" "$work/out.gmt" > "$work/text" || true
	/usr/bin/python3 "$SOURCE/tests/shim/cases/formats.py" "$work/sarif.json" "$work/junit.xml" "$failed"
}

@test "nothing fails" {
	traced "$PROGRAMS/cases" clean
	formats "" --leaks exit --no-errors --max-peak 1GiB --max-retries 0
}

@test "a leak" {
	traced "$PROGRAMS/cases" leaking
	formats leaks --leaks exit
	formats leaks --leaks grow
	formats max-growth --leaks off --max-growth 1KiB
}

@test "an OOM, retries, a peak" {
	traced "$PROGRAMS/cases" 19a
	formats "no-oom max-peak" --max-peak 1MiB
	rm "$work"/out.gmt*
	traced "$PROGRAMS/cases" 19b
	formats max-retries --max-retries 0
}

@test "bad frees, with a path that XML and URIs must escape" {
	mkdir "$work/a <b> & 'c' ü%"
	GPUMEMTRACE_OUT="$work/a <b> & 'c' ü%/x.gmt" traced "$PROGRAMS/cases" 8b
	mv "$work/a <b> & 'c' ü%/x.gmt" "$work/a <b> & 'c' ü%.gmt"
	"$REPORT" check -q --sarif "$work/sarif.json" --junit "$work/junit.xml" --no-errors --max-peak 1B \
		--leaks off "$work/a <b> & 'c' ü%.gmt" > "$work/text" || true
	/usr/bin/python3 "$SOURCE/tests/shim/cases/formats.py" "$work/sarif.json" "$work/junit.xml" "no-errors max-peak"
}
