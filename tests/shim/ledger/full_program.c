/*
 * More places than a file has room for: full PLACES KEEP. Allocation number i comes by its own call
 * stack, of which there are 16^5, and is kept if KEEP divides i. It prints its own books. Of full
 * HANDLES 0 handles all are handles of physical memory, kept to the end.
 */
#include "sim_api.h"

#include <stdio.h>
#include <stdlib.h>

#define BYTES 1024ul
#define PLACE __attribute__((noinline, noclone))

static unsigned long live, peak, allocations;
static unsigned keep;

typedef void step(unsigned digits, unsigned left, unsigned number);
static step *const steps[16];

static void last(unsigned number)
{
	void *memory;

	if (cudaMalloc(&memory, BYTES))
		exit(3);
	allocations++;
	live += BYTES;
	peak = live > peak ? live : peak;
	if (keep && number % keep == 0)
		return;
	cudaFree(memory);
	live -= BYTES;
}

/* Each digit of the number is a function on the stack. */
#define STEP(digit)                                                                                \
	PLACE static void step_##digit(unsigned digits, unsigned left, unsigned number)           \
	{                                                                                         \
		if (left)                                                                         \
			steps[digits % 16](digits / 16, left - 1, number);                        \
		else                                                                              \
			last(number);                                                             \
		__asm__ volatile("" ::: "memory"); /* no tail call */                              \
	}
STEP(0)
STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11) STEP(12)
	STEP(13) STEP(14) STEP(15)

		static step *const steps[16] = {step_0,	 step_1,  step_2,  step_3, step_4,  step_5,
						step_6,	 step_7,  step_8,  step_9, step_10, step_11,
						step_12, step_13, step_14, step_15};

static int make_handles(unsigned handles)
{
	const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
					  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle;

	for (unsigned i = 0; i < handles; i++)
		if (cuMemCreate(&handle, 2ul << 20, &prop, 0))
			return 3;
	return 0;
}

int main(int count, char **arguments)
{
	unsigned places = count > 1 ? (unsigned)atoi(arguments[1]) : 0;

	if (count > 3)
		return cudaFree(NULL) || make_handles(places);

	keep = count > 2 ? (unsigned)atoi(arguments[2]) : 0;
	for (unsigned i = 0; i < places; i++)
		steps[i % 16](i / 16, 4, i);
	printf("{\"allocations\": %lu, \"live\": %lu, \"peak\": %lu}\n", allocations, live, peak);
	return 0;
}
