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

static void block_settle(struct sim_block *block)
{
	sim_stream_put(block->stream);
	block->stream = NULL;
	block->state = SIM_BLOCK_FREE;
}

static struct sim_segment *segment_new(struct CUmemPoolHandle_st *pool, uint64_t size)
{
	struct sim_segment *segment, **at = &pool->segments;
	uint64_t addr = sim_arena_take(&sim.arena, size, SIM_PAGE, 0);

	if (!addr)
		return NULL;
	segment = calloc(1, sizeof(*segment));
	segment->pool = pool;
	segment->addr = addr;
	segment->size = size;
	segment->blocks = calloc(1, sizeof(*segment->blocks));
	segment->blocks->segment = segment;
	segment->blocks->addr = addr;
	segment->blocks->size = size;
	while (*at && (*at)->addr < addr)
		at = &(*at)->next;
	segment->next = *at;
	*at = segment;
	count_reserved(pool, size);
	return segment;
}

static void segment_free(struct CUmemPoolHandle_st *pool, struct sim_segment **at)
{
	struct sim_segment *segment = *at;
	struct sim_block *block, *next;

	*at = segment->next;
	for (block = segment->blocks; block; block = next) {
		next = block->next;
		if (block->stream)
			sim_stream_put(block->stream);
		free(block);
	}
	sim_arena_give(&sim.arena, segment->addr, segment->size);
	if (pool->dev >= 0)
		sim_phys_give(pool->dev, segment->size);
	pool->reserved -= segment->size;
	free(segment);
}

static bool segment_idle(const struct sim_segment *segment)
{
	for (struct sim_block *block = segment->blocks; block; block = block->next)
		if (block->state != SIM_BLOCK_FREE)
			return false;
	return true;
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

static void settle_pool(struct CUmemPoolHandle_st *pool)
{
	for (struct sim_segment *segment = pool->segments; segment; segment = segment->next)
		for (struct sim_block *block = segment->blocks; block; block = block->next)
			if (block->state == SIM_BLOCK_PENDING && reached(block))
				block_settle(block);
	for (struct sim_segment *segment = pool->segments; segment; segment = segment->next)
		for (struct sim_block *block = segment->blocks; block; block = block->next)
			while (block->state == SIM_BLOCK_FREE && block->next &&
			       block->next->state == SIM_BLOCK_FREE)
				merge(block);
}

static void trim(struct CUmemPoolHandle_st *pool, uint64_t keep)
{
	struct sim_segment **at = &pool->segments;

	while (*at && pool->reserved > keep) {
		if (segment_idle(*at) && pool->reserved - (*at)->size >= keep)
			segment_free(pool, at);
		else
			at = &(*at)->next;
	}
}

/* Nothing that is pending goes, even if its stream got there: no synchronisation has told so. */
void sim_pool_trim(struct CUmemPoolHandle_st *pool, uint64_t keep)
{
	trim(pool, keep);
}

static void each_pool(void (*fn)(struct CUmemPoolHandle_st *))
{
	for (struct sim_object *o = sim.loose; o; o = o->next) {
		if (o->type == SIM_POOL)
			fn((CUmemoryPool)o);
		if (o->type != SIM_CTX)
			continue;
		for (struct sim_object *own = ((CUcontext)o)->objects; own; own = own->next)
			if (own->type == SIM_POOL)
				fn((CUmemoryPool)own);
	}
}

static void settle_and_trim(struct CUmemPoolHandle_st *pool)
{
	settle_pool(pool);
	trim(pool, pool->threshold);
}

void sim_pools_settle(void)
{
	each_pool(settle_and_trim);
}

static void settle_and_empty(struct CUmemPoolHandle_st *pool)
{
	settle_pool(pool);
	trim(pool, 0);
}

/* Another stream's pending block may be had when reached (opportunism), or by waiting for it. */
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
	/*
	 * Facts: what a thread freed on one busy stream and asks for on another, the driver makes
	 * the second stream wait for. Another thread's pending frees are not waited for.
	 */
	return may_wait && pool->reuse[2] && block->thread == sim_thread_id();
}

static struct sim_block *find(struct CUmemPoolHandle_st *pool, uint64_t size, CUstream stream,
			      bool may_wait)
{
	for (struct sim_segment *segment = pool->segments; segment; segment = segment->next)
		for (struct sim_block *block = segment->blocks; block; block = block->next)
			if (block->size >= size && usable(pool, block, stream, may_wait))
				return block;
	return NULL;
}

static struct sim_block *grow(struct CUmemPoolHandle_st *pool, uint64_t size)
{
	const uint64_t steps[] = {sim_round(size, SIM_POOL_STEP), sim_round(size, SIM_PAGE)};
	struct sim_segment *segment;

	for (int i = 0; i < 2; i++) {
		if (pool->props.maxSize && pool->reserved + steps[i] > sim_round(pool->props.maxSize, SIM_PAGE))
			continue;
		if (pool->dev >= 0 && sim_phys_take(pool->dev, steps[i]) != CUDA_SUCCESS)
			continue;
		segment = segment_new(pool, steps[i]);
		if (segment)
			return segment->blocks;
		if (pool->dev >= 0)
			sim_phys_give(pool->dev, steps[i]);
	}
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
		each_pool(settle_and_empty);
		block = find(pool, size, stream, true);
	}
	return block ? block : grow(pool, size);
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
	if (block->state == SIM_BLOCK_PENDING)
		block_settle(block);
	block->state = SIM_BLOCK_USED;
}

CUresult sim_pool_alloc(CUdeviceptr *ptr, size_t size, struct CUmemPoolHandle_st *pool, CUstream stream)
{
	uint64_t rounded = sim_round(size, SIM_UNIT);
	struct sim_block *block = rounded >= size ? obtain(pool, rounded, stream) : NULL;
	struct sim_mem *mem;

	*ptr = block ? block->addr : 0;
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	take(block, rounded, stream);
	block->asked = size;
	block->ctx = sim_ctx_current();
	mem = sim_mem_add(block->addr, size, SIM_MEM_POOL, block->ctx);
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
	while (pool->segments)
		segment_free(pool, &pool->segments);
	free(pool);
}

/* On a stream the block is pending until a synchronisation; without one it is free at once. */
void sim_pool_free(struct sim_mem *mem, CUstream stream)
{
	struct CUmemPoolHandle_st *pool = mem->pool;
	struct sim_block *block = mem->block;

	if (mem->kind == SIM_MEM_POOL_IMPORT) {
		sim_arena_give(&sim.arena, mem->addr, sim_round(mem->size, SIM_PAGE));
		sim_mem_drop(mem);
		return;
	}
	pool->used -= block->asked;
	pool->live--;
	if (stream) {
		block->state = SIM_BLOCK_PENDING;
		block->stream = stream;
		stream->refs++;
		block->thread = sim_thread_id();
		block->seq = sim_stream_effect(stream, NULL, NULL);
	} else {
		block->state = SIM_BLOCK_FREE;
		merge(block);
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

static void release_block(struct sim_mem *mem, void *ctx)
{
	if ((mem->kind == SIM_MEM_POOL || mem->kind == SIM_MEM_POOL_IMPORT) && mem->ctx == ctx)
		sim_pool_free(mem, NULL);
}

void sim_pools_release_ctx(CUcontext ctx)
{
	sim_mem_each(release_block, ctx);
	sim_pools_settle();
}

static CUresult alloc_async(CUdeviceptr *ptr, size_t size, CUmemoryPool pool, CUstream handle)
{
	CUstream stream = sim_stream(handle);
	CUresult rc;

	SIM_VALUE(ptr);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pool)
		pool = sim.dev[stream->head.ctx->dev].pool;
	SIM_VALUE(size && !pool->imported);
	rc = sim_capture_check(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (stream->capture)
		return sim_graph_alloc_node(stream, ptr, size, pool->dev);
	return sim_pool_alloc(ptr, size, pool, stream);
}

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	SIM_API(SIM_CURRENT);
	return alloc_async(ptr, size, NULL, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size, CUmemoryPool pool, CUstream stream)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(SIM_GET(SIM_POOL, pool));
	return alloc_async(ptr, size, pool, stream);
}

/* Also legal for plain allocations: they are then freed when the call is made. */
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream handle)
{
	SIM_API(SIM_CURRENT);
	struct sim_mem *mem = sim_mem_find(ptr);
	CUstream stream = sim_stream(handle);
	CUresult rc;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ptr)
		return CUDA_SUCCESS;
	SIM_VALUE(mem && mem->addr == ptr);
	rc = sim_capture_check(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
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
	case SIM_MEM_DEVICE:
	case SIM_MEM_MANAGED:
		sim_mem_release(mem);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
