#!/usr/bin/env bats
# Names of native frames: entry points of a static cudart, separate debug files, debuginfod, files that
# are gone, Rust.
load ../helpers

# site EXPRESSION: jq on the site of 2 MiB.
site() {
	jq -c "[.sites[] | select(.live_bytes == 2097152)][0] | $1" "$work/document"
}

keep_line=$(grep -n "cuMemAlloc_v2(&pointer" "$BATS_TEST_DIRNAME/keep.c" | cut -d: -f1)
main_line=$(grep -n "keep(2 << 20)" "$BATS_TEST_DIRNAME/keep.c" | cut -d: -f1)
named="[[\"keep\",\"keep.c\",$keep_line],[\"main\",\"keep.c\",$main_line]]"
first_two='[.stack[:2][] | [.function, (.file // "" | sub(".*/"; "")), .line]]'

@test "a static cudart's entry points are not in the stack" {
	for level in O0 O2; do
		traced "$PROGRAMS/../runtime_static_$level"
		report
		is '[.sites[].stack[] | .function // "" | select(test("^(cuda[A-Z]|cu[A-Z])"))]' '[]'
		is '[.sites[].stack[0].module | sub(".*/"; "")] | unique' "[\"runtime_static_$level\"]"
		is '[.sites[].stack[0].file | sub(".*/"; "")] | unique' '["runtime_program.c"]'
		is '[.sites[].library] | unique' "[\"runtime_static_$level\"]"
	done
}

@test "function, file and line of a program with debug information" {
	traced "$PROGRAMS/keep"
	report
	[ "$(site "$first_two")" = "$named" ]
	[ "$(site .library)" = '"keep"' ]
}

@test "a program that the loader was asked to start is known by its own file" {
	loader=$(readelf -l "$PROGRAMS/keep" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
	LD_PRELOAD=$SHIM "$loader" "$PROGRAMS/keep" > "$work/said"
	report
	[ "$(site "$first_two")" = "$named" ]
	[ "$(site '.stack[0].module')" = "\"$PROGRAMS/keep\"" ]
}

@test "a separate debug file by its link" {
	cp "$PROGRAMS/keep" "$work/keep"
	mkdir "$work/.debug"
	objcopy --only-keep-debug "$work/keep" "$work/.debug/keep.debug"
	(cd "$work/.debug" && objcopy --strip-all --add-gnu-debuglink=keep.debug "$work/keep")
	traced "$work/keep"
	report
	[ "$(site "$first_two")" = "$named" ]
}

@test "a stripped program gives module and offset, and nothing is made up" {
	cp "$PROGRAMS/keep" "$work/keep"
	strip --strip-all "$work/keep"
	traced "$work/keep"
	report
	[ "$(site '[.stack[0].function, .stack[0].file, .stack[0].module]')" = "[null,null,\"$work/keep\"]" ]
	"$REPORT" sites "$work/out.gmt" | grep -Eq '^ +keep\+0x[0-9a-f]+$'
}

@test "on another machine the report says what is missing" {
	cp "$PROGRAMS/keep" "$work/keep"
	traced "$work/keep"
	rm "$work/keep"
	report
	[ "$(site '.stack[0].function')" = null ]
	is '[.file.warnings[] | select(test("^1 library is not on this machine; functions there have no names: keep$"))] | length' 1
	echo 'int main(void) { return 0; }' > "$work/other.c"
	cc "$work/other.c" -o "$work/keep"
	report
	[ "$(site '.stack[0].function')" = null ]
	is '[.file.warnings[] | select(test("another build than the one that ran.*: keep$"))] | length' 1
}

@test "debuginfod finds by build id what is not here" {
	ldconfig -p | grep -q libdebuginfod.so.1 || skip "no libdebuginfod.so.1"
	cp "$PROGRAMS/keep" "$work/keep"
	traced "$work/keep"
	id=$(readelf -n "$work/keep" | awk '/Build ID/ { print $3 }')
	[ -n "$id" ] || skip "the linker writes no build id"
	mkdir -p "$work/server/buildid/$id"
	objcopy --only-keep-debug "$work/keep" "$work/server/buildid/$id/debuginfo"
	rm "$work/keep"
	DEBUGINFOD_URLS="file://$work/server" DEBUGINFOD_CACHE_PATH="$work/cache" report
	[ "$(site "$first_two")" = "$named" ]
	is '.file.warnings' '[]'
}

@test "Rust, both manglings" {
	[ -n "$HAVE_LIBIBERTY" ] || skip "built without libiberty"
	command -v rustc > /dev/null || skip "no rustc"
	for mangling in v0 legacy; do
		RUSTC_BOOTSTRAP=1 rustc -Z unstable-options -C symbol-mangling-version=$mangling -O \
			-L "$SIM" "$BATS_TEST_DIRNAME/grow.rs" -o "$work/grow" || skip "rustc refuses"
		traced "$work/grow"
		report
		is '[.sites[] | select(.live_bytes == 6291456)][0].stack[0].function' '"<grow::Pool<u64> as grow::Grow>::grow"'
	done
}

# cached: the document by way of a cache of this test's own; what is in the cache is $cache.
cached() {
	XDG_CACHE_HOME=$work/cache "$REPORT" summary --json "$work/out.gmt" > "$work/document"
	cache=$(echo "$work"/cache/gpumemtrace/*)
}

# rename_in FILE OLD NEW: other answers, with the check sum that they need.
rename_in() {
	python3 - "$@" <<- 'END'
		import struct, sys, zlib
		name, old, new = sys.argv[1:]
		data = open(name, "rb").read().replace(old.encode(), new.encode())
		open(name, "wb").write(data[:8] + struct.pack("=I", zlib.crc32(data[12:])) + data[12:])
	END
}

@test "the document is the same with the cache of names, without it, and with a damaged one" {
	cp "$PROGRAMS/keep" "$work/keep"
	traced "$work/keep"
	XDG_CACHE_HOME=$work/cache "$REPORT" summary --json --no-symbol-cache "$work/out.gmt" > "$work/plain"
	[ ! -e "$work/cache" ]
	for time in first second; do
		cached
		cmp "$work/plain" "$work/document"
	done
	[ "$(site "$first_two")" = "$named" ]
	first=${cache%% *}
	cp "$first" "$work/whole"
	for at in $(seq 0 31 $(($(stat -c %s "$first") - 1))); do
		printf '\377\200' | dd of="$first" bs=1 seek="$at" conv=notrunc status=none
		cached
		cmp "$work/plain" "$work/document"
		cmp "$work/whole" "$first" # written anew
	done
	HOME= XDG_CACHE_HOME= "$REPORT" summary --json "$work/out.gmt" | cmp "$work/plain" -
}

@test "names come from the cache, but not once debug information comes or goes" {
	cp "$PROGRAMS/keep" "$work/keep"
	objcopy --only-keep-debug "$work/keep" "$work/keep.debug"
	(cd "$work" && objcopy --strip-all --add-gnu-debuglink=keep.debug keep)
	mv "$work/keep.debug" "$work/elsewhere"
	traced "$work/keep"
	cached
	[ "$(site '.stack[0].function')" = null ]
	cp "$work/elsewhere" "$work/keep.debug"
	cached
	[ "$(site "$first_two")" = "$named" ]
	for file in $cache; do rename_in "$file" keep.c kept.c; done
	cached
	[ "$(site '.stack[0].file | sub(".*/"; "")')" = '"kept.c"' ]
	rm "$work/keep.debug"
	cached
	[ "$(site '.stack[0].function')" = null ]
}
