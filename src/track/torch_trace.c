/*
 * The trace of PyTorch's allocator of its blocks (torch_trace.h). An entry is written only where a
 * reader would assume otherwise: that as much was asked for as was handed out, in steps of 512
 * bytes, that stream and pool are those of the block before, and that a free waits for nothing.
 */
#include "track/torch_trace.h"
#include "store/journal.h"
#include "track/event_log.h"
#include "track/levels.h"
#include "track/update.h"

#include <errno.h>

#define UNIT 512u

static bool traced; /* (atomic) */

/* The block that the calling thread is about to report; the blocks are 0 if there is nothing. */
static __thread struct {
	struct gm_torch_request request;
	uint64_t freed;
	bool done;
} next __attribute__((tls_model("initial-exec")));

/* The pool and stream that the history names last, by device slot. */
static struct {
	uint64_t pool, stream;
	bool known;
} written[GM_SLOTS];

void gm_torch_trace_start(void)
{
	__atomic_store_n(&traced, true, __ATOMIC_RELEASE);
}

bool gm_torch_traced(void)
{
	return __atomic_load_n(&traced, __ATOMIC_ACQUIRE);
}

void gm_torch_trace_reset(void)
{
	for (unsigned i = 0; i < GM_SLOTS; i++)
		written[i].known = false;
}

void gm_torch_trace_request(const struct gm_torch_request *request)
{
	next.request = *request;
}

void gm_torch_trace_free(uint64_t block)
{
	next.freed = block;
	next.done = false;
}

static void put(enum gm_event_op op, uint64_t key, uint64_t bytes, uint64_t stream, int device)
{
	struct gm_event event =
		gm_block_event(key, bytes, device, (struct gm_origin){GM_NONE, GM_NONE, 0});

	event.stream = stream;
	gm_log_to_journal(op, &event, 0, GM_NONE);
}

static void put_pool(uint64_t pool, uint64_t stream, int device)
{
	unsigned slot = gm_slot(device);

	if (written[slot].known && written[slot].pool == pool && written[slot].stream == stream)
		return;
	put(GM_OP_TORCH_POOL, pool, 0, stream, device);
	written[slot].pool = pool;
	written[slot].stream = stream;
	written[slot].known = true;
}

void gm_torch_trace_add(uint64_t block, uint64_t bytes, int device)
{
	struct gm_torch_request request = next.request;

	next.request.block = 0;
	if (!gm_torch_traced())
		return;
	if (request.block != block || !request.bytes || request.bytes > bytes) {
		__atomic_store_n(&traced, false, __ATOMIC_RELAXED);
		put_pool(GM_NO_BYTES, 0, device);
		return;
	}
	put_pool(request.pool, request.stream, device);
	if (bytes - request.bytes >= UNIT)
		put(GM_OP_TORCH_REQUEST, block, request.bytes, 0, device);
}

void gm_torch_trace_drop(uint64_t block, int device)
{
	if (gm_torch_traced() && next.freed == block && !next.done)
		put(GM_OP_TORCH_FREE_WAITS, block, 0, 0, device);
	next.freed = 0;
}

bool gm_torch_trace_done(uint64_t block)
{
	next.done |= next.freed == block;
	return next.freed == block;
}

void gm_torch_trace_waited(uint64_t block, int device)
{
	int saved = errno;

	if (!gm_file)
		return;
	gm_update_begin();
	if (gm_journal_on)
		put(GM_OP_TORCH_FREE_DONE, block, 0, 0, device);
	gm_update_end();
	errno = saved;
}
