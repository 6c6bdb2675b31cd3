/*
 * Graphs of the simulated runtimes. Where a signature changed between majors the forms stand side
 * by side.
 */
#include "rt.h"

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
	FORWARD(cuGraphCreate, graph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	FORWARD(cuGraphDestroy, graph);
}

cudaError_t cudaGraphClone(cudaGraph_t *out, cudaGraph_t graph)
{
	FORWARD(cuGraphClone, out, graph);
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *out, cudaGraphNode_t node, cudaGraph_t clone)
{
	FORWARD(cuGraphNodeFindInClone, out, node, clone);
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
	FORWARD(cuGraphDestroyNode, node);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
					  unsigned long long flags)
{
	FORWARD(cuGraphInstantiateWithFlags, exec, graph, flags);
}

#if SIM_CUDART >= 12
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	return cudaGraphInstantiateWithFlags(exec, graph, flags);
}
#else
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphNode_t *node,
				 char *log, size_t size)
{
	if (node)
		*node = NULL;
	if (log && size)
		*log = 0;
	return cudaGraphInstantiateWithFlags(exec, graph, 0);
}
#endif

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	FORWARD(cuGraphExecDestroy, exec);
}

#if SIM_CUDART >= 12
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
	FORWARD(cuGraphExecGetFlags, exec, (cuuint64_t *)flags);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
				cudaGraphExecUpdateResultInfo *info)
{
	FORWARD(cuGraphExecUpdate, exec, graph, (CUgraphExecUpdateResultInfo *)info);
}
#endif

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	FORWARD(cuGraphLaunch, exec, stream);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
	FORWARD(cuGraphUpload, exec, stream);
}

PER_THREAD(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
PER_THREAD(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
				     const cudaGraphNode_t *deps, size_t count,
				     struct cudaMemAllocNodeParams *params)
{
	FORWARD(cuGraphAddMemAllocNode, node, graph, deps, count,
		(CUDA_MEM_ALLOC_NODE_PARAMS *)params);
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams *out)
{
	FORWARD(cuGraphMemAllocNodeGetParams, node, (CUDA_MEM_ALLOC_NODE_PARAMS *)out);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
				    const cudaGraphNode_t *deps, size_t count, void *ptr)
{
	FORWARD(cuGraphAddMemFreeNode, node, graph, deps, count, (CUdeviceptr)(uintptr_t)ptr);
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *out)
{
	FORWARD(cuGraphMemFreeNodeGetParams, node, (CUdeviceptr *)out);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
				  const cudaGraphNode_t *deps, size_t count)
{
	FORWARD(cuGraphAddEmptyNode, node, graph, deps, count);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
				 const cudaGraphNode_t *deps, size_t count,
				 const struct cudaHostNodeParams *params)
{
	FORWARD(cuGraphAddHostNode, node, graph, deps, count,
		(const CUDA_HOST_NODE_PARAMS *)params);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *deps, size_t count,
				   const struct cudaMemsetParams *params)
{
	FORWARD(cuGraphAddMemsetNode, node, graph, deps, count,
		(const CUDA_MEMSET_NODE_PARAMS *)params, NULL);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
				       const cudaGraphNode_t *deps, size_t count, cudaGraph_t child)
{
	FORWARD(cuGraphAddChildGraphNode, node, graph, deps, count, child);
}

#if SIM_CUDART >= 12
/* The structures of runtime and driver are the same but for a kernel's stub, which has no place
 * here. */
static cudaError_t add_node(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
			    size_t count, struct cudaGraphNodeParams *params)
{
	CUfunction function;

	NEED(params);
	ENTER();
	if ((int)params->type == CU_GRAPH_NODE_TYPE_KERNEL) {
		CUgraphNodeParams own;
		cudaError_t rc;

		memcpy(&own, params, sizeof(own));
		rc = rt_kernel((const void *)own.kernel.func, &function);
		if (rc != cudaSuccess)
			return rt_last(rc);
		own.kernel.func = function;
		return rt_last(CALL(cuGraphAddNode, node, graph, deps, count, &own));
	}
	return rt_last(CALL(cuGraphAddNode, node, graph, deps, count, (CUgraphNodeParams *)params));
}

#endif

#if SIM_CUDART >= 13
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
			     const cudaGraphEdgeData *edges, size_t count,
			     struct cudaGraphNodeParams *params)
{
	(void)edges;
	return add_node(node, graph, deps, count, params);
}
#elif SIM_CUDART == 12
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
			     size_t count, struct cudaGraphNodeParams *params)
{
	return add_node(node, graph, deps, count, params);
}

cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t *node, cudaGraph_t graph,
				const cudaGraphNode_t *deps, const cudaGraphEdgeData *edges,
				size_t count, struct cudaGraphNodeParams *params)
{
	(void)edges;
	return add_node(node, graph, deps, count, params);
}
#endif

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *deps, size_t count,
				   const struct cudaKernelNodeParams *params)
{
	CUgraphNodeParams own = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
	CUfunction function;
	cudaError_t rc;

	NEED(params);
	ENTER();
	rc = rt_kernel(params->func, &function);
	if (rc != cudaSuccess)
		return rt_last(rc);
	own.kernel.func = function;
	own.kernel.gridDimX = params->gridDim.x;
	own.kernel.gridDimY = params->gridDim.y;
	own.kernel.gridDimZ = params->gridDim.z;
	own.kernel.blockDimX = params->blockDim.x;
	own.kernel.blockDimY = params->blockDim.y;
	own.kernel.blockDimZ = params->blockDim.z;
	own.kernel.kernelParams = params->kernelParams;
	return rt_last(CALL(cuGraphAddNode, node, graph, deps, count, &own));
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
	FORWARD(cuGraphNodeGetType, node, (CUgraphNodeType *)type);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	FORWARD(cuGraphGetNodes, graph, nodes, count);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	FORWARD(cuGraphGetRootNodes, graph, nodes, count);
}

#if SIM_CUDART >= 13
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
			      cudaGraphEdgeData *edges, size_t *count)
{
	if (edges && count)
		memset(edges, 0, *count * sizeof(*edges));
	FORWARD(cuGraphGetEdges, graph, from, to, count);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
				     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
				     size_t count)
{
	(void)edges;
	FORWARD(cuGraphAddDependencies, graph, from, to, count);
}
#else
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
			      size_t *count)
{
	FORWARD(cuGraphGetEdges, graph, from, to, count);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
				     const cudaGraphNode_t *to, size_t count)
{
	FORWARD(cuGraphAddDependencies, graph, from, to, count);
}
#endif

cudaError_t cudaUserObjectCreate(cudaUserObject_t *out, void *ptr, cudaHostFn_t destroy,
				 unsigned int refs, unsigned int flags)
{
	FORWARD(cuUserObjectCreate, out, ptr, destroy, refs, flags);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
	FORWARD(cuUserObjectRetain, object, count);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
	FORWARD(cuUserObjectRelease, object, count);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
				      unsigned int count, unsigned int flags)
{
	FORWARD(cuGraphRetainUserObject, graph, object, count, flags);
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
				       unsigned int count)
{
	FORWARD(cuGraphReleaseUserObject, graph, object, count);
}
