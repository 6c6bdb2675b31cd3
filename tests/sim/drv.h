/*
 * What the files of the simulated driver share: its one state, its objects, and the scope that
 * every API function opens. One lock guards everything; a condition variable announces progress
 * of streams. Nothing here is visible outside libcuda.so.1.
 */
#ifndef SIM_DRV_H
#define SIM_DRV_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "sim_cuda.h"
#include "sim_env.h"

#define SIM_KIB		1024ull
#define SIM_MIB		(1024ull * 1024)
#define SIM_PAGE	(2 * SIM_MIB)  /* the unit of physical device memory */
#define SIM_UNIT	512ull	       /* the unit inside a slab */
#define SIM_SMALL_MAX	(1 * SIM_MIB)  /* larger requests take whole pages */
#define SIM_POOL_STEP	(32 * SIM_MIB) /* by this a pool's reserve grows */
#define SIM_DEVICES_MAX 16

static inline size_t sim_round(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* --- objects: every handle begins with this, so that a stale or foreign one is recognised --- */

enum sim_type {
	SIM_CTX = 1,
	SIM_GREEN,
	SIM_STREAM,
	SIM_EVENT,
	SIM_MODULE,
	SIM_FUNCTION,
	SIM_LIBRARY,
	SIM_KERNEL,
	SIM_ARRAY,
	SIM_MIPMAP,
	SIM_POOL,
	SIM_GRAPH,
	SIM_NODE,
	SIM_EXEC,
	SIM_VMM,
	SIM_EXTMEM,
	SIM_IPC,
	SIM_USEROBJ,
	SIM_RESDESC,
};

struct sim_object {
	enum sim_type type;
	CUcontext ctx;			/* dies with this context, or NULL */
	struct sim_object *prev, *next; /* the context's objects */
};

void *sim_object_new(enum sim_type type, size_t size, CUcontext ctx);
void sim_object_free(void *object);
void sim_object_forget(void *object); /* the handle dies, its memory stays */
/* The object if it is alive and of this type, else NULL. */
void *sim_object(const void *handle, enum sim_type type);
#define SIM_GET(type, handle) ((__typeof__(handle))sim_object((handle), (type)))

/* --- address space and memory --- */

struct sim_arena {
	uint64_t base, size;
	struct sim_hole *holes; /* free extents, lowest address first */
};

int sim_arena_init(struct sim_arena *arena, bool low);
uint64_t sim_arena_take(struct sim_arena *arena, uint64_t size, uint64_t align, uint64_t hint);
void sim_arena_give(struct sim_arena *arena, uint64_t addr, uint64_t size);

enum sim_kind {
	SIM_MEM_DEVICE = 1, /* cuMemAlloc and its pitched form */
	SIM_MEM_MANAGED,
	SIM_MEM_HOST,	    /* cuMemAllocHost, cuMemHostAlloc */
	SIM_MEM_REGISTERED, /* cuMemHostRegister */
	SIM_MEM_POOL,
	SIM_MEM_GRAPH, /* an address of a graph's allocation node */
	SIM_MEM_IPC,
	SIM_MEM_EXTERNAL,
	SIM_MEM_ARRAY,	/* no address that a program could know */
	SIM_MEM_MAPPED, /* a cuMemMap of a handle */
	SIM_MEM_POOL_IMPORT,
};

struct sim_mem {
	uint64_t addr, size;
	enum sim_kind kind;
	CUcontext ctx; /* owner; NULL for pools, mappings */
	int dev;
	unsigned flags;
	uint64_t id;
	bool low;	       /* of the 32-bit arena of the first API version */
	struct sim_slab *slab; /* where a small request lives */
	uint64_t pages;	       /* physical bytes of its own */
	struct sim_block *block;
	struct CUmemPoolHandle_st *pool;
	struct sim_graph_mem *graph;
	CUstream async; /* plain memory given to cuMemFreeAsync: freed when this is synchronised */
	uint64_t async_seq;
	struct sim_vmm *vmm;
	unsigned access[SIM_DEVICES_MAX];
	bool accessed;	  /* some access was set */
	int8_t *resident; /* managed: the device that holds each page, -1 the host */
	int preferred, last_prefetch;
	bool read_mostly;
	void *owner; /* imports: what they came from */
	int refs;
};

struct sim_mem *sim_mem_add(uint64_t addr, uint64_t size, enum sim_kind kind, CUcontext ctx);
void sim_mem_drop(struct sim_mem *mem);
struct sim_mem *sim_mem_find(uint64_t addr);		       /* any address inside */
struct sim_mem *sim_mem_overlap(uint64_t addr, uint64_t size); /* anything touching the range */
void sim_mem_each(void (*fn)(struct sim_mem *, void *), void *arg);
void sim_mem_release(struct sim_mem *mem); /* gives everything back, whatever the kind */
void sim_mem_release_ctx(CUcontext ctx);

CUresult sim_phys_take(int dev, uint64_t bytes);
void sim_phys_give(int dev, uint64_t bytes);
uint64_t sim_phys_free(int dev);
/* cuMemAlloc's way: slab or pages. 0 on want of memory. */
struct sim_mem *sim_device_alloc(CUcontext ctx, size_t size, enum sim_kind kind, bool low);
void sim_managed_touch(struct sim_mem *mem, uint64_t addr, uint64_t size, int dev);

/* --- devices and contexts --- */

struct sim_device {
	uint64_t total, used, others;
	uint64_t hidden; /* grown by launches, see GPUSIM_LAUNCH_GROWTH */
	uint64_t unattributed; /* see GPUSIM_UNATTRIBUTED */
	struct CUctx_st *primary;
	unsigned primary_flags;
	int primary_refs;
	struct CUmemPoolHandle_st *default_pool, *pool;
	uint64_t graph_live, graph_idle; /* bytes held by live and by idle graph blocks */
	uint64_t graph_high, graph_reserved_high;
	uint64_t exec_needs, exec_holds; /* of executable graphs: what is used, what was taken */
};

struct CUctx_st {
	struct sim_object head;
	int dev;
	bool primary, alive;
	unsigned flags;
	unsigned version;
	uint64_t id;
	uint64_t cost; /* what it holds by itself, the stack's share included */
	unsigned idle_streams; /* destroyed, whose memory is kept for later ones */
	uint64_t local; /* memory of its kernels, GPUSIM_LOCAL: in the cost */
	size_t limits[16];
	struct sim_object *objects;
	struct sim_slab *slabs, *low_slabs, *array_slabs;
	CUstream legacy;
	struct sim_thread_stream *thread_streams;
	unsigned peers; /* bit per device */
	int attached;	/* cuCtxAttach */
	CUgreenCtx green;
};

struct CUgreenCtx_st {
	struct sim_object head;
	CUcontext ctx;
	uint64_t id;
};

CUcontext sim_ctx_current(void);
CUcontext
sim_memory_ctx(CUcontext ctx); /* whose memory it is: of a green context the primary one */
CUresult sim_ctx_new(CUcontext *ctx, int dev, unsigned flags, bool primary, uint64_t cost);
void sim_ctx_kill(CUcontext ctx);
CUresult sim_primary_retain(CUcontext *ctx, int dev);
bool sim_ctx_alive(CUcontext ctx);

/* --- streams --- */

struct sim_op {
	struct sim_op *next;
	CUhostFn fn;
	CUstreamCallback callback;
	void *arg;
	void (*effect)(void *); /* done under the lock when the op is reached */
	CUstream wait_stream;	/* wait until that stream has done this many */
	uint64_t wait_seq;
};

struct CUstream_st {
	struct sim_object head;
	unsigned flags;
	int priority;
	uint64_t id;
	bool legacy, per_thread, dying, worker;
	uint64_t issued, done; /* operations */
	struct sim_op *first, **last;
	int refs; /* waits of others and its worker; freed when dying and 0 */
	struct sim_capture *capture;
	struct CUgraphNode_st **deps; /* while capturing */
	size_t deps_count;
	CUgreenCtx green;
};

struct CUevent_st {
	struct sim_object head;
	unsigned flags;
	CUstream stream; /* where it was recorded, NULL before; holds a reference */
	uint64_t seq;
	uint64_t time_ns;
	struct sim_capture *capture;
	uint64_t capture_id;
	struct CUgraphNode_st **deps;
	size_t deps_count;
};

/* The stream a handle names (NULL, legacy, per-thread or real), or NULL if there is none such. */
CUstream sim_stream(CUstream handle);
bool sim_stream_busy(CUstream stream);
void sim_stream_wait(CUstream stream, uint64_t seq); /* drops the lock meanwhile */
void sim_stream_drain(CUstream stream);
void sim_ctx_drain(CUcontext ctx);
/* Queues or, on an idle stream, carries out. Returns the op's number. */
uint64_t sim_stream_effect(CUstream stream, void (*effect)(void *), void *arg);
uint64_t sim_stream_host(CUstream stream, CUhostFn fn, CUstreamCallback callback, void *arg);
uint64_t sim_stream_after(CUstream stream, CUstream other, uint64_t seq);
void sim_stream_put(CUstream stream);
/* A call that an ongoing capture forbids (cuMemAlloc and the like): 0, or 900 and invalidated. */
CUresult sim_capture_unsafe(void);
CUresult sim_capture_check(CUstream stream); /* for work put on a stream: 0, 901, 906 */
CUresult sim_capture_sync(CUstream stream);  /* for waiting on a stream: 900 when one captures */
struct sim_capture *
sim_capture_of(CUevent event); /* the capture it was recorded in, if it goes on */
struct sim_capture *sim_capturing(CUstream stream);
CUresult sim_capture_node(CUstream stream, CUgraphNode *node, CUgraphNodeType type,
			  const void *params, size_t size);
CUresult sim_capture_join(CUstream stream, CUevent event);
CUresult sim_capture_isolation(CUstream stream); /* 905, and invalidated */
void sim_capture_abandon(CUstream stream);	 /* its stream goes */
void sim_stream_release(CUstream stream);
void sim_event_release(CUevent event);

/* --- pools --- */

enum sim_block_state { SIM_BLOCK_FREE, SIM_BLOCK_USED, SIM_BLOCK_PENDING };

struct sim_block {
	struct sim_block *prev, *next; /* neighbours by address */
	struct CUmemPoolHandle_st *pool;
	uint64_t addr, size, asked;
	enum sim_block_state state;
	CUstream stream; /* pending: the stream that must reach the free, referenced */
	uint64_t seq;
	uint64_t order; /* among free blocks of its size, and what is pending */
	uint64_t place; /* among what is pending: the latest free has the highest */
};

struct CUmemPoolHandle_st {
	struct sim_object head;
	CUmemPoolProps props;
	int dev; /* -1 for pools of host memory */
	bool is_default, imported, dying;
	uint64_t base, size;	  /* its address range */
	unsigned char *backed;	  /* by chunk: has memory */
	struct sim_block *blocks; /* the whole range, lowest address first */
	uint64_t orders;
	uint64_t used, reserved, used_high, reserved_high, threshold, live;
	int reuse[3];
	unsigned access[SIM_DEVICES_MAX];
	struct CUmemPoolHandle_st *origin; /* of an import */
};

struct CUmemPoolHandle_st *sim_pool_new(int dev, const CUmemPoolProps *props, CUcontext ctx);
void sim_pool_kill(struct CUmemPoolHandle_st *pool);
CUresult sim_pool_alloc(CUdeviceptr *ptr, size_t size, struct CUmemPoolHandle_st *pool, CUstream s);
void sim_pool_free(struct sim_mem *mem, CUstream stream); /* stream NULL: at once */
void sim_pool_trim(struct CUmemPoolHandle_st *pool, uint64_t keep);
/*
 * What a synchronisation does: frees that the stream (NULL: any) has reached become free, the
 * reserve falls to the threshold.
 */
void sim_pools_settle(CUstream stream);
void sim_settle_legacy(CUcontext ctx); /* the legacy stream and all blocking ones */
void sim_pools_empty(void);	       /* gives back whatever is idle: before an allocation fails */

/* --- graphs --- */

/* 32 MiB or more of addresses of one graph; has memory while something in it is live, and idle. */
struct sim_graph_region {
	uint64_t addr, size, filled;
	int dev, refs, live;
};

struct sim_graph_mem {
	uint64_t addr;
	struct sim_graph_region *region;
	int refs;
	bool live;
};

struct CUgraphNode_st {
	struct sim_object head;
	CUgraph graph;
	CUgraphNodeParams params;
	struct sim_graph_mem *mem;
	CUgraph child;
	CUgraphNode *deps;
	CUgraphNode origin; /* of a clone */
	size_t deps_count;
	CUgraphNode prev, next; /* the graph's nodes, in order of making */
	bool marked, disabled;
};

struct CUgraph_st {
	struct sim_object head;
	CUgraphNode first, last;
	size_t nodes;
	bool child, has_mem;
	struct sim_graph_region *region; /* where the next allocation node finds room */
	struct sim_user_ref *users;
};

struct sim_capture {
	CUgraph graph;
	CUstream origin;
	CUstreamCaptureMode mode;
	uint64_t thread, id;
	bool invalid, foreign_graph;
	struct sim_capture *next;
	int streams;
};

CUresult sim_graph_free_node(CUstream stream, uint64_t addr); /* cuMemFreeAsync while capturing */
CUresult sim_graph_alloc_node(CUstream stream, CUdeviceptr *ptr, size_t size, int dev);
void sim_graph_region_put(struct sim_graph_region *region);
void sim_graph_mem_put(struct sim_graph_mem *mem);
void sim_graph_mem_retire(struct sim_graph_mem *mem); /* live to idle */
CUresult sim_graph_new(CUgraph *graph);
CUresult sim_graph_add(CUgraph graph, CUgraphNode *node, const CUgraphNode *deps, size_t count,
		       CUgraphNodeType type);
void sim_graph_kill(CUgraph graph);
CUgraph sim_graph_copy(CUgraph graph);
CUresult sim_graph_mem_launch(struct sim_graph_mem *mem);
#ifndef SIM_REAL_HEADERS
CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params);
CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
			       size_t count, CUdeviceptr ptr);
#endif
void sim_user_drop_all(CUgraph graph);
void sim_user_share_all(CUgraph twin, CUgraph graph);

/* --- virtual memory, arrays, modules --- */

struct sim_vmm {
	struct sim_object head;
	uint64_t size;
	int dev; /* -1: host */
	CUmemAllocationProp prop;
	int handles, maps;
	bool imported, multicast;
	uint64_t team; /* multicast: devices added */
	struct sim_binding *bindings;
	struct sim_vmm *origin;
};

void sim_vmm_put(struct sim_vmm *vmm);
void sim_range(const struct sim_mem *mem, uint64_t *start, uint64_t *size); /* may be NULL */
struct sim_vmm *sim_vmm_get(CUmemGenericAllocationHandle handle);

struct CUarray_st {
	struct sim_object head;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	struct sim_mem *mem; /* NULL for levels and deferred mappings */
	int dev;
	CUmipmappedArray mipmap; /* of which this is a level */
	struct sim_tile *tiles;	 /* of a sparse array */
};

struct CUmipmappedArray_st {
	struct sim_object head;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	struct sim_mem *mem;
	int dev;
	unsigned levels;
	CUarray level[32];
	struct sim_tile *tiles;
};

struct sim_ipc { /* another process's memory, opened here */
	struct sim_object head;
	uint64_t id;
	struct sim_mem *mem;
};

CUresult sim_mipmap_new(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels,
			bool owned);
void sim_array_release(void *array_or_mipmap);
void sim_tiles_release(struct sim_tile **tiles);
unsigned sim_format_bytes(CUarray_format format);
void sim_module_release(void *module);
void sim_launch_grows(CUcontext ctx); /* GPUSIM_LAUNCH_GROWTH, GPUSIM_LOCAL */
void sim_hidden_growth(CUcontext ctx, uint64_t bytes);

/* Takes down an object of a dying context, whatever it is. */
void sim_object_release(struct sim_object *object);

/* --- the whole --- */

struct sim_state {
	pthread_mutex_t lock; /* recursive; guards all of this and every object */
	pthread_cond_t moved; /* some stream made progress */
	bool inited, forked, over;
	int devices;
	struct sim_device dev[SIM_DEVICES_MAX];
	struct sim_arena arena, low_arena;
	struct sim_object *contexts, *loose; /* objects without a context */
	struct sim_capture *captures;
	unsigned plain_async; /* plain allocations that cuMemFreeAsync was called for */
	uint64_t ids;
	uint64_t context_bytes, module_bytes, launch_growth, module_growth;
	uint64_t stream_bytes, local_bytes; /* of a stream made; of a context's local memory */
	uint64_t node_bytes, green_bytes; /* of a node of an executable graph; of a green context */
	uint64_t unattributed_bytes; /* of context_bytes */
	void (*after)(const char *function);
	uint64_t pinned, pinned_limit; /* host memory */
	const char *fail;
	const char *unsafe; /* names that captures forbid, too */
};

struct sim_thread {
	const char *function; /* that runs, or ran last */
	CUcontext stack[32];
	int depth;
	int ptsz;    /* inside a _ptsz or _ptds variant: stream 0 is the thread's own */
	int in_host; /* inside a host function: CUDA is not permitted */
	CUstreamCaptureMode mode;
	uint64_t id;
};

extern struct sim_state sim;
extern __thread struct sim_thread sim_tls;

uint64_t sim_thread_id(void);
uint64_t sim_now_ns(void);

#define SIM_INIT    1u /* cuInit must have been called */
#define SIM_CURRENT 3u /* and a context be current */
#define SIM_UNSAFE  8u /* forbidden while capturing */

CUresult sim_begin(const char *name, unsigned need);
void sim_end(int *scope);

/*
 * Opens an API function: takes the lock until the function returns and answers the errors every
 * function has in common. Only one is open at a time unless noted, since waiting drops the lock.
 */
#define SIM_API(need)                                                                              \
	__attribute__((cleanup(sim_end), unused)) int sim_scope;                                   \
	CUresult sim_common = sim_begin(__func__, need);                                           \
	if (sim_common != CUDA_SUCCESS)                                                            \
	return sim_common

#define SIM_VALUE(condition)                                                                       \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return CUDA_ERROR_INVALID_VALUE;                                           \
	} while (0)

#endif
