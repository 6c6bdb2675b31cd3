/*
 * Memory of graphs: an address from capture on, memory from the first launch. Launched twice
 * without a free fails; with auto-free each graph leaves one block (warp#1429, CUDA.jl#1230), which
 * destroying the graph does not give back; what a graph frees itself stays reserved until trimmed.
 */
#include "family.h"

static cudaStream_t stream;

static cudaGraphExec_t instantiate(cudaGraph_t graph, unsigned long long flags)
{
	cudaGraphExec_t exec;

	OK(cudaGraphInstantiateWithFlags(&exec, graph, flags));
	return exec;
}

NAMED void *captured(size_t bytes, int freed, cudaGraph_t *graph)
{
	void *p = NULL;

	OK(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)1));
	OK(cudaMallocAsync(&p, bytes, stream));
	if (freed)
		OK(cudaFreeAsync(p, stream));
	OK(cudaStreamEndCapture(stream, graph));
	return p;
}

NAMED void *by_hand(size_t bytes, cudaGraph_t *graph)
{
	struct cudaMemAllocNodeParams params;
	cudaGraphNode_t node, end;

	memset(&params, 0, sizeof(params));
	params.poolProps.allocType = cudaMemAllocationTypePinned;
	params.poolProps.location.type = cudaMemLocationTypeDevice;
	params.bytesize = bytes;
	OK(cudaGraphCreate(graph, 0));
	OK(cudaGraphAddMemAllocNode(&node, *graph, NULL, 0, &params));
	OK(cudaGraphAddMemFreeNode(&end, *graph, &node, 1, params.dptr));
	return params.dptr;
}

/* By the call for nodes of any type. */
static cudaGraph_t generic(size_t bytes, void **out)
{
	struct cudaGraphNodeParams params;
	cudaGraphNode_t node;
	cudaGraph_t graph;

	memset(&params, 0, sizeof(params));
	params.type = (enum cudaGraphNodeType)10;
	params.alloc.poolProps.allocType = cudaMemAllocationTypePinned;
	params.alloc.poolProps.location.type = cudaMemLocationTypeDevice;
	params.alloc.bytesize = bytes;
	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	*out = params.alloc.dptr;
	return graph;
}

/* Another graph frees what the first allocated. */
static void across(void)
{
	cudaGraph_t first, second;
	cudaGraphExec_t alloc, release;
	cudaGraphNode_t node;
	void *p;

	first = generic(8 * MIB, &p);
	OK(cudaGraphCreate(&second, 0));
	OK(cudaGraphAddMemFreeNode(&node, second, NULL, 0, p));
	alloc = instantiate(first, 0);
	release = instantiate(second, 0);
	OK(cudaGraphLaunch(alloc, stream));
	OK(cudaGraphLaunch(release, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(alloc));
	OK(cudaGraphExecDestroy(release));
	OK(cudaGraphDestroy(first));
	OK(cudaGraphDestroy(second));
}

/* Launched, launched again (1), freed by its address, launched again; then destroyed with its
 * block. */
static void by_address(void)
{
	cudaGraph_t graph;
	void *p = captured(256 * MIB, 0, &graph);
	cudaGraphExec_t exec = instantiate(graph, 0);

	OK(cudaGraphLaunch(exec, stream));
	FAILS(cudaGraphLaunch(exec, stream), 1);
	cudaGetLastError();
	OK(cudaFreeAsync(p, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaFree(p));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
}

static void auto_freed(void)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int i;

	captured(64 * MIB, 0, &graph);
	exec = instantiate(graph, 1);
	for (i = 0; i < 3; i++)
		OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
}

static void inside(void)
{
	cudaGraph_t by_capture, made;
	cudaGraphExec_t exec;

	captured(32 * MIB, 1, &by_capture);
	exec = instantiate(by_capture, 0);
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(by_capture));
	by_hand(16 * MIB, &made);
	exec = instantiate(made, 0);
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(made));
}

int main(void)
{
	unsigned long long before;
	cudaGraph_t never;

	OK(cudaFree(0));
	OK(cudaStreamCreate(&stream));
	before = free_bytes();
	captured(512 * MIB, 0, &never); /* never launched: never memory */
	instantiate(never, 0);
	by_address();
	OK(cudaDeviceGraphMemTrim(0));
	printf("fact after by_address and a trim: used %llu, reserved %llu\n",
	       graph_attribute(GRAPH_USED), graph_attribute(GRAPH_RESERVED));
	auto_freed();
	inside();
	across();
	printf("fact before the last trim: used %llu, reserved %llu\n", graph_attribute(GRAPH_USED),
	       graph_attribute(GRAPH_RESERVED));
	OK(cudaDeviceGraphMemTrim(0));
	expect("usage.graph.0.current_bytes", 64 * MIB);
	expect("usage.graph.0.current_count", 1);
	expect("usage.graph.0.allocations", 2 + 3 + 2 + 1 + 1);
	expect("usage.graph.0.frees", 2 + 2 + 2 + 1 + 1);
	expect("usage.graph.0.failures", 1);
	expect("usage.graph.0.peak_bytes", 256 * MIB);
	expect("implicit.graph.0.bytes", 2 * 64 * MIB);
	expect("implicit.graph.0.count", 2);
	expect("site.captured.live_bytes", 64 * MIB);
	expect("site.by_hand.live_bytes", 0);
	expect("leaks.exit_bytes", 64 * MIB);
	expect("pool.graph.0.reserved_bytes", graph_attribute(GRAPH_RESERVED));
	expect("pool.graph.0.used_bytes", graph_attribute(GRAPH_USED));
	expect("errors", 0);
	expect_physical(before, 1);
	return 0;
}
