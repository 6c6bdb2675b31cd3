/*
 * A device as the driver and NVML see it (device_view.h). The ledger is sampled at each context, at
 * OOMs, at marks, and by role_cost.c at new peaks that are worth it, after each call whose cost was
 * measured, and by time at allocations and launches. So the latest sample describes the end of the
 * work. None is made at frees or at exit, where libraries have already released what they held.
 */
#include "recorder/calls/device_view.h"
#include "recorder/query/nvml.h"
#include "recorder/query/query.h"
#include "recorder/calls/refuse.h"
#include "recorder/state/libraries.h"
#include "track/devices.h"
#include "track/ledger.h"
#include "track/levels.h"
#include "track/recording.h"

#include <unistd.h>

#define TRIES	   3
#define PIDS_BYTES 1024

static void view_by_nvml(const uint8_t uuid[16], struct gm_device_view *view)
{
	struct gm_nvml_processes processes;
	char pids[PIDS_BYTES];

	if (!gm_nvml_used(uuid, &view->used_bytes))
		view->used_bytes = GM_NO_BYTES;
	if (!gm_nvml_processes(uuid, (unsigned)getpid(), &processes, pids, sizeof(pids)) ||
	    !processes.own)
		return; /* in a container NVML may know this process by another pid */
	view->own_bytes = processes.own_bytes;
	view->others_bytes = processes.others_bytes;
	if (pids[0])
		view->pids_string = gm_track_pids(pids);
}

void gm_view_device(int device, bool nvml, struct gm_device_view *view)
{
	uint8_t uuid[16];

	*view = (struct gm_device_view){GM_NO_BYTES, GM_NO_BYTES, GM_NO_BYTES,
					GM_NO_BYTES, GM_NO_BYTES, GM_NONE};
	if (device < 0)
		return;
	gm_note_device(device);
	if (gm_query_current_device() == device &&
	    gm_query_mem_info(&view->free_bytes, &view->total_bytes))
		gm_refuse_mem_info(device, &view->free_bytes, &view->total_bytes);
	if (nvml && gm_track_device_uuid(device, uuid))
		view_by_nvml(uuid, view);
}

void gm_sample_ledger(int device, enum gm_sample reason)
{
	struct gm_device_view view;
	uint64_t tracked;
	unsigned i;

	for (i = 0; i < TRIES && gm_track_ledger_due(device, reason); i++) {
		gm_track_other_libcudas(gm_libcudas_elsewhere());
		tracked = gm_track_physical_bytes(device);
		gm_view_device(device, true, &view);
		if (gm_track_ledger(device, reason, tracked, &view))
			return;
	}
}

void gm_sample_ledgers(enum gm_sample reason)
{
	int device, devices = gm_track_devices();
	uint8_t uuid[16];

	for (device = 0; device < devices; device++)
		if (gm_track_device_uuid(device, uuid))
			gm_sample_ledger(device, reason);
}
