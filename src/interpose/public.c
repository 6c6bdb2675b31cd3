/*
 * The functions of include/gpumemtrace.h, exported for programs, ctypes and plug-ins.
 */
#define GPUMEMTRACE_IMPLEMENTATION
#include "gpumemtrace.h"
#include "interpose/public.h"
#include "recorder/process/held_copy.h"
#include "recorder/calls/device_view.h"
#include "recorder/calls/role_cost.h"
#include "recorder/process/early_marks.h"
#include "recorder/calls/sleep.h"
#include "recorder/state/sampler.h"
#include "recorder/state/settings.h"
#include "recorder/state/thread.h"
#include "stack/stack.h"
#include "track/clock.h"
#include "track/driver_allocs.h"
#include "track/in_use.h"
#include "track/marks.h"

#include <errno.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int gpumemtrace_active(void)
{
	return !gm_disabled() && !gm_idle();
}

EXPORT int gpumemtrace_start(void)
{
	return gm_want(GM_WANT_RECORDING);
}

EXPORT int gpumemtrace_stop(void)
{
	return gm_want(GM_WANT_SLEEP);
}

/*
 * All of the following enter the tracker, because a signal handler may interrupt them and call
 * CUDA.
 */
void gm_public_mark(const char *name, enum gm_mark_source source)
{
	if (!gpumemtrace_active() || !gm_enter_tracker())
		return;
	if (gm_owns_file()) {
		gm_track_mark(name, source);
		gm_settle_costs();
		gm_sample_ledgers(GM_SAMPLE_MARK);
		gm_holders_moment(GM_HOLDERS_MARK);
	} else {
		gm_early_mark(name, source);
	}
	gm_leave_tracker();
}

EXPORT void gpumemtrace_mark(const char *name)
{
	gm_public_mark(name, GM_MARK_PROGRAM);
}

/* ---- ranges ---- */

#define HEADER_DOMAIN (UINT16_MAX - 1) /* of gpumemtrace_range_push: apart from NVTX's */

static bool records(void)
{
	return gm_owns_file() && !gm_idle() && !gm_settings.no_ranges;
}

int gm_public_range_push(const struct gm_range_name *name)
{
	int level;

	if (gm_disabled() || !gm_enter_tracker())
		return -1;
	level = gm_track_range_push(name, records());
	gm_leave_tracker();
	return level;
}

int gm_public_range_pop(uint16_t domain_number, bool *marked)
{
	int level;

	*marked = false;
	if (gm_disabled() || !gm_enter_tracker())
		return -1;
	level = gm_track_range_pop(domain_number, records(), marked);
	gm_leave_tracker();
	return level;
}

uint64_t gm_public_range_start(const struct gm_range_name *name)
{
	uint64_t id;

	if (gm_disabled() || !gm_enter_tracker())
		return 0;
	id = gm_track_range_start(name, records());
	gm_leave_tracker();
	return id;
}

bool gm_public_range_end(uint64_t id)
{
	bool marked;

	if (gm_disabled() || !gm_enter_tracker())
		return false;
	marked = gm_track_range_end(id, records());
	gm_leave_tracker();
	return marked;
}

EXPORT void gpumemtrace_range_push(const char *name)
{
	const struct gm_range_name range = {.text = name ? name : "(no name)",
					    .domain_number = HEADER_DOMAIN,
					    .source = GM_RANGE_PROGRAM,
					    .recorded = !gm_settings.no_ranges};

	gm_public_range_push(&range);
}

EXPORT void gpumemtrace_range_pop(void)
{
	bool marked;

	gm_public_range_pop(HEADER_DOMAIN, &marked);
}

EXPORT void gpumemtrace_pool_alloc(const void *ptr, size_t bytes, int device)
{
	struct gm_event event = {
		.ticks = gm_clock_ticks(),
		.key = (uintptr_t)ptr, .bytes = bytes, .device = (int16_t)device,
		.space = GM_SPACE_CUSTOM, .kind = GM_KIND_DEVICE, .level = GM_LEVEL_CUSTOM,
		.owner = GM_NONE, .function = GM_NONE, .stack = GM_NONE, .caller_module = GM_NONE,
	};
	const struct gm_entry entry = GM_ENTRY_HERE();

	if (!ptr || !gpumemtrace_active() || !gm_enter_tracker())
		return;
	if (gm_recording()) {
		event.extra = gm_sample(bytes);
		if (event.extra >= 0)
			event.stack = gm_stack_take(&entry, 0, &event.caller_module);
		gm_track_alloc(&event);
	}
	gm_leave_tracker();
}

EXPORT void gpumemtrace_pool_free(const void *ptr)
{
	struct gm_event event = {
		.ticks = gm_clock_ticks(),
		.key = (uintptr_t)ptr, .space = GM_SPACE_CUSTOM, .kind = GM_KIND_DEVICE,
		.level = GM_LEVEL_CUSTOM, .owner = GM_NONE, .function = GM_NONE, .stack = GM_NONE,
		.caller_module = GM_NONE, .device = GM_HOST,
	};

	if (!ptr || !gpumemtrace_active() || !gm_enter_tracker())
		return;
	if (gm_recording())
		gm_track_free_end(gm_track_free_begin(GM_SPACE_CUSTOM, event.key), &event);
	gm_leave_tracker();
}

EXPORT int gpumemtrace_snapshot(const char *path)
{
	int error;

	if (!path)
		return -EINVAL;
	if (gm_disabled())
		return -ENOSYS;
	if (!gm_owns_file())
		return -ENODATA; /* there was no CUDA event yet */
	if (!gm_enter_tracker())
		return -EBUSY;
	gm_track_mark("snapshot", GM_MARK_SNAPSHOT);
	gm_settle_costs();
	gm_sample_ledgers(GM_SAMPLE_MARK);
	error = gm_track_copy(path);
	gm_leave_tracker();
	return error;
}

/* In the child of a fork the lock may be held by a thread that is not there: it is not acquired. */
static uint64_t in_use(int device, bool peak)
{
	uint64_t bytes;

	if (!gm_owns_file() || !gm_enter_tracker())
		return 0;
	bytes = gm_track_in_use(device, peak);
	gm_leave_tracker();
	return bytes;
}

EXPORT uint64_t gpumemtrace_live_bytes(int device)
{
	return in_use(device, false);
}

EXPORT uint64_t gpumemtrace_peak_bytes(int device)
{
	return in_use(device, true);
}

EXPORT void gpumemtrace_reset_peak(int device)
{
	if (!gm_owns_file() || !gm_enter_tracker())
		return;
	gm_track_reset_peak(device);
	gm_leave_tracker();
}
