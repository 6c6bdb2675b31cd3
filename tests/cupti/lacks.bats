#!/usr/bin/env bats
# A build without CUPTI's headers: GPUMEMTRACE_BACKEND=cupti says so once, the wrappers record.

load helpers

@test "BACKEND=cupti says that this build lacks it" {
	seen cupti "$PROGRAMS/families_sim13" device
	cat "$work/error"
	[ "$(wc -l < "$work/error")" -eq 1 ]
	grep -qF "this build lacks the CUPTI backend" "$work/error"
	is cupti .backend '"preload"'
	seen preload "$PROGRAMS/families_sim13" device
	alike preload cupti
}
