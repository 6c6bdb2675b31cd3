# Shared by the end-to-end tests. SHIM, SIM, REPORT and PROGRAMS come from meson.

setup() {
	work=$(mktemp -d)
	export LD_LIBRARY_PATH=$SIM GPUMEMTRACE_OUT=$work/out.gmt
	export GPUMEMTRACE_QUIET=1
}

teardown() {
	rm -rf "$work"
}

# traced PROGRAM ARG...: runs it under the shim; its standard output goes to $work/said.
traced() {
	LD_PRELOAD=$SHIM "$@" > "$work/said"
}

# report: the document of the last traced program, in $work/document.
report() {
	"$REPORT" summary --json "$work/out.gmt" > "$work/document"
}

# same WHAT EXPRESSION: the program's figure WHAT equals what the jq EXPRESSION gives on the document.
same() {
	local said found
	said=$(jq -r ".$1" "$work/said")
	found=$(jq -r "$2" "$work/document")
	[ "$said" = "$found" ] || { echo "$1: the program says $said, the report $found ($2)"; return 1; }
}

# is EXPRESSION VALUE: the jq EXPRESSION gives VALUE on the document.
is() {
	local found
	found=$(jq -c "$1" "$work/document")
	[ "$found" = "$2" ] || { echo "$1 is $found, not $2"; return 1; }
}

# killed: four allocating threads, killed at a moment of the scheduler's choosing once they are at work
killed() {
	rm -f "$work"/out.gmt* "$work/books"
	LD_PRELOAD=$SHIM "$PROGRAMS/killed" "$work/books" &
	until [ -s "$work/books" ] && [ "$(od -An -tu8 -N8 "$work/books")" -gt $((RANDOM % 2000)) ]; do
		kill -0 $! || return 1
	done
	kill -KILL $!
	wait $! 2> /dev/null || true
}
