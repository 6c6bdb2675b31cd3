#!/usr/bin/env bash
# A root folder of Debian 11 (glibc 2.31) with a shell and Python, from the distribution's mirror:
#   old_debian.sh FOLDER
# Does nothing if it is there; status 77 and a sentence if it cannot be had.
set -eu
folder=$1
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keys=/usr/share/keyrings/debian-archive-keyring.gpg
packages=(busybox-static libc6 libgcc-s1 libcrypt1 python3.9-minimal libpython3.9-minimal
	libpython3.9-stdlib libexpat1 zlib1g libffi7)

no() {
	echo "$*"
	exit 77
}

[ -e "$folder/usr/bin/python3.9" ] && exit 0
command -v apt-get > /dev/null && command -v dpkg-deb > /dev/null || no "no apt-get and dpkg-deb here"
[ -e "$keys" ] || no "no keys of Debian's archive here ($keys)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,etc,root}
echo "deb [signed-by=$keys] $mirror bullseye main" > "$work/etc/sources.list"
touch "$work/status"
apt() {
	apt-get -q -o Dir::Etc="$work/etc" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/lists" \
		-o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" -o Acquire::Languages=none \
		-o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false "$@"
}
cd "$work"
apt update > log 2>&1 || no "Debian 11 cannot be had from $mirror: $(grep '^[EW]:' log | head -n 1)"
apt download "${packages[@]}" >> log 2>&1 || no "its packages cannot be had from $mirror: $(grep '^E:' log | head -n 1)"
for package in ./*.deb; do
	dpkg-deb -x "$package" root
done
ln -s busybox root/bin/sh
mkdir -p root/{tmp,proc,dev,work}
mkdir -p "$(dirname "$folder")"
rm -rf "$folder"
mv root "$folder"
