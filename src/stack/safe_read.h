/*
 * Reading memory of this process that may not be there. Each call is one system call or more, a
 * third of a microsecond and up. Any thread, any context; errno is kept.
 */
#ifndef GM_STACK_SAFE_READ_H
#define GM_STACK_SAFE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `bytes` bytes from `from`. False if they cannot be read. */
bool gm_safe_read(void *to, uintptr_t from, size_t bytes);

/*
 * True if all pages from `from` up to `to`, both multiples of 4 KiB, can be read. Pages that were
 * never touched are mapped by this, as a read would do.
 */
bool gm_safe_pages(uintptr_t from, uintptr_t to);

#endif
