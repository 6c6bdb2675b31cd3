/*
 * What a module load costs while another thread allocates, or loads one too, or another process
 * takes memory: no byte is counted twice, none of others'. And what a pool holds and has in use
 * when another thread allocates between the pool's answer and its record. The simulator calls back
 * when a driver function is over, before the shim knows: there the threads are brought into order.
 */
#include "family.h"
#include "gpumemtrace.h"

#include <pthread.h>
#include <semaphore.h>

void gpusim_after(void (*callback)(const char *function));
void gpusim_others_take(int dev, unsigned long long bytes);

#define ALLOCATION (64 * MIB)
#define MODULE (2 * MIB)
#define BLOCK (20 * MIB) /* two need twice the 32 MiB that one has the pool take */
#define OTHERS (256 * MIB)

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			    ".visible .entry k()\n{\n\tret;\n}\n";
static CUcontext context;
static sem_t go, taken, loaded;
/* What this thread does at the end of a driver's function, the how many-eth call of which one. */
static __thread void (*inside)(void);
static __thread const char *awaited;
static __thread int times;

static void at_end(const char *function, int calls, void (*step)(void))
{
	awaited = function;
	times = calls;
	inside = step;
}

static void called(const char *function)
{
	void (*step)(void) = inside;

	if (!step || strcmp(function, awaited) != 0 || --times > 0)
		return;
	inside = NULL;
	step();
}

static void load(void)
{
	CUmodule module;

	OK(cuModuleLoadData(&module, image));
}

static void *allocate(void *unused)
{
	CUdeviceptr p;

	(void)unused;
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc_v2(&p, ALLOCATION));
	return NULL;
}

static void *load_too(void *unused)
{
	(void)unused;
	OK(cuCtxSetCurrent(context));
	load();
	return NULL;
}

static void run(void *(*work)(void *))
{
	pthread_t thread;

	OK(pthread_create(&thread, NULL, work, NULL));
	OK(pthread_join(thread, NULL));
}

static void whole_allocation(void)
{
	run(allocate);
}

static void *allocate_block(void *unused)
{
	void *p;

	(void)unused;
	OK(cuCtxSetCurrent(context));
	OK(cudaMallocAsync(&p, BLOCK, NULL));
	return NULL;
}

static void whole_block(void)
{
	run(allocate_block);
}

static void whole_load(void)
{
	run(load_too);
}

/* The memory is taken, the call not over: it stands in nobody's books yet. */
static void hold(void)
{
	sem_post(&taken);
	sem_wait(&loaded);
}

static void *allocate_slowly(void *unused)
{
	OK(cuCtxSetCurrent(context));
	sem_wait(&go);
	at_end("cuMemAlloc_v2", 1, hold);
	return allocate(unused);
}

static void begin_allocation(void)
{
	sem_post(&go);
	sem_wait(&taken);
}

static void others(void)
{
	gpusim_others_take(0, OTHERS);
}

int main(void)
{
	unsigned long long before;
	pthread_t thread;

	sem_init(&go, 0, 0);
	sem_init(&taken, 0, 0);
	sem_init(&loaded, 0, 0);
	OK(cudaFree(0));
	OK(cuCtxGetCurrent(&context));
	before = free_bytes();
	gpusim_after(called);
	at_end("cuModuleLoadData", 1, whole_allocation);
	load(); /* its own 2 MiB */
	at_end("cuModuleLoadData", 1, whole_load);
	load(); /* 2 MiB, and 2 MiB of the one inside */
	at_end("cuModuleLoadData", 1, others);
	load(); /* 2 MiB */
	OK(pthread_create(&thread, NULL, allocate_slowly, NULL));
	at_end("cuModuleLoadData", 1, begin_allocation);
	load(); /* 2 MiB, which a sample tells once the other thread's call is over */
	sem_post(&loaded);
	OK(pthread_join(thread, NULL));
	gpumemtrace_mark("loaded");
	expect("usage.device.0.current_bytes", before - free_bytes() - 5 * MODULE - OTHERS);
	/* the pool has answered with its reserve, the highest reserve and what is used */
	at_end("cuMemPoolGetAttribute", 3, whole_block);
	allocate_block(NULL);
	expect("pool.default.0.used_bytes", 2 * BLOCK);
	expect("pool.default.0.reserved_bytes", 64 * MIB);
	expect("ledger.modules_and_limits.0", 5 * MODULE);
	expect("ledger.unexplained.0", 0);
	expect("ledger.allocations.0", 2 * ALLOCATION + 2 * BLOCK);
	return 0;
}
