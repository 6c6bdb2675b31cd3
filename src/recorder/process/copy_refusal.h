/*
 * Decides whether a copy of the process can be afforded, as a pure function of the system's
 * figures.
 */
#ifndef GM_RECORDER_PROCESS_COPY_REFUSAL_H
#define GM_RECORDER_PROCESS_COPY_REFUSAL_H

#include <stdint.h>

/* UINT64_MAX: not known, or for `group_bytes` without a limit. */
struct gm_copy_surroundings {
	const char *release;	  /* of the kernel, as uname() says it; NULL if it is not known */
	uint64_t resident_bytes;  /* of the process */
	uint64_t available_bytes; /* in the system */
	uint64_t group_bytes;	  /* headroom of the control group */
	uint64_t overcommit;	  /* vm.overcommit_memory */
};

/* Returns the reason why no copy is made, a static text; NULL if a copy may be made. */
const char *gm_copy_refusal(const struct gm_copy_surroundings *now);

#endif
