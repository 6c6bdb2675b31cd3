#!/usr/bin/env bats
# `meson install`: every artefact is at its place of docs/contract.md and does its work from there.
# SOURCE, BUILD, SIM, CC come from meson.

setup_file() {
	export root=$BATS_FILE_TMPDIR/root prefix
	prefix=$(meson introspect --buildoptions "$BUILD" | jq -r '.[] | select(.name == "prefix").value')
	export libdir=$(meson introspect --buildoptions "$BUILD" | jq -r '.[] | select(.name == "libdir").value')
	meson install -C "$BUILD" --no-rebuild --quiet --destdir "$root"
	export at=$root$prefix
}

setup() {
	work=$BATS_TEST_TMPDIR
}

@test "every artefact is at its place, and nothing else" {
	(cd "$at" && find . -type f | sort) > "$work/found"
	{
		for file in bin/gpumem-report include/gpumemtrace.h "$libdir/libgpumemtrace.so" \
			"$libdir/pkgconfig/gpumemtrace.pc" share/man/man7/libgpumemtrace.7 \
			share/bash-completion/completions/gpumem-report share/zsh/site-functions/_gpumem-report \
			share/fish/vendor_completions.d/gpumem-report.fish share/gpumemtrace/suppressions.txt; do
			echo "./$file"
		done
		for page in gpumem-report $(commands | sed 's/^/gpumem-report-/'); do
			echo "./share/man/man1/$page.1"
		done
	} | sort > "$work/expected"
	diff "$work/expected" "$work/found"
}

commands() {
	"$at/bin/gpumem-report" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

@test "without a choice of its own, libraries go to lib" {
	grep -q "'libdir=lib'" "$SOURCE/meson.build"
	[ "$libdir" = lib ] || skip "this build folder was given libdir=$libdir"
}

@test "run of the installed tool finds the installed shim" {
	cd "$work"
	LD_LIBRARY_PATH=$SIM "$at/bin/gpumem-report" run -o out.gmt -- python3 "$SOURCE/examples/train.py" 3 > said
	"$at/bin/gpumem-report" summary --json out.gmt > document
	[ "$(jq '.totals[0].current_bytes' document)" -eq $((3 << 20)) ] # three losses of 1 MiB
}

@test "a program built by pkg-config has the functions with the shim, and none without" {
	cat > "$work/program.c" <<'C'
#include <gpumemtrace.h>
#include <stdio.h>
#include <unistd.h>

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

int main(int argc, char **argv)
{
	void *a, *b;

	cudaMalloc(&a, 3000);
	cudaMalloc(&b, 5000);
	cudaFree(a);
	gpumemtrace_mark("half");
	printf("%d %lu %lu", gpumemtrace_active(), (unsigned long)gpumemtrace_live_bytes(0),
	       (unsigned long)gpumemtrace_peak_bytes(0));
	gpumemtrace_reset_peak(0);
	printf(" %lu %lu %lu", (unsigned long)gpumemtrace_peak_bytes(0), (unsigned long)gpumemtrace_live_bytes(1),
	       (unsigned long)gpumemtrace_live_bytes(-1));
	printf(" %d\n", gpumemtrace_snapshot(argc > 1 ? argv[1] : "/dev/null"));
	return 0;
}
C
	export PKG_CONFIG_PATH=$at/$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root LD_LIBRARY_PATH=$SIM
	$CC -Wall -Werror $(pkg-config --cflags gpumemtrace) -o "$work/program" "$work/program.c" \
		$(pkg-config --libs gpumemtrace) "$SIM/libcudart.so.13"
	[ "$("$work/program")" = "0 0 0 0 0 0 -38" ]
	preload=$root$(PKG_CONFIG_SYSROOT_DIR= pkg-config --variable=preload gpumemtrace)
	[ "$(LD_PRELOAD=$preload GPUMEMTRACE_OUT=$work/o.gmt "$work/program" "$work/copy.gmt" 2> /dev/null)" = \
		"1 5000 8000 5000 0 0 0" ]
	[ "$("$at/bin/gpumem-report" summary --json "$work/copy.gmt" | jq -c '[.totals[0].current_bytes, .marks[0].name]')" = \
		'[5000,"half"]' ]
}

@test "manual pages: no warnings" {
	pages=("$at"/share/man/man?/*)
	[ ${#pages[@]} -ge 13 ]
	command -v mandoc > /dev/null || skip "no mandoc here"
	# references to pages of this project are looked for on the system
	mandoc -T lint -W warning "${pages[@]}"
	command -v man > /dev/null || skip "no man here"
	for page in "${pages[@]}"; do
		[ -z "$(LC_ALL=C.UTF-8 MANROFFSEQ= man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 > /dev/null)" ]
	done
}

@test "the manual has every setting and every public function, by the names in the sources" {
	page=$at/share/man/man7/libgpumemtrace.7
	sed -n 's/^\.It Ev \(GPUMEMTRACE_[A-Z_]*\) .*/\1/p' "$page" | sort > "$work/described"
	sed -n '/^} table\[\] = {/,/^};/s/^\t{"\([A-Z_]*\)",.*/GPUMEMTRACE_\1/p' "$SOURCE/src/recorder/state/settings.c" |
		sort > "$work/read"
	[ -s "$work/read" ]
	diff "$work/read" "$work/described"
	# the default, in parentheses
	while IFS='"' read -r _ name _ fallback _; do
		sed -n "/^.It Ev GPUMEMTRACE_$name /,/^.It/p" "$page" | grep -q "^\.Pq $fallback\b"
	done < <(sed -n '/^} table\[\] = {/,/^};/p' "$SOURCE/src/recorder/state/settings.c" | grep '^	{"[A-Z_]*", "')
	grep -o 'Fn "[^"]*gpumemtrace_[a-z_]*"' "$page" | grep -o 'gpumemtrace_[a-z_]*' | sort > "$work/described"
	# what attach calls is its own
	nm -D --defined-only "$at/$libdir/libgpumemtrace.so" | grep -o '\bgpumemtrace_[a-z_]*' |
		grep -v '^gpumemtrace_attach_' | sort > "$work/exported"
	diff "$work/exported" "$work/described"
}

# complete WORD...: what the key would offer for the last word, sorted, on one line
complete_words() {
	PATH=$at/bin:$PATH bash -c '
		. "$1"
		shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_gpumem_report
		printf "%s\n" "${COMPREPLY[@]}"' bash "$at/share/bash-completion/completions/gpumem-report" "$@" |
		sort | xargs
}

@test "completion: commands, options, values, formats, files" {
	cd "$work"
	touch one.gmt
	[ "$(complete_words gpumem-report s)" = "sites start stop summary" ]
	[ "$(complete_words gpumem-report o)" = "one.gmt oom" ]
	[ "$(complete_words gpumem-report sites --so)" = "--sort" ]
	[ "$(complete_words gpumem-report sites --sort '')" = "churn count live peak total" ]
	[ "$(complete_words gpumem-report leaks --sort '')" = "one.gmt" ]
	[ "$(complete_words gpumem-report top --sort g)" = "growth" ]
	[ "$(complete_words gpumem-report check --leaks '')" = "exit grow off" ]
	[ "$(complete_words gpumem-report leaks --color = a)" = "always auto" ]
	[ "$(complete_words gpumem-report leaks --kind im)" = "imported" ]
	[ "$(complete_words gpumem-report leaks --level '')" = "custom driver torch" ]
	[ "$(complete_words gpumem-report export --format pp)" = "pprof" ]
	[ "$(complete_words gpumem-report check --baseline '')" = "one.gmt" ]
	[ "$(complete_words gpumem-report leaks --suppressions o)" = "one.gmt" ]
	[ "$(complete_words gpumem-report leaks on)" = "one.gmt" ]
}

# zsh_words WORD...: the same of zsh, whose own functions print what they are given
zsh_words() {
	PATH=$at/bin:$PATH zsh -f -c '
		_describe() { shift 3; print -rl -- ${(M)${${(P)1}%%:*}:#${words[CURRENT]}*} }
		compadd() { shift; print -rl -- ${(M)@:#${words[CURRENT]}*} }
		_files() { print FILES }
		_normal() { print PROGRAM $words }
		compdef() { : }
		. "$1"
		shift
		words=("$@") CURRENT=$#
		_gpumem_report' zsh "$at/share/zsh/site-functions/_gpumem-report" "$@" | sort | xargs
}

@test "completion of zsh" {
	command -v zsh > /dev/null || skip "no zsh here"
	cd "$work"
	[ "$(zsh_words gpumem-report s)" = "FILES sites start stop summary" ]
	[ "$(zsh_words gpumem-report sites --so)" = "--sort" ]
	[ "$(zsh_words gpumem-report sites --sort '')" = "churn count live peak total" ]
	[ "$(zsh_words gpumem-report check --leaks '')" = "exit grow off" ]
	[ "$(zsh_words gpumem-report export --format pp)" = "pprof" ]
	[ "$(zsh_words gpumem-report check --baseline '')" = "FILES" ]
	[ "$(zsh_words gpumem-report run -o out -- ls '')" = "PROGRAM ls" ]
}

# fish_words TEXT: the same of fish
fish_words() {
	PATH=$at/bin:$PATH HOME=$work fish --no-config -c 'source $argv[1]; complete -C $argv[2]' \
		"$at/share/fish/vendor_completions.d/gpumem-report.fish" "$1" 2> /dev/null | cut -f1 | sort | xargs
}

@test "completion of fish" {
	command -v fish > /dev/null || skip "no fish here"
	cd "$work"
	touch one.gmt
	[ "$(fish_words 'gpumem-report su')" = "summary" ]
	[ "$(fish_words 'gpumem-report sites --so')" = "--sort" ]
	[ "$(fish_words 'gpumem-report sites --sort ')" = "churn count live peak total" ]
	[ "$(fish_words 'gpumem-report check --leaks ')" = "exit grow off" ]
	[ "$(fish_words 'gpumem-report export --format pp')" = "pprof" ]
	[ "$(fish_words 'gpumem-report check --baseline on')" = "one.gmt" ]
}
