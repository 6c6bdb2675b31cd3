#!/usr/bin/env bats
# Live blocks by size, and who owned an address when, against what a program says of its own addresses.

load helpers

# The program: 4 MiB are freed, 2 MiB then lie at the same address, 64 MiB elsewhere.
recorded() {
	cat > "$work/blocks.py" <<-'END'
		import ctypes
		cuda = ctypes.CDLL("libcudart.so.13")
		def allocate(size):
		    address = ctypes.c_void_p()
		    cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size))
		    return address
		def first_owner():
		    return allocate(4 << 20)
		def second_owner():
		    return allocate(2 << 20)
		def release(address):
		    cuda.cudaFree(address)
		other = allocate(64 << 20)
		first = first_owner()
		release(first)
		second = second_owner()
		assert first.value == second.value
		print(hex(second.value), hex(other.value))
	END
	traced python3 "$work/blocks.py"
	read -r address other < "$work/said"
}

# document ARG...: the JSON of blocks on the file
document() {
	"$REPORT" blocks --json "$@" "$work/out.gmt" > "$work/document"
}

@test "blocks: all that live, largest first, with the addresses that the program has" {
	recorded
	document
	is '[.blocks[] | [.address, .bytes, .level, .kind, .device]]' \
		"[[\"$other\",67108864,\"driver\",\"device\",0],[\"$address\",2097152,\"driver\",\"device\",0]]"
	COLUMNS=200 "$REPORT" blocks "$work/out.gmt" > "$work/text"
	grep -q '^2 live blocks of 66.00 MiB' "$work/text"
	grep -q "^  $address  *2.00 MiB .*second_owner" "$work/text"
}

@test "blocks of a range of sizes" {
	recorded
	document --min-bytes 3MiB
	is '[.blocks[].bytes]' '[67108864]'
	document --max-bytes 2MiB
	is '[.blocks[].bytes]' '[2097152]'
	document --min-bytes 3MiB --max-bytes 4MiB
	is '.blocks' '[]'
	document --kind pinned
	is '.blocks' '[]'
	run "$REPORT" blocks --min-bytes large "$work/out.gmt"
	[ "$status" -eq 2 ]
}

@test "blocks --address: who owned it, and who freed it" {
	recorded
	document --address "$address"
	is '[.address.events[] | [.op, .bytes, .api]]' \
		'[["alloc",4194304,"cudaMalloc"],["free",4194304,"cudaFree"],["alloc",2097152,"cudaMalloc"]]'
	is '[.address.events[] | [.stack[] | select(.kind == "python") | .function] | map(select(. != "<module>" and . != "allocate"))]' \
		'[["first_owner"],["release"],["second_owner"]]'
	is '[.address.live[].bytes]' '[2097152]'
	is '.address.from_s' 0
	# within it; behind what is live there, where only the first one reached; nowhere
	document --address "$(printf '%x' $((address + 100)))"
	is '[.address.live[].address, (.address.events | length)]' "[\"$address\",3]"
	document --address "$(printf '0x%x' $((address + (3 << 20))))"
	is '[.address.live, [.address.events[].op]]' '[[],["alloc","free"]]'
	document --address 0x10
	is '[.address.live, .address.events]' '[[],[]]'
	"$REPORT" blocks --address "$address" "$work/out.gmt" > "$work/text"
	grep -q "^$address is byte 0 of 2.00 MiB at $address (driver, device), live" "$work/text"
	grep -q '  freed  4.00 MiB at' "$work/text"
	run "$REPORT" blocks --address nowhere "$work/out.gmt"
	[ "$status" -eq 2 ]
}

@test "PyTorch's blocks come before the segment that they lie in" {
	printf '%s\n' 'S 1 20971520' 'A 2 1 0 4194304 0' > "$work/one.trace"
	traced "$PROGRAMS/torch/replay" "$work/one.trace" 0 "$work"
	"$REPORT" blocks --level torch --json "$work/out.gmt" > "$work/document"
	address=$(jq -r '.blocks[0].address' "$work/document")
	document --address "$address"
	is '[.address.live[].level]' '["torch","driver"]'
}

@test "an address that the ring has forgotten is said to be unknown" {
	traced python3 -c '
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
old, address = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cudaMalloc(ctypes.byref(old), ctypes.c_size_t(1 << 20))
for _ in range(33000):
    cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(4096))
    cuda.cudaFree(address)
print(hex(old.value))'
	address=$(cat "$work/said")
	document --address "$address"
	is '[(.address.live | length), .address.events, .address.from_s > 0]' '[1,[],true]'
	"$REPORT" blocks --address "$address" "$work/out.gmt" | grep -q 'The history begins at .* GPUMEMTRACE_EVENTS=all'
}

@test "leaks and sites --min-bytes" {
	recorded
	"$REPORT" leaks --min-bytes 3MiB --json "$work/out.gmt" > "$work/document"
	is '[.sites[] | .live_bytes]' '[67108864]'
	"$REPORT" sites --min-bytes 3MiB --json "$work/out.gmt" > "$work/document"
	is '[.sites[] | .peak_bytes] | sort' '[4194304,67108864]'
	"$REPORT" leaks --min-bytes 3MiB "$work/out.gmt" | grep -q '^Not freed at the end: 1 site'
}

@test "torch-snapshot of a program without PyTorch: its allocations are segments, with their history" {
	recorded
	"$REPORT" export --format torch-snapshot -o "$work/snapshot.pickle" "$work/out.gmt"
	python3 - "$work/snapshot.pickle" "$address" "$other" <<-'END'
		import pickle, sys
		snapshot = pickle.load(open(sys.argv[1], "rb"))
		address, other, MIB = int(sys.argv[2], 16), int(sys.argv[3], 16), 1 << 20
		segments = {s["address"]: s for s in snapshot["segments"]}
		assert {a: s["total_size"] for a, s in segments.items()} == {address: 2 * MIB, other: 64 * MIB}
		for s in segments.values():
		    assert s["allocated_size"] == s["active_size"] == s["total_size"] and s["device"] == 0
		    assert [(b["address"], b["size"], b["state"]) for b in s["blocks"]] == [(s["address"], s["total_size"], "active_allocated")]
		assert any(f["name"] == "second_owner" for f in segments[address]["blocks"][0]["frames"])
		trace = [(e["action"], e["addr"], e["size"]) for e in snapshot["device_traces"][0]]
		came = lambda a, n: [("segment_alloc", a, n), ("alloc", a, n)]
		went = lambda a, n: [(action, a, n) for action in ("free_requested", "free_completed", "segment_free")]
		assert trace == (came(other, 64 * MIB) + came(address, 4 * MIB) + went(address, 4 * MIB) + came(address, 2 * MIB)), trace
	END
	"$REPORT" summary --json "$work/snapshot.pickle" > "$work/document"
	is '.torch[0] | [.reserved_bytes, .allocated_bytes]' "[$((66 << 20)),$((66 << 20))]"
}
