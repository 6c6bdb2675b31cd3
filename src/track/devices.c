/*
 * Devices that were seen (devices.h).
 */
#include "track/devices.h"
#include "store/writer.h"
#include "track/event.h"
#include "track/torch.h"

#include <string.h>

#define MOST_PIDS_BYTES 1024

static const struct gm_device_record *record_of(int device)
{
	const struct gm_device_record *record =
		!gm_file || device < 0 ? NULL : gm_store_record(GM_TABLE_DEVICES, (uint32_t)device);

	return record && __atomic_load_n(&record->used, __ATOMIC_ACQUIRE) ? record : NULL;
}

int gm_track_devices(void)
{
	return gm_file ? (int)__atomic_load_n(&gm_file->tables[GM_TABLE_DEVICES].count, __ATOMIC_ACQUIRE) :
			 0;
}

bool gm_track_device_uuid(int device, uint8_t uuid[16])
{
	const struct gm_device_record *record = record_of(device);

	if (record)
		memcpy(uuid, record->uuid, sizeof(record->uuid));
	return record != NULL;
}

uint64_t gm_track_held_bytes(int device)
{
	const struct gm_device_record *record = record_of(device);
	uint64_t held;

	if (!gm_file || device < 0)
		return 0;
	held = gm_track_physical_bytes(device) + gm_track_managed_bytes(device) +
	       gm_track_code_bytes(device);
	return record && record->context_bytes != GM_NO_BYTES ? held + record->context_bytes : held;
}

uint32_t gm_track_pids(const char *pids)
{
	static uint64_t stored; /* the text's hash, 32 bits, and its number (atomic) */
	uint64_t known = __atomic_load_n(&stored, __ATOMIC_RELAXED);
	uint32_t hash = 2166136261u ^ gm_file->pid, string; /* a child of a fork has another file */
	const char *at;

	for (at = pids; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619u;
	if (known >> 32 == hash)
		return (uint32_t)known;
	string = gm_store_string(pids, MOST_PIDS_BYTES);
	__atomic_store_n(&stored, (uint64_t)hash << 32 | string, __ATOMIC_RELAXED);
	return string;
}
