/*
 * Blocks of PyTorch's on two devices, more of them than the history's ring has room for: blocks
 * EVENTS. Prints what PyTorch would count, a line for each device, and is killed.
 */
#include "../../sim/torch/c10.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define DEVICES 2
#define LIVE	300

static struct counts {
	uint64_t allocated, peak, allocations, frees, total, freed;
} counts[DEVICES];

static uint64_t bytes_of[LIVE]; /* 0: not handed out */

static unsigned pick(unsigned below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % below;
}

static void event(unsigned number)
{
	int device = number % DEVICES;
	struct counts *count = &counts[device];
	uint64_t bytes = bytes_of[number];
	int64_t change;

	if (bytes) {
		count->allocated -= bytes;
		count->frees++;
		count->freed += bytes;
		bytes_of[number] = 0;
		change = -(int64_t)bytes;
	} else {
		bytes = 512 * (1 + pick(5000));
		count->allocated += bytes;
		count->allocations++;
		count->total += bytes;
		if (count->allocated > count->peak)
			count->peak = count->allocated;
		bytes_of[number] = bytes;
		change = (int64_t)bytes;
	}
	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
		(void *)(0x7f0000000000 + number * 0x1000000ull), change, count->allocated,
		1u << 30, (struct c10_device){1, (int8_t)device});
}

int main(int argc, char **argv)
{
	unsigned long events = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;

	for (unsigned long i = 0; i < events; i++)
		event(pick(LIVE));
	for (int device = 0; device < DEVICES; device++)
		printf("[%llu,%llu,%llu,%llu,%llu,%llu]\n",
		       (unsigned long long)counts[device].allocated,
		       (unsigned long long)counts[device].peak,
		       (unsigned long long)counts[device].allocations,
		       (unsigned long long)counts[device].frees,
		       (unsigned long long)counts[device].total,
		       (unsigned long long)counts[device].freed);
	fflush(stdout);
	raise(SIGKILL);
	return 1;
}
