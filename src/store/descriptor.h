/*
 * Opening files for the shim. A program may run with its standard descriptors closed, write to them
 * all the same and rely on the failure, or expect that the file that it opens next gets their
 * numbers. The shim therefore never reads or writes a file by a number below 3.
 */
#ifndef GM_STORE_DESCRIPTOR_H
#define GM_STORE_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

#define GM_FIRST_OWN_DESCRIPTOR 3

/*
 * Takes the numbers below 3 that are free, by descriptors that nothing can be read from or written
 * to: the program's own use of such a number goes on failing with EBADF. What is opened until they
 * are given back, also by libraries that the shim calls, gets other numbers. Async-signal-safe.
 */
struct gm_low_numbers {
	bool taken[GM_FIRST_OWN_DESCRIPTOR];
};
void gm_low_numbers_take(struct gm_low_numbers *numbers);
void gm_low_numbers_give_back(const struct gm_low_numbers *numbers);

/*
 * Opens a file as open(2), close-on-exec, with a descriptor of 3 or above. Returns the descriptor
 * or -errno. `mode` counts where `flags` has O_CREAT or O_TMPFILE. Any thread; async-signal-safe;
 * no cancellation point.
 */
int gm_open(const char *path, int flags, mode_t mode);

#endif
