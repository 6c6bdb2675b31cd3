/*
 * Programs that are refused memory, each for a known reason: refused NAME [END]. The device has 8
 * GiB, of which the context takes 512 MiB, unless cases.py says otherwise. The refused request is
 * made at request().
 */
#include "gpu.h"

#include <pthread.h>

void gpusim_others_take(int device, unsigned long long bytes);

static int refusals;

/* Memory, or NULL; the error is cleared, as programs do that go on. */
PLACE static void *request(size_t bytes)
{
	void *memory = NULL;

	if (cudaMalloc(&memory, bytes)) {
		refusals++;
		cudaGetLastError();
		return NULL;
	}
	return memory;
}

PLACE static void load_model(unsigned tensors, size_t bytes)
{
	for (volatile unsigned i = 0; i < tensors; i++)
		keep(device_memory(bytes));
}

static void steps(unsigned count, size_t bytes)
{
	for (volatile unsigned i = 0; i < count; i++)
		clean_step(bytes);
}

static void must_be_refused(size_t bytes)
{
	if (request(bytes)) {
		fprintf(stderr, "a request that was to be refused was served\n");
		_exit(97);
	}
}

/* The weights fill the device; the next tensor does not fit. */
static void weights(void)
{
	load_model(13, 512 * MIB);
	must_be_refused(2 * GIB);
}

/* The model loads one tensor after the other until the device is full: set-up, at one line. */
static void weights_one_by_one(void)
{
	while (true) {
		void *tensor = request(128 * MIB);

		if (!tensor)
			return;
		keep(tensor);
	}
}

/* A step's activations do not fit beside the weights. */
static void activations(void)
{
	load_model(8, 512 * MIB);
	steps(100, GIB);
	must_be_refused(4 * GIB);
}

/* A size was computed by a subtraction below zero and shifted: the device is almost empty. */
static void absurd(void)
{
	load_model(4, 64 * MIB);
	steps(50, 64 * MIB);
	must_be_refused((size_t)1 << 46);
}

/* Others hold most of the device from the start on. */
static void beside_others(void)
{
	load_model(4, 256 * MIB);
	steps(50, 256 * MIB);
	must_be_refused(4 * GIB);
}

/* The device was free; another process comes while the program runs. */
static void others_come(void)
{
	load_model(4, 256 * MIB);
	steps(50, 256 * MIB);
	gpusim_others_take(0, 5 * GIB);
	must_be_refused(4 * GIB);
}

/* The program holds 6 of 8 GiB and asks for 3; the neighbour's 256 MiB make no difference. */
static void others_do_not_matter(void)
{
	load_model(12, 512 * MIB);
	steps(50, 256 * MIB);
	must_be_refused(3 * GIB);
}

/* ---- limits ---- */

/* A pool was made with a maximum of 512 MiB. */
static void pool_maximum(void)
{
	struct cudaMemPoolProps props = {.allocType = 1, .location = {1, 0}, .maxSize = 512 * MIB};
	cudaMemPool_t pool;
	void *memory;

	MUST(cudaMemPoolCreate(&pool, &props));
	while (cudaMallocFromPoolAsync(&memory, 96 * MIB, pool, NULL) == 0)
		work(STEP_LAUNCHES);
	cudaGetLastError();
}

/* Buffers of 256 MiB until the 5th is refused, with most of the device free. */
static void refused_early(void)
{
	work(1);
	for (volatile int i = 0; i < 4; i++) {
		keep(device_memory(256 * MIB));
		work(STEP_LAUNCHES);
	}
	must_be_refused(256 * MIB);
}

/* ---- host memory ---- */

PLACE static void *request_pinned(size_t bytes)
{
	void *memory = NULL;

	if (cudaMallocHost(&memory, bytes)) {
		cudaGetLastError();
		return NULL;
	}
	return memory;
}

/* A loader pins one staging area that is larger than what the host lets it pin. */
static void pinned(void)
{
	load_model(4, 256 * MIB);
	steps(50, 256 * MIB);
	if (request_pinned(2 * GIB))
		_exit(97);
}

/* A loader pins a batch in each step and unpins none. */
PLACE static void *pin_batch(void)
{
	return request_pinned(16 * MIB);
}

static void pinned_leak(void)
{
	load_model(4, 256 * MIB);
	do
		clean_step(64 * MIB);
	while (pin_batch());
}

/* ---- streams, pools, graphs ---- */

static void *take_and_drop(void *unused)
{
	void *memory;

	MUST(cudaMallocAsync_ptsz(&memory, 3 * GIB, 0));
	MUST(cudaFreeAsync_ptsz(memory, 0));
	return unused;
}

/* Two threads free 3 GiB each on their own streams, unsynchronised; a third asks for 5 GiB in one
 * piece. */
static void pending(void)
{
	pthread_t thread;
	void *memory;

	work(STEP_LAUNCHES);
	for (int i = 0; i < 2; i++) {
		MUST(pthread_create(&thread, NULL, take_and_drop, NULL));
		MUST(pthread_join(thread, NULL));
	}
	if (cudaMallocAsync_ptsz(&memory, 5 * GIB, 0) != 2)
		_exit(97);
}

/* A graph's allocation of 4 GiB was freed in the graph; its reserve stays until it is trimmed. */
static void graph_reserve(void)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t executable;
	void *memory;

	load_model(2, 512 * MIB);
	MUST(cudaStreamCreate(&stream));
	MUST(cudaStreamBeginCapture(stream, 0));
	MUST(cudaMallocAsync(&memory, 4 * GIB, stream));
	MUST(cudaFreeAsync(memory, stream));
	MUST(cudaStreamEndCapture(stream, &graph));
	MUST(cudaGraphInstantiateWithFlags(&executable, graph, 0));
	for (int i = 0; i < 40; i++)
		MUST(cudaGraphLaunch(executable, stream));
	MUST(cudaStreamSynchronize(stream));
	must_be_refused(5 * GIB);
}

/* Physical memory for a mapping is refused. */
static void handles(void)
{
	CUmemAllocationProp prop = {.type = 1, .location = {1, 0}};
	CUmemGenericAllocationHandle handle;

	load_model(13, 512 * MIB);
	steps(20, 128 * MIB);
	if (cuMemCreate(&handle, 2 * GIB, &prop, 0) != 2)
		_exit(97);
}

/* An array does not fit. */
static void array(void)
{
	struct cudaChannelFormatDesc format = {32, 32, 32, 32, 2};
	struct cudaExtent extent = {1024, 1024, 256};
	cudaArray_t volume;

	load_model(13, 512 * MIB);
	steps(20, 128 * MIB);
	if (cudaMalloc3DArray(&volume, &format, extent, 0) != 2)
		_exit(97);
	cudaGetLastError();
}

/* ---- where, and what then ---- */

/* The second device is full, the first one is not. */
static void second_device(void)
{
	load_model(2, 256 * MIB);
	steps(20, 64 * MIB);
	MUST(cudaSetDevice(1));
	load_model(13, 512 * MIB);
	must_be_refused(2 * GIB);
}

static void *refused_in_thread(void *unused)
{
	must_be_refused(3 * GIB);
	return unused;
}

static void in_thread(void)
{
	pthread_t thread;

	load_model(11, 512 * MIB);
	steps(20, 128 * MIB);
	MUST(pthread_create(&thread, NULL, refused_in_thread, NULL));
	MUST(pthread_join(thread, NULL));
}

/* The batch is made smaller until it fits: 30 refusals at one line, then a healthy run. */
PLACE static void *try_batch(unsigned batch)
{
	return request((size_t)batch * 256 * MIB);
}

PLACE static void make_row(void **row)
{
	for (volatile unsigned i = 0; i < 2048; i++)
		row[i] = device_memory(MIB);
}

/* Of a set that is made at once each thirty-second block stays, and then a request is refused. */
static void thinned(void)
{
	static void *row[2048];
	void *memory;

	make_row(row);
	for (unsigned i = 0; i < 2048; i++)
		if (i % 32)
			MUST(cudaFree(row[i]));
	cudaMalloc(&memory, 16 * GIB);
}

static void batch_search(void)
{
	unsigned batch = 57;
	void *activations = NULL;

	load_model(2, 256 * MIB);
	steps(1, 256 * MIB);
	while (!(activations = try_batch(batch)))
		batch--;
	cudaFree(activations);
	steps(150, batch * 256 * MIB);
	if (refusals != 30)
		_exit(97);
}

/* The refused work is done on the host instead; the program is content. */
static void falls_back(void)
{
	load_model(10, 512 * MIB);
	steps(50, 512 * MIB);
	must_be_refused(4 * GIB);
	steps(50, 512 * MIB);
}

/* A library asks for its workspace and hides the error behind one of its own. */
int cublasCreate_v2(void **handle);

static void library(void)
{
	void *handle;

	load_model(14, 512 * MIB);
	load_model(1, 448 * MIB);
	if (cublasCreate_v2(&handle) == 0)
		_exit(97);
}

static const struct behaviour behaviours[] = {
	{"weights", weights},
	{"weights-one-by-one", weights_one_by_one},
	{"activations", activations},
	{"absurd", absurd},
	{"beside-others", beside_others},
	{"others-come", others_come},
	{"others-do-not-matter", others_do_not_matter},
	{"pool-maximum", pool_maximum},
	{"refused-early", refused_early},
	{"pinned", pinned},
	{"pinned-leak", pinned_leak},
	{"pending", pending},
	{"graph-reserve", graph_reserve},
	{"handles", handles},
	{"array", array},
	{"second-device", second_device},
	{"in-thread", in_thread},
	{"thinned", thinned},
	{"batch-search", batch_search},
	{"falls-back", falls_back},
	{"library", library},
};

BEHAVIOURS(behaviours)
