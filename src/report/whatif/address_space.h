/*
 * The addresses that the driver gives to memory that is taken with cudaMalloc. Seen on an H200 with
 * driver 580: in the lowest hole that is large enough; without one in a new region, a multiple of
 * 32 MiB. The kernel chooses the region's place: right below the lowest region, or in a gap far
 * above, which freed host memory has left. When the libraries of the first kernels are loaded, a
 * hole of 412 MiB opens between the regions and the context (docs/evidence/whatif.md).
 */
#ifndef GM_REPORT_WHATIF_ADDRESS_SPACE_H
#define GM_REPORT_WHATIF_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>

struct gm_hole {
	uint64_t start, end;
};

/* The place of new regions. */
enum gm_regions {
	GM_REGIONS_BELOW,
	GM_REGIONS_ABOVE,
	GM_REGIONS_OPENED /* below, and the libraries' hole has opened */
};

struct gm_address_space {
	struct gm_hole *holes; /* in order of address, none touches another */
	unsigned count, room;
	uint64_t lowest;  /* start of the lowest region */
	uint64_t highest; /* start of the lowest of those above */
	enum gm_regions regions;
	const struct gm_usual_regions *usual; /* NULL: the caller says when regions change */
	unsigned taken;			      /* number of times that memory was taken */
};

/*
 * The events of a recorded run from which on its regions had another place, by number; UINT32_MAX
 * if they never had.
 */
struct gm_recorded_regions {
	bool known;
	uint64_t context; /* address of the hole that the context left */
	uint32_t above_at, opened_at;
};

/*
 * Learns from a segment that the recorded run took at event `number`; call it for each of them, in
 * order.
 */
void gm_regions_learn(struct gm_recorded_regions *regions, uint64_t address, uint64_t bytes,
		      uint32_t number);

/* Numbers of segments after which regions change their place, without a recording; UINT_MAX never.
 */
struct gm_usual_regions {
	unsigned above_after, opened_after;
};

/* The first is the most likely one. */
extern const struct gm_usual_regions gm_usual_regions[];
extern const unsigned gm_usual_regions_count;

/* `usual` is NULL where the caller knows when regions change their place. */
void gm_address_space_begin(struct gm_address_space *space, const struct gm_usual_regions *usual);

void gm_address_space_change(struct gm_address_space *space, enum gm_regions regions);

/* The address of so much memory. */
uint64_t gm_address_space_take(struct gm_address_space *space, uint64_t bytes);

/* Memory is given back. */
void gm_address_space_give(struct gm_address_space *space, uint64_t start, uint64_t bytes);

void gm_address_space_free(struct gm_address_space *space);

#endif
