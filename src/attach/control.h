/*
 * Asking a recorded process to sleep and to wake, by the header of its file: the shim reads the
 * word at its next call. No signal, no ptrace; it takes the right to write the file.
 */
#ifndef GM_ATTACH_CONTROL_H
#define GM_ATTACH_CONTROL_H

#include "store/layout.h"

#include <stdbool.h>
#include <stddef.h>

struct gm_control {
	struct gm_header *header; /* mapped shared */
	char path[4096];	  /* of the live file */
	int pid;		  /* of the process, as this one sees it */
	uint64_t started;	  /* gm_process_started of it; 0: it has ended */
};

/*
 * Maps the header of a process's file, which a pointer file may lead to. `pid` is the process's, 0
 * for the one that the file names, which may be that of another container. Returns false after a
 * sentence in `error`: no such file, not one of ours, an older shim's, or a process that has ended.
 */
bool gm_control_open(struct gm_control *control, const char *path, int pid, char *error,
		     size_t error_bytes);
void gm_control_close(struct gm_control *control);

enum gm_control_answer {
	GM_CONTROL_DONE,    /* the shim does what was asked */
	GM_CONTROL_ALREADY, /* it did so before */
	GM_CONTROL_WAITING, /* it will at its next call, and made none in time */
	GM_CONTROL_ENDED    /* the process has ended meanwhile */
};

/* Asks for recording or sleep, and waits up to `wait_ms` until the shim has heard it. */
enum gm_control_answer gm_control_ask(struct gm_control *control, enum gm_wanted wanted,
				      unsigned wait_ms);

/* Waits up to `wait_ms` until the shim records. */
enum gm_control_answer gm_control_await(struct gm_control *control, enum gm_recording recording,
					unsigned wait_ms);

/* True while the process that writes the file runs; a zombie does not. */
bool gm_control_alive(const struct gm_control *control);

#endif
