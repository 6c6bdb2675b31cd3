/*
 * Attaching to a process that was started without the shim, and detaching from it.
 */
#ifndef GM_ATTACH_ATTACH_H
#define GM_ATTACH_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gm_attach_request {
	pid_t pid;
	const char *shim;     /* path of libgpumemtrace.so, as this process sees it */
	const char *settings; /* "NAME=value\n" of each, without GPUMEMTRACE_; detach: not read */
	bool cupti;	      /* attach: CUPTI is to report what comes by no slot and no table */
	bool interrupt;	      /* at once also threads in waits whose time then begins anew */
	unsigned wait_ms;     /* for a thread in a safe place, and for an answer */
};

enum gm_attach_outcome {
	GM_ATTACH_DONE,
	GM_ATTACH_REFUSED,  /* nothing was changed, `text` says why */
	GM_ATTACH_PRELOADED /* the process was started under the shim: it can be asked by its file
			     */
};

struct gm_attach_result {
	uint32_t slots, table_words, failed, lost; /* as in struct gm_attach_point */
	uint32_t cupti;	  /* functions whose calls CUPTI reports */
	char why[512];	  /* it reports none: why, "" if it does */
	bool by_memory;	  /* the process cannot see the shim's file and got its bytes */
	unsigned stops;	  /* threads that were stopped */
	double paused_us; /* duration of the longest call */
	char text[2048];
};

/*
 * Loads the shim into the process, unless an earlier attach has done so, and leads its CUDA calls
 * to it. The recording begins with the next of these calls.
 */
enum gm_attach_outcome gm_attach(const struct gm_attach_request *request,
				 struct gm_attach_result *result);

/*
 * Gives the process its own functions back and closes the file. The shim stays in memory and
 * forwards, because the program may have copied addresses of its functions.
 */
enum gm_attach_outcome gm_detach(const struct gm_attach_request *request,
				 struct gm_attach_result *result);

/* True if both processes see the same files: `path` is the same file for the process. */
bool gm_sees_file(pid_t pid, const char *path);

#endif
