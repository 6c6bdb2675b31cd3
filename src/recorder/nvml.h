/*
 * Questions put to NVML, which answers without a context: memory of a device as a whole. Every
 * function answers false where there is no NVML.
 */
#ifndef GM_RECORDER_NVML_H
#define GM_RECORDER_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens NVML; at the first driver look-up, outside of any allocator's lock. */
void gm_nvml_open(void);

/* Bytes in use on the device of this UUID, by all processes and the driver itself. Any thread. */
bool gm_nvml_used(const uint8_t uuid[16], uint64_t *used_bytes);

struct gm_nvml_processes {
	bool own; /* own_pid was among them */
	unsigned count;
	uint64_t own_bytes, others_bytes;
};

/*
 * Processes that use the device. `others`, if it is not NULL, gets a line "PID BYTES" for each but
 * `own_pid`'s. 24 us on an H100. Any thread; false too when another thread is asking just now.
 */
bool gm_nvml_processes(const uint8_t uuid[16], unsigned own_pid, struct gm_nvml_processes *out,
		       char *others, size_t bytes);

/* In the child of a fork: a lock that another thread held is free, NVML is to be started again. */
void gm_nvml_forget(void);

#endif
