/*
 * The totals of each device's virtual memory.
 */
#include "track/vmm_totals.h"
#include "account/vmm_record.h"
#include "store/writer.h"

/* Returns the record of a device, made at its first use; NULL if the file is full. */
static struct gm_vmm_record *vmm_of(int device)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_VMM].count;
	struct gm_vmm_record *record;

	for (index = 0; index < count; index++) {
		record = gm_store_record(GM_TABLE_VMM, index);
		if (record->device == device)
			return record;
	}
	record = gm_store_append(GM_TABLE_VMM, 1, &index);
	if (record) {
		record->device = (int16_t)device;
		gm_store_publish(GM_TABLE_VMM);
	}
	return record;
}

void gm_vmm_count(const struct gm_alloc_record *alloc)
{
	struct gm_vmm_record *vmm = vmm_of(alloc->device);

	if (vmm)
		gm_vmm_add(vmm, alloc);
}

void gm_vmm_uncount(const struct gm_alloc_record *alloc)
{
	struct gm_vmm_record *vmm = vmm_of(alloc->device);

	if (vmm)
		gm_vmm_remove(vmm, alloc);
}
