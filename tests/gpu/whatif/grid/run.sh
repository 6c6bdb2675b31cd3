#!/usr/bin/env bash
# The model of PyTorch's allocator on a real GPU: 26 programs, each recorded once and run under 12 settings,
# predicted against measured. Takes about six minutes and up to 90 GB of the GPU.
#   run.sh BUNDLE OUT [JOBS]
set -u
bundle=$1 out=$2 jobs=${3:-14}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
"${PYTHON:-python3}" "$here/grid.py" "$bundle" "$out" --jobs "$jobs" 2>&1 | tee "$out/grid.log"
tar -C "$out" -czf "$out/recordings.tar.gz" --remove-files $(cd "$out" && ls -- *.pickle *.gmt *.gmt.events 2> /dev/null)
ls -l "$out"
! grep -q '^FAIL ' "$out/grid.log"
