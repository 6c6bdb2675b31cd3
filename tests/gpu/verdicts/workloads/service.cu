/*
 * Programs in CUDA C++ as people write them, with the libraries of the toolkit: service NAME.
 * ../workloads.py has their labels.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cufft.h>
#include <cusolverDn.h>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		auto status = call;                                                                \
		if ((int)status != 0) {                                                            \
			fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call,              \
				(int)status);                                                      \
			exit(EXIT_FAILURE);                                                        \
		}                                                                                  \
	} while (0)

constexpr size_t MIB = 1 << 20;

__global__ void scale(float *values, size_t count, float by)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		values[i] = values[i] * by + 1;
}

static void run(float *values, size_t count, cudaStream_t stream = nullptr)
{
	scale<<<256, 256, 0, stream>>>(values, count, 0.5f);
	CHECK(cudaGetLastError());
}

template <typename T> struct Buffer {
	T *data = nullptr;
	size_t count = 0;

	explicit Buffer(size_t n) : count(n)
	{
		CHECK(cudaMalloc(&data, n * sizeof(T)));
	}
	Buffer(const Buffer &) = delete;
	~Buffer()
	{
		cudaFree(data);
	}
};

/* ---- transforms ---- */

static cufftHandle make_plan(int length, int batch)
{
	cufftHandle plan;
	CHECK(cufftPlan1d(&plan, length, CUFFT_C2C, batch));
	return plan;
}

/* A plan for each record; a record in two ends the function before its plan is destroyed. */
static void analyse_record(int index, bool destroy)
{
	int length = 4001 + 2 * (index % 50);
	Buffer<cufftComplex> record((size_t)length * 64);
	cufftHandle plan = make_plan(length, 64);

	CHECK(cufftExecC2C(plan, record.data, record.data, CUFFT_FORWARD));
	CHECK(cudaDeviceSynchronize());
	if (index % 2 && !destroy)
		return; /* nothing of interest in it */
	CHECK(cufftDestroy(plan));
}

static void plans_of_records()
{
	for (int i = 0; i < 80; i++)
		analyse_record(i, false);
}
static void plans_destroyed()
{
	for (int i = 0; i < 80; i++)
		analyse_record(i, true);
}

/* Plans by length; there are eight lengths. */
static void plans_cached()
{
	std::map<int, cufftHandle> plans;

	for (int i = 0; i < 200; i++) {
		int length = 1024 * (1 + i * 5 % 8);
		Buffer<cufftComplex> record((size_t)length * 64);
		auto found = plans.find(length);
		if (found == plans.end())
			found = plans.emplace(length, make_plan(length, 64)).first;
		CHECK(cufftExecC2C(found->second, record.data, record.data, CUFFT_FORWARD));
		CHECK(cudaDeviceSynchronize());
	}
	for (auto &plan : plans)
		cufftDestroy(plan.second);
}

/* ---- linear algebra ---- */

static void multiply(bool destroy)
{
	cublasHandle_t handle;
	const float one = 1, zero = 0;
	Buffer<float> a(512 * 512), b(512 * 512), c(512 * 512);

	CHECK(cublasCreate(&handle));
	CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 512, 512, 512, &one, a.data, 512,
			  b.data, 512, &zero, c.data, 512));
	CHECK(cudaDeviceSynchronize());
	if (destroy)
		CHECK(cublasDestroy(handle));
}

/* Each product has a handle of its own, which stays with its workspace. */
static void handles_of_products()
{
	for (int i = 0; i < 40; i++)
		multiply(false);
}
static void handles_destroyed()
{
	for (int i = 0; i < 40; i++)
		multiply(true);
}

static int factorize(cusolverDnHandle_t solver, float *matrix, int n, bool careful)
{
	int workspace_size, *info;
	float *workspace;

	CHECK(cusolverDnSgetrf_bufferSize(solver, n, n, matrix, n, &workspace_size));
	CHECK(cudaMalloc(&workspace, workspace_size * sizeof(float) + MIB));
	CHECK(cudaMalloc(&info, sizeof(int)));
	CHECK(cusolverDnSgetrf(solver, n, n, matrix, n, workspace, nullptr, info));
	int host_info = 0;
	CHECK(cudaMemcpy(&host_info, info, sizeof(int), cudaMemcpyDeviceToHost));
	cudaFree(info);
	if (host_info != 0 && !careful)
		return host_info; /* singular */
	cudaFree(workspace);
	return host_info;
}

static void solve(bool careful)
{
	cusolverDnHandle_t solver;
	int singular = 0;

	CHECK(cusolverDnCreate(&solver));
	for (int i = 0; i < 120; i++) {
		int n = 512;
		std::vector<float> host((size_t)n * n, 0.0f);
		for (int k = 0; i % 3 && k < n; k++)
			host[(size_t)k * n + k] = 2;
		Buffer<float> matrix(host.size());
		CHECK(cudaMemcpy(matrix.data, host.data(), host.size() * sizeof(float),
				 cudaMemcpyHostToDevice));
		singular += factorize(solver, matrix.data, n, careful) != 0;
	}
	CHECK(cusolverDnDestroy(solver));
	printf("%d singular\n", singular);
}

static void singular_matrices()
{
	solve(false);
}
static void solver()
{
	solve(true);
}

/* ---- Thrust ---- */

static float sort_samples(int index)
{
	thrust::device_vector<float> samples(MIB, (float)index);

	run(thrust::raw_pointer_cast(samples.data()), samples.size());
	thrust::sort(samples.begin(), samples.end());
	return thrust::reduce(samples.begin(), samples.end());
}

static void remember_samples(std::vector<thrust::device_vector<float>> &sorted, int index)
{
	thrust::device_vector<float> samples(MIB / 2, (float)index);

	thrust::sort(samples.begin(), samples.end());
	sorted.push_back(std::move(samples));
}

static void samples()
{
	for (int i = 0; i < 120; i++)
		sort_samples(i);
}
static void samples_remembered()
{
	std::vector<thrust::device_vector<float>> sorted;

	for (int i = 0; i < 100; i++) {
		sort_samples(i);
		remember_samples(sorted, i);
	}
}

/* A vector is appended to for the whole run, and a reserve() would have told nobody how long. */
static void events_appended()
{
	thrust::device_vector<int> events;

	for (int i = 0; i < 400; i++) {
		thrust::device_vector<int> batch(64 << 10, i);
		events.insert(events.end(), batch.begin(), batch.end());
	}
	printf("%zu events\n", events.size());
}

/* ---- stream-ordered memory ---- */

static void pipeline(bool lose)
{
	cudaStream_t streams[4];
	cudaMemPool_t pool;
	unsigned long long all = ~0ull;

	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
	for (auto &stream : streams)
		CHECK(cudaStreamCreate(&stream));
	for (int i = 0; i < 300; i++) {
		cudaStream_t stream = streams[i % 4];
		float *input, *output;
		size_t count = MIB / 2 + (size_t)(i % 7) * 4096;
		CHECK(cudaMallocAsync(&input, count * sizeof(float), stream));
		CHECK(cudaMallocAsync(&output, count * sizeof(float), stream));
		run(input, count, stream);
		run(output, count, stream);
		CHECK(cudaFreeAsync(input, stream));
		if (!lose || i % 5)
			CHECK(cudaFreeAsync(output, stream));
		if (i % 16 == 15)
			CHECK(cudaDeviceSynchronize());
	}
	for (auto &stream : streams)
		cudaStreamDestroy(stream);
}

static void outputs_lost()
{
	pipeline(true);
}
static void pipelined()
{
	pipeline(false);
}

/* ---- graphs ---- */

static cudaGraph_t record_request(cudaStream_t stream, float *data, int nodes)
{
	cudaGraph_t graph;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < nodes; i++)
		run(data, 4096 + i, stream);
	CHECK(cudaStreamEndCapture(stream, &graph));
	return graph;
}

/* Every request has a graph of its own, whose executable is never destroyed. */
static void graphs_of_requests()
{
	Buffer<float> data(MIB);
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	for (int i = 0; i < 150; i++) {
		cudaGraph_t graph = record_request(stream, data.data, 400);
		cudaGraphExec_t executable;
		CHECK(cudaGraphInstantiate(&executable, graph, 0));
		CHECK(cudaGraphLaunch(executable, stream));
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaGraphDestroy(graph));
	}
}

static void graph_updated()
{
	Buffer<float> data(MIB);
	cudaGraphExec_t executable = nullptr;
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	for (int i = 0; i < 150; i++) {
		cudaGraph_t graph = record_request(stream, data.data, 100);
		cudaGraphExecUpdateResultInfo how;
		if (!executable)
			CHECK(cudaGraphInstantiate(&executable, graph, 0));
		else
			CHECK(cudaGraphExecUpdate(executable, graph, &how));
		CHECK(cudaGraphLaunch(executable, stream));
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaGraphDestroy(graph));
	}
	cudaGraphExecDestroy(executable);
}

/* ---- managed, pinned, mapped ---- */

struct Node {
	Node *next;
	float values[(256 << 10) / sizeof(float)];
};

static Node *append(Node *list)
{
	Node *node;

	CHECK(cudaMallocManaged(&node, sizeof(Node)));
	node->next = list;
	return node;
}

/* A list of a frame's objects in managed memory; clear() drops the head and nothing else. */
static void frame_of_objects(bool free_all)
{
	Node *list = nullptr;

	for (int i = 0; i < 8; i++)
		list = append(list);
	run(list->values, sizeof(list->values) / sizeof(float));
	CHECK(cudaDeviceSynchronize());
	while (free_all && list) {
		Node *next = list->next;
		CHECK(cudaFree(list));
		list = next;
	}
}

static void heads_dropped()
{
	for (int i = 0; i < 80; i++)
		frame_of_objects(false);
}
static void lists_freed()
{
	for (int i = 0; i < 80; i++)
		frame_of_objects(true);
}

/* A file's pages are registered for its copy. */
static void copy_file(size_t bytes, bool unregister)
{
	Buffer<char> target(bytes);
	void *pages = aligned_alloc(4096, bytes);

	memset(pages, 1, bytes);
	CHECK(cudaHostRegister(pages, bytes, cudaHostRegisterDefault));
	CHECK(cudaMemcpyAsync(target.data, pages, bytes, cudaMemcpyHostToDevice));
	CHECK(cudaDeviceSynchronize());
	if (unregister) {
		CHECK(cudaHostUnregister(pages));
		free(pages);
	}
}

static void files_registered()
{
	for (int i = 0; i < 60; i++)
		copy_file(2 * MIB, false);
}
static void files_copied()
{
	for (int i = 0; i < 60; i++)
		copy_file(2 * MIB, true);
}

/* ---- an arena of mapped memory that grows to what is needed ---- */

struct Arena {
	CUdeviceptr base;
	size_t size = 0, granularity, chunk;
	CUmemAllocationProp prop = {};
	std::vector<CUmemGenericAllocationHandle> handles;

	Arena()
	{
		prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
		prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		CHECK(cuMemGetAllocationGranularity(&granularity, &prop,
						    CU_MEM_ALLOC_GRANULARITY_MINIMUM));
		chunk = 4 * granularity;
		CHECK(cuMemAddressReserve(&base, 4096 * chunk, 0, 0, 0));
	}
	void extend(size_t wanted)
	{
		while (size < wanted) {
			CUmemGenericAllocationHandle handle;
			CUmemAccessDesc access = {prop.location,
						  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
			CHECK(cuMemCreate(&handle, chunk, &prop, 0));
			CHECK(cuMemMap(base + size, chunk, 0, handle, 0));
			CHECK(cuMemSetAccess(base + size, chunk, &access, 1));
			handles.push_back(handle);
			size += chunk;
		}
	}
};

/* Requests between 8 and 128 MiB: the largest comes early. */
static void arena_of_requests()
{
	Arena arena;

	srand(1);
	for (int i = 0; i < 200; i++) {
		size_t bytes = (8 + rand() % 121) * MIB;
		arena.extend(bytes);
		run((float *)arena.base, bytes / sizeof(float));
		CHECK(cudaDeviceSynchronize());
	}
}

/* Each simulated day is laid behind the one before. */
static void arena_of_days()
{
	Arena arena;

	for (int day = 1; day <= 100; day++) {
		arena.extend((size_t)day * 5 * MIB);
		run((float *)arena.base, arena.size / sizeof(float));
		CHECK(cudaDeviceSynchronize());
	}
}

/* ---- arrays and textures ---- */

static cudaTextureObject_t upload_frame(int width, int height)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaResourceDesc resource = {};
	cudaTextureDesc description = {};
	cudaTextureObject_t texture;
	cudaArray_t array;

	CHECK(cudaMallocArray(&array, &format, width, height));
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
	return texture;
}

/* The texture is destroyed after its frame, the array below it is not. */
static void frames_as_textures()
{
	Buffer<float> screen(MIB);

	for (int i = 0; i < 120; i++) {
		cudaTextureObject_t texture = upload_frame(1280, 720);
		run(screen.data, screen.count);
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaDestroyTextureObject(texture));
	}
}

/* ---- threads ---- */

/* Each connection's thread makes a stream and a workspace, and forgets both. */
static void serve_connection(bool tidy)
{
	cudaStream_t stream;
	float *workspace;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&workspace, 3 * MIB));
	for (int i = 0; i < 5; i++)
		run(workspace, 3 * MIB / sizeof(float), stream);
	CHECK(cudaStreamSynchronize(stream));
	if (tidy) {
		CHECK(cudaFree(workspace));
		CHECK(cudaStreamDestroy(stream));
	}
}

static void connections(bool tidy)
{
	for (int i = 0; i < 40; i++) {
		std::vector<std::thread> threads;
		for (int k = 0; k < 3; k++)
			threads.emplace_back(serve_connection, tidy);
		for (auto &thread : threads)
			thread.join();
	}
}

static void connections_forgotten()
{
	connections(false);
}
static void connections_closed()
{
	connections(true);
}

/* ---- errors ---- */

struct Step {
	Buffer<float> scratch, *result;

	explicit Step(int index) : scratch(MIB), result(new Buffer<float>(MIB / 2))
	{
		run(result->data, result->count);
		if (index % 4 == 3)
			throw std::runtime_error(
				"does not converge"); /* ~Step does not run, and result is no member
							 object */
	}
	~Step()
	{
		delete result;
	}
};

static void steps_that_throw()
{
	int failed = 0;

	for (int i = 0; i < 240; i++) {
		try {
			Step step(i);
			CHECK(cudaDeviceSynchronize());
		} catch (const std::runtime_error &) {
			failed++;
		}
	}
	printf("%d failed\n", failed);
}

/* A run that is checked at its end and leaves all of it to the driver. */
static void never_freed()
{
	std::vector<float *> fields;

	for (int i = 0; i < 12; i++) {
		float *field;
		CHECK(cudaMalloc(&field, 8 * MIB));
		fields.push_back(field);
	}
	for (int step = 0; step < 200; step++) {
		for (float *field : fields)
			run(field, 2 * MIB);
		CHECK(cudaDeviceSynchronize());
	}
}

/* A count in int overflows, and the size that is asked for is nearly 2^64. */
static void oom_overflow()
{
	int width = 1 << 16, height = 1 << 15;
	float *image;

	CHECK(cudaMalloc(&image, (size_t)(width * height) * sizeof(float)));
}

/* A grid of the next resolution is eight times as large. */
static void oom_refinement()
{
	for (size_t side = 64;; side *= 2) {
		Buffer<float> field(side * side * side), next(side * side * side);
		for (int step = 0; step < 10; step++)
			run(next.data, next.count);
		CHECK(cudaDeviceSynchronize());
		printf("%zu\n", side);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static const std::map<std::string, void (*)()> programs = {
		{"plans_of_records", plans_of_records},
		{"plans_destroyed", plans_destroyed},
		{"plans_cached", plans_cached},
		{"handles_of_products", handles_of_products},
		{"handles_destroyed", handles_destroyed},
		{"singular_matrices", singular_matrices},
		{"solver", solver},
		{"samples", samples},
		{"samples_remembered", samples_remembered},
		{"events_appended", events_appended},
		{"outputs_lost", outputs_lost},
		{"pipelined", pipelined},
		{"graphs_of_requests", graphs_of_requests},
		{"graph_updated", graph_updated},
		{"heads_dropped", heads_dropped},
		{"lists_freed", lists_freed},
		{"files_registered", files_registered},
		{"files_copied", files_copied},
		{"arena_of_requests", arena_of_requests},
		{"arena_of_days", arena_of_days},
		{"frames_as_textures", frames_as_textures},
		{"connections_forgotten", connections_forgotten},
		{"connections_closed", connections_closed},
		{"steps_that_throw", steps_that_throw},
		{"never_freed", never_freed},
		{"oom_overflow", oom_overflow},
		{"oom_refinement", oom_refinement},
	};

	CHECK(cudaFree(nullptr));
	programs.at(argv[argc - 1])();
	return 0;
}
