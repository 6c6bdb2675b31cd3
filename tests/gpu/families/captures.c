/*
 * What is allocated on a stream that is being captured is a graph's node, however the capture was
 * begun: by the runtime, by the driver, into a graph that is there, by another thread, or on
 * another stream that this one followed. What is allocated on other streams meanwhile is memory at
 * once.
 */
#include "family.h"

#include <pthread.h>

#define THREAD_LOCAL 1
#define RELAXED	     2

static cudaStream_t one, two;
static unsigned long long node_bytes;
static unsigned nodes;

NAMED void node(size_t bytes, cudaStream_t stream)
{
	void *p = NULL;

	OK(cudaMallocAsync(&p, bytes, stream));
	node_bytes += bytes;
	nodes++;
}

NAMED void ordinary(size_t bytes, cudaStream_t stream)
{
	void *p = NULL;

	OK(cudaMallocAsync(&p, bytes, stream));
}

static void begin(cudaStream_t stream, int mode)
{
	OK(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)mode));
}

static void end(cudaStream_t stream)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
}

static void follow(cudaStream_t stream, cudaStream_t first)
{
	cudaEvent_t event;

	OK(cudaEventCreate(&event));
	OK(cudaEventRecord(event, first));
	OK(cudaStreamWaitEvent(stream, event, 0));
}

static void by_runtime(void)
{
	begin(one, RELAXED);
	node(3 * MIB, one);
	end(one);
}

static void by_driver(void)
{
	cudaGraphExec_t exec;
	CUgraph graph;

	OK(cuStreamBeginCapture(one, (CUstreamCaptureMode)RELAXED));
	node(5 * MIB, one);
	OK(cuStreamEndCapture(one, &graph));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, one));
	OK(cudaStreamSynchronize(one));
}

static void into_a_graph(void)
{
	cudaGraph_t graph;

	OK(cudaGraphCreate(&graph, 0));
	OK(cuStreamBeginCaptureToGraph(one, graph, NULL, NULL, 0, (CUstreamCaptureMode)RELAXED));
	node(7 * MIB, one);
	end(one);
}

static void joined(void)
{
	begin(one, RELAXED);
	follow(two, one);
	node(11 * MIB, two);
	follow(one, two);
	end(one);
}

/* What is refused neither begins nor ends one. */
static void refused(void)
{
	CUgraph graph;

	FAILS(cuStreamEndCapture(two, &graph), 401);
	begin(one, RELAXED);
	FAILS(cuStreamBeginCapture(one, (CUstreamCaptureMode)RELAXED), 401);
	FAILS(cuStreamEndCapture(two, &graph), 401);
	node(13 * MIB, one);
	end(one);
}

static void two_at_once(void)
{
	begin(one, RELAXED);
	begin(two, RELAXED);
	end(one);
	node(17 * MIB, two);
	ordinary(29 * MIB, one);
	end(two);
}

static void invalidated(void)
{
	cudaGraph_t graph;
	void *p;

	begin(one, THREAD_LOCAL);
	FAILS(cudaMalloc(&p, MIB), 900);
	FAILS(cudaStreamEndCapture(one, &graph), 901);
	cudaGetLastError();
}

static void *elsewhere(void *unused)
{
	begin(one, RELAXED);
	return unused;
}

static void by_another_thread(void)
{
	pthread_t thread;

	OK(pthread_create(&thread, NULL, elsewhere, NULL));
	OK(pthread_join(thread, NULL));
	node(19 * MIB, one);
	end(one);
}

int main(void)
{
	OK(cudaFree(0));
	OK(cudaStreamCreate(&one));
	OK(cudaStreamCreate(&two));
	by_runtime();
	by_driver();
	into_a_graph();
	joined();
	refused();
	two_at_once();
	invalidated();
	by_another_thread();
	ordinary(23 * MIB, two);
	expect("usage.graph.0.current_bytes", node_bytes);
	expect("usage.graph.0.current_count", nodes);
	expect("usage.async.0.current_bytes", (23 + 29) * MIB);
	expect("usage.async.0.current_count", 2);
	expect("site.node.live_bytes", node_bytes);
	expect("usage.device.0.failures", 1);
	expect("errors", 0);
	return 0;
}
