/*
 * The ledger. The latest sample is in GM_TABLE_LEDGER, a bounded history in
 * GM_TABLE_LEDGER_HISTORY.
 *
 * What the process uses is NVML's figure for its pid if there is one. Where pids cannot be matched,
 * as in containers, it is the device's own figure less what was used before the first context, and
 * without NVML less what the first sample cannot explain.
 */
#include "track/ledger.h"
#include "track/costs.h"
#include "track/levels.h"
#include "track/recording.h"
#include "track/timeline.h"
#include "track/update.h"

#include <string.h>

#define HISTORY_FIRST	64u	      /* kept for good */
#define HISTORY_RECORDS 512u	      /* beyond the first ones a ring */
#define FREE_SAMPLES	64u	      /* so many samples for a reason are made at once */
#define SAMPLE_EVERY_NS 1000000000ull /* later ones at most this often */
#define REASONS		8u
#define PEAK		1u /* `reason` of gm_ledger_record */
#define TIME		4u
#define TAKEN		5u
#define MOST_SHARE	100u		/* of the time that samples by time may take */
#define BURST_NS	20000000ull	/* that they may take beyond it */
#define LEAST_NS	2000000ull	/* between two of them */
#define MOST_NS		10000000000ull
#define AGE_SHARE	16u		/* of the run's time so far */
#define PEAK_STEP_BYTES (32ull << 20)

static struct {
	struct gm_ledger_record *record;
	uint64_t sampled_peak_bytes;
	uint64_t baseline_bytes; /* of the device's figure; GM_NO_BYTES until set */
	uint64_t sampled_ns[REASONS];
	uint32_t samples[REASONS];
	uint32_t all_samples;
} ledgers[GM_SLOTS];

static uint64_t next_peak_bytes[GM_SLOTS]; /* a peak from here on is worth a sample; apart, because
					      each allocation reads it */
uint64_t gm_ledger_next_ns;
static uint64_t spent_ns; /* by samples by time (atomic) */

static uint32_t history;		   /* samples ever kept in the history */

void gm_ledger_reset(void)
{
	unsigned i;

	memset(ledgers, 0, sizeof(ledgers));
	for (i = 0; i < GM_SLOTS; i++) {
		ledgers[i].baseline_bytes = GM_NO_BYTES;
		next_peak_bytes[i] = PEAK_STEP_BYTES;
	}
	history = 0;
	gm_ledger_next_ns = LEAST_NS;
	spent_ns = 0;
}

bool gm_track_ledger_sampled(int device)
{
	return __atomic_load_n(&ledgers[gm_slot(device)].all_samples, __ATOMIC_RELAXED) != 0;
}

static __attribute__((noinline)) bool too_soon(unsigned slot, unsigned reason)
{
	return ledgers[slot].samples[reason] >= FREE_SAMPLES &&
	       gm_track_now() - ledgers[slot].sampled_ns[reason] < SAMPLE_EVERY_NS;
}

bool gm_track_ledger_schedule(uint64_t now_ns, uint64_t cost_ns)
{
	uint64_t due = __atomic_load_n(&gm_ledger_next_ns, __ATOMIC_RELAXED),
		 wait = now_ns / AGE_SHARE;

	uint64_t spent = __atomic_add_fetch(&spent_ns, cost_ns, __ATOMIC_RELAXED);

	if (wait > MOST_NS)
		wait = MOST_NS;
	if (wait < LEAST_NS)
		wait = LEAST_NS;
	if (spent > BURST_NS && (spent - BURST_NS) * MOST_SHARE > now_ns + wait)
		wait = (spent - BURST_NS) * MOST_SHARE - now_ns;
	return __atomic_compare_exchange_n(&gm_ledger_next_ns, &due, now_ns + wait, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void gm_ledger_missed(int device)
{
	struct gm_ledger_record *record = ledgers[gm_slot(device)].record;

	if (record)
		record->later_calls++;
}

void gm_track_ledger_missed(int device)
{
	if (!gm_file)
		return;
	gm_update_begin();
	gm_ledger_missed(device);
	gm_update_end();
}

bool gm_track_ledger_due(int device, unsigned reason)
{
	return !too_soon(gm_slot(device), reason % REASONS);
}

/* The next peak that is worth a sample is higher by a 32nd, and by 32 MiB at least. */
static void set_sampled_peak(unsigned slot, uint64_t bytes)
{
	uint64_t step = bytes / 32 > PEAK_STEP_BYTES ? bytes / 32 : PEAK_STEP_BYTES;

	ledgers[slot].sampled_peak_bytes = bytes;
	next_peak_bytes[slot] = bytes + step;
}

static inline bool at_peak(unsigned slot)
{
	const struct gm_level_record *level =
		__atomic_load_n(&gm_totals.levels[slot][GM_LEVEL_DRIVER], __ATOMIC_ACQUIRE);

	return level && level->physical_bytes >= next_peak_bytes[slot];
}

/*
 * Returns this device unless its last sample was too recent, else the next one that is worth a
 * sample.
 */
static GM_COLD int worth_a_sample(int device)
{
	return too_soon(gm_slot(device), PEAK) ? gm_track_ledger_peak(device + 1) : device;
}

GM_HOT_CODE int gm_track_ledger_peak(int device)
{
	unsigned i, count = gm_file->tables[GM_TABLE_DEVICES].count;

	for (i = (unsigned)device; i < count; i++)
		if (__builtin_expect(at_peak(i < GM_DEVICES ? i + 1 : GM_DEVICES), 0))
			return worth_a_sample((int)i);
	return -1;
}

/*
 * Returns the cost of all contexts whose cost is known; GM_NO_BYTES if none is, 0 after the last
 * one's end.
 */
static uint64_t context_bytes(int device)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_CONTEXTS].count;
	const struct gm_device_record *record = gm_store_record(GM_TABLE_DEVICES, (uint32_t)device);
	uint64_t sum = 0;
	unsigned live = 0, ended = 0;

	for (index = 0; index < count; index++) {
		const struct gm_context_record *context = gm_store_record(GM_TABLE_CONTEXTS, index);

		if (context->device != device)
			continue;
		/*
		 * The process keeps the memory that a green context took until the primary
		 * context's end.
		 */
		ended += context->state != GM_STATE_LIVE && !context->green;
		live += context->state == GM_STATE_LIVE;
		if ((context->state == GM_STATE_LIVE || context->green) &&
		    context->bytes != GM_NO_BYTES)
			sum += context->bytes;
	}
	if (ended && !live)
		return 0;
	return sum ? sum : record ? record->context_bytes : GM_NO_BYTES;
}

/* Sets what the process uses and by which source. Returns false if that is not known. */
static bool process_used(struct gm_ledger_record *now, const struct gm_device_view *view)
{
	const struct gm_device_record *device =
		gm_store_record(GM_TABLE_DEVICES, (uint32_t)now->device);
	uint64_t *baseline = &ledgers[gm_slot(now->device)].baseline_bytes;
	uint64_t known = now->tracked_physical_bytes + now->code_bytes;

	if (view->own_bytes != GM_NO_BYTES) {
		now->source = GM_LEDGER_NVML_PROCESS;
		now->process_used_bytes = view->own_bytes;
		return true;
	}
	now->source = GM_LEDGER_DEVICE_DELTA;
	if (now->device_used_bytes == GM_NO_BYTES)
		return false;
	if (*baseline == GM_NO_BYTES && device && device->free_before_bytes != GM_NO_BYTES)
		*baseline = device->total_bytes - device->free_before_bytes;
	if (*baseline == GM_NO_BYTES) {
		if (now->context_bytes != GM_NO_BYTES)
			known += now->context_bytes;
		*baseline = now->device_used_bytes > known ? now->device_used_bytes - known : 0;
	}
	now->process_used_bytes =
		now->device_used_bytes > *baseline ? now->device_used_bytes - *baseline : 0;
	return true;
}

/*
 * Returns what was in use when the period began and was not freed since. The first sample of the
 * period measures it: all that neither contexts nor what was recorded explain.
 */
static uint64_t before_period(struct gm_device_record *device, const struct gm_ledger_record *now)
{
	uint64_t known = now->tracked_physical_bytes + now->code_bytes;

	if (now->context_bytes != GM_NO_BYTES)
		known += now->context_bytes;
	if (device->before_bytes == GM_NO_BYTES)
		device->before_bytes =
			now->process_used_bytes > known ? now->process_used_bytes - known : 0;
	return device->before_bytes;
}

/*
 * Computes the part that nothing explains. The first sample, after the first context, gives that
 * context's cost.
 */
static void explain(struct gm_ledger_record *now)
{
	uint64_t known = now->tracked_physical_bytes + now->code_bytes;
	struct gm_device_record *device =
		gm_store_record(GM_TABLE_DEVICES, (uint32_t)now->device);

	if (gm_file->periods && device)
		now->before_bytes = before_period(device, now);
	known += now->before_bytes;
	if (now->context_bytes == GM_NO_BYTES && gm_file->periods) {
		now->context_bytes = 0; /* it is part of what was there before */
	} else if (now->context_bytes == GM_NO_BYTES) {
		now->context_bytes =
			now->process_used_bytes > known ? now->process_used_bytes - known : 0;
		if (device)
			device->context_bytes = now->context_bytes;
	}
	known += now->context_bytes;
	now->unexplained_bytes = (int64_t)(now->process_used_bytes - known);
	/*
	 * The resident part of managed memory is not known: it is taken to be as much as would
	 * explain the rest.
	 */
	if (now->unexplained_bytes > 0)
		now->unexplained_bytes -= now->unexplained_bytes < (int64_t)now->managed_bytes
						  ? now->unexplained_bytes
						  : (int64_t)now->managed_bytes;
}

static void keep_history(const struct gm_ledger_record *now)
{
	struct gm_ledger_record *record;
	uint32_t index = history++;

	if (index >= HISTORY_RECORDS)
		index = HISTORY_FIRST + (index - HISTORY_FIRST) % (HISTORY_RECORDS - HISTORY_FIRST);
	/* gm_store_record would also find records of the chunk that are not counted yet. */
	record = index < gm_file->tables[GM_TABLE_LEDGER_HISTORY].count
			 ? gm_store_record(GM_TABLE_LEDGER_HISTORY, index)
			 : gm_store_append(GM_TABLE_LEDGER_HISTORY, 1, &index);
	if (!record)
		return;
	*record = *now;
	gm_store_publish(GM_TABLE_LEDGER_HISTORY);
}

static void keep(unsigned slot, struct gm_ledger_record *now)
{
	struct gm_ledger_record *last = ledgers[slot].record;
	uint32_t index;

	if (!last) {
		last = gm_store_append(GM_TABLE_LEDGER, 1, &index);
		if (!last)
			return;
		last->unexplained_first_bytes = last->unexplained_min_bytes =
			now->unexplained_bytes;
		ledgers[slot].record = last;
	}
	now->samples = last->samples + 1;
	now->unexplained_first_bytes = last->unexplained_first_bytes;
	now->unexplained_min_bytes = now->unexplained_bytes < last->unexplained_min_bytes
					     ? now->unexplained_bytes
					     : last->unexplained_min_bytes;
	*last = *now;
	gm_store_publish(GM_TABLE_LEDGER);
	if (now->reason != TAKEN || !too_soon(slot, TAKEN)) {
		keep_history(now);
		ledgers[slot].sampled_ns[now->reason % REASONS] = gm_track.now_ns;
		ledgers[slot].samples[now->reason % REASONS]++;
	}
	__atomic_store_n(&ledgers[slot].all_samples, now->samples, __ATOMIC_RELAXED);
	gm_timeline_set(now->device, GM_SERIES_DRIVER_USED, now->process_used_bytes);
}

static uint64_t device_used(const struct gm_device_view *view)
{
	if (view->used_bytes != GM_NO_BYTES)
		return view->used_bytes;
	return view->free_bytes == GM_NO_BYTES ? GM_NO_BYTES : view->total_bytes - view->free_bytes;
}

static uint64_t at_least_none(int64_t bytes)
{
	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* Local memory that a launch took and a lower stack limit gave back counts against the launches. */
static uint64_t launch_bytes(int device)
{
	int64_t limits = gm_cost_bytes(device, GM_COST_STACK_LIMIT);

	return at_least_none(gm_cost_bytes(device, GM_COST_LAUNCH) + (limits < 0 ? limits : 0));
}

bool gm_track_ledger(int device, unsigned reason, uint64_t physical_bytes,
		     const struct gm_device_view *view)
{
	unsigned slot = gm_slot(device);
	struct gm_ledger_record now = {.device = (int16_t)device, .reason = (uint8_t)reason};
	bool same;

	if (!gm_file || device < 0)
		return true;
	gm_update_begin();
	same = gm_track_physical_bytes(device) == physical_bytes;
	if (same) {
		now.time_ns = gm_track.now_ns;
		now.tracked_physical_bytes = physical_bytes;
		now.managed_bytes = gm_track_managed_bytes(device);
		now.code_bytes = gm_track_code_bytes(device);
		now.launch_bytes = launch_bytes(device);
		now.stream_bytes = at_least_none(gm_cost_bytes(device, GM_COST_STREAM));
		now.graph_bytes = at_least_none(gm_cost_bytes(device, GM_COST_GRAPH));
		now.context_bytes = context_bytes(device);
		now.device_used_bytes = device_used(view);
		if (process_used(&now, view)) {
			explain(&now);
			keep(slot, &now);
		}
		if (reason < TIME && physical_bytes > ledgers[slot].sampled_peak_bytes)
			set_sampled_peak(slot, physical_bytes);
	}
	gm_update_end();
	return same;
}
