#!/usr/bin/env bash
# Makes pages and drives them in Chromium. run.sh NODE_MODULES; the rest of what it needs comes from
# meson by the environment. Skipped, with the reason, where the browser or the page is missing.
set -u
skip() {
	echo "1..0 # SKIP $1"
	exit 0
}

command -v node > /dev/null || skip "node is not installed"
[ "$(node -p 'process.versions.node.split(".")[0] >= 20')" = true ] ||
	skip "Playwright needs node 20, this is $(node --version)"
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || skip "chromium is not installed: apt-get install chromium"
[ -d "$1/playwright-core" ] || skip "the page was not built: npm was missing or found no registry"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
"$here/make_pages.sh" "$work" > "$work/log" 2>&1 || {
	sed 's/^/# /' "$work/log"
	echo "Bail out! the pages could not be made"
	exit 1
}
node "$here/all.mjs" "$1" "$work"
