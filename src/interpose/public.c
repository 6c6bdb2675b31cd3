/*
 * The functions of include/gpumemtrace.h, exported for programs, ctypes and plug-ins.
 */
#define GPUMEMTRACE_IMPLEMENTATION
#include "gpumemtrace.h"
#include "interpose/own_page.h"
#include "interpose/preload.h"
#include "interpose/view.h"
#include "stack/stack.h"
#include "track/event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/*
 * The last marks made before the first CUDA event: a process that never calls CUDA gets no file from
 * them, and nothing was allocated between those that are forgotten.
 */
#define EARLY_MARKS 16
#define EARLY_NAME_BYTES 256

static struct {
	unsigned count; /* guarded, as the marks, by the own page's lock `early` */
	struct {
		char name[EARLY_NAME_BYTES];
		enum gm_mark_source source;
	} marks[EARLY_MARKS];
} early;

EXPORT int gpumemtrace_active(void)
{
	return !gm_disabled();
}

void gm_public_start(void)
{
	struct gm_lock *lock = &gm_own_page()->early;
	unsigned i;

	gm_lock_acquire(lock);
	for (i = 0; i < early.count; i++)
		gm_track_mark(early.marks[i].name, early.marks[i].source);
	early.count = 0;
	gm_lock_release(lock);
}

static void mark_early(const char *name, enum gm_mark_source source)
{
	struct gm_lock *lock = &gm_own_page()->early;

	gm_lock_acquire(lock);
	if (early.count == EARLY_MARKS)
		memmove(early.marks, early.marks + 1, --early.count * sizeof(*early.marks));
	snprintf(early.marks[early.count].name, EARLY_NAME_BYTES, "%s", name ? name : "");
	early.marks[early.count++].source = source;
	gm_lock_release(lock);
}

/* Inside the tracker, here and below: a handler of the program's that comes between may call CUDA. */
void gm_public_mark(const char *name, enum gm_mark_source source)
{
	if (gm_disabled() || !gm_enter_tracker())
		return;
	if (gm_owns_file()) {
		gm_track_mark(name, source);
		gm_sample_ledgers(GM_SAMPLE_MARK);
	} else {
		mark_early(name, source);
	}
	gm_leave_tracker();
}

EXPORT void gpumemtrace_mark(const char *name)
{
	gm_public_mark(name, GM_MARK_PROGRAM);
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

	if (!ptr || gm_disabled() || !gm_enter_tracker())
		return;
	if (gm_recording()) {
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

	if (!ptr || gm_disabled() || !gm_enter_tracker())
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
		return -ENODATA; /* no CUDA event yet */
	if (!gm_enter_tracker())
		return -EBUSY;
	gm_track_mark("snapshot", GM_MARK_SNAPSHOT);
	gm_sample_ledgers(GM_SAMPLE_MARK);
	error = gm_track_copy(path);
	gm_leave_tracker();
	return error;
}

/* Not in the child of a fork, whose copy of the lock may be held by a thread that is not there. */
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
