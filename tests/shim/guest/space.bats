#!/usr/bin/env bats
# No space, no permission, no descriptor, no /proc: recording degrades and says so, the program goes on.

load ../helpers

# undisturbed COMMAND...: it runs as it does without the shim, word for word and with its exit status.
undisturbed() {
	local plain=0 status=0
	"$@" > "$work/plain" 2> /dev/null || plain=$?
	LD_PRELOAD=$SHIM "$@" > "$work/said" 2> "$work/error" || status=$?
	[ "$status" -eq "$plain" ] || { echo "ended with $status, without the shim $plain"; return 1; }
	cmp "$work/plain" "$work/said"
}

# with_tmpfs SIZE: a file system of that size at $work/small, or a skip.
with_tmpfs() {
	mkdir "$work/small"
	mount -t tmpfs -o "size=$1" none "$work/small" 2> /dev/null || skip "mounting a tmpfs takes root"
}

teardown() {
	umount "$work/small" 2> /dev/null || true
	chmod -R u+w "$work"
	rm -rf "$work"
}

@test "a disk that is full from the first: in memory, said once" {
	with_tmpfs 4k
	GPUMEMTRACE_OUT=$work/small/out.gmt undisturbed "$PROGRAMS/runtime13_O2"
	grep -q 'cannot keep a file at .*No space left on device.*GPUMEMTRACE_OUT' "$work/error"
}

@test "a disk that fills up: dropped, counted, shown" {
	with_tmpfs 1m
	GPUMEMTRACE_OUT=$work/small/out.gmt traced "$GUEST/guest_fill"
	"$REPORT" summary --json "$work/small/out.gmt" > "$work/document"
	is '.file.dropped_events > 0' true
	is .process.end '"exit"'
	"$REPORT" summary "$work/small/out.gmt" | grep -qi dropped
}

# within_quota KIB DIRECTORY: fills a file in a directory whose files may have so much, with $SHIM.
within_quota() {
	local file=$2/out.gmt
	GPUMEMTRACE_OUT=$file undisturbed "$GUEST/guest_fill"
	if [ "$1" -lt 64 ]; then
		grep -q 'cannot keep a file at .*Disk quota exceeded.*GPUMEMTRACE_OUT' "$work/error"
		[ ! -s "$file" ]
		return
	fi
	"$REPORT" summary --json "$file" > "$work/document"
	is '.file.dropped_events > 0' true
	is .process.end '"exit"'
	is '[.sites[].allocations] | add > 0' true
	"$REPORT" summary "$file" | grep -qi dropped
}

@test "a quota (a double), on kernels of before 5.14 too: of 4 KiB, and of a megabyte" {
	mkdir "$work/small"
	export QUOTA_DIRECTORY=$work/small
	SHIM=$GUEST/hook_quota.so:$SHIM
	for kib in 4 1024; do
		export QUOTA_BYTES=$((kib << 10))
		unset OLD_KERNEL
		within_quota $kib "$work/small"
		export OLD_KERNEL=1
		within_quota $kib "$work/small"
	done
}

# with_btrfs: one at $work/small, with quotas, or a skip.
with_btrfs() {
	[ "$(id -u)" -eq 0 ] || skip "mounting takes root"
	command -v mkfs.btrfs > /dev/null || skip "btrfs-progs is not installed"
	mkdir "$work/small"
	truncate -s 128M "$work/image"
	mkfs.btrfs -q "$work/image" > /dev/null
	mount -o loop "$work/image" "$work/small" 2> /dev/null || skip "no btrfs or no loop devices here"
	btrfs quota enable "$work/small"
}

# Touched again after a write-back, a page of btrfs needs space anew: the live file is elsewhere.
@test "a quota on a file system that copies on write: the whole file, where there is space" {
	local file=$work/small/quota/out.gmt
	with_btrfs
	btrfs subvolume create "$work/small/quota" > /dev/null
	btrfs qgroup limit 1M "$work/small/quota"
	mkdir "$work/local"
	TMPDIR=$work/local GPUMEMTRACE_OUT=$file undisturbed "$GUEST/guest_fill"
	grep -q "could not finish $file (Disk quota exceeded): the file is $work/local/" "$work/error"
	"$REPORT" summary --json "$file" > "$work/document"
	is '[.usage[].allocations] | add' 100000
	is .process.end '"exit"'
	is .file.dropped_events 0
	# with space the file is where it is wanted
	TMPDIR=$work/local GPUMEMTRACE_OUT=$work/small/out.gmt undisturbed "$GUEST/guest_fill"
	[ "$(head -c 7 "$work/small/out.gmt")" = GMTRACE ]
	"$REPORT" summary --json "$work/small/out.gmt" > "$work/document"
	is '[.usage[].allocations] | add' 100000
	is .file.clean_exit true
}

@test "file cap reached: bounded, dropped, counted, shown" {
	GPUMEMTRACE_MAX_FILE=4MiB traced "$GUEST/guest_fill"
	[ "$(stat -c %s "$work/out.gmt")" -le $((4 << 20)) ]
	report
	is '.file.dropped_events > 0' true
	is '.process.end' '"exit"'
}

@test "the smallest cap is kept too, and the figures are whole" {
	GPUMEMTRACE_MAX_FILE=1MiB traced "$PROGRAMS/runtime13_O2"
	[ "$(stat -c %s "$work/out.gmt")" -le $((1 << 20)) ]
	report
	same live '.totals[0].current_bytes'
	same live_count '.totals[0].current_count'
	same peak '.totals[0].peak_bytes'
	is '.file.dropped_events > 0' true
}

@test "a read-only directory, a missing one, a directory in place of the file" {
	mkdir "$work/locked" "$work/directory.gmt"
	[ "$(id -u)" -ne 0 ] || mount -t tmpfs -o ro none "$work/locked" 2> /dev/null || skip "root writes anywhere"
	chmod a-w "$work/locked" 2> /dev/null || true
	GPUMEMTRACE_OUT=$work/locked/out.gmt undisturbed "$PROGRAMS/runtime13_O2"
	grep -q 'cannot keep a file at' "$work/error"
	[ "$(id -u)" -ne 0 ] || umount "$work/locked"
	GPUMEMTRACE_OUT=$work/directory.gmt undisturbed "$PROGRAMS/runtime13_O2"
	grep -q 'Is a directory' "$work/error"
	GPUMEMTRACE_OUT=$work/a/b/c/out.gmt undisturbed "$PROGRAMS/runtime13_O2"
	[ -s "$work/a/b/c/out.gmt" ]
}

@test "links, devices, pipes and other people's files are left where they are" {
	echo precious > "$work/precious"
	ln -s "$work/precious" "$work/link.gmt"
	mkfifo "$work/pipe.gmt"
	for name in link.gmt pipe.gmt precious; do
		GPUMEMTRACE_OUT=$work/$name undisturbed "$PROGRAMS/runtime13_O2"
		grep -q 'cannot keep a file at' "$work/error"
	done
	[ -L "$work/link.gmt" ] && [ -p "$work/pipe.gmt" ]
	[ "$(cat "$work/precious")" = precious ]
	[ "$(ls "$work" | grep -c old)" -eq 0 ]
	if [ "$(id -u)" -eq 0 ]; then
		mknod "$work/null.gmt" c 1 3 2> /dev/null || skip "no device files here"
		GPUMEMTRACE_OUT=$work/null.gmt undisturbed "$PROGRAMS/runtime13_O2"
		[ -c "$work/null.gmt" ]
	fi
}

@test "world-writable directories: links of the names we use are not followed, files are 0600" {
	mkdir -m 1777 "$work/shared" "$work/network"
	echo precious > "$work/precious"
	export NETWORK_DIRECTORY=$work/network TMPDIR=$work/shared GPUMEMTRACE_OUT=$work/network/out.gmt
	# the name is known beforehand to whoever knows the pid: the shell becomes the program
	bash -c 'name=$1/shared/gpumemtrace-$(id -u)-$$
		for link in $name.gmt $name.gmt.$$.new $name-1.gmt.$$.new $1/network/out.gmt.$$.new; do
			ln -s "$1/precious" "$link"
		done
		LD_PRELOAD=$2:$3 exec "$4"' - "$work" "$GUEST/hook_statfs.so" "$SHIM" "$PROGRAMS/runtime13_O2" > "$work/said"
	[ "$(cat "$work/precious")" = precious ]
	[ "$(stat -c %a "$work/network/out.gmt")" = 600 ]
	"$REPORT" summary --json "$work/network/out.gmt" > "$work/document"
	is .file.complete true
}

@test "a network filesystem: pointer while it runs and after a kill, the file itself after a clean end" {
	mkdir "$work/network" "$work/local"
	export NETWORK_DIRECTORY=$work/network TMPDIR=$work/local GPUMEMTRACE_OUT=$work/network/out.gmt
	SHIM=$GUEST/hook_statfs.so:$SHIM
	traced "$PROGRAMS/runtime13_O2"
	[ "$(ls "$work/local" | wc -l)" -eq 0 ]
	[ "$(head -c 7 "$work/network/out.gmt")" = GMTRACE ]
	traced "$GUEST/guest_ends" abort 2> /dev/null || true
	[ -e "$work/network/out.gmt.old1" ]
	head -n 1 "$work/network/out.gmt" | grep -q '^gpumemtrace-pointer 1$'
	"$REPORT" summary --json "$work/network/out.gmt" > "$work/document"
	is .process.end '"killed"'
	is '[.sites[] | select(.live_bytes == 12345)] | length' 1
	# exec over itself keeps the file, and its name, of the image before
	traced "$GUEST/guest_ends" exec || [ $? -eq 42 ]
	"$REPORT" summary --json "$work/network/out.gmt.old3" > "$work/document"
	is '[.sites[] | select(.live_bytes == 12345)] | length' 1
}

@test "no other disk: in memory instead of on the network, in place where copies are made on write" {
	export NETWORK_DIRECTORY=/ GPUMEMTRACE_OUT=$work/out.gmt
	SHIM=$GUEST/hook_statfs.so:$SHIM
	undisturbed "$PROGRAMS/runtime13_O2"
	grep -q 'cannot keep a file at' "$work/error"
	DISK_TYPE=0x9123683e undisturbed "$PROGRAMS/runtime13_O2" # btrfs
	[ ! -s "$work/error" ]
	report
	is .file.clean_exit true
	same live '.totals[0].current_bytes'
	# another disk that takes no file is none
	export NETWORK_DIRECTORY=$work READ_ONLY=/tmp/.
	rm "$work/out.gmt"
	TMPDIR=/tmp DISK_TYPE=0x9123683e undisturbed "$PROGRAMS/runtime13_O2"
	[ ! -s "$work/error" ]
	report
	same live '.totals[0].current_bytes'
	rm "$work/out.gmt"
	TMPDIR=/tmp undisturbed "$PROGRAMS/runtime13_O2"
	grep -q 'cannot keep a file at .*Read-only file system' "$work/error"
}

@test "the output file is deleted, moved, or replaced while the program runs" {
	bash -c 'LD_PRELOAD=$1 exec "$2" "$3" "$4"' - "$SHIM" "$GUEST/guest_fill" delete "$work/out.gmt" \
		> "$work/said" 2> "$work/error"
	grep -q 'could not finish' "$work/error"
	bash -c 'LD_PRELOAD=$1 exec "$2" "$3" "$4"' - "$SHIM" "$GUEST/guest_fill" replace "$work/out.gmt" \
		> "$work/said" 2> "$work/error"
	printf "somebody else's" | cmp - "$work/out.gmt"
}

@test "twenty processes that start with one name: twenty files" {
	local i
	for i in $(seq 20); do
		LD_PRELOAD=$SHIM "$GUEST/guest_fill" wait "$work/go" > "$work/said.$i" &
	done
	until [ "$(ls "$work" | grep -c 'out.gmt')" -ge 20 ]; do :; done
	touch "$work/go"
	wait
	[ "$(ls "$work" | grep -c 'out.gmt')" -eq 20 ]
	[ "$(ls "$work" | grep -c 'old')" -eq 0 ]
	for file in "$work"/out.gmt*; do
		"$REPORT" summary --json "$file" > "$work/document"
		is .file.complete true
		is .process.end '"exit"'
	done
}

@test "RLIMIT_FSIZE: none, small, lowered later; no SIGXFSZ" {
	for limit in 0 1 100 4000 8000; do
		rm -f "$work"/out.gmt*
		# what the program writes itself goes through a pipe, which has no limit
		(ulimit -f $limit; LD_PRELOAD=$SHIM "$PROGRAMS/runtime13_O2" 2>&1) | cat > "$work/said"
		[ "${PIPESTATUS[0]}" -eq 0 ]
		grep -q '"live": 3003' "$work/said"
	done
	# the last is enough for a file, made to that measure
	! grep -q 'cannot keep a file' "$work/said" || return 1
	rm -f "$work"/out.gmt*
	LD_PRELOAD=$SHIM "$GUEST/guest_fill" fsize 2> "$work/error" > "$work/said"
}

@test "RLIMIT_AS, RLIMIT_NOFILE: the program gets what is left" {
	# the simulated device takes more address space than that, so blocks of a program's own
	(ulimit -v 300000; traced python3 -c 'import ctypes
alloc = ctypes.CDLL(None).gpumemtrace_pool_alloc
alloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
alloc(4096, 12345, 0)
held = bytearray(150 << 20)')
	report
	is .file.complete true
	is '[.sites[] | select(.live_bytes == 12345)] | length' 1
	(ulimit -n 8; undisturbed "$PROGRAMS/runtime13_O2")
	LD_PRELOAD=$SHIM "$GUEST/guest_fill" no-descriptors > "$work/said" 2> "$work/error"
}

@test "a program that closes every descriptor and takes their numbers" {
	unset GPUMEMTRACE_QUIET
	LD_PRELOAD=$SHIM "$GUEST/guest_fill" close "$work/data" > "$work/said" 2> "$work/error"
	printf "the program's own" | cmp - "$work/data"
	report
	is .process.end '"exit"'
}

@test "stderr is a closed pipe, or one that nobody reads: same exit status" {
	unset GPUMEMTRACE_QUIET
	run bash -c 'LD_PRELOAD=$1 "$2" 2> >(exec true) >/dev/null; exit $?' - "$SHIM" "$PROGRAMS/runtime13_O2"
	[ "$status" -eq 0 ]
	LD_PRELOAD=$SHIM "$GUEST/guest_fill" closed-pipe
	LD_PRELOAD=$SHIM "$GUEST/guest_fill" full-pipe
	command -v strace > /dev/null || return 0
	mkfifo "$work/pipe"
	exec 4<> "$work/pipe"
	dd if=/dev/zero of="$work/pipe" oflag=nonblock bs=4096 count=1000 2> /dev/null || true
	# of three lines the first is waited for a second, and the others not at all
	strace -f -qq -e trace=poll -o "$work/polls" -E LD_PRELOAD="$SHIM" "$GUEST/guest_fill" 2>&4
	exec 4>&-
	[ "$(grep -c ', 1000)' "$work/polls")" -eq 1 ] || { cat "$work/polls"; false; }
	[ "$(grep -c ', 0)' "$work/polls")" -eq 2 ]
}

@test "a thread with a cancellation pending makes the first call" {
	# with a low descriptor that is closed, and one that the shim takes meanwhile
	LD_PRELOAD=$SHIM "$GUEST/guest_fill" cancel <&-
	report
	is .process.end '"exit"'
	is '[.usage[].allocations] | add' 111
}

@test "the environment is overwritten before the first call, as setproctitle does" {
	traced "$GUEST/guest_fill" title
	[ -s "$work/out.gmt" ]
}

@test "/proc is not mounted" {
	local apart
	for apart in -m -rm none; do # as another user only with a namespace of users too
		unshare $apart mount -t tmpfs none /proc 2> /dev/null && break
	done
	[ $apart != none ] || skip "no mount namespaces here"
	unshare $apart bash -c 'mount -t tmpfs none /proc && LD_PRELOAD=$1 "$2"' - "$SHIM" "$PROGRAMS/runtime13_O2" > "$work/said"
	report
	is .file.complete true
	same live '.totals[0].current_bytes'
	is '.process.command | length > 0' true
}

@test "setuid programs are left alone, by the loader and, preloaded for all programs, by us" {
	[ "$(id -u)" -eq 0 ] || skip "making a setuid program takes root"
	id nobody > /dev/null 2>&1 && command -v setpriv > /dev/null || skip "no user nobody or no setpriv"
	unshare -m true 2> /dev/null || skip "no mount namespaces here"
	local path
	chmod 755 "$work"
	mkdir -m 777 "$work/open"
	cp "$PROGRAMS/runtime_static_O2" "$work/open/plain"
	cp "$PROGRAMS/runtime_static_O2" "$work/open/setuid"
	cp "$SHIM" "$SIM"/libcuda.so.1 "$work/open"
	chmod 4755 "$work/open/setuid"
	GPUMEMTRACE_OUT=$work/open/out.gmt setpriv --reuid nobody --clear-groups \
		env LD_PRELOAD="$SHIM" "$work/open/setuid" > "$work/said" 2> "$work/error" || true
	[ ! -e "$work/open/out.gmt" ]
	# /etc/ld.so.preload reaches them too; there the loader finds CUDA by its cache
	cp -a /etc "$work/etc"
	echo "$work/open/libgpumemtrace.so" > "$work/etc/ld.so.preload"
	for program in plain setuid; do
		path=$work/open/$program.gmt
		GPUMEMTRACE_OUT=$path unshare -m bash -c 'mount --bind "$1/etc" /etc && ldconfig -X "$1/open" &&
			exec setpriv --reuid nobody --clear-groups "$1/open/$2"' - "$work" $program > "$work/said"
		grep -q '"live": 3003' "$work/said"
	done
	[ -s "$work/open/plain.gmt" ]
	[ ! -e "$work/open/setuid.gmt" ]
}
