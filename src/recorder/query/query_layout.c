/*
 * Queries to the driver about the inside of arrays and graphs (query_layout.h).
 */
#include "recorder/query/query_layout.h"
#include "api/api.h"
#include "recorder/state/libraries.h"

#include <string.h>
#include <sys/mman.h>

#define TILE_BYTES 64u
#define TILE_ROWS 8u
#define MOST_LEVELS 32u
#define MOST_NODES (1u << 20)
#define MOST_NESTED 16u

static struct {
	CUresult (*array_descriptor)(CUDA_ARRAY3D_DESCRIPTOR *, CUarray);
	CUresult (*mipmap_level)(CUarray *, CUmipmappedArray, unsigned int);
	CUresult (*graph_nodes)(CUgraph, CUgraphNode *, size_t *);
	CUresult (*node_type)(CUgraphNode, unsigned int *);
	CUresult (*alloc_params)(CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS *);
	CUresult (*free_params)(CUgraphNode, CUdeviceptr *);
	CUresult (*child_graph)(CUgraphNode, CUgraph *);
} query;

void gm_query_layouts_init(void)
{
	query.array_descriptor = gm_libcuda_symbol("cuArray3DGetDescriptor_v2");
	query.mipmap_level = gm_libcuda_symbol("cuMipmappedArrayGetLevel");
	query.graph_nodes = gm_libcuda_symbol("cuGraphGetNodes");
	query.node_type = gm_libcuda_symbol("cuGraphNodeGetType");
	query.alloc_params = gm_libcuda_symbol("cuGraphMemAllocNodeGetParams");
	query.free_params = gm_libcuda_symbol("cuGraphMemFreeNodeGetParams");
	query.child_graph = gm_libcuda_symbol("cuGraphChildGraphNodeGetGraph");
}

/* ---- arrays ---- */

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static uint64_t one_array(CUarray array)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	uint64_t row, rows;

	memset(&desc, 0, sizeof(desc));
	if (!query.array_descriptor || query.array_descriptor(&desc, array) != GM_CUDA_SUCCESS)
		return 0;
	row = gm_driver_array_bytes(desc.Format, desc.NumChannels, desc.Width, 0, 0, 1);
	rows = desc.Height > 1 ? round_up(desc.Height, TILE_ROWS) : 1;
	return round_up(row, TILE_BYTES) * rows * (desc.Depth ? desc.Depth : 1);
}

uint64_t gm_query_array_bytes(uint64_t array, bool mipmapped)
{
	uint64_t bytes = 0;
	unsigned int level;
	CUarray one;

	if (!mipmapped)
		return one_array((CUarray)(uintptr_t)array);
	for (level = 0; level < MOST_LEVELS && query.mipmap_level; level++) {
		if (query.mipmap_level(&one, (CUmipmappedArray)(uintptr_t)array, level) !=
		    GM_CUDA_SUCCESS)
			break;
		bytes += one_array(one);
	}
	return bytes;
}

/* ---- graphs ---- */

static void *map_pages(size_t bytes)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

static bool add_node(struct gm_graph_nodes *list, uint64_t address, bool frees)
{
	uint32_t capacity = list->capacity ? list->capacity * 2 : 4096 / sizeof(*list->nodes);
	struct gm_graph_node *larger;

	if (list->count == list->capacity) {
		larger = map_pages(capacity * sizeof(*larger));
		if (!larger)
			return false;
		if (list->count)
			memcpy(larger, list->nodes, list->count * sizeof(*larger));
		gm_release_graph_nodes(&(struct gm_graph_nodes){list->nodes, 0, list->capacity});
		list->nodes = larger;
		list->capacity = capacity;
	}
	list->nodes[list->count].address = address;
	list->nodes[list->count++].frees = frees;
	return true;
}

static void add_graph(CUgraph graph, struct gm_graph_nodes *list, unsigned depth);

static void add_one(CUgraphNode node, struct gm_graph_nodes *list, unsigned depth)
{
	CUDA_MEM_ALLOC_NODE_PARAMS alloc;
	unsigned int type;
	CUdeviceptr address;
	CUgraph child;

	if (query.node_type(node, &type) != GM_CUDA_SUCCESS)
		return;
	if (type == GM_GRAPH_NODE_MEM_ALLOC && query.alloc_params(node, &alloc) == GM_CUDA_SUCCESS)
		add_node(list, alloc.dptr, false);
	else if (type == GM_GRAPH_NODE_MEM_FREE &&
		 query.free_params(node, &address) == GM_CUDA_SUCCESS)
		add_node(list, address, true);
	else if (type == GM_GRAPH_NODE_GRAPH && query.child_graph(node, &child) == GM_CUDA_SUCCESS)
		add_graph(child, list, depth + 1);
}

static void add_graph(CUgraph graph, struct gm_graph_nodes *list, unsigned depth)
{
	CUgraphNode *nodes;
	size_t count = 0, i;

	if (depth > MOST_NESTED || query.graph_nodes(graph, NULL, &count) != GM_CUDA_SUCCESS ||
	    !count || count > MOST_NODES)
		return;
	nodes = map_pages(count * sizeof(CUgraphNode));
	if (!nodes)
		return;
	if (query.graph_nodes(graph, nodes, &count) == GM_CUDA_SUCCESS)
		for (i = 0; i < count; i++)
			add_one(nodes[i], list, depth);
	munmap(nodes, count * sizeof(CUgraphNode));
}

void gm_query_graph_nodes(uint64_t graph, struct gm_graph_nodes *list)
{
	*list = (struct gm_graph_nodes){0};
	if (graph && query.graph_nodes && query.node_type && query.alloc_params &&
	    query.free_params && query.child_graph)
		add_graph((CUgraph)(uintptr_t)graph, list, 0);
}

uint64_t gm_query_graph_size(uint64_t graph)
{
	size_t count = 0;

	if (!graph || !query.graph_nodes ||
	    query.graph_nodes((CUgraph)(uintptr_t)graph, NULL, &count) != GM_CUDA_SUCCESS)
		return 0;
	return count;
}

void gm_release_graph_nodes(struct gm_graph_nodes *list)
{
	if (list->nodes)
		munmap(list->nodes, list->capacity * sizeof(*list->nodes));
	*list = (struct gm_graph_nodes){0};
}
