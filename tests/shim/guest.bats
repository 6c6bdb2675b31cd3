#!/usr/bin/env bats
# What the shim must leave alone: programs without CUDA, other files, the environment.

load helpers

@test "programs without CUDA leave no file and print nothing" {
	unset GPUMEMTRACE_QUIET
	cd "$work"
	unset GPUMEMTRACE_OUT
	LD_PRELOAD=$SHIM ls / > "$work/said" 2> "$work/error"
	LD_PRELOAD=$SHIM python3 -c 1 2>> "$work/error"
	LD_PRELOAD=$SHIM git --version >> "$work/said" 2>> "$work/error"
	[ ! -s "$work/error" ]
	[ -z "$(find "$work" -name '*.gmt*')" ]
}

@test "the shim needs the C library alone" {
	run sh -c "readelf -d '$SHIM' | grep NEEDED"
	[ "$(echo "$output" | wc -l)" -eq 1 ]
	[[ $output == *libc.so.6* ]]
}

@test "GPUMEMTRACE_DISABLE: no file" {
	GPUMEMTRACE_DISABLE=1 traced "$PROGRAMS/runtime13_O2"
	[ ! -e "$work/out.gmt" ]
}

@test "unknown settings and bad values are said once, the program runs" {
	GPUMEMTRACE_DEPHT=3 GPUMEMTRACE_DEPTH=banana traced "$PROGRAMS/runtime13_O2" 2> "$work/error"
	grep -q 'GPUMEMTRACE_DEPHT: no such setting' "$work/error"
	grep -q 'GPUMEMTRACE_DEPTH=banana: not understood' "$work/error"
	[ "$(wc -l < "$work/error")" -eq 2 ]
	for value in FAIL=p=nan FAIL=p=0.1,seed= FAIL=99999999999999999999 MAX_FILE=1 MAX_FILE=1000KiB; do
		export "GPUMEMTRACE_$value"
		traced "$PROGRAMS/runtime13_O2" 2> "$work/error"
		unset "GPUMEMTRACE_${value%%=*}"
		grep -q "GPUMEMTRACE_$value: not understood" "$work/error"
		report
		same live '.totals[0].current_bytes'
	done
}

@test "at exit three lines: peak, live allocations, path" {
	unset GPUMEMTRACE_QUIET
	traced "$PROGRAMS/runtime13_O2" 2> "$work/error"
	[ "$(wc -l < "$work/error")" -eq 3 ]
	[ "$(grep -c '^gpumemtrace: ' "$work/error")" -eq 3 ]
	grep -q "$work/out.gmt" "$work/error"
}

@test "an existing finished file is kept as .old1, .old2" {
	for i in 1 2 3; do traced "$PROGRAMS/runtime13_O2"; done
	[ -e "$work/out.gmt" ] && [ -e "$work/out.gmt.old1" ] && [ -e "$work/out.gmt.old2" ]
	"$REPORT" summary --json "$work/out.gmt.old1" > "$work/document"
	is .file.complete true
}

@test "OUT: placeholders, missing directories, mode 0600" {
	GPUMEMTRACE_OUT=$work/a/b/%n.%r.%%.gmt RANK=3 traced "$PROGRAMS/runtime13_O2"
	file=$work/a/b/runtime13_O2.3.%.gmt
	[ -e "$file" ]
	[ "$(stat -c %a "$file")" = 600 ]
	[ "$(stat -c %a "$work/a/b")" = 700 ]
	"$REPORT" summary --json "$file" > "$work/document"
	is .process.rank 3
}

@test "a full file: records are dropped and counted, the program goes on" {
	GPUMEMTRACE_OUT=/proc/nowhere/x.gmt traced "$PROGRAMS/runtime13_O2" 2> "$work/error"
	[ -s "$work/said" ]
	grep -q 'GPUMEMTRACE_OUT' "$work/error"
}

@test "the public header compiles in every standard, without a warning" {
	local std compiler tried=0
	cat > "$work/uses.c" <<- 'END'
		#include "gpumemtrace.h"
		int main(void)
		{
			gpumemtrace_mark("a");
			gpumemtrace_range_push("b");
			gpumemtrace_range_pop();
			gpumemtrace_pool_alloc((void *)0, 1, 0);
			gpumemtrace_pool_free((void *)0);
			gpumemtrace_reset_peak(0);
			return gpumemtrace_active() + gpumemtrace_snapshot("b") + 38 +
			       (int)gpumemtrace_live_bytes(0) + (int)gpumemtrace_peak_bytes(-1);
		}
	END
	for compiler in gcc clang; do
		command -v $compiler > /dev/null || continue
		for std in c89 c99 c11 gnu17 c++98 c++11 c++17 c++20; do
			[[ $std != c++* ]] || echo '#include <string>' | $compiler -x c++ -std=$std -fsyntax-only - 2> /dev/null || continue
			tried=$((tried + 1))
			$compiler -x "$([[ $std = c++* ]] && echo c++ || echo c)" -std=$std -Wall -Wextra -Wpedantic -Werror \
				-fsyntax-only -I "$BATS_TEST_DIRNAME/../../include" "$work/uses.c"
		done
	done
	[ $tried -gt 0 ] || skip "no gcc or clang here"
}
