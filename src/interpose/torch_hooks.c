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
};

/* The real function if it is known, else NULL. */
static inline void *known(struct hook *hook)
{
	uint32_t generation = __atomic_load_n(&hook->generation, __ATOMIC_ACQUIRE);

	return generation == gm_unloads() + 1 ? __atomic_load_n(&hook->real, __ATOMIC_RELAXED)
					      : NULL;
}

static void *real_of(struct hook *hook, const char *name)
{
	uint32_t now = gm_unloads() + 1;

	if (__atomic_load_n(&hook->generation, __ATOMIC_ACQUIRE) != now) {
		__atomic_store_n(&hook->real, gm_next_symbol(name), __ATOMIC_RELAXED);
		__atomic_store_n(&hook->generation, now, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&hook->real, __ATOMIC_RELAXED);
}

/* ---- recording ---- */

/* The facts about a call that a hook passes on beside its arguments. */
struct called {
	struct gm_entry caller;
	memory_hook *real;
};

static bool recorded(struct device device)
{
	return device.type == DEVICE_TYPE_CUDA && gm_settings.torch && !gm_disabled() && !gm_idle();
}

static inline void record_block(void *block, int64_t bytes, struct gm_torch_totals totals,
				int device, uint64_t ticks, int32_t extra,
				const struct gm_entry *caller)
{
	struct gm_where where = {device, gm_calling_thread(), ticks};
	struct gm_stack_taking taking;
	struct gm_origin origin = {.extra = extra};

	if (bytes < 0) {
		gm_track_block_free((uintptr_t)block, where, totals);
		return;
	}
	gm_stack_begin(&taking, caller, 0);
	gm_track_block_prefetch((uintptr_t)block, device, taking.expected);
	origin.stack = gm_stack_end(&taking, &origin.module);
	gm_track_block((uintptr_t)block, (uint64_t)bytes, where, origin, totals);
}

static GM_COLD void record_sample(void *block, int64_t bytes, struct gm_torch_totals totals,
				  int device, int32_t extra, const struct gm_entry *caller)
{
	record_block(block, bytes, totals, device, gm_clock_ticks(), extra, caller);
}

/* Does the same in a sampled recording, where most blocks need no clock, no stack and no record. */
static inline void record_sampled(void *block, int64_t bytes, struct gm_torch_totals totals,
				  int device, const struct gm_entry *caller)
{
	int32_t extra;

	if (bytes < 0) {
		gm_track_sampled_block_free((uintptr_t)block, (uint64_t)-bytes, device, totals);
		return;
	}
	extra = gm_sample((uint64_t)bytes);
	if (__builtin_expect(extra < 0, 1))
		gm_track_unsampled_block((uint64_t)bytes, device, totals);
	else
		record_sample(block, bytes, totals, device, extra, caller);
}

static GM_HOT_CODE __attribute__((noinline)) void
sample_and_forward(void *block, int64_t bytes, uint64_t allocated, uint64_t reserved,
		   struct device device, const struct called *called)
{
	if (__builtin_expect(bytes && gm_enter_tracker(), 1)) {
		if (gm_recording()) {
			record_sampled(block, bytes, (struct gm_torch_totals){allocated, reserved},
				       device.index, &called->caller);
			gm_sleep_if_asked();
		}
		gm_leave_tracker();
	}
	called->real(block, bytes, allocated, reserved, device);
}

static GM_HOT_CODE __attribute__((noinline)) void
record_and_forward(void *block, int64_t bytes, uint64_t allocated, uint64_t reserved,
		   struct device device, const struct called *called)
{
	memory_hook *real = called->real;
	uint64_t ticks = gm_clock_ticks();

	if (__builtin_expect(bytes && gm_enter_tracker(), 1)) {
		if (gm_recording()) {
			record_block(block, bytes, (struct gm_torch_totals){allocated, reserved},
				     device.index, ticks, 0, &called->caller);
			gm_sleep_if_asked();
		}
		gm_leave_tracker();
	}
	real(block, bytes, allocated, reserved, device);
}

static void record_oom(int64_t bytes, const struct gm_torch_totals *totals, struct device device,
		       const struct gm_entry *caller)
{
	struct gm_event event = {
		.bytes = (uint64_t)bytes,
		.device = device.index,
		.space = GM_SPACE_TORCH,
		.kind = GM_KIND_DEVICE,
		.level = GM_LEVEL_TORCH,
		.owner = GM_NONE,
		.function = GM_NONE,
		.caller_module = GM_NONE,
		.error = GM_CUDA_OUT_OF_MEMORY,
	};
	struct gm_device_view view;

	event.stack = gm_stack_take(caller, 0, &event.caller_module);
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
 * The slow path: at first, after something was unloaded, and where blocks are not to be recorded.
 */
static __attribute__((noinline, cold)) void
on_memory_slow(struct hook *hook, const char *name, void *block, int64_t bytes, uint64_t allocated,
	       uint64_t reserved, struct device device, const struct gm_entry *caller)
{
	struct called called = {.caller = *caller};
	bool disabled = gm_disabled();

	__atomic_store_n(&hook->wanted, gm_settings.torch, __ATOMIC_RELAXED);
	if (disabled || __atomic_load_n(&gm_readiness, __ATOMIC_ACQUIRE) != GM_UNREAD)
		called.real = (memory_hook *)real_of(hook, name);
	else /* the settings are still being read, so the look-up is not kept */
		called.real = (memory_hook *)gm_next_symbol(name);

	if (!called.real)
		called.real = no_hook;
	if (recorded(device))
		record_and_forward(block, bytes, allocated, reserved, device, &called);
	else
		called.real(block, bytes, allocated, reserved, device);
}

static void on_oom(struct hook *hook, const char *name, int64_t bytes, uint64_t allocated,
		   uint64_t reserved, struct device device, const struct gm_entry *caller)
{
	struct gm_torch_totals totals = {allocated, reserved};
	oom_hook *real = (oom_hook *)real_of(hook, name);
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
		static place struct hook hook;                                                     \
		const struct called called = {GM_ENTRY_HERE(), (memory_hook *)known(&hook)};       \
                                                                                                   \
		if (!called.real)                                                                  \
			on_memory_slow(&hook, #symbol, block, bytes, allocated, reserved, device,  \
				       &called.caller);                                            \
		else if (device.type != DEVICE_TYPE_CUDA || gm_idle() || !hook.wanted)             \
			called.real(block, bytes, allocated, reserved, device);                    \
		else if (gm_sample_bytes)                                                          \
			sample_and_forward(block, bytes, allocated, reserved, device, &called);    \
		else                                                                               \
			record_and_forward(block, bytes, allocated, reserved, device, &called);    \
	}

#define OOM_HOOK(symbol)                                                                           \
	EXPORT void symbol(int64_t, uint64_t, uint64_t, struct device);                            \
	EXPORT void symbol(int64_t bytes, uint64_t allocated, uint64_t reserved,                   \
			   struct device device)                                                   \
	{                                                                                          \
		static struct hook hook;                                                           \
		const struct gm_entry caller = GM_ENTRY_HERE();                                    \
                                                                                                   \
		on_oom(&hook, #symbol, bytes, allocated, reserved, device, &caller);               \
	}

MEMORY_HOOK(GM_HOT, GM_HOT_CODE, _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)
MEMORY_HOOK(, , _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)
MEMORY_HOOK(, , _ZN3c1027reportMemoryUsageToProfilerEPvmmmNS_6DeviceE)
OOM_HOOK(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE)
OOM_HOOK(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE)
OOM_HOOK(_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE)
