/*
 * Reading memory of this process that may not be there, for checks that are made once: a system
 * call, a third of a microsecond.
 */
#ifndef GM_STACK_SAFE_READ_H
#define GM_STACK_SAFE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `bytes` bytes from `from`; false if they cannot be read. Keeps errno. */
bool gm_safe_read(void *to, uintptr_t from, size_t bytes);

#endif
