/*
 * The meeting point of gpumem-report attach and the shim in a process that was started without the
 * shim: a structure that the shim exports, and one function. The tool writes into the structure and
 * has a thread of the process call the function; the function answers in the structure. Nothing is
 * returned, because the tool may have ended by then.
 */
#ifndef GM_STORE_ATTACH_POINT_H
#define GM_STORE_ATTACH_POINT_H

#include <stdint.h>

#define GM_ATTACH_POINT	  "gpumemtrace_attach_point" /* the structure's symbol */
#define GM_ATTACH_SERVE	  "gpumemtrace_attach_serve" /* the function's, void (void) */
#define GM_ATTACH_MAGIC	  "GMATTCH"		     /* 8 bytes with the NUL */
#define GM_ATTACH_VERSION 2u
#define GM_ATTACH_TEXT	  8192u
#define GM_ATTACH_WHY	  512u

enum gm_attach_state {
	GM_ATTACH_NOT_ATTACHED, /* preloaded, or loaded and not asked yet */
	GM_ATTACH_ATTACHED,	/* slots lead to the shim */
	GM_ATTACH_DETACHED	/* they lead to the program's own functions again */
};

/*
 * JOIN and LEAVE call the driver by CUPTI, so the thread that serves them has to be outside of
 * CUDA.
 */
enum gm_attach_asked {
	GM_ATTACH_NOTHING,
	GM_ATTACH_ATTACH, /* leads the slots to the shim, and has CUPTI report if it was joined */
	GM_ATTACH_DETACH,
	GM_ATTACH_JOIN, /* subscribes to CUPTI, which reports nothing yet */
	GM_ATTACH_LEAVE /* ends the subscription */
};

struct gm_attach_point {
	char magic[8];
	uint32_t version;
	uint32_t loaded;      /* 1: the constructor has run (release) */
	uint32_t late;	      /* 1: loaded by dlopen, after the program started */
	uint32_t state;	      /* enum gm_attach_state */
	uint32_t asked;	      /* enum gm_attach_asked, by the tool */
	uint32_t served;      /* calls of the function that have ended (release) */
	uint32_t refused;     /* 1: the last call did not do what was asked: `text` says why */
	uint32_t slots;	      /* relocation slots that lead to the shim, or led, when detached */
	uint32_t table_words; /* and words of verified tables of driver functions */
	uint32_t failed;      /* words that could not be written */
	uint32_t lost;	      /* of detach: words that could not be written and lead here still */
	uint32_t cupti;	      /* functions whose calls CUPTI reports; 0: it was not joined */
	uint32_t reserved;
	uint64_t age_ns;      /* age of the process, by the tool */
	char why[GM_ATTACH_WHY]; /* the reason why CUPTI was not joined, by the shim or the tool */
	char text[GM_ATTACH_TEXT]; /* settings, "NAME=value\n", by the tool; or the shim's reason */
};

#endif
