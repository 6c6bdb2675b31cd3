#!/usr/bin/env bats
# The Debian package: built from the tree as it is, lintian finds nothing, what it installs works.
# SOURCE, SIM come from meson.

setup_file() {
	command -v dpkg-buildpackage > /dev/null && command -v dh > /dev/null || skip "no debhelper here"
	dpkg-query -W -f '${Status}' gpumemtrace 2> /dev/null | grep -q 'ok installed' && skip "gpumemtrace is installed"
	export made=$BATS_FILE_TMPDIR
	mkdir "$made/source"
	tar -C "$SOURCE" --exclude=./.git --exclude='./build*' --exclude=node_modules -c . | tar -C "$made/source" -x
	cd "$made/source"
	[ -d /usr/lib/ccache ] && PATH=/usr/lib/ccache:$PATH
	DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" dpkg-buildpackage -b -us -uc > "$made/log" 2>&1 ||
		{ tail -n 30 "$made/log"; return 1; }
	export root=$made/root
	mkdir -p "$root"/var/lib/dpkg/{updates,info,triggers}
	touch "$root/var/lib/dpkg/status"
	fakeroot dpkg --root="$root" --log="$made/dpkg.log" --force-depends --force-script-chrootless \
		-i "$made"/*.deb > "$made/installed" 2>&1 || { cat "$made/installed"; return 1; }
}

setup() {
	work=$BATS_TEST_TMPDIR
}

@test "the version is the project's" {
	[ "$(dpkg-deb -f "$made"/gpumemtrace_*.deb Version)" = \
		"$(sed -n "s/^  version: '\(.*\)',/\1/p" "$SOURCE/meson.build")" ]
}

@test "lintian has no error or warning" {
	command -v lintian > /dev/null || skip "no lintian here"
	run lintian --allow-root --fail-on error,warning "$made"/*.changes
	[ "$status" -eq 0 ] || { echo "$output"; return 1; }
	[ "$(grep -c '^[EW]:' <<< "$output")" -eq 0 ]
}

@test "the packages depend on those of every library that the tool loads" {
	depends=$(dpkg-deb -f "$made"/gpumemtrace_*.deb Depends)
	tool=$root/usr/bin/gpumem-report
	for library in $(readelf -d "$tool" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
		file=$(ldd "$tool" | awk -v name="$library" '$1 == name {print $3}')
		package=$(dpkg-query -S "$(realpath "$file")" "$file" 2> /dev/null | cut -d: -f1 | head -n 1)
		[[ ", $depends" == *", $package "* ]] || { echo "$library of $package is not in: $depends"; return 1; }
	done
}

@test "what was installed records and reports" {
	cd "$work"
	LD_LIBRARY_PATH=$SIM "$root/usr/bin/gpumem-report" run -q -o out.gmt -- python3 "$SOURCE/examples/train.py" 4
	[ "$("$root/usr/bin/gpumem-report" summary --json out.gmt | jq '.totals[0].current_bytes')" -eq $((4 << 20)) ]
	# the loader finds the shim by its plain name where the package puts it
	shim=$(find "$root/usr/lib" -name libgpumemtrace.so)
	rm -f plain.gmt
	LD_LIBRARY_PATH=$SIM:$(dirname "$shim") LD_PRELOAD=libgpumemtrace.so GPUMEMTRACE_QUIET=1 GPUMEMTRACE_OUT=plain.gmt \
		python3 "$SOURCE/examples/train.py" 2 > said
	[ -s plain.gmt ]
}

@test "manual pages, completion and the header come with it" {
	[ -e "$root/usr/share/man/man1/gpumem-report-leaks.1.gz" ]
	[ -e "$root/usr/share/man/man7/libgpumemtrace.7.gz" ]
	[ -e "$root/usr/share/bash-completion/completions/gpumem-report" ]
	[ -e "$root/usr/include/gpumemtrace.h" ]
	PKG_CONFIG_PATH=$(dirname "$(find "$root" -name gpumemtrace.pc)") pkg-config --exists gpumemtrace
}
