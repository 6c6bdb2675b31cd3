#!/usr/bin/env bash
# The model of the driver's pool on a real GPU: programs of cudaMallocAsync under release thresholds, and PyTorch's
# under backend:cudaMallocAsync, predicted against measured. Takes about three minutes.
#   run.sh BUNDLE OUT
set -u
mkdir -p "$2"
"${PYTHON:-python3}" "$(dirname "$0")/compare.py" "$1" "$2"
