#!/usr/bin/env bats
# The portable tarball: what it needs, that it needs nothing else, and that it runs on an older system.
# SOURCE, BUILD, SIM, BUNDLE, HERE come from meson.

setup_file() {
	export archive
	archive=$BATS_FILE_TMPDIR/$(basename "$BUNDLE")
	"$SOURCE/packaging/bundle.sh" "$BUILD" "$archive"
	export folder=$BATS_FILE_TMPDIR/folder
	mkdir "$folder"
	tar -C "$folder" --strip-components=1 -xzf "$archive"
}

setup() {
	work=$BATS_TEST_TMPDIR
}

needed() {
	readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

@test "the archive is one folder of its own name" {
	[ "$(tar -tzf "$archive" | cut -d/ -f1 | sort -u)" = "$(basename "$BUNDLE" .tar.gz)" ]
}

@test "the shim needs the C library alone, of glibc 2.31 or older" {
	[ "$(needed "$folder/lib/libgpumemtrace.so")" = libc.so.6 ]
	floor=$("$SOURCE/packaging/glibc_floor.sh" "$folder/lib/libgpumemtrace.so")
	[ "$(printf '%s\n2.31\n' "$floor" | sort -V | tail -n 1)" = 2.31 ]
	grep -q "libgpumemtrace.so needs glibc $floor " "$folder/README"
}

@test "the floor is read from a file's version needs, not from what it exports" {
	echo 'int pthread_create(); int main(void) { return pthread_create(); }' > "$work/new.c"
	$CC -Wno-everything -w -o "$work/new" "$work/new.c" -pthread
	expected=$(nm -D "$work/new" | sed -n 's/.*@GLIBC_//p' | sort -V | tail -n 1)
	[ "$("$SOURCE/packaging/glibc_floor.sh" "$work/new")" = "$expected" ]
}

@test "the tool finds everything it needs in its own folder" {
	for file in "$folder"/lib/gpumemtrace/*; do
		for library in $(needed "$file"); do
			[ -e "$folder/lib/gpumemtrace/$library" ] || { echo "$file needs $library"; return 1; }
		done
	done
	LD_DEBUG=libs "$folder/bin/gpumem-report" --version 2>&1 > "$work/said" | sed -n 's/.*calling init: //p' > "$work/loaded"
	[ -s "$work/loaded" ]
	# the shell that starts it loads its own
	grep gpumemtrace/ "$work/loaded" | grep -q libdw
	[ "$(cat "$work/said")" = "$("$BUILD/tools/gpumem-report/gpumem-report" --version)" ]
}

@test "the README names the kernel and every library's package" {
	grep -Eq 'needs Linux [0-9.]+ or newer' "$folder/README"
	command -v dpkg-query > /dev/null || skip "not made on Debian"
	for package in elfutils jansson sqlite3 ncurses glibc; do
		grep -q "^  $package " "$folder/README"
	done
	[ -s "$folder/share/doc/gpumemtrace/copyright.libdw1" ]
}

@test "it runs from any folder, also by a link, and run finds the shim" {
	ln -s "$folder/bin/gpumem-report" "$work/gpumem-report"
	cd "$work"
	LD_LIBRARY_PATH=$SIM ./gpumem-report run -o out.gmt -- python3 "$SOURCE/examples/train.py" 3 > /dev/null
	[ "$(./gpumem-report leaks --json out.gmt | jq .totals[0].current_bytes)" -eq $((3 << 20)) ]
	[ "$(PKG_CONFIG_PATH=$folder/lib/pkgconfig pkg-config --variable=preload gpumemtrace)" -ef \
		"$folder/lib/libgpumemtrace.so" ]
}

@test "plan --search, which runs programs itself: the largest batch fits, and the next does not" {
	cd "$work"
	export LD_LIBRARY_PATH=$SIM
	fits() {
		GPUMEMTRACE_CAPACITY=640MiB "$folder/bin/gpumem-report" run -q -o "$work/fits.gmt" -- \
			python3 "$SOURCE/examples/train.py" 2 "$1" > /dev/null 2>&1
	}
	"$folder/bin/gpumem-report" plan --search --json --capacity 640MiB -- \
		python3 "$SOURCE/examples/train.py" 2 {} > document 2> said
	jq -e '.plan_search.runs | map(.outcome) | unique == ["fits", "out-of-memory"]' document || { cat said; return 1; }
	largest=$(jq .plan_search.largest_batch document)
	[ "$largest" -gt 1 ]
	fits "$largest"
	! fits $((largest + 1))
}

@test "whatif and html say what the tool of the build folder says" {
	cd "$work"
	for tool in "$folder/bin/gpumem-report" "$BUILD/tools/gpumem-report/gpumem-report"; do
		"$tool" whatif --json "$SOURCE/tests/golden/torch-2.11/torch-2.11-native.pickle" > whatif.json
		"$tool" html -o page.html "$SOURCE/tests/golden/torch-2.11/torch-2.11-native.pickle"
		cat whatif.json page.html > "said.$(basename "$(dirname "$tool")")"
	done
	cmp said.bin said.gpumem-report
	jq -e ".whatif | length > 10" whatif.json
}

@test "attach and detach load the folder's shim into a process" {
	"$ATTACH/words" mappings $$ > "$work/mappings" 2>&1 || skip "this machine does not let a process be attached to"
	mkdir "$work/run"
	cd "$work"
	LD_LIBRARY_PATH=$SIM "$ATTACH/words" allow "$ATTACH/load" run "$PLUGIN" "$SIM/libcuda.so.1" > said 3>&- &
	until [ -e run/ready ]; do kill -0 $!; sleep 0.02; done
	"$folder/bin/gpumem-report" attach -o "$work/out.gmt" $!
	until "$folder/bin/gpumem-report" summary --json out.gmt > document &&
		jq -e '[.usage[].allocations] | add > 100' document > answer; do
		kill -0 $!
		sleep 0.02
	done
	"$folder/bin/gpumem-report" detach $!
	[ "$("$ATTACH/words" words $!)" = 0 ]
	touch run/stop
	wait $!
	[ "$(jq -c '[.failed, .wrong]' said)" = "[0,0]" ]
}

@test "a build folder with another libdir gives the same folder" {
	mkdir "$work/path"
	cat > "$work/path/meson" <<- 'END'
		#!/bin/sh -e
		"$MESON" "$@"
		[ "$1" = install ] || exit 0
		while [ "$1" != --destdir ]; do shift; done
		for prefix in $(find "$2" -name include -printf '%h '); do
			mkdir "$prefix/odd"
			mv "$(dirname "$(find "$prefix" -name libgpumemtrace.so)")" "$prefix/odd/x86_64-linux-gnu"
		done
	END
	chmod +x "$work/path/meson"
	MESON=$(command -v meson) PATH=$work/path:$PATH "$SOURCE/packaging/bundle.sh" "$BUILD" "$work/other"
	diff <(cd "$folder" && find . ! -type d | sort) <(cd "$work/other" && find . ! -type d | sort)
	cmp "$folder/lib/pkgconfig/gpumemtrace.pc" "$work/other/lib/pkgconfig/gpumemtrace.pc"
}

@test "from a folder whose name the loader cannot take, it reports, and says why it does not run programs" {
	mkdir "$work/a folder"
	cp -r "$folder/." "$work/a folder"
	"$work/a folder/bin/gpumem-report" --version
	run "$work/a folder/bin/gpumem-report" run -- true
	[ "$status" -eq 2 ]
	[[ $output == *"a folder/lib/libgpumemtrace.so cannot be preloaded: the loader takes spaces"* ]]
}

@test "on Debian 11, glibc 2.31: the shim records, the tool reports" {
	[ "$(uname -m)" = x86_64 ] || skip "the simulated driver for old systems is built for x86-64"
	[ "$(id -u)" -eq 0 ] || skip "chroot needs root"
	said=$("$SOURCE/tests/package/old_debian.sh" "$HERE/debian11") || skip "$said"
	old=$HERE/debian11
	rm -rf "${old:?}"/work
	mkdir -p "$old/work/sim"
	cp -r "$folder" "$old/work/bundle"
	cp "$HERE/libold_cuda.so.1" "$old/work/sim/libcuda.so.1"
	cp "$SOURCE/examples/train.py" "$old/work/"
	inside() {
		unshare --mount sh -c 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"' "$old" "$@"
	}
	inside /bin/sh -c true 2> /dev/null || skip "no mounts may be made here"
	inside /bin/sh -c '
		cd /work
		LD_LIBRARY_PATH=/work/sim bundle/bin/gpumem-report run -q -o out.gmt -- python3.9 train.py 5' > "$work/said"
	grep -q "5 steps, 5 losses kept" "$work/said"
	inside /work/bundle/bin/gpumem-report leaks --json /work/out.gmt > "$work/document"
	[ "$(jq '.totals[0].current_bytes' "$work/document")" -eq $((5 << 20)) ]
	# Python's frames are read there too
	jq -e '[.sites[].stack[] | select(.kind == "python").function] | index("train")' "$work/document"
	[ "$(inside /usr/bin/python3.9 -c 'import os; print(os.confstr("CS_GNU_LIBC_VERSION"))')" = "glibc 2.31" ]
}
