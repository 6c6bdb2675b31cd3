/*
 * Reading the simulator's settings from the environment: sizes, and what other processes hold.
 * Shared by the simulated driver and the simulated NVML.
 */
#ifndef SIM_ENV_H
#define SIM_ENV_H

#include <stddef.h>
#include <stdint.h>

struct sim_other {
	unsigned pid;
	uint64_t bytes;
};

uint64_t sim_parse_size(const char *text, uint64_t otherwise);
/* GPUSIM_OTHERS: fills up to `room` entries, their number in *count; returns the sum of bytes. */
uint64_t sim_parse_others(struct sim_other *list, size_t room, size_t *count);

#endif
