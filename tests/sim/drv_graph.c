/*
 * Graphs of the simulated driver: nodes and their dependencies, instantiating and launching. A
 * launch acts on memory and host functions; kernels and copies are nothing to it.
 */
#include "drv.h"

struct CUgraphExec_st {
	struct sim_object head;
	unsigned long long flags;
	int dev;
	uint64_t bytes; /* of exec_needs */
	CUgraph source; /* its own copy of the graph */
	CUgraph original;
};

CUresult sim_graph_new(CUgraph *graph)
{
	*graph = sim_object_new(SIM_GRAPH, sizeof(**graph), NULL);
	return CUDA_SUCCESS;
}

CUresult sim_graph_add(CUgraph graph, CUgraphNode *out, const CUgraphNode *deps, size_t count,
		       CUgraphNodeType type)
{
	CUgraphNode node;

	SIM_VALUE(!count || deps);
	for (size_t i = 0; i < count; i++)
		SIM_VALUE(SIM_GET(SIM_NODE, deps[i]) && deps[i]->graph == graph);
	node = sim_object_new(SIM_NODE, sizeof(*node), NULL);
	node->graph = graph;
	node->params.type = type;
	node->deps = malloc((count + 1) * sizeof(*node->deps));
	if (count)
		memcpy(node->deps, deps, count * sizeof(*deps));
	node->deps_count = count;
	node->prev = graph->last;
	if (graph->last)
		graph->last->next = node;
	else
		graph->first = node;
	graph->last = node;
	graph->nodes++;
	*out = node;
	return CUDA_SUCCESS;
}

static void node_free(CUgraphNode node)
{
	CUgraph graph = node->graph;

	if (node->prev)
		node->prev->next = node->next;
	else
		graph->first = node->next;
	if (node->next)
		node->next->prev = node->prev;
	else
		graph->last = node->prev;
	graph->nodes--;
	if (node->mem)
		sim_graph_mem_put(node->mem);
	if (node->child)
		sim_graph_kill(node->child);
	free(node->deps);
	sim_object_free(node);
}

void sim_graph_kill(CUgraph graph)
{
	while (graph->first)
		node_free(graph->first);
	if (graph->region)
		sim_graph_region_put(graph->region);
	sim_user_drop_all(graph);
	sim_object_free(graph);
}

/* Copies share the addresses of allocation nodes. */
CUgraph sim_graph_copy(CUgraph graph)
{
	CUgraph twin;
	CUgraphNode node;

	sim_graph_new(&twin);
	twin->has_mem = graph->has_mem;
	for (CUgraphNode n = graph->first; n; n = n->next) {
		sim_graph_add(twin, &node, NULL, 0, n->params.type);
		node->params = n->params;
		node->origin = n;
		node->disabled = n->disabled;
		node->mem = n->mem;
		if (n->mem)
			n->mem->refs++;
		node->child = n->child ? sim_graph_copy(n->child) : NULL;
	}
	for (CUgraphNode n = twin->first; n; n = n->next) {
		free(n->deps);
		n->deps_count = n->origin->deps_count;
		n->deps = malloc((n->deps_count + 1) * sizeof(*n->deps));
		for (size_t i = 0; i < n->deps_count; i++) {
			CUgraphNode twin_dep = twin->first;

			while (twin_dep->origin != n->origin->deps[i])
				twin_dep = twin_dep->next;
			n->deps[i] = twin_dep;
		}
	}
	sim_user_share_all(twin, graph);
	return twin;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(graph && flags == 0);
	return sim_graph_new(graph);
}

CUresult cuGraphDestroy(CUgraph graph)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(SIM_GET(SIM_GRAPH, graph) && !graph->child);
	sim_graph_kill(graph);
	return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *out, CUgraph graph)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(out && SIM_GET(SIM_GRAPH, graph));
	if (graph->has_mem)
		return CUDA_ERROR_NOT_SUPPORTED;
	*out = sim_graph_copy(graph);
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph clone)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(out && SIM_GET(SIM_GRAPH, clone));
	for (CUgraphNode n = clone->first; n; n = n->next) {
		if (n->origin == original) {
			*out = n;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(SIM_GET(SIM_NODE, node));
	if (node->mem)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (CUgraphNode n = node->graph->first; n; n = n->next) {
		size_t kept = 0;

		for (size_t i = 0; i < n->deps_count; i++)
			if (n->deps[i] != node)
				n->deps[kept++] = n->deps[i];
		n->deps_count = kept;
	}
	node_free(node);
	return CUDA_SUCCESS;
}

/* --- instantiating and launching --- */

static bool instantiated(CUgraph graph)
{
	for (struct sim_object *o = sim.loose; o; o = o->next)
		if (o->type == SIM_EXEC && ((CUgraphExec)o)->original == graph)
			return true;
	return false;
}

/*
 * Executable graphs take memory of the context, some bytes a node in whole pages. A destroyed one's
 * is used for later ones and never given back.
 */
static CUresult exec_needs(CUcontext ctx, uint64_t bytes)
{
	struct sim_device *device = &sim.dev[ctx->dev];
	uint64_t holds = sim_round(device->exec_needs + bytes, SIM_PAGE);

	if (holds > device->exec_holds) {
		if (sim_phys_take(ctx->dev, holds - device->exec_holds) != CUDA_SUCCESS)
			return CUDA_ERROR_OUT_OF_MEMORY;
		sim_memory_ctx(ctx)->cost += holds - device->exec_holds;
		device->exec_holds = holds;
	}
	device->exec_needs += bytes;
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	CUresult rc;

	SIM_VALUE(out && SIM_GET(SIM_GRAPH, graph) && flags < 16);
	/* a graph with memory nodes can only be instantiated once at a time */
	if (graph->has_mem && instantiated(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	rc = exec_needs(sim_ctx_current(), graph->nodes * sim.node_bytes);
	if (rc != CUDA_SUCCESS)
		return rc;
	*out = sim_object_new(SIM_EXEC, sizeof(**out), NULL);
	(*out)->dev = sim_ctx_current()->dev;
	(*out)->bytes = graph->nodes * sim.node_bytes;
	(*out)->flags = flags;
	(*out)->source = sim_graph_copy(graph);
	(*out)->original = graph;
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	SIM_API(SIM_CURRENT);
	return instantiate(exec, graph, flags);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
			       size_t log_size)
{
	SIM_API(SIM_CURRENT);
	if (error_node)
		*error_node = NULL;
	if (log && log_size)
		*log = 0;
	return instantiate(exec, graph, 0);
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
			    size_t log_size)
{
	return cuGraphInstantiate_v2(exec, graph, error_node, log, log_size);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
				      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(params);
	params->hErrNode_out = NULL;
	params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return instantiate(exec, graph, params->flags);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(SIM_GET(SIM_EXEC, exec));
	if (sim.dev[exec->dev].exec_needs >= exec->bytes)
		sim.dev[exec->dev].exec_needs -= exec->bytes;
	sim_graph_kill(exec->source);
	sim_object_free(exec);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(flags && SIM_GET(SIM_EXEC, exec));
	*flags = exec->flags;
	return CUDA_SUCCESS;
}

/* An allocation that is still out from an earlier launch: freed with auto-free, an error without.
 */
static CUresult check_live(CUgraph graph, unsigned long long flags)
{
	for (CUgraphNode n = graph->first; n; n = n->next) {
		if (n->child && check_live(n->child, flags) != CUDA_SUCCESS)
			return CUDA_ERROR_INVALID_VALUE;
		if (n->params.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || !n->mem->live)
			continue;
		if (!(flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
			return CUDA_ERROR_INVALID_VALUE;
		sim_graph_mem_retire(n->mem);
	}
	return CUDA_SUCCESS;
}

static bool ready(CUgraphNode node)
{
	for (size_t i = 0; i < node->deps_count; i++)
		if (!node->deps[i]->marked)
			return false;
	return true;
}

static CUresult run_graph(CUgraph graph, CUstream stream);

static CUresult run_node(CUgraphNode node, CUstream stream)
{
	CUevent event;

	if (node->disabled)
		return CUDA_SUCCESS;
	switch (node->params.type) {
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return sim_graph_mem_launch(node->mem);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		SIM_VALUE(node->mem->live);
		sim_graph_mem_retire(node->mem);
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_HOST:
		sim_stream_host(stream, node->params.host.fn, NULL, node->params.host.userData);
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return run_graph(node->child, stream);
	case CU_GRAPH_NODE_TYPE_KERNEL:
		sim_launch_grows(stream->head.ctx);
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		event = SIM_GET(SIM_EVENT, node->params.eventWait.event);
		if (event && event->stream)
			sim_stream_after(stream, event->stream, event->seq);
		return CUDA_SUCCESS;
	default:
		return CUDA_SUCCESS;
	}
}

/* In an order that the dependencies allow. */
static CUresult run_graph(CUgraph graph, CUstream stream)
{
	bool progress = true;
	CUresult rc;

	for (CUgraphNode n = graph->first; n; n = n->next)
		n->marked = false;
	while (progress) {
		progress = false;
		for (CUgraphNode n = graph->first; n; n = n->next) {
			if (n->marked || !ready(n))
				continue;
			rc = run_node(n, stream);
			if (rc != CUDA_SUCCESS)
				return rc;
			n->marked = progress = true;
		}
	}
	return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
	SIM_API(SIM_CURRENT);
	CUstream stream = sim_stream(handle);
	CUresult rc;

	SIM_VALUE(SIM_GET(SIM_EXEC, exec));
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	rc = sim_capture_check(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (stream->capture) {
		CUgraphNode node;

		if (exec->source->has_mem) {
			stream->capture->invalid = true;
			return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
		rc = sim_capture_node(stream, &node, CU_GRAPH_NODE_TYPE_GRAPH, NULL, 0);
		if (rc == CUDA_SUCCESS)
			node->child = sim_graph_copy(exec->source);
		return rc;
	}
	rc = check_live(exec->source, exec->flags);
	if (rc == CUDA_SUCCESS)
		rc = run_graph(exec->source, stream);
	return rc;
}

/* The memory of its nodes is taken now, before the first launch. */
static CUresult upload(CUgraph graph)
{
	CUresult rc = CUDA_SUCCESS;

	for (CUgraphNode n = graph->first; n && rc == CUDA_SUCCESS; n = n->next) {
		if (n->child)
			rc = upload(n->child);
		else if (n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && !n->mem->live)
			rc = sim_graph_mem_launch(n->mem);
		else
			continue;
		n->marked = rc == CUDA_SUCCESS;
	}
	for (CUgraphNode n = graph->first; n; n = n->next) {
		if (!n->child && n->marked)
			sim_graph_mem_retire(n->mem);
		n->marked = false;
	}
	return rc;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream handle)
{
	SIM_API(SIM_CURRENT);
	SIM_VALUE(SIM_GET(SIM_EXEC, exec));
	return sim_stream(handle) ? upload(exec->source) : CUDA_ERROR_INVALID_HANDLE;
}

static bool same_shape(CUgraph a, CUgraph b)
{
	CUgraphNode x = a->first, y = b->first;

	for (; x && y; x = x->next, y = y->next)
		if (x->params.type != y->params.type || x->deps_count != y->deps_count)
			return false;
	return !x && !y;
}

static CUresult update(CUgraphExec exec, CUgraph graph)
{
	SIM_VALUE(SIM_GET(SIM_EXEC, exec) && SIM_GET(SIM_GRAPH, graph));
	if (!same_shape(exec->source, graph) || exec->source->has_mem)
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	sim_graph_kill(exec->source);
	exec->source = sim_graph_copy(graph);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	SIM_API(SIM_INIT);
	CUresult rc = update(exec, graph);

	if (info) {
		memset(info, 0, sizeof(*info));
		info->result = rc == CUDA_SUCCESS ? CU_GRAPH_EXEC_UPDATE_SUCCESS
						  : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	}
	return rc;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
			   CUgraphExecUpdateResult *result)
{
	SIM_API(SIM_INIT);
	CUresult rc = update(exec, graph);

	SIM_VALUE(result);
	if (error_node)
		*error_node = NULL;
	*result = rc == CUDA_SUCCESS ? CU_GRAPH_EXEC_UPDATE_SUCCESS
				     : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	return rc;
}

static CUgraphNode exec_node(CUgraphExec exec, CUgraphNode node)
{
	CUgraphNode n = SIM_GET(SIM_EXEC, exec) ? exec->source->first : NULL;

	while (n && n->origin != node)
		n = n->next;
	return n;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
	SIM_API(SIM_INIT);
	CUgraphNode own = exec_node(exec, node);

	SIM_VALUE(own && own->params.type <= CU_GRAPH_NODE_TYPE_MEMSET);
	own->disabled = !enabled;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
	SIM_API(SIM_INIT);
	CUgraphNode own = exec_node(exec, node);

	SIM_VALUE(own && enabled && own->params.type <= CU_GRAPH_NODE_TYPE_MEMSET);
	*enabled = !own->disabled;
	return CUDA_SUCCESS;
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
				      const CUDA_HOST_NODE_PARAMS *params)
{
	SIM_API(SIM_INIT);
	CUgraphNode own = exec_node(exec, node);

	SIM_VALUE(own && params && own->params.type == CU_GRAPH_NODE_TYPE_HOST);
	memcpy(&own->params.host, params, sizeof(*params));
	return CUDA_SUCCESS;
}
