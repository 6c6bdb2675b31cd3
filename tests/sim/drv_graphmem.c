/*
 * Memory of graphs in the simulated driver, as measured: an allocation node has an address from its
 * making and memory from its first launch; what a graph or a later call frees stays reserved until
 * trimmed; destroying graphs and executables frees nothing.
 */
#include "drv.h"

static void mark_high(struct sim_device *device)
{
	uint64_t used = device->graph_live + device->graph_idle;

	if (used > device->graph_high)
		device->graph_high = used;
	if (used > device->graph_reserved_high)
		device->graph_reserved_high = used;
}

void sim_graph_region_put(struct sim_graph_region *region)
{
	if (--region->refs)
		return;
	sim_arena_give(&sim.arena, region->addr, region->size);
	free(region);
}

void sim_graph_mem_put(struct sim_graph_mem *mem)
{
	struct sim_mem *address;

	if (--mem->refs || mem->live)
		return;
	address = sim_mem_find(mem->addr);
	if (address)
		sim_mem_drop(address);
	sim_graph_region_put(mem->region);
	free(mem);
}

/* The allocation is over; its memory stays with the device's graphs. */
void sim_graph_mem_retire(struct sim_graph_mem *mem)
{
	struct sim_device *device = &sim.dev[mem->region->dev];

	if (!mem->live)
		return;
	mem->live = false;
	if (--mem->region->live == 0) {
		device->graph_live -= mem->region->size;
		device->graph_idle += mem->region->size;
	}
	mem->refs++;
	sim_graph_mem_put(mem);
}

CUresult sim_graph_mem_launch(struct sim_graph_mem *mem)
{
	struct sim_graph_region *region = mem->region;
	struct sim_device *device = &sim.dev[region->dev];
	uint64_t reuse = device->graph_idle < region->size ? device->graph_idle : region->size;
	CUresult rc;

	if (!region->live) {
		rc = sim_phys_take(region->dev, region->size - reuse);
		if (rc != CUDA_SUCCESS) {
			sim_pools_empty();
			rc = sim_phys_take(region->dev, region->size - reuse);
		}
		if (rc != CUDA_SUCCESS)
			return rc;
		device->graph_idle -= reuse;
		device->graph_live += region->size;
		mark_high(device);
	}
	region->live++;
	mem->live = true;
	return CUDA_SUCCESS;
}

/* More frees than allocations: of an address that the graph got from elsewhere, one is enough. */
static bool freed_in(CUgraph graph, const struct sim_graph_mem *mem)
{
	int out = 0, frees = 0;

	for (CUgraphNode n = graph->first; n; n = n->next) {
		if (n->mem != mem)
			continue;
		out += n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? 1 : -1;
		frees += n->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
	}
	return out <= 0 && frees;
}

/* An address that the graph itself freed before is used again. */
static struct sim_graph_mem *reuse(CUgraph graph, size_t size, int dev)
{
	for (CUgraphNode n = graph->first; n; n = n->next) {
		struct sim_mem *address;

		if (n->params.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || n->mem->region->dev != dev ||
		    !freed_in(graph, n->mem))
			continue;
		address = sim_mem_find(n->mem->addr);
		if (address && address->size >= size) {
			n->mem->refs++;
			return n->mem;
		}
	}
	return NULL;
}

/* Room among the graph's addresses; they grow by 32 MiB as a pool's do. */
static struct sim_graph_region *region_for(CUgraph graph, uint64_t size, int dev)
{
	struct sim_graph_region *region = graph->region;
	uint64_t bytes = sim_round(size, SIM_POOL_STEP);

	if (region && region->dev == dev && region->size - region->filled >= size)
		return region;
	region = calloc(1, sizeof(*region));
	region->addr = bytes >= size ? sim_arena_take(&sim.arena, bytes, SIM_PAGE, 0) : 0;
	if (!region->addr) {
		free(region);
		return NULL;
	}
	region->size = bytes;
	region->dev = dev;
	region->refs = 1;
	if (graph->region)
		sim_graph_region_put(graph->region);
	graph->region = region;
	return region;
}

static struct sim_graph_mem *mem_new(CUgraph graph, size_t size, int dev)
{
	struct sim_graph_mem *mem = reuse(graph, size, dev);
	struct sim_graph_region *region;
	struct sim_mem *address;

	if (mem)
		return mem;
	region = region_for(graph, sim_round(size, SIM_UNIT), dev);
	if (!region)
		return NULL;
	mem = calloc(1, sizeof(*mem));
	mem->addr = region->addr + region->filled;
	mem->region = region;
	mem->refs = 1;
	region->refs++;
	region->filled += sim_round(size, SIM_UNIT);
	address = sim_mem_add(mem->addr, size, SIM_MEM_GRAPH, sim_ctx_current());
	address->dev = dev;
	address->graph = mem;
	return mem;
}

CUresult sim_graph_alloc_node(CUstream stream, CUdeviceptr *ptr, size_t size, int dev)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {CU_MEM_LOCATION_TYPE_DEVICE, dev}},
		.bytesize = size,
	};
	struct sim_graph_mem *mem = mem_new(stream->capture->graph, size, dev);
	CUgraphNode node;
	CUresult rc;

	*ptr = 0;
	if (!mem)
		return CUDA_ERROR_OUT_OF_MEMORY;
	params.dptr = mem->addr;
	rc = sim_capture_node(stream, &node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &params, sizeof(params));
	if (rc != CUDA_SUCCESS) {
		sim_graph_mem_put(mem);
		return rc;
	}
	node->mem = mem;
	node->graph->has_mem = true;
	*ptr = mem->addr;
	return CUDA_SUCCESS;
}

static struct sim_graph_mem *by_address(CUdeviceptr ptr)
{
	struct sim_mem *mem = sim_mem_find(ptr);

	return mem && mem->kind == SIM_MEM_GRAPH && mem->addr == ptr ? mem->graph : NULL;
}

/* Only addresses of graph allocations can be freed by a node, and once a graph. */
CUresult sim_graph_free_node(CUstream stream, uint64_t addr)
{
	struct sim_graph_mem *mem = by_address(addr);
	CUdeviceptr ptr = addr;
	CUgraphNode node;
	CUresult rc;

	SIM_VALUE(mem && !freed_in(stream->capture->graph, mem));
	rc = sim_capture_node(stream, &node, CU_GRAPH_NODE_TYPE_MEM_FREE, &ptr, sizeof(ptr));
	if (rc != CUDA_SUCCESS)
		return rc;
	node->mem = mem;
	mem->refs++;
	node->graph->has_mem = true;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	SIM_API(SIM_CURRENT);
	struct sim_graph_mem *mem;
	CUresult rc;
	int dev;

	SIM_VALUE(node && SIM_GET(SIM_GRAPH, graph) && params && params->bytesize &&
		  params->poolProps.allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
		  params->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
	dev = params->poolProps.location.id;
	SIM_VALUE(dev >= 0 && dev < sim.devices);
	mem = mem_new(graph, params->bytesize, dev);
	params->dptr = mem ? mem->addr : 0;
	if (!mem)
		return CUDA_ERROR_OUT_OF_MEMORY;
	rc = sim_graph_add(graph, node, deps, count, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	if (rc != CUDA_SUCCESS) {
		sim_graph_mem_put(mem);
		return rc;
	}
	memcpy(&(*node)->params.alloc, params, sizeof(*params));
	(*node)->mem = mem;
	graph->has_mem = true;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
			       size_t count, CUdeviceptr ptr)
{
	SIM_API(SIM_CURRENT);
	struct sim_graph_mem *mem = by_address(ptr);
	CUresult rc;

	SIM_VALUE(node && SIM_GET(SIM_GRAPH, graph) && mem && !freed_in(graph, mem));
	rc = sim_graph_add(graph, node, deps, count, CU_GRAPH_NODE_TYPE_MEM_FREE);
	if (rc != CUDA_SUCCESS)
		return rc;
	(*node)->params.free.dptr = ptr;
	(*node)->mem = mem;
	mem->refs++;
	graph->has_mem = true;
	return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(params && SIM_GET(SIM_NODE, node) &&
		  node->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	memcpy(params, &node->params.alloc, sizeof(*params));
	return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *ptr)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(ptr && SIM_GET(SIM_NODE, node) &&
		  node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE);
	*ptr = node->params.free.dptr;
	return CUDA_SUCCESS;
}

#define DEVICE(dev)                                                                                \
	do {                                                                                       \
		if ((dev) < 0 || (dev) >= sim.devices)                                             \
			return CUDA_ERROR_INVALID_DEVICE;                                          \
	} while (0)

CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
	SIM_API(SIM_INIT);
	DEVICE(dev);
	sim_phys_give(dev, sim.dev[dev].graph_idle);
	sim.dev[dev].graph_idle = 0;
	return CUDA_SUCCESS;
}

/* Facts: used counts what was freed but not trimmed, and so equals reserved. */
CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
	SIM_API(SIM_INIT);
	struct sim_device *device = &sim.dev[dev];

	DEVICE(dev);
	SIM_VALUE(value);
	switch (attribute) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)value = device->graph_live + device->graph_idle;
		return CUDA_SUCCESS;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = device->graph_high;
		return CUDA_SUCCESS;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = device->graph_reserved_high;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
	SIM_API(SIM_INIT);
	struct sim_device *device = &sim.dev[dev];

	DEVICE(dev);
	SIM_VALUE(value && *(cuuint64_t *)value == 0);
	if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		device->graph_high = device->graph_live + device->graph_idle;
	else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		device->graph_reserved_high = device->graph_live + device->graph_idle;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
