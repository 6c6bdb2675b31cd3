# Shared by the tests of sleep and of attaching, beside ../helpers.bash.

setup() {
	work=$(mktemp -d)
	# The simulated driver has no CUPTI, and NVIDIA's own is not to be loaded before it: tests/cupti/attached.bats.
	export LD_LIBRARY_PATH=$SIM GPUMEMTRACE_OUT=$work/out.gmt GPUMEMTRACE_QUIET=1 GPUMEMTRACE_BACKEND=preload
	pid=
}

teardown() {
	[ -z "$pid" ] || kill -KILL "$pid" 2> /dev/null || true
	rm -rf "$work"
}

# begin [BEFORE_MIB]: the busy program in the background, as `pid`; it is at work when this returns.
begin() {
	mkdir "$work/run"
	"$WORDS" allow "$PROGRAMS/load" "$work/run" "$PLUGIN" "${DRIVER:-$SIM/libcuda.so.1}" "$@" > "$work/said" 2> "$work/stderr" 3>&- &
	pid=$!
	until_done [ -e "$work/run/ready" ]
}

# begin_under SHIM [BEFORE_MIB]: the same under a preload; its file is there when this returns, with all that
# describes the process.
begin_under() {
	local shim=$1
	shift
	LD_PRELOAD=$shim begin "$@"
	until_done [ -s "$work/out.gmt" ]
	until_true '.process.command | length > 0'
}

# The busy program ends, and its results are those of a run without us.
end() {
	touch "$work/run/stop"
	wait $pid
	pid=
	[ "$(jq -c '[.failed, .wrong, .interrupted, .result]' "$work/said")" = "[0,0,0,\"0x1.1d0f4b70ee222p+5\"]" ] ||
		{ cat "$work/said"; return 1; }
}

# until_done COMMAND ARG...: waits until the command succeeds, as long as the program lives. A busy loop of looks would
# take the processor from the program.
until_done() {
	until "$@"; do
		kill -0 $pid
		sleep 0.02
	done
}

# look: the document of the file as it is now, in $work/document.
look() {
	"$REPORT" summary --json "${1:-$work/out.gmt}" > "$work/document"
}

# is_true EXPRESSION [FILE]: the jq EXPRESSION is true on the document of the file as it is now.
is_true() {
	look "${2:-}"
	jq -e "$1" "$work/document" > "$work/answer"
}

# until_true EXPRESSION [FILE]: looks until is_true.
until_true() {
	until_done is_true "$@"
}
