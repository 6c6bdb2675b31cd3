/*
 * Counting again what is live, for a file whose counters disagree with its live records: of a
 * process that was killed inside an update, or that was read during one. The records are right, for
 * each changes by one store. Totals over the run and peaks stay as they are where they can be true.
 * For readers, which own the records.
 */
#ifndef GM_ACCOUNT_RECOUNT_H
#define GM_ACCOUNT_RECOUNT_H

#include "account/counters.h"
#include "account/torch_record.h"
#include "account/vmm_record.h"

/*
 * gm_recount_begin zeroes what is live in the records, gm_recount_add counts one live allocation in
 * the records that it counts in, gm_recount_end makes totals, peaks and the site's open window fit.
 */
void gm_recount_begin(const struct gm_counters *in);
void gm_recount_add(const struct gm_counters *in, const struct gm_alloc_record *alloc);
void gm_recount_end(const struct gm_counters *in);

/* PyTorch's record, from the bytes of all live allocations that reserve (gm_torch_reserves). */
void gm_torch_recount(struct gm_torch_record *record, uint64_t reserved_bytes);

/* The record of virtual memory: zeroes what is live, for gm_vmm_add to count again. */
void gm_vmm_recount_begin(struct gm_vmm_record *vmm);

/*
 * The sum of the bytes that the driver holds for the live allocations of one device, which are
 * counted in the order of their addresses: small requests share slabs. Pools are left out, for
 * their reserves are held as a whole. Zero-initialised.
 */
struct gm_physical_sum {
	uint64_t bytes;
	uint64_t slab_end; /* of the last slab */
};
void gm_physical_sum_add(struct gm_physical_sum *sum, const struct gm_alloc_record *alloc);

#endif
