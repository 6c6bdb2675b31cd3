#!/usr/bin/env bash
# The portable folder: what `meson install` installs, with everything the report tool loads.
#   bundle.sh BUILD FOLDER          makes FOLDER anew
#   bundle.sh BUILD NAME.tar.gz     the same, packed; its first folder is NAME
#
#   bin/gpumem-report        starts the tool with the C library and the loader it was built with
#   lib/libgpumemtrace.so    the shim: only the program's own C library
#   lib/gpumemtrace/         the tool, its libraries, its loader
#   README                   which systems each of them runs on, read from the files themselves
set -eu
build=$1 target=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

prefix=$(meson introspect --buildoptions "$build" |
	python3 -c 'import json, sys; print(*[o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"])')
meson install -C "$build" --no-rebuild --quiet --destdir "$work/installed"
root=$work/installed$prefix
# wherever this distribution keeps libraries, the folder has one place
libraries=$(dirname "$(find "$work/installed" -name libgpumemtrace.so)")
mkdir -p "$root/lib/gpumemtrace"
if [ "$libraries" != "$root/lib" ]; then
	mv "$libraries"/* "$root/lib/"
	rmdir "$libraries"
fi
mv "$root/bin/gpumem-report" "$root/lib/gpumemtrace/"
cp "$here/launcher.sh" "$root/bin/gpumem-report"
chmod 755 "$root/bin/gpumem-report"

# The Debian package of a file; the database may know it without the /usr that /lib is a link into.
owner() {
	dpkg-query -S "$1" "${1#/usr}" 2> /dev/null | cut -d: -f1 | head -n 1
}

packages=
tool=$root/lib/gpumemtrace/gpumem-report
# the same file wherever the folder lies
sed -i -e 's|^prefix=.*|prefix=${pcfiledir}/../..|' -e 's|^libdir=.*|libdir=${prefix}/lib|' \
	"$root/lib/pkgconfig/gpumemtrace.pc"
loader=$(readelf -l "$tool" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
for library in "$loader" $(ldd "$tool" | awk '$3 ~ /^\// {print $3}'); do
	cp -L "$library" "$root/lib/gpumemtrace/"
	package=$(owner "$(realpath "$library")")
	[ -n "$package" ] || continue
	mkdir -p "$root/share/doc/gpumemtrace"
	cp -L "/usr/share/doc/$package/copyright" "$root/share/doc/gpumemtrace/copyright.$package"
	packages+=$(dpkg-query -W -f '  ${source:Package} ${source:Version}' "$package")$'\n'
done
cp "$here/../LICENSE" "$root/"
strip --strip-debug "$root/lib/libgpumemtrace.so" "$tool"
strip --strip-debug "$root/lib/gpumemtrace"/*.so*

floor=$("$here/glibc_floor.sh" "$root/lib/libgpumemtrace.so")
kernel=$(readelf -n "$root/lib/gpumemtrace/libc.so.6" | sed -n 's/.*OS: Linux, ABI: //p')
cat > "$root/README" <<END
gpumemtrace $(sed -n "s/^  version: '\(.*\)',/\1/p" "$here/../meson.build") for $(uname -m)

  LD_PRELOAD=$(printf %s '$PWD')/lib/libgpumemtrace.so program     records what the program does with GPU memory
  bin/gpumem-report FILE                             says what it was; man -l share/man/man1/gpumem-report.1

The folder can be moved anywhere; nothing is installed.
libgpumemtrace.so needs glibc $floor or newer, nothing else.
gpumem-report brings its libraries along, the C library too; it needs Linux $kernel or newer.
Those libraries come from these source packages of $(. /etc/os-release && echo "$PRETTY_NAME"), under
the licenses in share/doc/gpumemtrace:
$(sort -u <<< "${packages%$'\n'}")
END

case $target in
*.tar.gz)
	name=$(basename "$target" .tar.gz)
	mv "$root" "$work/$name"
	tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -czf "$target" "$name"
	;;
*)
	rm -rf "$target"
	mkdir -p "$(dirname "$target")"
	mv "$root" "$target"
	;;
esac
