/*
 * The addresses that the driver gives to memory that is taken with cudaMalloc. Seen on an H200 with
 * driver 580: in the lowest hole that is large enough; without one in a new region, a multiple of
 * 32 MiB that lies right below the lowest one. A process of PyTorch has a hole of some 400 MiB
 * above them when it begins to allocate (docs/evidence/whatif.md).
 */
#ifndef GM_REPORT_WHATIF_ADDRESS_SPACE_H
#define GM_REPORT_WHATIF_ADDRESS_SPACE_H

#include <stdint.h>

struct gm_hole {
	uint64_t start, end;
};

struct gm_address_space {
	struct gm_hole *holes; /* in order of address, none touches another */
	unsigned count, room;
	uint64_t lowest; /* start of the lowest region */
	unsigned taken;	 /* number of times that memory was taken */
};

void gm_address_space_begin(struct gm_address_space *space);

/* The address of so much memory. */
uint64_t gm_address_space_take(struct gm_address_space *space, uint64_t bytes);

/* Memory is given back. */
void gm_address_space_give(struct gm_address_space *space, uint64_t start, uint64_t bytes);

void gm_address_space_free(struct gm_address_space *space);

#endif
