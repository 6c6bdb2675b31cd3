#!/usr/bin/env bash
# Everything that one GPU can show, in about four minutes:
#   show.sh BUNDLE OUT [GROUP...]      groups: stacks leaks viz cases coexist whatif
# What disturbs nobody runs at once, what looks at the device's free memory by itself. Prints each group's
# lines and a sum; OUT gets a log, texts.tar.gz (reports and what programs said) and a tar of the files of
# each group; WORK may name the folder to work in.
set -u
bundle=$(cd "$1" && pwd) out=$(mkdir -p "$2" && cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
shift 2
work=${WORK:-$(mktemp -d)}
groups=${*:-stacks leaks viz cases coexist whatif}
wanted() { [[ " $groups " == *" $1 "* ]]; }

# wave NAME...: these groups at once; NAME:PART runs a part. Each prints when all are done.
wave() {
	local item name part i status start=$SECONDS items=() running=()
	for item in "$@"; do
		name=${item%%:*} part=${item#*:}
		wanted "$name" || continue
		[ "$part" = "$item" ] && part=
		timeout -k 5 280 "$here/$name/run.sh" "$bundle" "$work/$name" ${part:+"$part"} \
			> "$work/$item.log" 2>&1 &
		items+=("$item") running+=($!)
	done
	for i in "${!items[@]}"; do
		item=${items[i]}
		wait "${running[i]}"
		status=$?
		echo "== $item"
		cat "$work/$item.log"
		[ $status -eq 0 ] || grep -q '^FAIL ' "$work/$item.log" ||
			echo "FAIL $item: ended with $status and checked $(grep -c '^ok ' "$work/$item.log") things"
	done
	[ ${#items[@]} -eq 0 ] || echo "-- after $((SECONDS - start)) s, $SECONDS s in all"
}

main() {
	date -u '+%F %T'
	nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
	wave stacks leaks viz
	wave cases:shared coexist whatif:shared
	wave cases:alone
	wave whatif:alone
}

pack() {
	local name
	tar -C "$work" --exclude='*.gmt*' --exclude='*.pickle' -czf "$out/texts.tar.gz" .
	for name in $groups; do
		[ -d "$work/$name" ] || continue
		(cd "$work" && find "$name" \( -name '*.gmt*' -o -name '*.pickle' \) -print0 |
			tar --null --files-from=- --sparse -czf "$out/$name.files.tar.gz")
	done
	ls -l "$out"
}

main 2>&1 | tee "$out/show.log"
echo "show: $(grep -c '^ok ' "$out/show.log") ok, $(grep -c '^FAIL ' "$out/show.log") failed, $SECONDS s"
grep '^FAIL ' "$out/show.log"
pack
grep -q '^ok ' "$out/show.log" && ! grep -q '^FAIL ' "$out/show.log"
