/*
 * Queries to NVML, which reports the memory of a whole device and needs no context for it. Each
 * returns false where there is no NVML.
 */
#ifndef GM_RECORDER_NVML_H
#define GM_RECORDER_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens NVML. Called at the first driver look-up, outside of any allocator's lock. */
void gm_nvml_open(void);

/* Bytes in use on the device of this UUID, by all processes and the driver itself. Any thread. */
bool gm_nvml_used(const uint8_t uuid[16], uint64_t *used_bytes);

struct gm_nvml_processes {
	bool own; /* own_pid is among them */
	unsigned count;
	uint64_t own_bytes, others_bytes;
};

/*
 * Processes that use the device. `others`, if it is not NULL, gets a line "PID BYTES" for each
 * process but `own_pid`. Takes 24 us on an H100. Any thread; false also while another thread makes
 * a query.
 */
bool gm_nvml_processes(const uint8_t uuid[16], unsigned own_pid, struct gm_nvml_processes *out,
		       char *others, size_t bytes);

/* In the child of a fork: releases a lock that another thread held; NVML is to be started again. */
void gm_nvml_forget(void);

#endif
