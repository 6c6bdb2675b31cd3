# Shared by ./demo and ./check: packages of Debian and Ubuntu, and the build folder.

# need_packages NAME...: installs those that are missing; a sentence if that is not possible.
need_packages() {
	local missing=() name
	for name in "$@"; do
		dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'ok installed' ||
			missing+=("$name")
	done
	[ ${#missing[@]} -eq 0 ] && return 0
	echo "installing: ${missing[*]}"
	local as_root=
	[ "$(id -u)" -eq 0 ] || as_root=sudo
	if ! { $as_root apt-get update -q &&
	       DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -q \
			--no-install-recommends "${missing[@]}"; } > /tmp/gpumemtrace-apt.log 2>&1; then
		tail -n 5 /tmp/gpumemtrace-apt.log
		echo "could not install ${missing[*]}: install them by hand and run this again" >&2
		return 1
	fi
}

# set_up_build DIR [OPTION...]: a configured build folder, made new if it is of another meson.
set_up_build() {
	local build=$1
	shift
	if [ -f "$build/build.ninja" ]; then
		meson configure "$build" "$@" && return 0
		rm -rf "$build"
	fi
	meson setup "$build" "$@"
}
