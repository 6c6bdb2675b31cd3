#!/usr/bin/env bash
# Everything that a release hands out, made of the commit that is checked out:
#   tools/release.sh FOLDER      a folder that is not there yet
# The source, the portable tarball, the wheel, Debian packages where they can be built, and their sums.
# Refuses a tree with changes, and a version that NEWS.md or debian/changelog do not know as released. Build
# it on the oldest distribution that is to run the shim's build; the suite is ./check.
set -eu
cd "$(dirname "$0")/.."

refuse() {
	echo "release: $*" >&2
	exit 1
}

[ $# -eq 1 ] || refuse "it takes the folder to make: tools/release.sh FOLDER"
[ ! -e "$1" ] || refuse "$1 is there already"
git rev-parse --git-dir > /dev/null 2>&1 || refuse "this is no git checkout"
[ -z "$(git status --porcelain)" ] || refuse "there are changes that are not committed: git status"
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
grep -Eq "^## $version \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$" NEWS.md ||
	refuse "NEWS.md has no heading \"## $version (YYYY-MM-DD)\": give the version its date"
head -n 1 debian/changelog | grep -q "^gpumemtrace ($version) " ||
	refuse "debian/changelog does not begin with $version"

mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=gpumemtrace-$version
git archive --prefix="$name/" -o "$out/$name.tar.gz" HEAD
tar -C "$work" -xzf "$out/$name.tar.gz"
cd "$work/$name"
meson setup "$work/build" --buildtype=release -Dtests=false > "$work/log" || { cat "$work/log"; exit 1; }
ninja -C "$work/build" > "$work/log" || { tail -n 30 "$work/log"; exit 1; }
packaging/bundle.sh "$work/build" "$out/$name-$(uname -m).tar.gz"
packaging/wheel.sh "$out/$name-$(uname -m).tar.gz" "$out" > /dev/null
if command -v dpkg-buildpackage > /dev/null && command -v dh > /dev/null; then
	dpkg-buildpackage -b -us -uc > "$work/log" 2>&1 || { tail -n 30 "$work/log"; exit 1; }
	mv "$work"/*.deb "$out/"
else
	echo "release: no Debian packages: debhelper is not installed"
fi
cd "$out"
sha256sum -- * > "$work/sums"
mv "$work/sums" SHA256SUMS
cat SHA256SUMS
echo "Next: git tag -s v$version -m 'gpumemtrace $version' && git push origin v$version"
