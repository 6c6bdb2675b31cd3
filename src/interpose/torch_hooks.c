/*
 * PyTorch's hooks: c10::reportMemoryUsageToProfiler and c10::reportOutOfMemoryToProfiler, which its
 * allocators call across libraries for every block, whether a profiler runs or not. The functions
 * here stand in front of the real ones and always call them. PyTorch holds its allocator's mutex
 * meanwhile, so nothing here waits for a lock of the program's, opens a library or takes the GIL.
 *
 * The two functions have had several signatures; each mangled name is exported. Their numbers are
 * 64 bits wide in all of them and differ only in their signs.
 */
#include "api/cuda_abi.h"
#include "recorder/process/held_copy.h"
#include "recorder/calls/device_view.h"
#include "recorder/calls/sleep.h"
#include "recorder/state/libraries.h"
#include "recorder/state/sampler.h"
#include "recorder/state/settings.h"
#include "recorder/state/thread.h"
#include "stack/stack.h"
#include "track/block_counts.h"
#include "track/clock.h"
#include "track/ledger.h"
#include "track/retries.h"
#include "track/sites.h"
#include "track/thread_id.h"
#include "track/torch_blocks.h"

#include <errno.h>

#define EXPORT		 __attribute__((visibility("default")))
#define DEVICE_TYPE_CUDA 1 /* c10::DeviceType */

/* c10::Device, passed by value in one register. */
struct device {
	int8_t type, index;
};

typedef void memory_hook(void *block, int64_t bytes, uint64_t allocated, uint64_t reserved,
			 struct device device);
typedef void oom_hook(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device);

/* A mangled name's real function, looked up again after something was unloaded. */
struct hook {
	void *real;
	uint32_t generation; /* gm_unloads at the look-up, plus 1 */
	bool wanted;	     /* the settings ask for blocks */
	const char *name;    /* last, because the rest of GM_HOT_HOOK leaves no room for it */
};

/* The real function if it is known, else NULL. */
static inline void *known(struct hook *hook)
{
	uint32_t generation = __atomic_load_n(&hook->generation, __ATOMIC_ACQUIRE);

	return generation == gm_unloads() + 1 ? __atomic_load_n(&hook->real, __ATOMIC_RELAXED)
					      : NULL;
}

static void *real_of(struct hook *hook)
{
	uint32_t now = gm_unloads() + 1;

	if (__atomic_load_n(&hook->generation, __ATOMIC_ACQUIRE) != now) {
		__atomic_store_n(&hook->real, gm_next_symbol(hook->name), __ATOMIC_RELAXED);
		__atomic_store_n(&hook->generation, now, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&hook->real, __ATOMIC_RELAXED);
}

/* ---- recording ---- */

/*
 * The report that PyTorch gave of a block: it was handed out or, if `bytes` is negative, given
 * back. The hook keeps its arguments here while it records, and passes them on from here: in
 * registers each would be saved and restored by every function on the way.
 */
struct report {
	void *block;
	int64_t bytes;
	struct gm_torch_totals totals;
	struct device device;
	struct gm_entry caller;
};

static bool recorded(struct device device)
{
	return device.type == DEVICE_TYPE_CUDA && gm_settings.torch && !gm_disabled() && !gm_idle();
}

static inline void record_block(const struct report *report, uint64_t ticks)
{
	struct gm_where where = {report->device.index, gm_calling_thread(), ticks};
	uint64_t block = (uintptr_t)report->block;
	struct gm_stack_taking taking;
	struct gm_origin origin = {0};

	if (report->bytes < 0) {
		gm_track_block_free(block, where, report->totals);
		return;
	}
	gm_stack_begin(&taking, &report->caller, 0);
	gm_track_block_prefetch(block, where.device, taking.expected);
	origin.stack = gm_stack_end(&taking, &origin.module);
	gm_track_block(block, (uint64_t)report->bytes, where, origin, report->totals);
}

/* Does the same in a sampled recording, for blocks that gm_count_block does not count. */
static GM_COLD void record_sampled(const struct report *report, uint64_t ticks)
{
	struct gm_where where = {report->device.index, gm_calling_thread(), ticks};
	uint64_t block = (uintptr_t)report->block;
	int64_t bytes = report->bytes;
	struct gm_origin origin = {.extra = -1};
	bool by_device = gm_counted && gm_counted_torch(gm_counted_device(where.device));
	static bool prepared; /* (atomic) */
	struct gm_stack_taking taking;

	if (bytes > 0)
		origin.extra = gm_sample_by(by_device ? &gm_counted_device(where.device)->points
						      : &gm_thread.points,
					    (uint64_t)bytes);

	/* A process's first stack has no Python frames yet. */
	if (origin.extra >= 0 || !__atomic_exchange_n(&prepared, true, __ATOMIC_RELAXED)) {
		gm_stack_begin(&taking, &report->caller, gm_stack_hint((uint64_t)bytes));
		origin.stack = gm_stack_end(&taking, &origin.module);
	}
	if (bytes < 0)
		gm_track_sampled_block_free(block, (uint64_t)-bytes, where, report->totals);
	else if (origin.extra < 0)
		gm_track_unsampled_block((uint64_t)bytes, where, report->totals);
	else
		gm_track_sampled_block(block, (uint64_t)bytes, where, origin, report->totals);
}

static GM_HOT_CODE __attribute__((noinline)) void record(const struct report *report)
{
	uint64_t ticks = gm_clock_ticks();

	if (__builtin_expect(!report->bytes || !gm_enter_tracker(), 0))
		return;
	if (gm_recording()) {
		if (__builtin_expect(gm_sample_bytes != 0, 0))
			record_sampled(report, ticks);
		else
			record_block(report, ticks);
		gm_sleep_if_asked();
	}
	gm_leave_tracker();
}

/*
 * Counts the block of a sampled recording without the tracker's lock. Returns false, and has
 * changed nothing, if it is sampled or has to be recorded for another reason.
 */
static inline __attribute__((always_inline)) bool
counted(struct gm_torch_record *torch, struct gm_sample_points *points, const void *block,
	int64_t bytes, struct gm_torch_totals totals)
{
	if ((bytes < 0 ? gm_may_be_sampled((uintptr_t)block) : points->left <= bytes) ||
	    !gm_count_block(torch, bytes, totals))
		return false;
	if (bytes > 0)
		points->left -= bytes;
	return true;
}

static void record_oom(int64_t bytes, const struct gm_torch_totals *totals, struct device device,
		       const struct gm_entry *caller)
{
	struct gm_origin origin = {0};
	struct gm_event event;
	struct gm_device_view view;

	origin.stack = gm_stack_take(caller, 0, &origin.module);
	event = gm_block_event(0, (uint64_t)bytes, device.index, origin);
	event.error = GM_CUDA_OUT_OF_MEMORY;
	gm_view_device(device.index, gm_track_ledger_due(device.index, GM_SAMPLE_OOM), &view);
	event.view = &view;
	gm_track_torch_oom(&event, totals);
	gm_sample_ledger(device.index, GM_SAMPLE_OOM);
	gm_holders_moment(GM_HOLDERS_OOM);
}

static void no_hook(void *block, int64_t bytes, uint64_t allocated, uint64_t reserved,
		    struct device device)
{
	(void)block;
	(void)bytes;
	(void)allocated;
	(void)reserved;
	(void)device;
}

/*
 * The first block, and the first after something was unloaded. Records the block if blocks are to
 * be recorded, and returns the real function.
 */
static __attribute__((noinline, cold)) memory_hook *on_first(struct hook *hook,
							      const struct report *report)
{
	bool disabled = gm_disabled();
	void *real;

	__atomic_store_n(&hook->wanted, gm_settings.torch, __ATOMIC_RELAXED);
	if (disabled || __atomic_load_n(&gm_readiness, __ATOMIC_ACQUIRE) != GM_UNREAD)
		real = real_of(hook);
	else /* the settings are still being read, so the look-up is not kept */
		real = gm_next_symbol(hook->name);
	if (recorded(report->device))
		record(report);
	return real ? (memory_hook *)real : no_hook;
}

/*
 * The hook calls one of the following functions last, so the caller of each is PyTorch. They call
 * the real function.
 */
static __attribute__((noinline, cold)) void on_unknown(void *block, int64_t bytes,
							uint64_t allocated, uint64_t reserved,
							struct device device, struct hook *hook)
{
	struct report report = {block, bytes, {allocated, reserved}, device, GM_ENTRY_HERE()};

	on_first(hook, &report)(block, bytes, allocated, reserved, device);
}

static GM_HOT_CODE __attribute__((noinline)) void on_memory(void *block, int64_t bytes,
							    uint64_t allocated, uint64_t reserved,
							    struct device device, struct hook *hook)
{
	struct report report = {block, bytes, {allocated, reserved}, device, GM_ENTRY_HERE()};
	memory_hook *real = (memory_hook *)__atomic_load_n(&hook->real, __ATOMIC_RELAXED);

	record(&report);
	real(report.block, report.bytes, report.totals.allocated_bytes,
	     report.totals.reserved_bytes, report.device);
}

/* In a sampled recording, and one of its events in so many. */
static __attribute__((noinline)) void on_look(void *block, int64_t bytes, uint64_t allocated,
					      uint64_t reserved, struct device device,
					      struct hook *hook)
{
	memory_hook *real = (memory_hook *)__atomic_load_n(&hook->real, __ATOMIC_RELAXED);
	struct gm_counted_device *counts = gm_counted_device(device.index);
	struct gm_torch_record *torch = gm_counted_torch(counts);
	struct gm_torch_totals totals = {allocated, reserved};

	if (torch && !gm_clock_is_due(torch) &&
	    counted(torch, &counts->points, block, bytes, totals))
		real(block, bytes, allocated, reserved, device);
	else
		on_memory(block, bytes, allocated, reserved, device, hook);
}

static GM_HOT_CODE __attribute__((noinline)) void
on_sampled_memory(void *block, int64_t bytes, uint64_t allocated, uint64_t reserved,
		  struct device device, struct hook *hook)
{
	memory_hook *real = (memory_hook *)__atomic_load_n(&hook->real, __ATOMIC_RELAXED);
	struct gm_counted_device *counts = gm_counted_device(device.index);
	struct gm_torch_record *torch = gm_counted_torch(counts);
	struct gm_torch_totals totals = {allocated, reserved};

	if (__builtin_expect(!torch, 0) || gm_look_is_due(torch))
		on_look(block, bytes, allocated, reserved, device, hook);
	else if (__builtin_expect(counted(torch, &counts->points, block, bytes, totals), 1))
		real(block, bytes, allocated, reserved, device);
	else
		on_memory(block, bytes, allocated, reserved, device, hook);
}

static void on_oom(struct hook *hook, int64_t bytes, uint64_t allocated,
		   uint64_t reserved, struct device device, const struct gm_entry *caller)
{
	struct gm_torch_totals totals = {allocated, reserved};
	oom_hook *real = (oom_hook *)real_of(hook);
	int saved = errno;

	if (recorded(device) && gm_enter_tracker()) {
		if (gm_recording())
			record_oom(bytes, &totals, device, caller);
		gm_leave_tracker();
	}
	errno = saved;
	if (real)
		real(bytes, allocated, reserved, device);
}

/* ---- the names: PyTorch 2.x's, then those of 1.10 to 1.13, then those of one source tree ---- */

#define MEMORY_HOOK(place, code, symbol)                                                           \
	EXPORT code void symbol(void *, int64_t, uint64_t, uint64_t, struct device);               \
	EXPORT void symbol(void *block, int64_t bytes, uint64_t allocated, uint64_t reserved,      \
			   struct device device)                                                   \
	{                                                                                          \
		static place struct hook hook = {.name = #symbol};                                 \
		memory_hook *real = (memory_hook *)known(&hook);                                   \
                                                                                                   \
		if (!real)                                                                         \
			on_unknown(block, bytes, allocated, reserved, device, &hook);              \
		else if (device.type != DEVICE_TYPE_CUDA || gm_idle() || !hook.wanted)             \
			real(block, bytes, allocated, reserved, device);                           \
		else if (gm_counted)                                                               \
			on_sampled_memory(block, bytes, allocated, reserved, device, &hook);       \
		else                                                                               \
			on_memory(block, bytes, allocated, reserved, device, &hook);               \
	}

#define OOM_HOOK(symbol)                                                                           \
	EXPORT void symbol(int64_t, uint64_t, uint64_t, struct device);                            \
	EXPORT void symbol(int64_t bytes, uint64_t allocated, uint64_t reserved,                   \
			   struct device device)                                                   \
	{                                                                                          \
		static struct hook hook = {.name = #symbol};                                       \
		const struct gm_entry caller = GM_ENTRY_HERE();                                    \
                                                                                                   \
		on_oom(&hook, bytes, allocated, reserved, device, &caller);               \
	}

MEMORY_HOOK(GM_HOT_HOOK, GM_HOT_CODE, _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)
MEMORY_HOOK(, , _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)
MEMORY_HOOK(, , _ZN3c1027reportMemoryUsageToProfilerEPvmmmNS_6DeviceE)
OOM_HOOK(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE)
OOM_HOOK(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE)
OOM_HOOK(_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE)
