/*
 * Memory of graphs (families.h): captured, and as nodes of their own.
 */
#include "families.h"

#include <string.h>

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
					  unsigned long long flags);

static void captured(void)
{
	cudaStream_t stream = new_stream();
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	void *memory;
	int i;

	OK(cudaStreamBeginCapture(stream, 1));
	OK(cudaMallocAsync(&memory, 16 * MIB, stream));
	OK(cudaFreeAsync(memory, stream));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (i = 0; i < 3; i++)
		OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaDeviceGraphMemTrim(0));
}

static void of_nodes(void)
{
	struct cudaMemAllocNodeParams params;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	memset(&params, 0, sizeof(params));
	params.poolProps.allocType = 1;
	params.poolProps.location.type = 1;
	params.bytesize = 24 * MIB;
	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, NULL));
	OK(cudaDeviceSynchronize());
	FAILS(cudaGraphLaunch(exec, NULL)); /* its memory is still allocated */
	OK(cudaFree(params.dptr));
}

void family_graphs(void)
{
	captured();
	of_nodes();
}
