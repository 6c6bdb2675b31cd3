/*
 * Device memory that calls take without saying so: for loaded code, streams, first launches and
 * limits. The recorder measures it.
 */
#ifndef GM_TRACK_COSTS_H
#define GM_TRACK_COSTS_H

#include "store/layout.h"
#include <stdbool.h>

struct gm_cost_event {
	int device;
	enum gm_cost cost;
	int object; /* 1: an object was made, -1: one is gone, whose maker's record is changed */
	uint64_t handle; /* of the object, 0: not known */
	uint64_t graph, nodes; /* that was instantiated, and how large it is */
	bool of_objects; /* `object` is 0: the bytes are of objects that were recorded before */
	uint32_t module, stack;
	int64_t bytes;		 /* negative: given back */
	int64_t explained_bytes; /* gm_track_explained_bytes when `bytes` was measured */
};

/*
 * Records what a call cost the device beside allocations. Returns false, and records nothing, if
 * the explained bytes have changed since it was measured: it is to be measured again.
 */
bool gm_track_cost(const struct gm_cost_event *event);

/*
 * Returns what the records explain of a device's memory, contexts left out: physical bytes and
 * costs. A cost is the change of the driver's figure less the change of this, so that nothing is
 * counted twice. Without the lock.
 */
int64_t gm_track_explained_bytes(int device);

/* Returns what code, streams, launches and limits cost on a device right now. Without the lock. */
uint64_t gm_track_code_bytes(int device);

/* Limits that were set, for the report. GM_NO_BYTES leaves a limit as it is. */
void gm_track_limits(uint64_t stack_bytes, uint64_t heap_bytes);

/* ---- for track/, under the lock ---- */

void gm_costs_reset(void);

/* Returns the sum of one kind of cost on a device. */
int64_t gm_cost_bytes(int device, enum gm_cost cost);

/* Ends all costs of a device with its last context. */
void gm_costs_end(int device);

#endif
