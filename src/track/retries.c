/*
 * Retry chains, by the definition of contract.md, section 6: an allocation call that fails for want
 * of memory opens a chain on its thread, the same call made again is an attempt, its success ends
 * the chain as recovered, a different call leaves it as what it was from the start: one OOM. So the
 * file is right at every moment, also of a process that is killed inside a chain. Called under the
 * lock.
 *
 * Calls of PyTorch's allocator form chains that only its own events end: a block handed out, or an
 * OOM reported. With expandable segments one request is many cuMemCreate, some of which succeed in
 * every attempt, so a success proves nothing there. PyTorch counts one retry for a request however
 * often it called (num_alloc_retries), and also where a limit refused it without any call of
 * CUDA's.
 */
#include "track/retries.h"

#include <string.h>

#define CHAINS 64u /* threads with an open chain; the oldest gives way and stays an OOM */

struct chain {
	uint32_t thread; /* 0: not in use */
	uint32_t function;
	uint32_t site;
	uint32_t oom; /* its ticket */
	uint64_t bytes;
	uint64_t started_ns;
	uint64_t flushed_bytes;
	uint64_t oversize_bytes; /* of them in segments of at least max_split_size */
	uint32_t failures;
	int16_t device;
	bool by_torch;	 /* a call of PyTorch's allocator */
	bool torch_ends; /* only PyTorch's events end it */
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
	uint32_t number, count = gm_file->tables[GM_TABLE_RETRIES].count;
	struct gm_retry_record *record;

	for (number = 0; number < count; number++) {
		record = gm_store_record(GM_TABLE_RETRIES, number);
		if (record->device == device)
			return record;
	}
	record = gm_store_append(GM_TABLE_RETRIES, 1, &number);
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
 * With max_split_size PyTorch gives back enough large segments and asks again before it flushes
 * them all; only the latter is a retry in its count. Enough: as much as the request, and that size.
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
	if (chain->torch_ends) /* any call for memory that PyTorch makes is for this request */
		return event->flags & GM_ALLOC_TORCH;
	return chain->function == event->function && chain->bytes == event->bytes &&
	       chain->device == event->device;
}

/* The request is made again. PyTorch's own count is one for a request, however many calls it takes.
 */
static void count_attempt(struct chain *chain)
{
	struct gm_retry_record *sum = sums(chain->device);
	struct gm_torch_record *torch = chain->by_torch ? gm_torch(chain->device) : NULL;
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
	struct gm_torch_record *torch = gm_torch(chain->device);
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
	/* The very first request of a process can fail before any block was seen; expandable
	 * segments (virtual memory) always come with blocks. */
	chain->torch_ends =
		chain->by_torch && (gm_track_torch_seen() || event->kind == GM_KIND_VMM);
	chain->failures = 1;
	chain->oom = gm_oom_open(event);
	gm_open_chains++;
	if (sum)
		sum->exhausted++;
}

/* The request was served: what was booked as an OOM was none. */
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

void gm_retry_failed(const struct gm_event *event, uint32_t site)
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

void gm_retry_served(const struct gm_event *event)
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

void gm_retry_other(const struct gm_event *event)
{
	struct chain *chain = own_chain();

	(void)event;
	if (chain && !chain->torch_ends)
		drop(chain);
}

void gm_retry_block(void)
{
	struct chain *chain = own_chain();

	if (!chain)
		return;
	if (chain->torch_ends)
		recover(chain);
	else
		drop(chain);
}

void gm_retry_torch_oom(const struct gm_event *event)
{
	struct gm_torch_record *torch = gm_torch(event->device);
	struct gm_retry_record *sum = sums(event->device);
	struct chain *chain = own_chain();

	if (torch)
		torch->ooms++;
	if (chain && chain->by_torch) {
		gm_oom_torch(chain->oom, event, false);
		if (sum)
			sum->flushed_bytes += chain->flushed_bytes;
		drop(chain);
		return;
	}
	if (chain)
		drop(chain);
	/* CUDA refused nothing: one attempt and one OOM, as PyTorch counts. */
	if (torch)
		torch->alloc_retries++;
	if (sum) {
		sum->attempts++;
		sum->exhausted++;
	}
	gm_oom_torch(gm_oom_open(event), event, true);
}

void gm_retry_freed_inside(const struct gm_alloc_record *alloc)
{
	struct chain *chain = own_chain();

	if (!chain || chain->device != alloc->device)
		return;
	chain->flushed_bytes += alloc->bytes;
	if (alloc->flags & GM_ALLOC_TORCH &&
	    alloc->bytes >= __atomic_load_n(&max_split_bytes, __ATOMIC_RELAXED))
		chain->oversize_bytes += alloc->bytes;
}
