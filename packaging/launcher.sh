#!/bin/sh
# Starts gpumem-report with the loader and the libraries beside it, wherever this folder lies.
here=$(dirname "$(readlink -f "$0")")/../lib/gpumemtrace
exec "$here"/ld-linux*.so.* --library-path "$here" "$here/gpumem-report" "$@"
