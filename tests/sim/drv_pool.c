/*
 * Stream-ordered memory pools of the simulated driver. A pool's reserve grows in steps of 32 MiB.
 * A free lowers `used` at once; the block can be had again by the same stream at once, by others
 * once the stream has reached the free, and goes back to the device at a synchronisation.
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

/* Joins a free block with its free neighbours. */
static void merge(struct sim_block *block)
{
	struct sim_block *next = block->next;

	if (next && next->state == SIM_BLOCK_FREE) {
		block->size += next->size;
		block->next = next->next;
		if (next->next)
			next->next->prev = block;
		free(next);
	}
	if (block->prev && block->prev->state == SIM_BLOCK_FREE)
		merge(block->prev);
}

static void block_free(struct sim_block *block)
{
	if (block->stream)
		sim_stream_put(block->stream);
	block->stream = NULL;
	block->state = SIM_BLOCK_FREE;
	merge(block);
}

/* --- backing: which pages of the pool's address range have memory --- */

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
	pool->backed = calloc(size / SIM_PAGE, 1);
	pool->blocks = calloc(1, sizeof(*pool->blocks));
	pool->blocks->addr = pool->base;
	pool->blocks->size = size;
	return true;
}

static uint64_t unbacked(struct CUmemPoolHandle_st *pool, uint64_t from, uint64_t to)
{
	uint64_t bytes = 0;

	for (uint64_t at = from / SIM_PAGE * SIM_PAGE; at < to; at += SIM_PAGE)
		bytes += pool->backed[(at - pool->base) / SIM_PAGE] ? 0 : SIM_PAGE;
	return bytes;
}

static bool back_range(struct CUmemPoolHandle_st *pool, uint64_t from, uint64_t to)
{
	uint64_t bytes = unbacked(pool, from, to);
	uint64_t limit = sim_round(pool->props.maxSize, SIM_POOL_STEP);

	if (limit && pool->reserved + bytes > limit)
		return false;
	if (pool->dev >= 0 && sim_phys_take(pool->dev, bytes) != CUDA_SUCCESS)
		return false;
	for (uint64_t at = from / SIM_PAGE * SIM_PAGE; at < to; at += SIM_PAGE)
		pool->backed[(at - pool->base) / SIM_PAGE] = 1;
	count_reserved(pool, bytes);
	return true;
}

/* In steps of 32 MiB while there is room, at the end by the page. */
static bool back(struct CUmemPoolHandle_st *pool, uint64_t addr, uint64_t size)
{
	uint64_t from = addr / SIM_POOL_STEP * SIM_POOL_STEP;
	uint64_t to = sim_round(addr + size, SIM_POOL_STEP);

	return back_range(pool, from, to) || back_range(pool, addr, addr + size);
}

static void unback(struct CUmemPoolHandle_st *pool, uint64_t step)
{
	uint64_t bytes = 0;

	for (uint64_t at = step; at < step + SIM_POOL_STEP; at += SIM_PAGE) {
		bytes += pool->backed[(at - pool->base) / SIM_PAGE] ? SIM_PAGE : 0;
		pool->backed[(at - pool->base) / SIM_PAGE] = 0;
	}
	if (pool->dev >= 0)
		sim_phys_give(pool->dev, bytes);
	pool->reserved -= bytes;
}

/* Gives back steps that hold nothing, from the top, as long as `keep` bytes stay. */
static void trim(struct CUmemPoolHandle_st *pool, uint64_t keep)
{
	struct sim_block *block = pool->blocks;

	while (block && block->next)
		block = block->next;
	for (; block && pool->reserved > keep; block = block->prev) {
		uint64_t first = sim_round(block->addr, SIM_POOL_STEP);
		uint64_t step = (block->addr + block->size) / SIM_POOL_STEP * SIM_POOL_STEP;

		if (block->state != SIM_BLOCK_FREE)
			continue;
		while (step > first && pool->reserved > keep) {
			uint64_t held;

			step -= SIM_POOL_STEP;
			held = SIM_POOL_STEP - unbacked(pool, step, step + SIM_POOL_STEP);
			if (held && pool->reserved - held >= keep)
				unback(pool, step);
		}
	}
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

static void settle(struct CUmemPoolHandle_st *pool, CUstream stream)
{
	bool again = true;

	while (again) {
		again = false;
		for (struct sim_block *block = pool->blocks; block; block = block->next) {
			if (block->state != SIM_BLOCK_PENDING || !reached(block) ||
			    (stream && block->stream != stream))
				continue;
			block_free(block);
			again = true; /* the list has changed */
			break;
		}
	}
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

/*
 * Another stream's pending block may be had when reached (opportunism), or, when memory is wanting,
 * by making the asking stream wait for it. Only whole: pending blocks are not joined.
 */
static bool usable(struct CUmemPoolHandle_st *pool, struct sim_block *block, CUstream stream,
		   bool may_wait)
{
	if (block->state == SIM_BLOCK_FREE)
		return true;
	if (block->state != SIM_BLOCK_PENDING)
		return false;
	if (block->stream == stream)
		return true;
	if (reached(block))
		return pool->reuse[1];
	return may_wait && pool->reuse[2];
}

static struct sim_block *find(struct CUmemPoolHandle_st *pool, uint64_t size, CUstream stream,
			      bool may_wait)
{
	for (struct sim_block *block = pool->blocks; block; block = block->next)
		if (block->size >= size && usable(pool, block, stream, may_wait) &&
		    !unbacked(pool, block->addr, block->addr + size))
			return block;
	return NULL;
}

static struct sim_block *grow(struct CUmemPoolHandle_st *pool, uint64_t size)
{
	for (struct sim_block *block = pool->blocks; block; block = block->next)
		if (block->state == SIM_BLOCK_FREE && block->size >= size)
			return back(pool, block->addr, size) ? block : NULL;
	return NULL;
}

static struct sim_block *obtain(struct CUmemPoolHandle_st *pool, uint64_t size, CUstream stream)
{
	struct sim_block *block = find(pool, size, stream, false);

	if (!block)
		block = grow(pool, size);
	if (!block)
		block = find(pool, size, stream, true);
	if (!block) {
		sim_pools_empty();
		block = grow(pool, size);
	}
	return block;
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
		if (rest->next)
			rest->next->prev = rest;
		block->next = rest;
		block->size = size;
	}
	if (block->stream)
		sim_stream_put(block->stream);
	block->stream = NULL;
	block->state = SIM_BLOCK_USED;
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
