/*
 * Questions put to the driver about things with an inside (ask.h): arrays and graphs.
 */
#include "interpose/ask.h"
#include "interpose/libraries.h"

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
} ask;

void gm_ask_layouts_init(void)
{
	ask.array_descriptor = gm_libcuda_symbol("cuArray3DGetDescriptor_v2");
	ask.mipmap_level = gm_libcuda_symbol("cuMipmappedArrayGetLevel");
	ask.graph_nodes = gm_libcuda_symbol("cuGraphGetNodes");
	ask.node_type = gm_libcuda_symbol("cuGraphNodeGetType");
	ask.alloc_params = gm_libcuda_symbol("cuGraphMemAllocNodeGetParams");
	ask.free_params = gm_libcuda_symbol("cuGraphMemFreeNodeGetParams");
	ask.child_graph = gm_libcuda_symbol("cuGraphChildGraphNodeGetGraph");
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
	if (!ask.array_descriptor || ask.array_descriptor(&desc, array) != GM_CUDA_SUCCESS)
		return 0;
	row = gm_driver_array_bytes(desc.Format, desc.NumChannels, desc.Width, 0, 0, 1);
	rows = desc.Height > 1 ? round_up(desc.Height, TILE_ROWS) : 1;
	return round_up(row, TILE_BYTES) * rows * (desc.Depth ? desc.Depth : 1);
}

uint64_t gm_ask_array_bytes(uint64_t array, bool mipmapped)
{
	uint64_t bytes = 0;
	unsigned int level;
	CUarray one;

	if (!mipmapped)
		return one_array((CUarray)(uintptr_t)array);
	for (level = 0; level < MOST_LEVELS && ask.mipmap_level; level++) {
		if (ask.mipmap_level(&one, (CUmipmappedArray)(uintptr_t)array, level) != GM_CUDA_SUCCESS)
			break;
		bytes += one_array(one);
	}
	return bytes;
}

/* ---- graphs ---- */

static void *take_pages(size_t bytes)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

static bool add_node(struct gm_graph_nodes *list, uint64_t address, bool frees)
{
	uint32_t capacity = list->capacity ? list->capacity * 2 : 4096 / sizeof(*list->nodes);
	struct gm_graph_node *larger;

	if (list->count == list->capacity) {
		larger = take_pages(capacity * sizeof(*larger));
		if (!larger)
			return false;
		if (list->count)
			memcpy(larger, list->nodes, list->count * sizeof(*larger));
		gm_free_graph_nodes(&(struct gm_graph_nodes){list->nodes, 0, list->capacity});
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

	if (ask.node_type(node, &type) != GM_CUDA_SUCCESS)
		return;
	if (type == GM_GRAPH_NODE_MEM_ALLOC && ask.alloc_params(node, &alloc) == GM_CUDA_SUCCESS)
		add_node(list, alloc.dptr, false);
	else if (type == GM_GRAPH_NODE_MEM_FREE && ask.free_params(node, &address) == GM_CUDA_SUCCESS)
		add_node(list, address, true);
	else if (type == GM_GRAPH_NODE_GRAPH && ask.child_graph(node, &child) == GM_CUDA_SUCCESS)
		add_graph(child, list, depth + 1);
}

static void add_graph(CUgraph graph, struct gm_graph_nodes *list, unsigned depth)
{
	CUgraphNode *nodes;
	size_t count = 0, i;

	if (depth > MOST_NESTED || ask.graph_nodes(graph, NULL, &count) != GM_CUDA_SUCCESS || !count ||
	    count > MOST_NODES)
		return;
	nodes = take_pages(count * sizeof(CUgraphNode));
	if (!nodes)
		return;
	if (ask.graph_nodes(graph, nodes, &count) == GM_CUDA_SUCCESS)
		for (i = 0; i < count; i++)
			add_one(nodes[i], list, depth);
	munmap(nodes, count * sizeof(CUgraphNode));
}

void gm_ask_graph_nodes(uint64_t graph, struct gm_graph_nodes *list)
{
	*list = (struct gm_graph_nodes){0};
	if (graph && ask.graph_nodes && ask.node_type && ask.alloc_params && ask.free_params &&
	    ask.child_graph)
		add_graph((CUgraph)(uintptr_t)graph, list, 0);
}

void gm_free_graph_nodes(struct gm_graph_nodes *list)
{
	if (list->nodes)
		munmap(list->nodes, list->capacity * sizeof(*list->nodes));
	*list = (struct gm_graph_nodes){0};
}
