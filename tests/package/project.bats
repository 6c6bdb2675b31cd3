#!/usr/bin/env bats
# What a stranger meets first: the commands and paths in the project's own pages and workflows are there.
# SOURCE, BUILD come from meson.

setup() {
	work=$BATS_TEST_TMPDIR
	cd "$SOURCE"
}

@test "workflows and issue forms are YAML, and run what is there" {
	/usr/bin/python3 -c 'import yaml' 2> /dev/null || skip "no python3-yaml here"
	/usr/bin/python3 - <<'PYTHON'
import glob, os, yaml

forms = glob.glob(".github/ISSUE_TEMPLATE/*.yml")
assert len(forms) >= 3
for path in forms:
    form = yaml.safe_load(open(path))
    assert form["name"] and form["description"], path
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids)), path
    assert all(field["attributes"]["label"] for field in form["body"]), path
for path in glob.glob(".github/workflows/*.yml"):
    jobs = yaml.safe_load(open(path))["jobs"]
    for name, job in jobs.items():
        assert all(needed in jobs for needed in [job.get("needs", [])][0]), name
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), (name, step)
            if "run" in step:
                assert os.access(step["run"].split()[0], os.X_OK), step["run"]
PYTHON
}

@test "the folders that CONTRIBUTING.md explains are there" {
	sed -n '/^```$/,/^```$/p' CONTRIBUTING.md | grep -oE '^[a-z]+(/[a-z]+)*/' > "$work/folders"
	[ "$(wc -l < "$work/folders")" -ge 15 ]
	while read -r folder; do
		[ -d "$folder" ] || { echo "$folder"; exit 1; }
	done < "$work/folders"
}

@test "the pages name the floor that the shim has" {
	floor=$(packaging/glibc_floor.sh "$BUILD/src/interpose/libgpumemtrace.so")
	grep -q "nothing newer than glibc $floor:" docs/packaging.md
	grep -q "manylinux_${floor/./_}_" docs/packaging.md
	grep -q "manylinux_${floor/./_}_" docs/python.md
}

@test "clang-format and clang-tidy take their settings" {
	command -v clang-format > /dev/null || skip "no clang-format here"
	clang-format --style=file --dump-config src/track/track.c > /dev/null
	[ "$(printf 'int f(void)\n{\n\treturn 0;\n}\n' | clang-format --assume-filename=src/track/x.c)" = \
		"$(printf 'int f(void)\n{\n\treturn 0;\n}\n')" ]
	command -v clang-tidy > /dev/null || skip "no clang-tidy here"
	# every name of the list is a check of this clang-tidy: none is taken for granted
	clang-tidy --list-checks src/track/track.c | sed 's/^ *//' > "$work/enabled"
	sed -n '/^Checks/,/^Warnings/p' .clang-tidy | grep -oE '(bugprone|misc|readability|clang-analyzer)-[a-z0-9-]+' |
		grep -v '^clang-analyzer' | while read -r name; do
		grep -qx "$name" "$work/enabled" || { echo "$name"; exit 1; }
	done
}

@test "a release of a changed tree, or of a version without a date, is refused" {
	git --version > /dev/null 2>&1 || skip "no git here"
	export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
	mkdir -p "$work/tree/tools" "$work/tree/debian"
	cp meson.build "$work/tree/"
	cp tools/release.sh "$work/tree/tools/"
	cp debian/changelog "$work/tree/debian/"
	cd "$work/tree"
	version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
	echo "## $version (unreleased)" > NEWS.md
	run tools/release.sh "$work/out"
	[ "$status" -eq 1 ] && [[ $output == *"no git checkout"* ]]
	git init -q . && git add -A
	run tools/release.sh "$work/out"
	[ "$status" -eq 1 ] && [[ $output == *"not committed"* ]]
	git commit -qm x
	run tools/release.sh "$work/out"
	[ "$status" -eq 1 ] && [[ $output == *"NEWS.md has no heading \"## $version (YYYY-MM-DD)\""* ]]
	echo "## $version (2026-12-01)" > NEWS.md
	sed -i '1s/(.*)/(0.0.1)/' debian/changelog
	git commit -qam y
	run tools/release.sh "$work/out"
	[ "$status" -eq 1 ] && [[ $output == *"debian/changelog does not begin with $version"* ]]
	[ ! -e "$work/out" ]
	run tools/release.sh "$work"
	[ "$status" -eq 1 ] && [[ $output == *"is there already"* ]]
}
