/*
 * Falling asleep and waking (sleep.h).
 */
#include "recorder/calls/sleep.h"
#include "recorder/process/attached.h"
#include "recorder/process/open_libraries.h"
#include "recorder/calls/device_view.h"
#include "recorder/calls/role_pool.h"
#include "recorder/query/query.h"
#include "recorder/state/settings.h"
#include "recorder/state/thread.h"
#include "store/syscall_guard.h"
#include "track/recording.h"
#include "track/track.h"

#include <errno.h>

/*
 * A thread that read the wish to stop may come here after another stopped and a third began the
 * next period, so the wish is read again under the lock. Without the lock the next call tries
 * again.
 */
void gm_fall_asleep(void)
{
	struct gm_fork_page *page = gm_fork_page();
	uint32_t awake = GM_READY;

	if (!gm_lock_try(&page->start))
		return;
	if (__atomic_load_n(&gm_file->wanted, __ATOMIC_ACQUIRE) == GM_WANT_SLEEP &&
	    __atomic_compare_exchange_n(&gm_readiness, &awake, GM_ASLEEP, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED)) {
		gm_settings.asleep = true; /* a child of fork begins as its parent is */
		gm_file->period_ended_ns = gm_track_now();
		__atomic_store_n(&gm_file->recording, GM_SLEEPS, __ATOMIC_RELEASE);
	}
	gm_lock_release(&page->start);
}

/* Devices that have a context, which may be older than the shim. */
static void note_devices(void)
{
	int device, devices = gm_query_device_count();

	for (device = 0; device < devices; device++)
		if (gm_query_primary_active(device, false))
			gm_note_device(device);
	gm_note_device(gm_query_current_device());
}

/*
 * Begins a period. What other threads allocate from the moment on at which the shim is ready is
 * recorded, and the ledger's sample tells it apart from what was there before.
 */
static void begin_period(void)
{
	if (!gm_attached_describe()) {
		__atomic_store_n(&gm_readiness, GM_OFF, __ATOMIC_RELEASE);
		return;
	}
	if (!gm_query_ready())
		gm_open_libraries();
	gm_settings.asleep = false;
	note_devices();
	gm_track_period_begin(gm_settings.events != GM_EVENTS_OFF);
	if (gm_settings.events == GM_EVENTS_ALL && gm_file->periods == 1)
		gm_start_history();
	gm_sample_current_pools();
	__atomic_store_n(&gm_readiness, GM_READY, __ATOMIC_RELEASE);
	gm_sample_ledgers(GM_SAMPLE_PERIOD);
	__atomic_store_n(&gm_file->recording, GM_RECORDS, __ATOMIC_RELEASE);
}

/* Wakes the shim in one of several threads; the others forward their calls until it is awake. */
static GM_COLD __attribute__((noinline)) bool wake(void)
{
	struct gm_fork_page *page = gm_fork_page();
	struct gm_syscall_guard guard;
	int error = errno;

	if (!gm_enter_tracker())
		return false; /* a handler interrupted the shim */
	gm_syscall_guard_enter(&guard);
	if (gm_lock_try(&page->start)) {
		/* Another thread may have woken it meanwhile, and the tool stopped it again. */
		if (__atomic_load_n(&gm_readiness, __ATOMIC_ACQUIRE) == GM_ASLEEP &&
		    __atomic_load_n(&gm_file->wanted, __ATOMIC_ACQUIRE) == GM_WANT_RECORDING)
			begin_period();
		gm_lock_release(&page->start);
	}
	gm_syscall_guard_leave(&guard);
	gm_leave_tracker();
	errno = error;
	return __atomic_load_n(&gm_readiness, __ATOMIC_ACQUIRE) == GM_READY;
}

int gm_want(enum gm_wanted wanted)
{
	if (gm_disabled())
		return -ENOSYS;
	if (gm_owns_file()) {
		__atomic_store_n(&gm_file->wanted, (uint16_t)wanted, __ATOMIC_RELEASE);
		if (wanted == GM_WANT_SLEEP)
			gm_fall_asleep();
		return 0;
	}
	gm_settings.asleep = wanted == GM_WANT_SLEEP; /* for the file of the first CUDA call */
	if (wanted == GM_WANT_SLEEP)
		__atomic_store_n(&gm_readiness, GM_ASLEEP, __ATOMIC_RELEASE);
	return 0;
}

/* The file is not open yet, or recording is wanted. */
static GM_COLD __attribute__((noinline)) bool stays_off_slow(void)
{
	if (gm_thread.busy || (!gm_owns_file() && !gm_start()))
		return true;
	if (__atomic_load_n(&gm_file->wanted, __ATOMIC_RELAXED) == GM_WANT_SLEEP)
		return true;
	return !wake();
}

GM_HOT_CODE bool gm_stays_off(void)
{
	uint32_t readiness = __atomic_load_n(&gm_readiness, __ATOMIC_ACQUIRE);

	if (readiness != GM_ASLEEP)
		return readiness == GM_OFF;
	if (__builtin_expect(gm_owns_file() && __atomic_load_n(&gm_file->wanted,
							       __ATOMIC_RELAXED) == GM_WANT_SLEEP,
			     1))
		return true;
	return stays_off_slow();
}
