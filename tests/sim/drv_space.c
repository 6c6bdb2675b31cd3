/*
 * Address space and physical memory of the simulated devices. Addresses are reserved and never
 * touched; physical memory is a count of bytes per device. Small requests live in 2 MiB slabs, in
 * units of 512 B, lowest address first, so a freed address comes back at once.
 */
#include <errno.h>
#include <search.h>
#include <sys/mman.h>
#include "drv.h"

struct sim_hole {
	struct sim_hole *next;
	uint64_t addr, size;
};

#define SLAB_UNITS (SIM_PAGE / SIM_UNIT)

struct sim_slab {
	struct sim_slab *next; /* lowest address first */
	uint64_t addr;
	unsigned used;		       /* units */
	uint64_t map[SLAB_UNITS / 64]; /* bit set: unit taken */
};

static void *mem_tree; /* of struct sim_mem, by address range */

/* Where addresses lie that could not be reserved: far below libraries and far above the heap. */
#define UNRESERVED ((void *)(1ull << 45))

/*
 * Reserved, so that no memory of the host has the addresses. Where the address space is limited, as
 * under valgrind or ulimit -v, nothing is mapped at UNRESERVED either. Leaves errno alone, as a
 * call into NVIDIA's driver does: programs of the tests look at what the shim does to it.
 */
int sim_arena_init(struct sim_arena *arena, bool low)
{
	uint64_t size = low ? 1ull << 30 : 1ull << 44, least = low ? 1ull << 28 : size;
	void *base = MAP_FAILED;
	int saved = errno;

	for (; base == MAP_FAILED && size >= least; size >>= 1)
		base = mmap(NULL, size, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (low ? MAP_32BIT : 0), -1,
			    0);
	size <<= 1;
	if (base == MAP_FAILED && !low)
		base = UNRESERVED;
	else if (base != MAP_FAILED)
		madvise(base, size, MADV_DONTDUMP);
	errno = saved;
	if (base == MAP_FAILED)
		return -1;
	arena->base = sim_round((uint64_t)(uintptr_t)base, SIM_POOL_STEP);
	arena->size = size - SIM_POOL_STEP;
	arena->holes = calloc(1, sizeof(*arena->holes));
	arena->holes->addr = arena->base;
	arena->holes->size = arena->size;
	return 0;
}

/* First fit, or exactly at `hint` when that is free. 0 when there is no room. */
uint64_t sim_arena_take(struct sim_arena *arena, uint64_t size, uint64_t align, uint64_t hint)
{
	for (struct sim_hole **at = &arena->holes; *at; at = &(*at)->next) {
		struct sim_hole *hole = *at, *rest;
		uint64_t addr = hint ? hint : sim_round(hole->addr, align);
		uint64_t end = addr + size;

		if (addr < hole->addr || end > hole->addr + hole->size || end < addr)
			continue;
		if (end < hole->addr + hole->size) {
			rest = calloc(1, sizeof(*rest));
			rest->addr = end;
			rest->size = hole->addr + hole->size - end;
			rest->next = hole->next;
			hole->next = rest;
		}
		hole->size = addr - hole->addr;
		if (!hole->size) {
			*at = hole->next;
			free(hole);
		}
		return addr;
	}
	return 0;
}

void sim_arena_give(struct sim_arena *arena, uint64_t addr, uint64_t size)
{
	struct sim_hole **at = &arena->holes, *hole, *before = NULL;

	for (; *at && (*at)->addr < addr; at = &(*at)->next)
		before = *at;
	if (before && before->addr + before->size == addr) {
		before->size += size;
		hole = before;
	} else {
		hole = calloc(1, sizeof(*hole));
		hole->addr = addr;
		hole->size = size;
		hole->next = *at;
		*at = hole;
	}
	if (hole->next && hole->addr + hole->size == hole->next->addr) {
		struct sim_hole *next = hole->next;

		hole->size += next->size;
		hole->next = next->next;
		free(next);
	}
}

/* Ranges that overlap compare equal: so an inner address finds its allocation. */
static int by_range(const void *a, const void *b)
{
	const struct sim_mem *x = a, *y = b;

	if (x->addr + (x->size ? x->size : 1) <= y->addr)
		return -1;
	return x->addr >= y->addr + (y->size ? y->size : 1);
}

struct sim_mem *sim_mem_add(uint64_t addr, uint64_t size, enum sim_kind kind, CUcontext ctx)
{
	struct sim_mem *mem = calloc(1, sizeof(*mem));

	mem->addr = addr;
	mem->size = size;
	mem->kind = kind;
	mem->ctx = sim_memory_ctx(ctx);
	mem->dev = ctx ? ctx->dev : -1;
	mem->id = ++sim.ids;
	mem->refs = 1;
	mem->preferred = CU_DEVICE_INVALID;
	mem->last_prefetch = CU_DEVICE_INVALID;
	tsearch(mem, &mem_tree, by_range);
	return mem;
}

void sim_mem_drop(struct sim_mem *mem)
{
	tdelete(mem, &mem_tree, by_range);
	if (mem->async) {
		sim_stream_put(mem->async);
		sim.plain_async--;
	}
	free(mem->resident);
	free(mem);
}

struct sim_mem *sim_mem_overlap(uint64_t addr, uint64_t size)
{
	struct sim_mem key = {.addr = addr, .size = size}, **found;

	found = tfind(&key, &mem_tree, by_range);
	return found ? *found : NULL;
}

struct sim_mem *sim_mem_find(uint64_t addr)
{
	return sim_mem_overlap(addr, 1);
}

struct collect {
	struct sim_mem **list;
	size_t count, room;
};

static void collect_node(const void *node, VISIT visit, void *arg)
{
	struct collect *all = arg;

	if (visit != postorder && visit != leaf)
		return;
	if (all->count == all->room) {
		all->room = all->room ? all->room * 2 : 64;
		all->list = realloc(all->list, all->room * sizeof(*all->list));
	}
	all->list[all->count++] = *(struct sim_mem *const *)node;
}

/* In order of addresses; fn may drop the record that it is given. */
void sim_mem_each(void (*fn)(struct sim_mem *, void *), void *arg)
{
	struct collect all = {0};

	twalk_r(mem_tree, collect_node, &all);
	for (size_t i = 0; i < all.count; i++)
		fn(all.list[i], arg);
	free(all.list);
}

CUresult sim_phys_take(int dev, uint64_t bytes)
{
	struct sim_device *device = &sim.dev[dev];

	if (bytes > device->total || device->used > device->total - bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	device->used += bytes;
	return CUDA_SUCCESS;
}

void sim_phys_give(int dev, uint64_t bytes)
{
	sim.dev[dev].used -= bytes;
}

uint64_t sim_phys_free(int dev)
{
	struct sim_device *device = &sim.dev[dev];

	return device->used < device->total ? device->total - device->used : 0;
}

static int slab_find(const struct sim_slab *slab, unsigned units)
{
	unsigned run = 0;

	for (unsigned i = 0; i < SLAB_UNITS; i++) {
		if (run == 0 && i % 64 == 0 && slab->map[i / 64] == ~0ull) {
			i += 63;
			continue;
		}
		if (slab->map[i / 64] >> (i % 64) & 1)
			run = 0;
		else if (++run == units)
			return (int)(i + 1 - units);
	}
	return -1;
}

static void slab_mark(struct sim_slab *slab, unsigned first, unsigned units, bool take)
{
	for (unsigned i = first; i < first + units; i++) {
		if (take)
			slab->map[i / 64] |= 1ull << (i % 64);
		else
			slab->map[i / 64] &= ~(1ull << (i % 64));
	}
	slab->used = take ? slab->used + units : slab->used - units;
}

static struct sim_arena *arena_of(bool low)
{
	if (low && !sim.low_arena.base && sim_arena_init(&sim.low_arena, true) != 0)
		return NULL;
	return low ? &sim.low_arena : &sim.arena;
}

/* Arrays have slabs of their own, as measured. */
static struct sim_slab **slabs_of(CUcontext ctx, enum sim_kind kind, bool low)
{
	if (kind == SIM_MEM_ARRAY)
		return &ctx->array_slabs;
	return low ? &ctx->low_slabs : &ctx->slabs;
}

static struct sim_slab *slab_new(CUcontext ctx, enum sim_kind kind, bool low)
{
	struct sim_slab *slab, **at = slabs_of(ctx, kind, low);
	struct sim_arena *arena = arena_of(low);
	uint64_t addr;

	if (!arena || sim_phys_take(ctx->dev, SIM_PAGE) != CUDA_SUCCESS)
		return NULL;
	addr = sim_arena_take(arena, SIM_PAGE, SIM_PAGE, 0);
	if (!addr) {
		sim_phys_give(ctx->dev, SIM_PAGE);
		return NULL;
	}
	slab = calloc(1, sizeof(*slab));
	slab->addr = addr;
	while (*at && (*at)->addr < addr)
		at = &(*at)->next;
	slab->next = *at;
	*at = slab;
	return slab;
}

static struct sim_mem *small_alloc(CUcontext ctx, size_t size, enum sim_kind kind, bool low)
{
	unsigned units = (unsigned)(sim_round(size, SIM_UNIT) / SIM_UNIT);
	struct sim_slab *slab = *slabs_of(ctx, kind, low);
	struct sim_mem *mem;
	int at = -1;

	for (; slab; slab = slab->next) {
		if (SLAB_UNITS - slab->used >= units && (at = slab_find(slab, units)) >= 0)
			break;
	}
	if (!slab) {
		slab = slab_new(ctx, kind, low);
		at = 0;
	}
	if (!slab)
		return NULL;
	slab_mark(slab, (unsigned)at, units, true);
	mem = sim_mem_add(slab->addr + (uint64_t)at * SIM_UNIT, size, kind, ctx);
	mem->slab = slab;
	mem->low = low;
	return mem;
}

static struct sim_mem *large_alloc(CUcontext ctx, size_t size, enum sim_kind kind, bool low)
{
	uint64_t pages = sim_round(size, SIM_PAGE), addr;
	struct sim_arena *arena = arena_of(low);
	struct sim_mem *mem;

	if (pages < size || !arena || sim_phys_take(ctx->dev, pages) != CUDA_SUCCESS)
		return NULL;
	addr = sim_arena_take(arena, pages, SIM_PAGE, 0);
	if (!addr) {
		sim_phys_give(ctx->dev, pages);
		return NULL;
	}
	mem = sim_mem_add(addr, size, kind, ctx);
	mem->pages = pages;
	mem->low = low;
	return mem;
}

struct sim_mem *sim_device_alloc(CUcontext ctx, size_t size, enum sim_kind kind, bool low)
{
	ctx = sim_memory_ctx(ctx);
	return size <= SIM_SMALL_MAX ? small_alloc(ctx, size, kind, low)
				     : large_alloc(ctx, size, kind, low);
}

static void slab_free(struct sim_mem *mem)
{
	struct sim_slab *slab = mem->slab, **at = slabs_of(mem->ctx, mem->kind, mem->low);

	slab_mark(slab, (unsigned)((mem->addr - slab->addr) / SIM_UNIT),
		  (unsigned)(sim_round(mem->size, SIM_UNIT) / SIM_UNIT), false);
	if (slab->used)
		return;
	while (*at != slab)
		at = &(*at)->next;
	*at = slab->next;
	sim_arena_give(arena_of(mem->low), slab->addr, SIM_PAGE);
	sim_phys_give(mem->dev, SIM_PAGE);
	free(slab);
}

/* A device's use of managed pages; when it is full the pages stay where they are, as with UVM. */
void sim_managed_touch(struct sim_mem *mem, uint64_t addr, uint64_t size, int dev)
{
	uint64_t first = (addr - mem->addr) / SIM_PAGE;
	uint64_t last = size ? (addr + size - 1 - mem->addr) / SIM_PAGE : first;

	for (uint64_t i = first; i <= last; i++) {
		int holder = mem->resident[i];

		if (holder == dev)
			continue;
		if (dev >= 0 && sim_phys_take(dev, SIM_PAGE) != CUDA_SUCCESS)
			return;
		if (holder >= 0)
			sim_phys_give(holder, SIM_PAGE);
		mem->resident[i] = (int8_t)dev;
	}
}

static void managed_free(struct sim_mem *mem)
{
	sim_managed_touch(mem, mem->addr, mem->size, -1);
	munmap((void *)(uintptr_t)mem->addr, sim_round(mem->size, SIM_PAGE));
}

void sim_mem_release(struct sim_mem *mem)
{
	switch (mem->kind) {
	case SIM_MEM_DEVICE:
	case SIM_MEM_ARRAY:
		if (mem->slab) {
			slab_free(mem);
		} else {
			sim_phys_give(mem->dev, mem->pages);
			sim_arena_give(arena_of(mem->low), mem->addr, mem->pages);
		}
		break;
	case SIM_MEM_MANAGED:
		managed_free(mem);
		break;
	case SIM_MEM_HOST:
		sim.pinned -= mem->pages;
		munmap((void *)(uintptr_t)mem->addr, mem->pages);
		break;
	case SIM_MEM_IPC:
		sim_object_free(mem->owner);
		/* fallthrough */
	case SIM_MEM_EXTERNAL:
		sim_arena_give(&sim.arena, mem->addr, sim_round(mem->size, SIM_PAGE));
		break;
	default:
		break;
	}
	sim_mem_drop(mem);
}

static void release_owned(struct sim_mem *mem, void *ctx)
{
	if (mem->ctx != ctx || mem->kind == SIM_MEM_MAPPED || mem->kind == SIM_MEM_POOL ||
	    mem->kind == SIM_MEM_POOL_IMPORT)
		return;
	if (mem->kind == SIM_MEM_GRAPH)
		sim_graph_mem_retire(mem->graph);
	else
		sim_mem_release(mem);
}

/* What a context's end does to its memory. Pools and mappings go by their own rules. */
void sim_mem_release_ctx(CUcontext ctx)
{
	sim_mem_each(release_owned, ctx);
}
