/*
 * Stream-ordered memory pools of the simulated driver. Where a block lies and what a pool reserves
 * are as on an H200 (docs/evidence/whatif.md): best fit, of equal blocks the one that is free for
 * longest; first of what the stream itself freed, then of what is free for all and has memory, then
 * of all, with memory by chunks of 32 MiB. A free lowers `used` at once; the block can be had again
 * by the same stream at once, by others once the stream has reached the free, and goes back to the
 * device at a synchronisation.
 */
#include "drv.h"

struct CUmemPoolHandle_st *sim_pool_new(int dev, const CUmemPoolProps *props, CUcontext ctx)
{
	struct CUmemPoolHandle_st *pool = sim_object_new(SIM_POOL, sizeof(*pool), ctx);

	pool->dev = dev;
	if (props)
		pool->props = *props;
	else
		pool->props = (CUmemPoolProps){
			.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {CU_MEM_LOCATION_TYPE_DEVICE, dev},
		};
	pool->reuse[0] = pool->reuse[1] = pool->reuse[2] = 1;
	if (dev >= 0)
		pool->access[dev] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return pool;
}

static void count_reserved(struct CUmemPoolHandle_st *pool, uint64_t more)
{
	pool->reserved += more;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
}

static bool reached(const struct sim_block *block)
{
	return block->stream->done >= block->seq;
}

static bool joins(const struct sim_block *block, const struct sim_block *other)
{
	return other && other->state == block->state &&
	       (block->state == SIM_BLOCK_FREE || other->stream == block->stream);
}

static void absorb(struct sim_block *block, struct sim_block *other)
{
	block->addr = other->addr < block->addr ? other->addr : block->addr;
	block->size += other->size;
	if (other->prev)
		other->prev->next = other->next;
	else
		block->pool->blocks = other->next;
	if (other->next)
		other->next->prev = other->prev;
	if (other->stream)
		sim_stream_put(other->stream);
	free(other);
}

/* Joins a free or pending block with its neighbours of the same kind. */
static void merge(struct sim_block *block)
{
	while (joins(block, block->next))
		absorb(block, block->next);
	while (joins(block, block->prev))
		absorb(block, block->prev);
	block->order = ++block->pool->orders;
}

static void block_free(struct sim_block *block)
{
	if (block->stream)
		sim_stream_put(block->stream);
	block->stream = NULL;
	block->state = SIM_BLOCK_FREE;
	merge(block);
}

/* --- backing: which chunks of the pool's address range have memory --- */

/* The range is reserved once, larger than the device, so addresses are never what is wanting. */
static bool range_init(struct CUmemPoolHandle_st *pool)
{
	uint64_t size = pool->dev >= 0 ? 2 * sim.dev[pool->dev].total : 64ull << 30;

	if (pool->blocks)
		return true;
	size = sim_round(size, SIM_POOL_STEP);
	pool->base = sim_arena_take(&sim.arena, size, SIM_POOL_STEP, 0);
	if (!pool->base)
		return false;
	pool->size = size;
	pool->backed = calloc(size / SIM_POOL_STEP, 1);
	pool->blocks = calloc(1, sizeof(*pool->blocks));
	pool->blocks->pool = pool;
	pool->blocks->addr = pool->base;
	pool->blocks->size = size;
	return true;
}

static uint64_t chunk_of(const struct CUmemPoolHandle_st *pool, uint64_t addr)
{
	return (addr - pool->base) / SIM_POOL_STEP;
}

static uint64_t past_chunk(const struct CUmemPoolHandle_st *pool, uint64_t end)
{
	return sim_round(end - pool->base, SIM_POOL_STEP) / SIM_POOL_STEP;
}

static uint64_t unbacked(const struct CUmemPoolHandle_st *pool, uint64_t from, uint64_t to)
{
	uint64_t count = 0;

	for (uint64_t i = chunk_of(pool, from); i < past_chunk(pool, to); i++)
		count += !pool->backed[i];
	return count;
}

static const struct sim_block *last_block(const struct CUmemPoolHandle_st *pool)
{
	const struct sim_block *block = pool->blocks;

	while (block->next)
		block = block->next;
	return block;
}

/* Takes the memory of the chunks of a free block from `first` to before `past`. */
static uint64_t strip(struct CUmemPoolHandle_st *pool, const struct sim_block *block, bool down,
		      uint64_t most)
{
	uint64_t first = past_chunk(pool, block->addr),
		 past = chunk_of(pool, block->addr + block->size);
	uint64_t taken = 0;

	for (uint64_t i = first; i < past && taken < most; i++) {
		uint64_t chunk = down ? past - 1 - (i - first) : i;

		taken += pool->backed[chunk];
		pool->backed[chunk] = 0;
	}
	return taken;
}

/* Takes the memory of `most` idle chunks, those with the highest addresses first. */
static uint64_t steal(struct CUmemPoolHandle_st *pool, uint64_t most)
{
	uint64_t taken = 0;

	for (const struct sim_block *block = last_block(pool); block && taken < most;
	     block = block->prev)
		if (block->state == SIM_BLOCK_FREE)
			taken += strip(pool, block, true, most - taken);
	return taken;
}

static uint64_t idle_chunks(const struct CUmemPoolHandle_st *pool)
{
	uint64_t count = 0;

	for (const struct sim_block *block = pool->blocks; block; block = block->next)
		for (uint64_t i = past_chunk(pool, block->addr);
		     block->state == SIM_BLOCK_FREE &&
		     i < chunk_of(pool, block->addr + block->size);
		     i++)
			count += pool->backed[i];
	return count;
}

static void give_back(struct CUmemPoolHandle_st *pool, uint64_t chunks)
{
	if (pool->dev >= 0)
		sim_phys_give(pool->dev, chunks * SIM_POOL_STEP);
	pool->reserved -= chunks * SIM_POOL_STEP;
}

/* Gives idle chunks back until at most `keep` bytes stay: first behind what is used, from the top,
 * then from the bottom. */
static void trim(struct CUmemPoolHandle_st *pool, uint64_t keep)
{
	uint64_t over = pool->reserved > keep
				? sim_round(pool->reserved - keep, SIM_POOL_STEP) / SIM_POOL_STEP
				: 0;
	const struct sim_block *last;
	uint64_t taken;

	if (!over)
		return;
	last = last_block(pool);
	taken = last->state == SIM_BLOCK_FREE ? strip(pool, last, true, over) : 0;
	for (const struct sim_block *block = pool->blocks; block != last && taken < over;
	     block = block->next)
		if (block->state == SIM_BLOCK_FREE)
			taken += strip(pool, block, false, over - taken);
	give_back(pool, taken);
}

/* Nothing that is pending goes, even if its stream got there: no synchronisation has told so. */
void sim_pool_trim(struct CUmemPoolHandle_st *pool, uint64_t keep)
{
	trim(pool, keep);
}

static void each_pool(void (*fn)(struct CUmemPoolHandle_st *, CUstream), CUstream stream)
{
	for (struct sim_object *o = sim.loose; o; o = o->next) {
		if (o->type == SIM_POOL)
			fn((CUmemoryPool)o, stream);
		if (o->type != SIM_CTX)
			continue;
		for (struct sim_object *own = ((CUcontext)o)->objects; own; own = own->next)
			if (own->type == SIM_POOL)
				fn((CUmemoryPool)own, stream);
	}
}

/* What was freed last is free first. True if anything was pending. */
static bool complete(struct CUmemPoolHandle_st *pool, CUstream stream)
{
	struct sim_block *latest;
	bool any = false;

	do {
		latest = NULL;
		for (struct sim_block *block = pool->blocks; block; block = block->next)
			if (block->state == SIM_BLOCK_PENDING && reached(block) &&
			    (!stream || block->stream == stream) &&
			    (!latest || block->place > latest->place))
				latest = block;
		if (latest)
			block_free(latest);
		any |= latest != NULL;
	} while (latest);
	return any;
}

static void settle(struct CUmemPoolHandle_st *pool, CUstream stream)
{
	if (complete(pool, stream))
		trim(pool, pool->threshold);
}

static void settle_plain(struct sim_mem *mem, void *stream)
{
	if (mem->async && (!stream || mem->async == stream) && mem->async->done >= mem->async_seq)
		sim_mem_release(mem);
}

void sim_pools_settle(CUstream stream)
{
	each_pool(settle, stream);
	if (sim.plain_async)
		sim_mem_each(settle_plain, stream);
}

void sim_settle_legacy(CUcontext ctx)
{
	for (struct sim_object *o = ctx->objects; o; o = o->next)
		if (o->type == SIM_STREAM && !(((CUstream)o)->flags & CU_STREAM_NON_BLOCKING))
			sim_pools_settle((CUstream)o);
}

static void empty(struct CUmemPoolHandle_st *pool, CUstream stream)
{
	(void)stream;
	trim(pool, 0);
}

void sim_pools_empty(void)
{
	each_pool(empty, NULL);
}

/* --- allocating --- */

static bool better(const struct sim_block *block, const struct sim_block *than)
{
	return !than || block->size < than->size ||
	       (block->size == than->size && block->order < than->order);
}

/* The best block of what a stream freed, or with none of what is free for all. */
static struct sim_block *find(struct CUmemPoolHandle_st *pool, uint64_t size, CUstream stream,
			      bool with_memory)
{
	struct sim_block *best = NULL;

	for (struct sim_block *block = pool->blocks; block; block = block->next)
		if (block->size >= size &&
		    block->state == (stream ? SIM_BLOCK_PENDING : SIM_BLOCK_FREE) &&
		    block->stream == stream && better(block, best) &&
		    !(with_memory && unbacked(pool, block->addr, block->addr + block->size)))
			best = block;
	return best;
}

/*
 * The best block of what other streams freed: those that have reached the free, or with `wait`
 * those that the asking one would wait for. Only whole: what is pending on two is not joined.
 */
static struct sim_block *find_other(struct CUmemPoolHandle_st *pool, uint64_t size, bool wait)
{
	struct sim_block *best = NULL;

	if (!pool->reuse[wait ? 2 : 1])
		return NULL;
	for (struct sim_block *block = pool->blocks; block; block = block->next)
		if (block->state == SIM_BLOCK_PENDING && block->size >= size &&
		    (wait || reached(block)) && better(block, best))
			best = block;
	return best;
}

/* The free block that the pool grows under, if there is memory for it. */
static struct sim_block *grow(struct CUmemPoolHandle_st *pool, uint64_t size)
{
	struct sim_block *block = find(pool, size, NULL, false);
	uint64_t limit = sim_round(pool->props.maxSize, SIM_POOL_STEP), needed, idle, own = 0, more;

	if (!block)
		return NULL;
	needed = unbacked(pool, block->addr, block->addr + size);
	idle = needed ? idle_chunks(pool) : 0;
	for (uint64_t i = past_chunk(pool, block->addr);
	     needed && i < past_chunk(pool, block->addr + size); i++)
		own += pool->backed[i] && i < chunk_of(pool, block->addr + block->size);
	idle -= own;
	more = needed > idle ? (needed - idle) * SIM_POOL_STEP : 0;
	if (limit && pool->reserved + more > limit)
		return NULL;
	if (more && pool->dev >= 0 && sim_phys_take(pool->dev, more) != CUDA_SUCCESS)
		return NULL;
	count_reserved(pool, more);
	return block;
}

static struct sim_block *obtain(struct CUmemPoolHandle_st *pool, uint64_t size, CUstream stream)
{
	struct sim_block *block = find(pool, size, stream, false);

	if (!block)
		block = find(pool, size, NULL, true);
	if (!block)
		block = find_other(pool, size, false);
	if (!block) {
		complete(pool, stream);
		block = grow(pool, size);
	}
	if (!block)
		block = find_other(pool, size, true);
	if (!block) {
		sim_pools_empty();
		block = grow(pool, size);
	}
	return block;
}

/* Puts the memory of idle chunks, and what the pool has grown by, under a block. */
static void back(struct CUmemPoolHandle_st *pool, const struct sim_block *block)
{
	uint64_t needed = unbacked(pool, block->addr, block->addr + block->size);

	if (needed)
		steal(pool, needed);
	for (uint64_t i = chunk_of(pool, block->addr);
	     i < past_chunk(pool, block->addr + block->size); i++)
		pool->backed[i] = 1;
}

static void take(struct sim_block *block, uint64_t size, CUstream stream)
{
	struct sim_block *rest;

	if (block->state == SIM_BLOCK_PENDING && block->stream != stream)
		sim_stream_after(stream, block->stream, block->seq);
	if (block->size > size) {
		rest = calloc(1, sizeof(*rest));
		*rest = *block; /* still pending, if it was */
		if (rest->stream)
			rest->stream->refs++;
		rest->addr += size;
		rest->size -= size;
		rest->prev = block;
		rest->order = ++block->pool->orders;
		if (rest->next)
			rest->next->prev = rest;
		block->next = rest;
		block->size = size;
	}
	if (block->stream)
		sim_stream_put(block->stream);
	block->stream = NULL;
	block->state = SIM_BLOCK_USED;
	back(block->pool, block);
}

CUresult sim_pool_alloc(CUdeviceptr *ptr, size_t size, struct CUmemPoolHandle_st *pool,
			CUstream stream)
{
	uint64_t rounded = sim_round(size, SIM_UNIT);
	struct sim_block *block = NULL;
	struct sim_mem *mem;

	if (rounded >= size && range_init(pool) && rounded <= pool->size)
		block = obtain(pool, rounded, stream);
	*ptr = block ? block->addr : 0;
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	take(block, rounded, stream);
	block->asked = size;
	mem = sim_mem_add(block->addr, size, SIM_MEM_POOL,
			  NULL); /* outlives contexts, as measured */
	mem->dev = pool->dev;
	mem->pool = pool;
	mem->block = block;
	pool->live++;
	pool->used += size;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	return CUDA_SUCCESS;
}

static void pool_gone(struct CUmemPoolHandle_st *pool)
{
	struct sim_block *block, *next;

	for (block = pool->blocks; block; block = next) {
		next = block->next;
		if (block->stream)
			sim_stream_put(block->stream);
		free(block);
	}
	if (pool->dev >= 0)
		sim_phys_give(pool->dev, pool->reserved);
	if (pool->base)
		sim_arena_give(&sim.arena, pool->base, pool->size);
	free(pool->backed);
	free(pool);
}

/*
 * On a stream the block is pending until that stream is synchronised. Without one (cuMemFree) it is
 * free at once and the reserve falls, but the pool's count of used bytes is left as it was: so does
 * the real driver (H100, 580.159).
 */
void sim_pool_free(struct sim_mem *mem, CUstream stream)
{
	struct CUmemPoolHandle_st *pool = mem->pool;
	struct sim_block *block = mem->block;

	if (mem->kind == SIM_MEM_POOL_IMPORT) {
		sim_arena_give(&sim.arena, mem->addr, sim_round(mem->size, SIM_PAGE));
		sim_mem_drop(mem);
		return;
	}
	pool->live--;
	if (stream) {
		pool->used -= block->asked;
		block->state = SIM_BLOCK_PENDING;
		block->stream = stream;
		stream->refs++;
		block->seq = sim_stream_effect(stream, NULL, NULL);
		block->place = ++pool->orders;
		merge(block);
	} else {
		block_free(block);
		trim(pool, pool->threshold);
	}
	sim_mem_drop(mem);
	if (pool->dying && !pool->live)
		pool_gone(pool);
}

/* Destroyed with allocations out, a pool lives on without its handle until they are freed. */
void sim_pool_kill(struct CUmemPoolHandle_st *pool)
{
	for (int i = 0; i < sim.devices; i++)
		if (sim.dev[i].pool == pool)
			sim.dev[i].pool = sim.dev[i].default_pool;
	sim_object_forget(pool);
	pool->dying = true;
	if (!pool->live)
		pool_gone(pool);
}

static CUresult alloc_async(CUdeviceptr *ptr, size_t size, CUmemoryPool pool, CUstream handle)
{
	CUstream stream = sim_stream(handle);
	CUresult rc;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pool)
		pool = sim.dev[stream->head.ctx->dev].pool;
	SIM_VALUE(!pool->imported);
	if (!size)
		return CUDA_SUCCESS;
	rc = sim_capture_check(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (stream->capture)
		return sim_graph_alloc_node(stream, ptr, size, pool->dev);
	rc = sim_capture_unsafe();
	return rc != CUDA_SUCCESS ? rc : sim_pool_alloc(ptr, size, pool, stream);
}

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	if (ptr)
		*ptr = 0;
	SIM_API(SIM_CURRENT);
	SIM_VALUE(ptr);
	return alloc_async(ptr, size, NULL, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size, CUmemoryPool pool, CUstream stream)
{
	if (ptr)
		*ptr = 0;
	SIM_API(SIM_CURRENT);
	SIM_VALUE(ptr && SIM_GET(SIM_POOL, pool));
	return alloc_async(ptr, size, pool, stream);
}

/* Also legal for plain allocations, which then stay until the stream is synchronised. */
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream handle)
{
	SIM_API(SIM_CURRENT);
	struct sim_mem *mem = sim_mem_find(ptr);
	CUstream stream = sim_stream(handle);
	CUresult rc;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	rc = sim_capture_check(stream);
	if (rc == CUDA_SUCCESS && !stream->capture)
		rc = sim_capture_unsafe();
	if (rc != CUDA_SUCCESS || !ptr)
		return rc;
	SIM_VALUE(mem && mem->addr == ptr);
	if (stream->capture)
		return sim_graph_free_node(stream, ptr);
	switch (mem->kind) {
	case SIM_MEM_POOL:
	case SIM_MEM_POOL_IMPORT:
		sim_pool_free(mem, stream);
		return CUDA_SUCCESS;
	case SIM_MEM_GRAPH:
		SIM_VALUE(mem->graph->live);
		sim_graph_mem_retire(mem->graph);
		return CUDA_SUCCESS;
	case SIM_MEM_MANAGED:
		return CUDA_ERROR_NOT_SUPPORTED;
	case SIM_MEM_DEVICE:
		if (mem->async)
			sim_stream_put(mem->async);
		else
			sim.plain_async++;
		mem->async = stream;
		stream->refs++;
		mem->async_seq = sim_stream_effect(stream, NULL, NULL);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
