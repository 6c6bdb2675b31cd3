/*
 * The devices that were seen.
 */
#include "track/devices.h"
#include "account/counters.h"
#include "track/costs.h"
#include "track/levels.h"
#include "track/update.h"

#include <string.h>

#define MOST_NAME_BYTES 255
#define MOST_PIDS_BYTES 1024

/* Appends records up to that of a device. */
static void append_to(uint32_t device)
{
	struct gm_device_record *record;
	uint32_t index;

	while (gm_file->tables[GM_TABLE_DEVICES].count <= device) {
		record = gm_store_append(GM_TABLE_DEVICES, 1, &index);
		if (!record)
			return;
		record->name_string = GM_NONE;
		record->capacity_bytes = GM_NO_BYTES;
		record->free_before_bytes = GM_NO_BYTES;
		record->context_bytes = GM_NO_BYTES;
		record->context_stack = GM_NONE;
		if (gm_file->periods)
			record->before_bytes = record->before_torch_bytes = GM_NO_BYTES;
		gm_store_publish(GM_TABLE_DEVICES);
	}
}

void gm_track_device(int device, const char *name, const uint8_t uuid[16], uint64_t total_bytes)
{
	struct gm_device_record *record;
	uint32_t name_string;

	if (!gm_file || device < 0 || device >= GM_DEVICES)
		return;
	name_string = gm_store_string(name, MOST_NAME_BYTES);
	gm_update_begin();
	append_to((uint32_t)device);
	record = gm_store_record(GM_TABLE_DEVICES, (uint32_t)device);
	if (record && !record->used) {
		record->name_string = name_string;
		memcpy(record->uuid, uuid, sizeof(record->uuid));
		record->total_bytes = total_bytes;
		__atomic_store_n(&record->used, 1, __ATOMIC_RELEASE);
	}
	gm_update_end();
}

void gm_track_capacity(int device, uint64_t bytes)
{
	struct gm_device_record *record;

	if (!gm_file || device < 0)
		return;
	gm_update_begin();
	record = gm_store_record(GM_TABLE_DEVICES, (uint32_t)device);
	if (record)
		record->capacity_bytes = bytes;
	gm_update_end();
}

void gm_track_used_before(int device, uint64_t bytes)
{
	struct gm_device_record *record;

	if (!gm_file || device < 0)
		return;
	gm_update_begin();
	record = gm_store_record(GM_TABLE_DEVICES, (uint32_t)device);
	if (record && record->free_before_bytes == GM_NO_BYTES)
		record->free_before_bytes =
			record->total_bytes > bytes ? record->total_bytes - bytes : 0;
	gm_update_end();
}

static const struct gm_device_record *record_of(int device)
{
	const struct gm_device_record *record =
		!gm_file || device < 0 ? NULL : gm_store_record(GM_TABLE_DEVICES, (uint32_t)device);

	return record && __atomic_load_n(&record->used, __ATOMIC_ACQUIRE) ? record : NULL;
}

int gm_track_devices(void)
{
	return gm_file ? (int)__atomic_load_n(&gm_file->tables[GM_TABLE_DEVICES].count,
					      __ATOMIC_ACQUIRE)
		       : 0;
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
	static uint64_t stored; /* the text's hash << 32 | its string (atomic) */
	uint64_t known = __atomic_load_n(&stored, __ATOMIC_RELAXED);
	uint32_t hash = 2166136261u ^ gm_file->pid,
		 string; /* the child of a fork has another file */
	const char *at;

	for (at = pids; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619u;
	if (known >> 32 == hash)
		return (uint32_t)known;
	string = gm_store_string(pids, MOST_PIDS_BYTES);
	__atomic_store_n(&stored, (uint64_t)hash << 32 | string, __ATOMIC_RELAXED);
	return string;
}
