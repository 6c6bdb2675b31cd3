/*
 * Chains of retries. An allocation call that fails for want of memory opens a chain on its thread.
 * The same call made again is an attempt, its success ends the chain as recovered, and a different
 * call leaves it as what it was from the start: one OOM. So the file is right at every moment, also
 * for a process that is killed within a chain.
 *
 * The chains of PyTorch's allocator are ended by its own events alone: a block that it handed out,
 * or an OOM that it reported. With expandable segments one request is many calls of cuMemCreate,
 * some of which succeed in every attempt, so their success proves nothing. PyTorch counts one retry
 * for a request however often it called (num_alloc_retries), and also if a limit refused it without
 * any call of CUDA's.
 */
#include "track/retries.h"
#include "track/ooms.h"
#include "track/thread_id.h"
#include "track/torch_memory.h"
#include "track/update.h"

#include <string.h>

#define CHAINS 64u /* threads with an open chain; if there are more, the oldest stays an OOM */

struct chain {
	uint32_t thread; /* 0: not in use */
	uint32_t function;
	uint32_t site;
	uint32_t oom; /* the ticket of its OOM */
	uint64_t bytes;
	uint64_t started_ns;
	uint64_t flushed_bytes;
	uint64_t oversize_bytes; /* flushed bytes of segments of at least max_split_size */
	uint32_t failures;
	int16_t device;
	bool by_torch;	 /* a call of PyTorch's allocator */
	bool torch_ends; /* only PyTorch's events end the chain */
	bool repeated;
};

static struct chain chains[CHAINS];
GM_HOT unsigned gm_open_chains;
static uint64_t max_split_bytes; /* PyTorch's max_split_size, 0: not set (atomic) */

void gm_retries_reset(void)
{
	memset(chains, 0, sizeof(chains));
	gm_open_chains = 0;
}

static struct chain *own_chain(void)
{
	uint32_t thread;
	unsigned i;

	if (!gm_open_chains)
		return NULL;
	thread = gm_calling_thread();
	for (i = 0; i < CHAINS; i++)
		if (chains[i].thread == thread)
			return &chains[i];
	return NULL;
}

static void drop(struct chain *chain)
{
	memset(chain, 0, sizeof(*chain));
	gm_open_chains--;
}

static struct chain *free_chain(void)
{
	struct chain *oldest = &chains[0];
	unsigned i;

	for (i = 0; i < CHAINS; i++) {
		if (!chains[i].thread)
			return &chains[i];
		if (chains[i].started_ns < oldest->started_ns)
			oldest = &chains[i];
	}
	drop(oldest);
	return oldest;
}

static struct gm_retry_record *sums(int device)
{
	uint32_t index, count = gm_file->tables[GM_TABLE_RETRIES].count;
	struct gm_retry_record *record;

	for (index = 0; index < count; index++) {
		record = gm_store_record(GM_TABLE_RETRIES, index);
		if (record->device == device)
			return record;
	}
	record = gm_store_append(GM_TABLE_RETRIES, 1, &index);
	if (record) {
		record->device = (int16_t)device;
		gm_store_publish(GM_TABLE_RETRIES);
	}
	return record;
}

void gm_track_torch_max_split(uint64_t bytes)
{
	__atomic_store_n(&max_split_bytes, bytes, __ATOMIC_RELAXED);
}

/*
 * Returns whether a chain is no retry in PyTorch's count. With max_split_size PyTorch first gives
 * back large segments that are enough for the request and calls again, before it flushes them all;
 * only the latter is a retry in its count. Enough is as much as the request, and at least that
 * size.
 */
static bool was_shortcut(const struct chain *chain)
{
	uint64_t enough = __atomic_load_n(&max_split_bytes, __ATOMIC_RELAXED);

	if (!enough || !chain->torch_ends || chain->failures != 1)
		return false;
	if (chain->bytes > enough)
		enough = chain->bytes;
	return chain->oversize_bytes >= enough;
}

static bool same_call(const struct chain *chain, const struct gm_event *event)
{
	if (chain->torch_ends) /* any allocation call of PyTorch's is for this request */
		return event->flags & GM_ALLOC_TORCH;
	return chain->function == event->function && chain->bytes == event->bytes &&
	       chain->device == event->device;
}

/*
 * The request is made again. PyTorch counts one retry for a request, however many calls it takes.
 */
static void count_attempt(struct chain *chain)
{
	struct gm_retry_record *sum = sums(chain->device);
	struct gm_torch_record *torch = chain->by_torch ? gm_torch_of(chain->device) : NULL;
	struct gm_site_record *site = gm_store_record(GM_TABLE_SITES, chain->site);

	if (chain->repeated && chain->torch_ends)
		return;
	if (sum)
		sum->attempts++;
	if (torch)
		torch->alloc_retries++;
	if (site && !chain->repeated)
		site->retries++;
	chain->repeated = true;
}

static void uncount_attempt(struct chain *chain)
{
	struct gm_retry_record *sum = sums(chain->device);
	struct gm_torch_record *torch = gm_torch_of(chain->device);
	struct gm_site_record *site = gm_store_record(GM_TABLE_SITES, chain->site);

	if (!chain->repeated)
		return;
	if (sum)
		sum->attempts--;
	if (torch)
		torch->alloc_retries--;
	if (site)
		site->retries--;
	chain->repeated = false;
}

static void open_chain(const struct gm_event *event, uint32_t site)
{
	struct gm_retry_record *sum = sums(event->device);
	struct chain *chain = free_chain();

	chain->thread = gm_calling_thread();
	chain->function = event->function;
	chain->site = site;
	chain->bytes = event->bytes;
	chain->started_ns = gm_track.now_ns;
	chain->device = event->device;
	chain->by_torch = event->flags & GM_ALLOC_TORCH;
	/*
	 * The first request of a process can fail before any block was recorded; expandable
	 * segments (virtual memory) always come with blocks.
	 */
	chain->torch_ends =
		chain->by_torch && (gm_track_torch_seen() || event->kind == GM_KIND_VMM);
	chain->failures = 1;
	chain->oom = gm_oom_open(event);
	gm_open_chains++;
	if (sum)
		sum->exhausted++;
}

/* The request was served: what was recorded as an OOM was none. */
static void recover(struct chain *chain)
{
	struct gm_retry_record *sum = sums(chain->device);

	gm_oom_withdraw(chain->oom);
	if (was_shortcut(chain))
		uncount_attempt(chain);
	if (sum) {
		sum->exhausted--;
		if (chain->repeated) {
			sum->recovered++;
			sum->stall_ns += gm_track.now_ns - chain->started_ns;
			sum->flushed_bytes += chain->flushed_bytes;
		}
	}
	drop(chain);
}

void gm_retry_out_of_memory(const struct gm_event *event, uint32_t site)
{
	struct chain *chain = own_chain();

	if (chain && same_call(chain, event)) {
		count_attempt(chain);
		chain->failures++;
		gm_oom_again(chain->oom, event);
		return;
	}
	if (chain)
		drop(chain);
	open_chain(event, site);
}

void gm_retry_succeeded(const struct gm_event *event)
{
	struct chain *chain = own_chain();

	if (!chain)
		return;
	if (same_call(chain, event)) {
		count_attempt(chain);
		if (!chain->torch_ends)
			recover(chain);
	} else if (!chain->torch_ends) {
		drop(chain);
	}
}

void gm_retry_failed_otherwise(void)
{
	struct chain *chain = own_chain();

	if (chain && !chain->torch_ends)
		drop(chain);
}

void gm_retry_block_allocated(void)
{
	struct chain *chain = own_chain();

	if (!chain)
		return;
	if (chain->torch_ends)
		recover(chain);
	else
		drop(chain);
}

static void torch_oom(const struct gm_event *event)
{
	struct gm_torch_record *torch = gm_torch_of(event->device);
	struct gm_retry_record *sum = sums(event->device);
	struct chain *chain = own_chain();

	if (torch)
		torch->ooms++;
	if (chain && chain->by_torch) {
		gm_oom_set_torch_request(chain->oom, event, false);
		if (sum)
			sum->flushed_bytes += chain->flushed_bytes;
		drop(chain);
		return;
	}
	if (chain)
		drop(chain);
	/* CUDA refused nothing. PyTorch counts one attempt and one OOM. */
	if (torch)
		torch->alloc_retries++;
	if (sum) {
		sum->attempts++;
		sum->exhausted++;
	}
	gm_oom_set_torch_request(gm_oom_open(event), event, true);
}

void gm_track_torch_oom(const struct gm_event *event, const struct gm_torch_totals *totals)
{
	struct gm_torch_record *torch;

	if (!gm_file)
		return;
	gm_update_begin();
	gm_file->events++;
	torch = gm_torch_of(event->device);
	if (torch)
		gm_torch_compare(torch, totals);
	torch_oom(event);
	gm_update_end();
}

void gm_retry_count_flushed(const struct gm_alloc_record *alloc)
{
	struct chain *chain = own_chain();

	if (!chain || chain->device != alloc->device)
		return;
	chain->flushed_bytes += alloc->bytes;
	if (alloc->flags & GM_ALLOC_TORCH &&
	    alloc->bytes >= __atomic_load_n(&max_split_bytes, __ATOMIC_RELAXED))
		chain->oversize_bytes += alloc->bytes;
}
