/*
 * What programs make that takes memory of the device without allocating any by name: costs NAME
 * [END]. Steps are clean of allocations; what rises beside them, and what does not, is the point.
 */
#include "gpu.h"

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
			     size_t count);

int lt_load(void);	/* libcublasLt.so.13 */
int formula_load(void); /* libformula.so.13 */

static const char image[] = ".version 7.0\n.target sm_80\n.entry scale(){}";

PLACE static CUstream open_channel(void)
{
	CUstream stream = NULL;

	cuStreamCreate(&stream, 0);
	return stream;
}

PLACE static CUmodule compile_formula(void)
{
	CUfunction function;
	CUmodule module = NULL;

	cuModuleLoadData(&module, image);
	cuModuleGetFunction(&function, module, "scale");
	return module;
}

PLACE static CUgraphExec record_shape(unsigned nodes)
{
	CUgraphExec executable = NULL;
	CUgraphNode node;
	CUgraph graph;

	cuGraphCreate(&graph, 0);
	for (unsigned i = 0; i < nodes; i++)
		cuGraphAddEmptyNode(&node, graph, NULL, 0);
	cuGraphInstantiateWithFlags(&executable, graph, 0);
	cuGraphDestroy(graph);
	return executable;
}

static void begin(void)
{
	keep(device_memory(64 * MIB));
}

/* Each step has a stream of its own, and drops it. */
static void streams(void)
{
	begin();
	for (volatile unsigned i = 0; i < 160; i++) {
		open_channel();
		clean_step(4 * MIB);
	}
}

/* Each request has three streams and destroys them: the driver uses their memory again. */
static void streams_destroyed(void)
{
	begin();
	for (volatile unsigned i = 0; i < 160; i++) {
		cudaStream_t used[3];

		for (unsigned k = 0; k < 3; k++)
			MUST(cudaStreamCreate(&used[k]));
		clean_step(4 * MIB);
		for (unsigned k = 0; k < 3; k++)
			MUST(cudaStreamDestroy(used[k]));
	}
}

/* Sixteen streams are made at the start and used to the end. */
static void stream_pool(void)
{
	begin();
	for (volatile unsigned i = 0; i < 16; i++)
		open_channel();
	for (volatile unsigned i = 0; i < 160; i++)
		clean_step(4 * MIB);
}

/* A formula is compiled anew in each second step and stays loaded. */
static void modules(void)
{
	begin();
	for (volatile unsigned i = 0; i < 160; i++) {
		if (i % 2)
			compile_formula();
		clean_step(4 * MIB);
	}
}

/* Formulas are kept to the end, where most of them are unloaded. */
static void modules_until_the_end(void)
{
	static CUmodule loaded[160];

	begin();
	for (volatile unsigned i = 0; i < 160; i++) {
		loaded[i] = compile_formula();
		clean_step(4 * MIB);
	}
	for (unsigned i = 0; i < 100; i++)
		cuModuleUnload(loaded[i]);
}

/* The same, unloaded after the step. */
static void modules_unloaded(void)
{
	begin();
	for (volatile unsigned i = 0; i < 160; i++) {
		CUmodule module = compile_formula();

		clean_step(4 * MIB);
		cuModuleUnload(module);
	}
}

PLACE static void multiply(void)
{
	lt_load();
	__asm__ volatile("" ::: "memory");
}

/* A library loads one of its own modules whenever a product has a new shape. */
static void modules_of_library(void)
{
	begin();
	for (volatile unsigned i = 0; i < 160; i++) {
		if (i % 2)
			multiply();
		clean_step(4 * MIB);
	}
}

PLACE static void evaluate(void)
{
	formula_load();
	__asm__ volatile("" ::: "memory");
}

/* A library compiles a formula in each second step and never unloads it. */
static void modules_of_compiler(void)
{
	begin();
	for (volatile unsigned i = 0; i < 160; i++) {
		if (i % 2)
			evaluate();
		clean_step(4 * MIB);
	}
}

/* Each request records its shape anew, and the executable is never destroyed. */
static void graphs(void)
{
	begin();
	for (volatile unsigned i = 0; i < 160; i++) {
		record_shape(400);
		clean_step(4 * MIB);
	}
}

/* A server records 40 shapes before it serves. */
static void graphs_at_start(void)
{
	begin();
	for (volatile unsigned i = 0; i < 40; i++)
		record_shape(200 + 20 * i);
	for (volatile unsigned i = 0; i < 160; i++)
		clean_step(4 * MIB);
}

/* Each request records its shape anew and destroys it: the driver uses the same memory again. */
static void graphs_destroyed(void)
{
	begin();
	for (volatile unsigned i = 0; i < 160; i++) {
		CUgraphExec executable = record_shape(4000);

		clean_step(4 * MIB);
		cuGraphExecDestroy(executable);
	}
}

PLACE static void open_worker(void)
{
	CUcontext context, primary;

	cuCtxGetCurrent(&primary);
	cuCtxCreate_v2(&context, 0, 0);
	cuCtxSetCurrent(primary);
}

/* A context for each of three workers, beside the primary one. */
static void contexts(void)
{
	begin();
	for (volatile unsigned i = 0; i < 3; i++)
		open_worker();
	for (volatile unsigned i = 0; i < 40; i++)
		clean_step(4 * MIB);
}

static const struct behaviour behaviours[] = {
	{"streams", streams},
	{"streams-destroyed", streams_destroyed},
	{"stream-pool", stream_pool},
	{"modules", modules},
	{"modules-until-the-end", modules_until_the_end},
	{"modules-unloaded", modules_unloaded},
	{"modules-of-library", modules_of_library},
	{"modules-of-compiler", modules_of_compiler},
	{"graphs", graphs},
	{"graphs-at-start", graphs_at_start},
	{"graphs-destroyed", graphs_destroyed},
	{"contexts", contexts},
};

BEHAVIOURS(behaviours)
