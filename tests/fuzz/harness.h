/*
 * Fuzz harnesses hand their bytes to code that reads files: a file without a name.
 */
#ifndef TESTS_FUZZ_HARNESS_H
#define TESTS_FUZZ_HARNESS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A path under which the bytes can be read; close `*fd` after use. */
static inline void harness_file(const uint8_t *data, size_t bytes, int *fd, char path[64])
{
	*fd = memfd_create("input", MFD_CLOEXEC);
	if (*fd < 0 || (bytes && write(*fd, data, bytes) != (ssize_t)bytes))
		abort();
	snprintf(path, 64, "/proc/self/fd/%d", *fd);
}

#endif
