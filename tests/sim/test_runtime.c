/*
 * The facts about the runtime's memory calls, line by line as they were measured on real GPUs.
 * Linked against every simulated runtime; with SIM_REAL_HEADERS it runs on a real GPU too.
 */
#include <stdlib.h>
#include <pthread.h>
#include "selftest.h"

static size_t free_bytes(void)
{
	size_t now = 0, total;

	cudaMemGetInfo(&now, &total);
	return now;
}

static void test_nothing(void)
{
	void *p = (void *)1;

	CHECK(cudaMalloc(&p, 0), 0);
	CHECK(p == NULL, 1);
	p = (void *)1;
	CHECK(cudaMallocAsync(&p, 0, 0), 0);
	CHECK(p == NULL, 1);
	p = (void *)1;
	CHECK(cudaMallocHost(&p, 0), 0);
	CHECK(p == NULL, 1);
	CHECK(cudaFree(NULL), 0);
	CHECK(cudaFreeAsync(NULL, 0), 0);
	CHECK(cudaFreeHost(NULL), 0);
	CHECK(cudaFreeArray(NULL), 0);
	CHECK(cudaGetLastError(), 0);
}

static void test_out_of_memory(void)
{
	void *p = (void *)1;

	CHECK(cudaMalloc(&p, 1ull << 45), 2);
	CHECK(p == NULL, 1);
	CHECK(cudaGetLastError(), 2);
	CHECK(cudaGetLastError(), 0);
	p = (void *)1;
	CHECK(cudaMallocAsync(&p, 1ull << 45, 0), 2);
	CHECK(p == NULL, 1);
	cudaGetLastError();
}

static void test_bad_frees(void)
{
	static char host[8192];
	char *p, *pinned;

	CHECK(cudaMalloc((void **)&p, 4096), 0);
	CHECK(cudaFree(p + 256), 1);
	CHECK(cudaFree(host), 1);
	CHECK(cudaMallocHost((void **)&pinned, 100), 0);
	CHECK(cudaFree(pinned), 1);
	CHECK(cudaFreeHost(pinned), 0);
	CHECK(cudaFreeHost(pinned), 1);
	CHECK(cudaFree(p), 0);
	CHECK(cudaFree(p), 1);
	CHECK(cudaHostRegister(host, sizeof(host), 0), 0);
	CHECK(cudaHostRegister(host, sizeof(host), 0), 712);
	CHECK(cudaHostUnregister(host), 0);
	CHECK(cudaHostUnregister(host), 713);
	cudaGetLastError();
}

/* Both families may free the other's memory. */
static void test_mixed_frees(void)
{
	size_t before = free_bytes();
	void *p;

	CHECK(cudaMallocAsync(&p, MIB, 0), 0);
	CHECK(cudaStreamSynchronize(0), 0);
	CHECK(cudaFree(p), 0);
	CHECK(cudaMalloc(&p, 64 * MIB), 0);
	CHECK(cudaFreeAsync(p, 0), 0);
	CHECK(before - free_bytes(), 64 * MIB); /* until the stream is synchronised */
	CHECK(cudaStreamSynchronize(0), 0);
	CHECK(before - free_bytes(), 0);
	CHECK(cudaFree(p), 1);
	CHECK(cudaMallocManaged(&p, MIB, cudaMemAttachGlobal), 0);
	CHECK(cudaFreeAsync(p, 0), 801);
	CHECK(cudaFree(p), 0);
	cudaGetLastError();
}

static int freed_inside;
static void *pinned_inside;

static void free_inside(void *arg)
{
	(void)arg;
	freed_inside = (int)cudaFreeHost(pinned_inside);
}

static void test_host_function(void)
{
	CHECK(cudaMallocHost(&pinned_inside, 4096), 0);
	CHECK(cudaLaunchHostFunc(0, free_inside, NULL), 0);
	CHECK(cudaDeviceSynchronize(), 0);
	CHECK(freed_inside, 800);
	CHECK(cudaFreeHost(pinned_inside), 0); /* it stayed live */
}

static void test_granularity(void)
{
	static void *p[4096];
	size_t before = free_bytes();

	for (int i = 0; i < 4096; i++)
		CHECK(cudaMalloc(&p[i], 256), 0);
	CHECK(before - free_bytes(), 2 * MIB);
	for (int i = 0; i < 4096; i += 2)
		cudaFree(p[i]);
	CHECK(before - free_bytes(), 2 * MIB);
	for (int i = 1; i < 4096; i += 2)
		cudaFree(p[i]);
	CHECK(before - free_bytes(), 0);

	CHECK(cudaMalloc(&p[0], MIB + 1), 0);
	CHECK(before - free_bytes(), 2 * MIB);
	CHECK(cudaMalloc(&p[1], 3 * MIB), 0);
	CHECK(before - free_bytes(), 6 * MIB);
	CHECK(cudaFree(p[0]), 0);
	CHECK(cudaFree(p[1]), 0);
	/* an address comes back: what double frees need */
	CHECK(cudaMalloc(&p[0], 5000), 0);
	CHECK(cudaFree(p[0]), 0);
	CHECK(cudaMalloc(&p[1], 5000), 0);
	CHECK(p[0] == p[1], 1);
	CHECK(cudaFree(p[1]), 0);
}

static void test_pitched_and_arrays(void)
{
	struct cudaChannelFormatDesc one = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	struct cudaChannelFormatDesc four = {32, 32, 32, 32, cudaChannelFormatKindFloat};
	struct cudaPitchedPtr box;
	cudaMipmappedArray_t mipmap;
	cudaArray_t array;
	size_t before = free_bytes(), pitch;
	void *p;

	CHECK(cudaMallocPitch(&p, &pitch, 1000, 1000), 0);
	CHECK(pitch, 1024);
	CHECK(cudaFree(p), 0);
	CHECK(cudaMalloc3D(&box, (struct cudaExtent){1000, 100, 10}), 0);
	CHECK(box.pitch, 1024);
	CHECK(before - free_bytes(), 2 * MIB);
	CHECK(cudaFree(box.ptr), 0);
	CHECK(cudaMallocArray(&array, &one, 1024, 1024, 0), 0);
	CHECK(before - free_bytes(), 4 * MIB);
	CHECK(cudaFreeArray(array), 0);
	CHECK(cudaMalloc3DArray(&array, &four, (struct cudaExtent){64, 64, 64}, 0), 0);
	CHECK(before - free_bytes(), 4 * MIB);
	CHECK(cudaFreeArray(array), 0);
	CHECK(cudaMallocMipmappedArray(&mipmap, &four, (struct cudaExtent){1024, 1024, 0}, 5, 0),
	      0);
	CHECK(before - free_bytes(), 23068672);
	CHECK(cudaFreeMipmappedArray(mipmap), 0);
	CHECK(before - free_bytes(), 0);
}

static unsigned long long pool_attribute(cudaMemPool_t pool, int attribute)
{
	unsigned long long value = 0;

	cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)attribute, &value);
	return value;
}

enum { THRESHOLD = 4, RESERVED = 5, RESERVED_HIGH = 6, USED = 7, USED_HIGH = 8 };

static void test_pool(void)
{
	unsigned long long all = ~0ull, none = 0;
	cudaMemPool_t pool;
	cudaStream_t stream;
	void *p, *q;

	CHECK(cudaStreamCreateWithFlags(&stream, 1), 0);
	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0), 0);
	unsigned long long used = pool_attribute(pool, USED); /* what cudaFree left counted */

	CHECK(cudaMallocAsync(&p, 100 * MIB, stream), 0);
	CHECK(cudaMallocAsync(&q, 1000, stream), 0);
	CHECK(pool_attribute(pool, RESERVED), 128 * MIB);
	CHECK(pool_attribute(pool, USED) - used, 104858600);
	CHECK(cudaFreeAsync(p, stream), 0);
	CHECK(cudaFreeAsync(q, stream), 0);
	CHECK(pool_attribute(pool, USED) - used, 0);
	CHECK(pool_attribute(pool, RESERVED), 128 * MIB);
	CHECK(cudaMemPoolTrimTo(pool, 0), 0); /* not reached: recovers nothing */
	CHECK(pool_attribute(pool, RESERVED), 128 * MIB);
	CHECK(cudaStreamSynchronize(stream), 0);
	CHECK(pool_attribute(pool, RESERVED), 0);
	CHECK(pool_attribute(pool, RESERVED_HIGH) >= 128 * MIB, 1);

	CHECK(cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)THRESHOLD, &all), 0);
	CHECK(cudaMallocAsync(&p, 64 * MIB, stream), 0);
	CHECK(cudaFreeAsync(p, stream), 0);
	CHECK(cudaStreamSynchronize(stream), 0);
	CHECK(pool_attribute(pool, RESERVED), 64 * MIB);
	CHECK(cudaMemPoolTrimTo(pool, 0), 0);
	CHECK(pool_attribute(pool, RESERVED), 0);
	CHECK(cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)THRESHOLD, &none), 0);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void wait_at_gate(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

/* 60 % freed on a busy stream: asked for again on another the driver makes that one wait; more
 * fails. */
static void test_pending(void)
{
	size_t size = (size_t)((double)free_bytes() * 0.6) / (32 * MIB) * (32 * MIB);
	cudaStream_t busy, other;
	void *p, *q;

	CHECK(cudaStreamCreateWithFlags(&busy, 1), 0);
	CHECK(cudaStreamCreateWithFlags(&other, 1), 0);
	CHECK(cudaMallocAsync(&p, size, busy), 0);
	CHECK(cudaStreamSynchronize(busy), 0);
	pthread_mutex_lock(&gate);
	CHECK(cudaLaunchHostFunc(busy, wait_at_gate, NULL), 0);
	CHECK(cudaFreeAsync(p, busy), 0);
	CHECK(cudaStreamQuery(busy), 600);
	CHECK(cudaMallocAsync(&q, size + size / 4, other), 2);
	CHECK(cudaMalloc(&q, size), 2);
	CHECK(cudaMallocAsync(&q, size, other), 0);
	CHECK(cudaStreamQuery(other), 600);
	pthread_mutex_unlock(&gate);
	CHECK(cudaDeviceSynchronize(), 0);
	CHECK(cudaFreeAsync(q, other), 0);
	CHECK(cudaDeviceSynchronize(), 0);
	cudaGetLastError();
}

static unsigned long long graph_bytes(void)
{
	unsigned long long value = 0;

	cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &value);
	return value;
}

static void *capture(cudaStream_t stream, cudaGraph_t *graph, bool with_free)
{
	void *p = NULL;

	CHECK(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)1), 0);
	CHECK(cudaMallocAsync(&p, 256 * MIB, stream), 0);
	if (with_free)
		CHECK(cudaFreeAsync(p, stream), 0);
	CHECK(cudaStreamEndCapture(stream, graph), 0);
	return p;
}

static void test_graphs(void)
{
	size_t before = free_bytes();
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;
	void *p;

	CHECK(cudaStreamCreateWithFlags(&stream, 1), 0);
	p = capture(stream, &graph, false);
	CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0), 0);
	CHECK(before - free_bytes(), 0);
	CHECK(cudaGraphLaunch(exec, stream), 0);
	CHECK(cudaDeviceSynchronize(), 0);
	CHECK(graph_bytes(), 256 * MIB);
	CHECK(cudaGraphLaunch(exec, stream), 1);
	CHECK(cudaFree(p), 0);
	CHECK(graph_bytes(), 256 * MIB);
	CHECK(cudaGraphExecDestroy(exec), 0);
	CHECK(cudaGraphDestroy(graph), 0);
	CHECK(graph_bytes(), 256 * MIB);
	CHECK(cudaDeviceGraphMemTrim(0), 0);
	CHECK(graph_bytes(), 0);
	CHECK(before - free_bytes(), 0);

	p = capture(stream, &graph, true);
	CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0), 0);
	for (int i = 0; i < 3; i++)
		CHECK(cudaGraphLaunch(exec, stream), 0);
	CHECK(cudaDeviceSynchronize(), 0);
	CHECK(graph_bytes(), 256 * MIB);
	CHECK(cudaDeviceGraphMemTrim(0), 0);
	CHECK(graph_bytes(), 0);

	p = capture(stream, &graph, false); /* auto-free: a block per graph stays */
	CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 1), 0);
	for (int i = 0; i < 3; i++)
		CHECK(cudaGraphLaunch(exec, stream), 0);
	CHECK(cudaDeviceSynchronize(), 0);
	CHECK(graph_bytes(), 256 * MIB);
	CHECK(cudaGraphExecDestroy(exec), 0);
	CHECK(cudaGraphDestroy(graph), 0);
	CHECK(cudaDeviceGraphMemTrim(0), 0);
	CHECK(graph_bytes(), 256 * MIB);
	CHECK(cudaFree(p), 0);
	CHECK(cudaDeviceGraphMemTrim(0), 0);
	CHECK(graph_bytes(), 0);
	cudaGetLastError();
}

static void test_capture_errors(void)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	void *p;

	CHECK(cudaStreamCreateWithFlags(&stream, 1), 0);
	CHECK(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)1), 0);
	CHECK(cudaMalloc(&p, 100), 900);
	CHECK(cudaStreamEndCapture(stream, &graph), 901);
	cudaGetLastError();
}

static void test_ipc(void)
{
	cudaIpcMemHandle_t handle;
	void *p, *q;

	CHECK(cudaMalloc(&p, 4 * MIB), 0);
	CHECK(cudaIpcGetMemHandle(&handle, p), 0);
	CHECK(cudaIpcOpenMemHandle(&q, handle, 1), 201);
	CHECK(cudaFree(p), 0);
	cudaGetLastError();
}

static void test_managed(void)
{
	size_t before = free_bytes();
	void *p;

	CHECK(cudaMallocManaged(&p, 256 * MIB, cudaMemAttachGlobal), 0);
	CHECK(before - free_bytes(), 0);
	((volatile char *)p)[5] = 1; /* the host's touch costs the device nothing */
	CHECK(before - free_bytes(), 0);
#if SIM_CUDART >= 13
	struct cudaMemLocation device = {cudaMemLocationTypeDevice, 0};

	CHECK(cudaMemPrefetchAsync(p, 256 * MIB, device, 0, 0), 0);
#else
	CHECK(cudaMemPrefetchAsync(p, 256 * MIB, 0, 0), 0);
#endif
	CHECK(cudaDeviceSynchronize(), 0);
	CHECK(before - free_bytes() >= 256 * MIB, 1);
	CHECK(cudaFree(p), 0);
}

static void test_limits(void)
{
	size_t value = 0, before = free_bytes();

	CHECK(cudaDeviceGetLimit(&value, cudaLimitStackSize), 0);
	CHECK(value, 1024);
	CHECK(cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize), 0);
	CHECK(value, 8 * MIB);
	CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 * MIB), 0);
	CHECK(before - free_bytes(), 0);
	CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 16384), 0);
	CHECK((before - free_bytes()) % (2048 * 15360), 0); /* so much per processor */
	CHECK(before - free_bytes() > 0, 1);
	CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 1024), 0);
	CHECK(before - free_bytes(), 0);
}

static void test_reset(void)
{
	void *p;

	CHECK(cudaMalloc(&p, MIB), 0);
	CHECK(cudaDeviceReset(), 0);
	CHECK(cudaFree(p), 1);
	CHECK(cudaMalloc(&p, MIB), 0);
	CHECK(cudaFree(p), 0);
}

int main(void)
{
	int count = 0;

	CHECK(cudaGetDeviceCount(&count), 0);
	CHECK(count >= 1, 1);
	test_nothing();
	test_out_of_memory();
	test_bad_frees();
	test_host_function();
	test_granularity();
	test_pitched_and_arrays();
	test_pool();
	test_pending();
	test_graphs();
	test_capture_errors();
	test_ipc();
	test_managed();
	test_limits();
	test_reset();
	test_mixed_frees();
	return done();
}
