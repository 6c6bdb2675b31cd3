/*
 * The effect of allocations on the record of a device's virtual memory (struct gm_vmm_record):
 * handles (cuMemCreate), reserved address space and mappings. The caller has exclusive access to
 * the record. Sizes are bytes.
 */
#ifndef GM_ACCOUNT_VMM_RECORD_H
#define GM_ACCOUNT_VMM_RECORD_H

#include "store/layout.h"

#include <stdbool.h>

/* The allocation counts in the record of virtual memory. */
static inline bool gm_in_vmm(const struct gm_alloc_record *alloc)
{
	return alloc->space == GM_SPACE_MAPPING || alloc->space == GM_SPACE_RESERVATION ||
	       alloc->kind == GM_KIND_VMM;
}

static inline void gm_vmm_add(struct gm_vmm_record *vmm, const struct gm_alloc_record *alloc)
{
	if (alloc->space == GM_SPACE_MAPPING) {
		vmm->mapped_bytes += alloc->bytes;
		if (vmm->mapped_bytes > vmm->mapped_peak_bytes)
			vmm->mapped_peak_bytes = vmm->mapped_bytes;
	} else if (alloc->space == GM_SPACE_RESERVATION) {
		vmm->reserved_va_bytes += alloc->bytes;
	} else {
		vmm->created_bytes += alloc->bytes;
		vmm->handles++;
		if (vmm->created_bytes > vmm->created_peak_bytes)
			vmm->created_peak_bytes = vmm->created_bytes;
	}
}

static inline void gm_vmm_remove(struct gm_vmm_record *vmm, const struct gm_alloc_record *alloc)
{
	if (alloc->space == GM_SPACE_MAPPING) {
		vmm->mapped_bytes -= alloc->bytes;
	} else if (alloc->space == GM_SPACE_RESERVATION) {
		vmm->reserved_va_bytes -= alloc->bytes;
	} else {
		vmm->created_bytes -= alloc->bytes;
		vmm->handles--;
	}
}

#endif
