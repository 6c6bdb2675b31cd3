#!/usr/bin/env bats
# What the tool says, and how it ends, when an input, an output or an option is not what it should be.

load helpers

# refused STATUS PHRASE ARG...: ends with that status after a sentence with the phrase on standard error.
refused() {
	local wanted=$1 phrase=$2 status=0
	shift 2
	"$REPORT" "$@" > "$work/answer" 2> "$work/error" < /dev/null || status=$?
	[ $status = "$wanted" ] && grep -qF -- "$phrase" "$work/error" && return 0
	echo "$* ended with $status and said: $(cat "$work/error")"
	return 1
}

@test "a first word with a dot or a slash is a file, also one that is not there" {
	refused 3 "missing.gmt: cannot be opened" missing.gmt
	refused 3 "./missing: cannot be opened" ./missing
	refused 2 "neither a command nor a file" nonsense
	refused 3 "no file with contents" /dev/null
}

@test "a directory of suppressions is no list of them" {
	traced "$PROGRAMS/runtime13_O2"
	refused 3 "suppressions cannot be read" check --suppressions "$work" "$work/out.gmt"
}

@test "output that does not arrive is a failure" {
	local command status
	traced "$PROGRAMS/runtime13_O2"
	for command in summary "summary --json" "sites" "check --leaks off --allow-oom" "top --once" "export --format csv"; do
		status=0
		"$REPORT" $command "$work/out.gmt" > /dev/full 2> "$work/error" || status=$?
		[ $status = 2 ]
		[ "$(grep -c 'standard output could not be written whole' "$work/error")" = 1 ]
	done
	# a gate that failed is what matters more
	status=0
	"$REPORT" check --max-peak 1 --leaks off --allow-oom "$work/out.gmt" > /dev/full 2> /dev/null || status=$?
	[ $status = 5 ]
	# nothing was to be printed
	"$REPORT" export --format json -o "$work/written" "$work/out.gmt" >&-
}

@test "a file that is read is not written over" {
	local command sum
	traced "$PROGRAMS/runtime13_O2"
	sum=$(cksum < "$work/out.gmt")
	ln "$work/out.gmt" "$work/other.name"
	for command in "export --format json" "export --format sqlite" "export --format csv"; do
		refused 2 "one of the files to read" $command -o "$work/other.name" "$work/out.gmt"
	done
	refused 2 "one of the files to read" check --leaks off --allow-oom --junit "$work/out.gmt" "$work/out.gmt"
	refused 2 "one of the files to read" check --leaks off --allow-oom --baseline "$work/out.gmt" \
		--sarif "$work/other.name" "$work/out.gmt"
	[ "$sum" = "$(cksum < "$work/out.gmt")" ]
}

@test "several files that were asked for are runs[], also where one alone can be read" {
	traced "$PROGRAMS/runtime13_O2"
	refused 3 "missing.gmt" summary --json "$work/out.gmt" missing.gmt
	cp "$work/answer" "$work/document"
	is '.runs | length' 1
	is '.job.ranks' 1
	is '.runs[0].file.path == "'"$work/out.gmt"'"' true
}

@test "top --json is the document" {
	traced "$PROGRAMS/runtime13_O2"
	"$REPORT" top --once --json "$work/out.gmt" > "$work/document"
	is '.schema_version' 1
	is '.process.end' '"exit"'
}

# Leaves 4 KiB behind, after a mark whose name is anything but a word.
leaking() {
	traced python3 -c '
import ctypes
cuda, own = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL(None)
pointer = ctypes.c_void_p()
cuda.cudaSetDevice(0)
own.gpumemtrace_mark(b"<a \"b\" & c>")
cuda.cudaMalloc(ctypes.byref(pointer), 4096)'
}

@test "what a damaged file does not hold is not known, and no gate passes on it" {
	local bytes cut status told=0 unknown=0
	leaking
	report
	is '.leaks.exit_count > 0' true
	bytes=$(stat -c %s "$work/out.gmt")
	for ((cut = 8192; cut < bytes; cut += 65536)); do
		head -c $cut "$work/out.gmt" > "$work/cut.gmt"
		"$REPORT" summary --json "$work/cut.gmt" > "$work/document"
		status=0
		"$REPORT" check --json --leaks exit --max-peak 1TiB "$work/cut.gmt" > "$work/answer" || status=$?
		is '.file.complete' false
		case $(jq -c .leaks.exit_count "$work/document") in
		null)
			[ $status = 3 ] && [ "$(jq -c '.gates[] | select(.gate == "leaks") | .value' "$work/answer")" = null ]
			"$REPORT" summary "$work/cut.gmt" | grep -q '^Next: the file is damaged'
			unknown=$((unknown + 1))
			;;
		0) return 1 ;;
		*)
			[ $status = 1 ]
			told=$((told + 1))
			;;
		esac
	done
	[ $told -gt 0 ] && [ $unknown -gt 0 ]
}

@test "a killed run's leaks at exit were not measured, which does not pass" {
	local status=0
	killed
	"$REPORT" check --json --leaks exit --allow-oom "$work/out.gmt" > "$work/document" || status=$?
	[ $status = 3 ]
	is '.gates' '[{"gate":"leaks","passed":null,"limit":0,"value":null,"sites":[],"not_measured":"the process was killed"}]'
	"$REPORT" check --leaks exit --allow-oom --allow-unmeasured "$work/out.gmt"
}

@test "JUnit's XML is well-formed whatever a mark or a file is called" {
	local status=0
	leaking
	mv "$work/out.gmt" "$work/$(printf 'no\xffutf8')"
	"$REPORT" check --per-mark --warmup 0 --leaks off --junit "$work/junit.xml" "$work"/no* > /dev/null || status=$?
	[ $status = 1 ]
	[ "$(python3 -c 'import sys, xml.etree.ElementTree as tree
print([case.get("name") for case in tree.parse(sys.argv[1]).iter("testcase")][-1])' "$work/junit.xml")" = 'mark:<a "b" & c>' ]
}

@test "a device that nobody used is told, beside the empty lists" {
	leaking
	"$REPORT" leaks --device 7 "$work/out.gmt" 2> "$work/error" | grep -q 'Nothing was left'
	grep -q 'used a device 7' "$work/error"
	"$REPORT" leaks --device 0 "$work/out.gmt" 2> "$work/error" > /dev/null
	[ ! -s "$work/error" ]
}
