/*
 * The end of the process by exit, _exit or exec.
 */
#ifndef GM_RECORDER_FINISH_H
#define GM_RECORDER_FINISH_H

#include <stdbool.h>

/*
 * Completes the file at the end of the process: `status` is the exit status, or -1 where it is not
 * known. If `print` is set, the lines of contract.md are printed on stderr. It acts once, and only
 * in the process that opened the file, so that a child of vfork ends nothing of its parent's. A
 * second thread that ends the process waits, for two seconds at most, until the file is complete.
 * Any thread; async-signal-safe.
 */
void gm_finish(int status, bool print);

/*
 * Completes the file when the recording ends before the process (gpumem-report detach). Prints
 * nothing.
 */
void gm_finish_detached(void);

/*
 * The thread that opened the file, or failed to, says so: others that end the process wait for it,
 * for two seconds at most. Under the start lock.
 */
void gm_finish_opened(void);

/* The file was completed, and another has taken its place. Under the start lock. */
void gm_finish_reopen(void);

/*
 * An exec is about to be tried: the file says from now on that the process ended by exec. Nothing
 * else changes, and other threads go on recording, because the exec may fail. Returns whether
 * gm_exec_failed has to be called then. Any thread; async-signal-safe.
 */
bool gm_exec_begin(void);

/*
 * The exec failed. The file no longer says that the process ended, unless another thread ends it.
 */
void gm_exec_failed(void);

#endif
