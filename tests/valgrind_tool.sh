#!/bin/sh
# $GPUMEM_REPORT under memcheck: status 99 for a bad access or for memory that nothing points at any more.
exec valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
	"$GPUMEM_REPORT" "$@"
