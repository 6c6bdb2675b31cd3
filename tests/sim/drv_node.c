/*
 * Graph nodes of the simulated driver: adding each kind, asking for nodes, edges and parameters,
 * and user objects that a graph keeps.
 */
#include "drv.h"

struct CUuserObject_st {
	struct sim_object head;
	void *ptr;
	CUhostFn destroy;
	unsigned refs;
};
#ifndef SIM_REAL_HEADERS
typedef struct CUuserObject_st *CUuserObject;
#endif

struct sim_user_ref {
	struct sim_user_ref *next;
	CUuserObject object;
	unsigned count;
};

static void user_put(CUuserObject object, unsigned count)
{
	object->refs -= count;
	if (object->refs)
		return;
	object->destroy(object->ptr);
	sim_object_free(object);
}

void sim_user_drop_all(CUgraph graph)
{
	struct sim_user_ref *ref, *next;

	for (ref = graph->users; ref; ref = next) {
		next = ref->next;
		user_put(ref->object, ref->count);
		free(ref);
	}
	graph->users = NULL;
}

void sim_user_share_all(CUgraph twin, CUgraph graph)
{
	for (struct sim_user_ref *ref = graph->users; ref; ref = ref->next) {
		struct sim_user_ref *own = malloc(sizeof(*own));

		*own = *ref;
		own->next = twin->users;
		twin->users = own;
		own->object->refs += own->count;
	}
}

CUresult cuUserObjectCreate(CUuserObject *out, void *ptr, CUhostFn destroy, unsigned int refs,
			    unsigned int flags)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(out && destroy && refs && flags == 1);
	*out = sim_object_new(SIM_USEROBJ, sizeof(**out), NULL);
	(*out)->ptr = ptr;
	(*out)->destroy = destroy;
	(*out)->refs = refs;
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(SIM_GET(SIM_USEROBJ, object) && count);
	object->refs += count;
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(SIM_GET(SIM_USEROBJ, object) && count && count <= object->refs);
	user_put(object, count);
	return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
				 unsigned int flags)
{
	SIM_API(SIM_INIT);
	struct sim_user_ref *ref;

	SIM_VALUE(SIM_GET(SIM_GRAPH, graph) && SIM_GET(SIM_USEROBJ, object) && count && flags <= 1);
	if (flags == 0) /* 1: the caller's references move to the graph */
		object->refs += count;
	ref = malloc(sizeof(*ref));
	*ref = (struct sim_user_ref){graph->users, object, count};
	graph->users = ref;
	return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(SIM_GET(SIM_GRAPH, graph) && SIM_GET(SIM_USEROBJ, object));
	for (struct sim_user_ref *ref = graph->users; ref; ref = ref->next) {
		if (ref->object != object || ref->count < count)
			continue;
		ref->count -= count;
		user_put(object, count);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult add(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
		    CUgraphNodeType type, const void *params, size_t size)
{
	CUresult rc;

	SIM_VALUE(node && SIM_GET(SIM_GRAPH, graph) && (params || !size));
	rc = sim_graph_add(graph, node, deps, count, type);
	if (rc == CUDA_SUCCESS && size)
		memcpy(&(*node)->params.reserved1, params, size);
	return rc;
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
			     size_t count)
{
	SIM_API(SIM_INIT);
	return add(node, graph, deps, count, CU_GRAPH_NODE_TYPE_EMPTY, NULL, 0);
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
			      size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	SIM_API(SIM_INIT);
	return add(node, graph, deps, count, CU_GRAPH_NODE_TYPE_KERNEL, params, sizeof(*params));
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				 size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	SIM_API(SIM_INIT);
	return add(node, graph, deps, count, CU_GRAPH_NODE_TYPE_KERNEL, params, sizeof(*params));
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
			    const CUDA_HOST_NODE_PARAMS *params)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(params && params->fn);
	return add(node, graph, deps, count, CU_GRAPH_NODE_TYPE_HOST, params, sizeof(*params));
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
			      size_t count, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
	SIM_API(SIM_INIT);
	(void)ctx;
	return add(node, graph, deps, count, CU_GRAPH_NODE_TYPE_MEMSET, params, sizeof(*params));
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
			      size_t count, const CUDA_MEMCPY3D *params, CUcontext ctx)
{
	SIM_API(SIM_INIT);
	CUresult rc = add(node, graph, deps, count, CU_GRAPH_NODE_TYPE_MEMCPY, NULL, 0);

	(void)ctx;
	SIM_VALUE(params);
	if (rc == CUDA_SUCCESS)
		(*node)->params.memcpy.copyParams = *params;
	return rc;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				  size_t count, CUgraph child)
{
	SIM_API(SIM_INIT);
	CUresult rc;

	SIM_VALUE(SIM_GET(SIM_GRAPH, child));
	if (child->has_mem)
		return CUDA_ERROR_NOT_SUPPORTED;
	rc = add(node, graph, deps, count, CU_GRAPH_NODE_TYPE_GRAPH, NULL, 0);
	if (rc == CUDA_SUCCESS) {
		(*node)->child = sim_graph_copy(child);
		(*node)->child->child = true;
	}
	return rc;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(graph && SIM_GET(SIM_NODE, node) && node->child);
	*graph = node->child;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				   size_t count, CUevent event)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(SIM_GET(SIM_EVENT, event));
	return add(node, graph, deps, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &event,
		   sizeof(event));
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				 size_t count, CUevent event)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(SIM_GET(SIM_EVENT, event));
	return add(node, graph, deps, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &event, sizeof(event));
}

/* The general form: one entry for every kind of node. */
CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
			CUgraphNodeParams *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return cuGraphAddKernelNode_v2(node, graph, deps, count,
					       (CUDA_KERNEL_NODE_PARAMS_v2 *)&params->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuGraphAddMemcpyNode(node, graph, deps, count, &params->memcpy.copyParams,
					    params->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return cuGraphAddMemsetNode(node, graph, deps, count,
					    (CUDA_MEMSET_NODE_PARAMS *)&params->memset, NULL);
	case CU_GRAPH_NODE_TYPE_HOST:
		return cuGraphAddHostNode(node, graph, deps, count,
					  (CUDA_HOST_NODE_PARAMS *)&params->host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return cuGraphAddChildGraphNode(node, graph, deps, count, params->graph.graph);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return cuGraphAddEmptyNode(node, graph, deps, count);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return cuGraphAddEventWaitNode(node, graph, deps, count, params->eventWait.event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return cuGraphAddEventRecordNode(node, graph, deps, count,
						 params->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return cuGraphAddMemAllocNode(node, graph, deps, count,
					      (CUDA_MEM_ALLOC_NODE_PARAMS *)&params->alloc);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return cuGraphAddMemFreeNode(node, graph, deps, count, params->free.dptr);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
			   const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
	(void)edges;
	return cuGraphAddNode(node, graph, deps, count, params);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(type && SIM_GET(SIM_NODE, node));
	*type = node->params.type;
	return CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count, bool roots)
{
	size_t found = 0;

	SIM_VALUE(count && SIM_GET(SIM_GRAPH, graph));
	for (CUgraphNode n = graph->first; n; n = n->next) {
		if (roots && n->deps_count)
			continue;
		if (nodes && found < *count)
			nodes[found] = n;
		found++;
	}
	if (nodes)
		for (size_t i = found; i < *count; i++)
			nodes[i] = NULL;
	*count = found;
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	SIM_API(SIM_INIT);
	return list_nodes(graph, nodes, count, false);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	SIM_API(SIM_INIT);
	return list_nodes(graph, nodes, count, true);
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	SIM_API(SIM_INIT);
	size_t found = 0;

	SIM_VALUE(count && SIM_GET(SIM_GRAPH, graph) && !from == !to);
	for (CUgraphNode n = graph->first; n; n = n->next) {
		for (size_t i = 0; i < n->deps_count; i++, found++) {
			if (!from || found >= *count)
				continue;
			from[found] = n->deps[i];
			to[found] = n;
		}
	}
	*count = found;
	return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
			    CUgraphEdgeData *edges, size_t *count)
{
	size_t room = count ? *count : 0;

	if (edges)
		memset(edges, 0, room * sizeof(*edges));
	return cuGraphGetEdges(graph, from, to, count);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *deps, size_t *count)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(count && SIM_GET(SIM_NODE, node));
	for (size_t i = 0; deps && i < *count; i++)
		deps[i] = i < node->deps_count ? node->deps[i] : NULL;
	*count = node->deps_count;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				size_t count)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(SIM_GET(SIM_GRAPH, graph) && (!count || (from && to)));
	for (size_t i = 0; i < count; i++) {
		SIM_VALUE(SIM_GET(SIM_NODE, from[i]) && SIM_GET(SIM_NODE, to[i]) &&
			  from[i] != to[i]);
		to[i]->deps = realloc(to[i]->deps, (to[i]->deps_count + 1) * sizeof(*to[i]->deps));
		to[i]->deps[to[i]->deps_count++] = from[i];
	}
	return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   const CUgraphEdgeData *edges, size_t count)
{
	(void)edges;
	return cuGraphAddDependencies(graph, from, to, count);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *params)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(params && SIM_GET(SIM_NODE, node) &&
		  node->params.type == CU_GRAPH_NODE_TYPE_HOST);
	memcpy(params, &node->params.host, sizeof(*params));
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(params && SIM_GET(SIM_NODE, node) &&
		  node->params.type == CU_GRAPH_NODE_TYPE_KERNEL);
	memcpy(params, &node->params.kernel, sizeof(*params));
	return CUDA_SUCCESS;
}
