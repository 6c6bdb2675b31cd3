/*
 * The simulated driver's state: settings from the environment, cuInit, the scope every API function
 * opens, and the registry by which a stale handle is told from a live one.
 */
#include <search.h>
#include <time.h>
#include "drv.h"

struct sim_state sim;
__thread struct sim_thread sim_tls;
static void *handles; /* tsearch tree of live objects */
static uint64_t threads;

uint64_t sim_thread_id(void)
{
	if (!sim_tls.id)
		sim_tls.id = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	return sim_tls.id;
}

uint64_t sim_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void after_fork(void)
{
	/* A forked child cannot use CUDA when its parent did; one whose parent did not, can. */
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&sim.lock, &attr);
	pthread_cond_init(&sim.moved, NULL);
	if (sim.inited)
		sim.forked = true;
}

__attribute__((constructor)) static void start(void)
{
	after_fork();
	pthread_atfork(NULL, NULL, after_fork);
}

static void stop(void)
{
	sim.over = true;
}

static CUresult init_once(void)
{
	const char *count = getenv("GPUSIM_DEVICES");
	uint64_t total = sim_parse_size(getenv("GPUSIM_MEMORY"), 8ull << 30);
	uint64_t others = sim_parse_others(NULL, 0, NULL);

	if (sim.inited)
		return CUDA_SUCCESS;
	sim.devices = count && *count ? atoi(count) : 1;
	if (sim.devices > SIM_DEVICES_MAX)
		sim.devices = SIM_DEVICES_MAX;
	if (sim.devices <= 0)
		return CUDA_ERROR_NO_DEVICE;
	sim.context_bytes = sim_parse_size(getenv("GPUSIM_CONTEXT"), 512 * SIM_MIB);
	sim.module_bytes = sim_parse_size(getenv("GPUSIM_MODULE"), 2 * SIM_MIB);
	sim.unattributed_bytes = sim_parse_size(getenv("GPUSIM_UNATTRIBUTED"), 0);
	sim.stream_bytes = sim_parse_size(getenv("GPUSIM_STREAM"), 0);
	sim.local_bytes = sim_parse_size(getenv("GPUSIM_LOCAL"), 0);
	sim.node_bytes = sim_parse_size(getenv("GPUSIM_GRAPH"), 0);
	sim.green_bytes = sim_parse_size(getenv("GPUSIM_GREEN"), 4 * SIM_MIB);
	sim.launch_growth = sim_parse_size(getenv("GPUSIM_LAUNCH_GROWTH"), 0);
	sim.module_growth = sim_parse_size(getenv("GPUSIM_MODULE_GROWTH"), 0);
	sim.pinned_limit = sim_parse_size(getenv("GPUSIM_PINNED"), 64ull << 30);
	sim.fail = getenv("GPUSIM_FAIL");
	sim.unsafe = getenv("GPUSIM_UNSAFE");
	if (sim_arena_init(&sim.arena, false) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	for (int i = 0; i < sim.devices; i++) {
		sim.dev[i].total = total;
		sim.dev[i].others = others;
		sim.dev[i].used = others;
		sim.dev[i].default_pool = sim_pool_new(i, NULL, NULL);
		sim.dev[i].default_pool->is_default = true;
		sim.dev[i].pool = sim.dev[i].default_pool;
	}
	sim.inited = true;
	atexit(stop); /* at the end the driver answers 4, as cudart does */
	return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags);
CUresult cuInit(unsigned int flags)
{
	CUresult rc = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&sim.lock);
	if (sim.over)
		rc = CUDA_ERROR_DEINITIALIZED;
	else if (sim.forked)
		rc = CUDA_ERROR_NOT_INITIALIZED;
	else if (flags == 0)
		rc = init_once();
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

/*
 * GPUSIM_FAIL is a list `NAME:N=CODE`, `NAME:N+=CODE`: the Nth call of NAME, or every one from the
 * Nth on, answers CODE and does nothing else.
 */
static CUresult injected(const char *name)
{
	static struct {
		char name[48];
		unsigned calls;
	} seen[32];
	const char *p = sim.fail;

	for (int i = 0; p && *p && i < 32; i++) {
		size_t length = strcspn(p, ":");
		char *end = NULL;
		unsigned long nth, code;
		bool onwards;

		nth = strtoul(p + length + (p[length] == ':'), &end, 10);
		onwards = *end == '+';
		end += onwards;
		if (*end != '=')
			return CUDA_SUCCESS;
		code = strtoul(end + 1, &end, 10);
		if (strlen(name) == length && strncmp(p, name, length) == 0) {
			unsigned calls = ++seen[i].calls;

			if (calls == nth || (onwards && calls > nth))
				return (CUresult)code;
		}
		p = *end == ',' ? end + 1 : NULL;
	}
	return CUDA_SUCCESS;
}

/* True if GPUSIM_UNSAFE has the name: several, with commas. */
static bool named_unsafe(const char *name)
{
	size_t bytes = strlen(name);
	const char *at = sim.unsafe;

	for (; at && (at = strstr(at, name)); at += bytes)
		if ((at == sim.unsafe || at[-1] == ',') && (!at[bytes] || at[bytes] == ','))
			return true;
	return false;
}

CUresult sim_begin(const char *name, unsigned need)
{
	CUcontext ctx;

	pthread_mutex_lock(&sim.lock);
	sim_tls.function = name;
	if (sim.over)
		return CUDA_ERROR_DEINITIALIZED;
	if (!(need & SIM_INIT))
		return CUDA_SUCCESS;
	if (!sim.inited || sim.forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (sim_tls.in_host)
		return CUDA_ERROR_NOT_PERMITTED;
	if ((need & SIM_CURRENT) == SIM_CURRENT) {
		ctx = sim_ctx_current();
		if (!ctx)
			return CUDA_ERROR_INVALID_CONTEXT;
		if (!sim_ctx_alive(ctx))
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	}
	if (sim.captures && (need & SIM_UNSAFE || named_unsafe(name))) {
		CUresult rc = sim_capture_unsafe();

		if (rc != CUDA_SUCCESS)
			return rc;
	}
	return sim.fail ? injected(name) : CUDA_SUCCESS;
}

void sim_end(int *scope)
{
	void (*after)(const char *) = sim.after;
	const char *name = sim_tls.function;

	(void)scope;
	pthread_mutex_unlock(&sim.lock);
	if (after)
		after(name);
}

void gpusim_after(void (*callback)(const char *function));
void gpusim_after(void (*callback)(const char *function))
{
	pthread_mutex_lock(&sim.lock);
	sim.after = callback;
	pthread_mutex_unlock(&sim.lock);
}

static int by_address(const void *a, const void *b)
{
	return (a > b) - (a < b);
}

void *sim_object_new(enum sim_type type, size_t size, CUcontext ctx)
{
	struct sim_object *object = calloc(1, size);
	struct sim_object **list = ctx ? &ctx->objects : &sim.loose;

	if (!object || !tsearch(object, &handles, by_address))
		abort(); /* a test program out of host memory has nothing to tell */
	object->type = type;
	object->ctx = ctx;
	object->next = *list;
	if (*list)
		(*list)->prev = object;
	*list = object;
	return object;
}

void sim_object_forget(void *handle)
{
	struct sim_object *object = handle;
	struct sim_object **list = object->ctx ? &object->ctx->objects : &sim.loose;

	tdelete(object, &handles, by_address);
	if (object->prev)
		object->prev->next = object->next;
	else
		*list = object->next;
	if (object->next)
		object->next->prev = object->prev;
	object->type = 0;
}

void sim_object_free(void *handle)
{
	sim_object_forget(handle);
	free(handle);
}

/* A dying context's object. Functions, nodes and array levels go with what they belong to. */
void sim_object_release(struct sim_object *object)
{
	switch (object->type) {
	case SIM_STREAM:
		sim_stream_release((CUstream)object);
		break;
	case SIM_EVENT:
		sim_event_release((CUevent)object);
		break;
	case SIM_MODULE:
		sim_module_release(object);
		break;
	case SIM_ARRAY:
	case SIM_MIPMAP:
		sim_array_release(object);
		break;
	case SIM_POOL:
		sim_pool_kill((CUmemoryPool)object);
		break;
	default:
		sim_object_free(object);
	}
}

void *sim_object(const void *handle, enum sim_type type)
{
	struct sim_object *object;

	if (!handle || !tfind(handle, &handles, by_address))
		return NULL;
	object = (struct sim_object *)(uintptr_t)handle;
	return object->type == type ? object : NULL;
}
