/*
 * Memory of graphs. A node that allocates has an address as soon as it is made, by capture or by
 * hand, and memory from the first launch of its graph: only then is there an allocation.
 * Definitions and executables are in private memory; what is live is an ordinary allocation of kind
 * graph with its node's stack.
 *
 * Facts: a second launch without a free in between is refused (error 1); with auto-free-on-launch
 * it frees first, so that one block is left; freeing the address is legal; destroying graphs frees
 * nothing.
 */
#include "track/graphs.h"
#include "track/accounting.h"
#include "track/allocs.h"
#include "track/event_log.h"
#include "track/freed.h"
#include "track/live.h"
#include "track/sites.h"
#include "track/update.h"

#include <string.h>

#define HASH_NONFATAL_OOM	   1
#define uthash_malloc(bytes)	   gm_arena_alloc(&gm_track_arena, bytes)
#define uthash_free(memory, bytes) gm_arena_free(&gm_track_arena, memory, bytes)
#include <uthash.h>

struct definition {
	uint64_t address;
	struct gm_event event;
	uint32_t executables;
	bool graph; /* the graph in which it was made exists */
	UT_hash_handle hh;
};

struct executable {
	uint64_t handle;
	bool auto_free;
	uint32_t count;
	struct gm_graph_node *nodes;
	UT_hash_handle hh;
};

static struct {
	struct definition *definitions;
	struct executable *executables;
} graphs;

uint32_t gm_graph_nodes; /* the number of definitions */

void gm_graphs_reset(void)
{
	memset(&graphs, 0, sizeof(graphs)); /* the arena was freed as a whole */
	__atomic_store_n(&gm_graph_nodes, 0, __ATOMIC_RELAXED);
}

static struct definition *definition_of(uint64_t address)
{
	struct definition *definition;

	HASH_FIND(hh, graphs.definitions, &address, sizeof(address), definition);
	return definition;
}

static struct executable *executable_of(uint64_t handle)
{
	struct executable *executable;

	HASH_FIND(hh, graphs.executables, &handle, sizeof(handle), executable);
	return executable;
}

static void forget(struct definition *definition)
{
	HASH_DEL(graphs.definitions, definition);
	gm_arena_free(&gm_track_arena, definition, sizeof(*definition));
	__atomic_fetch_sub(&gm_graph_nodes, 1, __ATOMIC_RELAXED);
}

void gm_track_graph_define(const struct gm_event *event)
{
	struct definition *definition;

	if (!gm_file || !event->key)
		return;
	gm_update_begin();
	gm_file->events++;
	definition = definition_of(event->key);
	if (definition)
		forget(definition); /* we missed the end of its graph */
	definition = gm_arena_alloc(&gm_track_arena, sizeof(*definition));
	if (definition) {
		memset(definition, 0, sizeof(*definition));
		definition->address = event->key;
		definition->event = *event;
		definition->graph = true;
		HASH_ADD(hh, graphs.definitions, address, sizeof(definition->address), definition);
		__atomic_fetch_add(&gm_graph_nodes, 1, __ATOMIC_RELAXED);
	} else {
		gm_store_dropped(GM_TABLE_ALLOCS);
	}
	gm_update_end();
}

static void drop_executable(struct executable *executable)
{
	struct definition *definition;
	uint32_t i;

	for (i = 0; i < executable->count; i++) {
		definition = definition_of(executable->nodes[i].address);
		if (!definition || executable->nodes[i].frees)
			continue;
		if (definition->executables && !--definition->executables && !definition->graph)
			forget(definition);
	}
	HASH_DEL(graphs.executables, executable);
	gm_arena_free(&gm_track_arena, executable->nodes,
		      executable->count * sizeof(*executable->nodes));
	gm_arena_free(&gm_track_arena, executable, sizeof(*executable));
}

static void add_executable(uint64_t handle, bool auto_free, const struct gm_graph_node *nodes,
			   uint32_t count)
{
	struct executable *executable = gm_arena_alloc(&gm_track_arena, sizeof(*executable));
	struct gm_graph_node *copy = gm_arena_alloc(&gm_track_arena, count * sizeof(*nodes));
	struct definition *definition;
	uint32_t i;

	if (!executable || !copy) {
		gm_store_dropped(GM_TABLE_ALLOCS);
		return;
	}
	memcpy(copy, nodes, count * sizeof(*nodes));
	memset(executable, 0, sizeof(*executable));
	executable->handle = handle;
	executable->auto_free = auto_free;
	executable->count = count;
	executable->nodes = copy;
	for (i = 0; i < count; i++) {
		definition = definition_of(nodes[i].address);
		if (definition && !nodes[i].frees)
			definition->executables++;
	}
	HASH_ADD(hh, graphs.executables, handle, sizeof(executable->handle), executable);
}

void gm_track_graph_instantiate(uint64_t exec, bool auto_free, const struct gm_graph_node *nodes,
				uint32_t count)
{
	struct executable *old;

	if (!gm_file || !exec)
		return;
	gm_update_begin();
	old = executable_of(exec);
	if (old)
		drop_executable(old);
	if (count)
		add_executable(exec, auto_free, nodes, count);
	gm_update_end();
}

uint64_t gm_track_graph_devices(uint64_t exec)
{
	struct executable *executable;
	struct definition *definition;
	uint64_t devices = 0;
	uint32_t i;

	if (!gm_file || !gm_track_graph_nodes())
		return 0;
	gm_track_lock();
	executable = executable_of(exec);
	for (i = 0; executable && i < executable->count; i++) {
		definition = definition_of(executable->nodes[i].address);
		if (definition && definition->event.device >= 0)
			devices |= 1ull << (definition->event.device & 63);
	}
	gm_track_unlock();
	return devices;
}

/* ---- launches ---- */

static void launch_failed(const struct executable *executable, const struct gm_event *launch)
{
	struct gm_event event = *launch;
	struct definition *definition;
	struct gm_site_record *site;
	uint32_t i, index;

	event.bytes = 0;
	for (i = 0; i < executable->count; i++) {
		definition = definition_of(executable->nodes[i].address);
		if (!definition || executable->nodes[i].frees)
			continue;
		event.bytes += definition->event.bytes;
		event.device = definition->event.device;
	}
	index = gm_find_or_make_site(&event);
	site = gm_store_record(GM_TABLE_SITES, index);
	gm_account_failure(event.device, GM_LEVEL_DRIVER, GM_KIND_GRAPH, site);
	gm_log_event(GM_OP_ALLOC_FAILED, &event, 0, index);
}

static void end_live(struct gm_alloc_record *record, uint32_t index, const struct gm_event *launch,
		     bool implicitly)
{
	if (implicitly)
		gm_record_implicit_free(record, GM_IMPLICIT_GRAPH, launch->stack);
	else
		gm_freed_remember(record, launch->stack, 0);
	gm_remove_alloc(record, index);
}

/*
 * Nodes come in the order in which they were made, which a launch respects as far as memory goes.
 */
static void run_node(const struct executable *executable, const struct gm_graph_node *node,
		     const struct gm_event *launch)
{
	struct definition *definition = definition_of(node->address);
	struct gm_alloc_record *record;
	uint32_t index, site;

	record = gm_live_find(GM_SPACE_POINTER, node->address, &index);
	if (record && record->kind == GM_KIND_GRAPH)
		end_live(record, index, launch, !node->frees);
	if (node->frees || !definition)
		return;
	definition->event.flags &= (uint16_t)~GM_ALLOC_AUTO_FREE;
	if (executable->auto_free)
		definition->event.flags |= GM_ALLOC_AUTO_FREE;
	definition->event.stream = launch->stream;
	definition->event.context = launch->context;
	site = gm_find_or_make_site(&definition->event);
	if (!gm_store_record(GM_TABLE_SITES, site))
		return;
	record = gm_live_add(&definition->event, site);
	if (!record)
		return;
	gm_account_alloc(record, gm_store_record(GM_TABLE_SITES, site));
	gm_log_event(GM_OP_ALLOC, &definition->event, record->serial, site);
}

void gm_track_graph_launch(uint64_t exec, const struct gm_event *event)
{
	struct executable *executable;
	uint32_t i;

	if (!gm_file)
		return;
	gm_update_begin();
	gm_file->events++;
	executable = executable_of(exec);
	if (executable && event->error)
		launch_failed(executable, event);
	for (i = 0; executable && !event->error && i < executable->count; i++)
		run_node(executable, &executable->nodes[i], event);
	gm_log_event(GM_OP_LAUNCH, event, 0, GM_NONE);
	gm_update_end();
}

void gm_track_graph_destroyed(const struct gm_graph_node *nodes, uint32_t count)
{
	struct definition *definition;
	uint32_t i;

	if (!gm_file)
		return;
	gm_update_begin();
	for (i = 0; i < count; i++) {
		definition = nodes[i].frees ? NULL : definition_of(nodes[i].address);
		if (!definition)
			continue;
		definition->graph = false;
		if (!definition->executables)
			forget(definition);
	}
	gm_update_end();
}

void gm_track_graph_exec_destroyed(uint64_t exec)
{
	struct executable *executable;

	if (!gm_file)
		return;
	gm_update_begin();
	executable = executable_of(exec);
	if (executable)
		drop_executable(executable);
	gm_update_end();
}
