/*
 * Roles of graphs: memory nodes, what an executable graph will allocate and free, launches.
 */
#include "recorder/calls/role_graph.h"
#include "recorder/state/captures.h"
#include "recorder/calls/internal.h"
#include "recorder/calls/role_context.h"
#include "recorder/calls/role_cost.h"
#include "recorder/calls/role_pool.h"
#include "recorder/calls/role_steps.h"
#include "recorder/query/query.h"
#include "recorder/query/query_layout.h"
#include "track/capture_pools.h"
#include "track/driver_allocs.h"
#include "track/graphs.h"
#include "track/recording.h"
#include "track/work.h"

void gm_graph_node_made(struct gm_event *event)
{
	event->kind = GM_KIND_GRAPH;
	event->space = GM_SPACE_POINTER;
	event->owner = gm_graph_pool_of(event->device);
	gm_track_graph_define(event);
}

void gm_end_graph_node(struct gm_call *call, const struct gm_row *row, int result)
{
	const CUgraphNodeParams *node = call->node;
	struct gm_event event = gm_event_of(call, row, result);

	if (!node || node->type != GM_GRAPH_NODE_MEM_ALLOC)
		return;
	event.bytes = node->alloc.bytesize;
	event.device = (int16_t)node->alloc.poolProps.location.id;
	event.stack = gm_call_stack(call, 0, &event.caller_module);
	if (result != GM_CUDA_SUCCESS) {
		gm_track_alloc_failed(&event);
		return;
	}
	event.key = node->alloc.dptr;
	gm_note_device(event.device);
	gm_graph_node_made(&event);
}

void gm_end_capture_begin(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_event event;

	if (result != GM_CUDA_SUCCESS)
		return;
	event = gm_event_of(call, row, result);
	event.device = (int16_t)gm_context_device();
	event.stack = gm_outer_call_stack(call, &event.caller_module);
	gm_track_capture_begin(&event, call->flags == GM_CAPTURE_GLOBAL);
}

void gm_end_capture_end(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (gm_capture_is_over(result))
		gm_track_capture_end(call->stream,
				     result == GM_CUDA_SUCCESS ? gm_read_out(call) : 0);
}

/* The driver is asked for the graph's nodes, so that it does not matter how they were made. */
void gm_end_graph_instantiate(struct gm_call *call, const struct gm_row *row, int result)
{
	struct gm_graph_nodes nodes;

	(void)row;
	if (result != GM_CUDA_SUCCESS || !gm_track_graph_nodes())
		return;
	gm_query_graph_nodes(call->graph, &nodes);
	gm_track_graph_instantiate(gm_read_out(call), call->flags & GM_GRAPH_AUTO_FREE, nodes.nodes,
				   nodes.count);
	gm_release_graph_nodes(&nodes);
}

/* The memory of its nodes is taken now, before the first launch. */
void gm_end_graph_upload(struct gm_call *call, const struct gm_row *row, int result)
{
	uint64_t devices = result == GM_CUDA_SUCCESS ? gm_track_graph_devices(call->exec) : 0;
	int device;

	(void)row;
	for (device = 0; device < 64; device++)
		if (devices >> device & 1)
			gm_sample_pool(gm_graph_pool_of(device), true);
}

void gm_end_graph_launch(struct gm_call *call, const struct gm_row *row, int result)
{
	uint64_t devices = gm_track_graph_devices(call->exec);
	struct gm_event event;
	int device;

	gm_thread.launches++;
	gm_track_worked();
	if (gm_track_ledger_by_time(gm_track_now()))
		gm_sample_by_time();
	if (!devices)
		return; /* the graph has no memory nodes */
	event = gm_event_of(call, row, result);
	event.stream = gm_stream_of(call, row);
	event.context = gm_current_context(call);
	event.stack = gm_call_stack(call, result == GM_CUDA_SUCCESS ? GM_SHALLOW_FRAMES : 0,
				    &event.caller_module);
	gm_track_graph_launch(call->exec, &event);
	for (device = 0; device < 64; device++)
		if (devices >> device & 1)
			gm_sample_pool(gm_graph_pool_of(device), false);
}

/*
 * Before the call, because the nodes cannot be queried after it. A destruction that CUDA refuses
 * does no harm: the nodes' addresses stay known as long as an executable graph has them.
 */
void gm_begin_graph_destroy(struct gm_call *call, const struct gm_row *row)
{
	struct gm_graph_nodes nodes;

	(void)row;
	gm_track_capture_graph_destroyed(call->graph);
	if (!call->graph || !gm_track_graph_nodes())
		return;
	gm_query_graph_nodes(call->graph, &nodes);
	gm_track_graph_destroyed(nodes.nodes, nodes.count);
	gm_release_graph_nodes(&nodes);
}

void gm_end_graph_exec_destroy(struct gm_call *call, const struct gm_row *row, int result)
{
	(void)row;
	if (result == GM_CUDA_SUCCESS && gm_track_graph_nodes())
		gm_track_graph_exec_destroyed(call->exec);
}
