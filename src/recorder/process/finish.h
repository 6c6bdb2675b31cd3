/*
 * The end of the process by exit, _exit or exec.
 */
#ifndef GM_RECORDER_FINISH_H
#define GM_RECORDER_FINISH_H

#include <stdbool.h>

/*
 * Completes the file: `end` is an enum gm_end, `status` the exit status or -1 where it is not
 * known. `print`: the lines of contract.md are printed on stderr. Acts once, and only in the
 * process that opened the file, so that a child of vfork ends nothing of its parent's. Any thread.
 */
void gm_finish(unsigned end, int status, bool print);

/* The end did not come about (a failed exec): the file goes on. */
void gm_finish_undone(void);

#endif
