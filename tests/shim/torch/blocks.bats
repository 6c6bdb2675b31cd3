#!/usr/bin/env bats
# Blocks by the hundred thousand, the usual ones straight through, and no end at which anything is tidied up.
load ../helpers

@test "killed among blocks: PyTorch's figures and the timeline's last are those of the last block" {
	local events device
	for events in 3000 70001 300000; do
		rm -f "$work"/out.gmt*
		traced "$PROGRAMS/blocks" "$events" || [ $? -eq 137 ]
		report
		is .process.end '"killed"'
		for device in 0 1; do
			is ".torch[] | select(.device == $device) | [.allocated_bytes, .allocated_peak_bytes, .allocations, .frees,
				.allocated_total_bytes, .freed_total_bytes]" "$(sed -n "$((device + 1))p" "$work/said")"
			is ".timeline[] | select(.device == $device and .series == \"torch_allocated\") | .last[-1]" \
				"$(jq -s ".[$device][0]" "$work/said")"
		done
	done
}
