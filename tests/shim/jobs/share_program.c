/*
 * Three processes: one exports memory, two open it, and the first frees some of it while it is
 * open.
 *
 *   share working|ending
 *
 * working: the owner allocates again after its frees. ending: it ends. Prints what is freed and
 * open by the program's own books, in bytes.
 */
#include "calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB 1048576ul
#define PLACE __attribute__((noinline, noclone))
#define HANDLES 3
#define OK(call)                                                                                   \
	do {                                                                                       \
		int error_ = (int)(call);                                                          \
		if (error_) {                                                                      \
			fprintf(stderr, "%s: %d\n", #call, error_);                                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* What the owner hands out. Descriptors are opened through /proc. */
struct handles {
	cudaIpcMemHandle_t kept, freed, closed;
	CUmemPoolPtrExportData pointer;
	int pid, pool, memory[HANDLES];
};

struct opener {
	int to[2], from[2], pid;
};

static void put(int fd, const void *data, size_t bytes)
{
	OK(write(fd, data, bytes) != (ssize_t)bytes);
}

static void get(int fd, void *data, size_t bytes)
{
	OK(read(fd, data, bytes) != (ssize_t)bytes);
}

static void *descriptor(const struct handles *handles, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", handles->pid, fd);
	fd = open(path, O_RDWR);
	OK(fd < 0);
	return (void *)(intptr_t)fd;
}

PLACE static void *open_handle(const cudaIpcMemHandle_t *handle)
{
	void *memory;

	OK(cudaIpcOpenMemHandle(&memory, *handle, 1));
	return memory;
}

PLACE static void open_memory(void *fd)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr range;

	OK(cuMemImportFromShareableHandle(&handle, fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	OK(cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0));
	OK(cuMemMap(range, 2 * MIB, 0, handle, 0));
	OK(cuMemRelease(handle)); /* the mapping keeps it open */
}

PLACE static void open_pointer(struct handles *handles)
{
	CUmemoryPool pool;
	CUdeviceptr memory;

	OK(cuMemPoolImportFromShareableHandle(&pool, descriptor(handles, handles->pool),
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemPoolImportPointer(&memory, pool, &handles->pointer));
}

/* Opens the handles, says so, and keeps them open until its pipe is closed (by its two writers). */
static void run_opener(struct opener *opener, int all)
{
	struct handles handles;
	char byte = 0;

	get(opener->to[0], &handles, sizeof(handles));
	OK(cudaFree(0));
	open_handle(&handles.freed);
	if (all) {
		open_handle(&handles.kept);
		OK(cudaIpcCloseMemHandle(open_handle(&handles.closed)));
		for (int i = 0; i < HANDLES; i++)
			open_memory(descriptor(&handles, handles.memory[i]));
		open_pointer(&handles);
	}
	put(opener->from[1], &byte, 1);
	OK(read(opener->to[0], &byte, 1) != 0);
}

static void start(struct opener *opener, int all)
{
	OK(pipe(opener->to) || pipe(opener->from));
	opener->pid = fork();
	OK(opener->pid < 0);
	if (opener->pid == 0) {
		close(opener->to[1]);
		run_opener(opener, all);
		exit(0);
	}
	close(opener->to[0]);
}

PLACE static void *allocate(size_t bytes, cudaIpcMemHandle_t *handle)
{
	void *memory;

	OK(cudaMalloc(&memory, bytes));
	OK(cudaIpcGetMemHandle(handle, memory));
	return memory;
}

PLACE static CUmemGenericAllocationHandle create(int *fd)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .requestedHandleTypes =
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;

	OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	OK(cuMemExportToShareableHandle(fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	return handle;
}

PLACE static CUdeviceptr from_pool(struct handles *handles)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemoryPool pool;
	CUdeviceptr memory;

	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemAllocFromPoolAsync(&memory, 16 * MIB, pool, 0));
	OK(cuMemPoolExportToShareableHandle(&handles->pool, pool,
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemPoolExportPointer(&handles->pointer, memory));
	return memory;
}

PLACE static void let_go(void *memory)
{
	OK(cudaFree(memory));
}

static void own(struct opener openers[2], int working)
{
	struct handles handles = {.pid = getpid()};
	CUmemGenericAllocationHandle memory[HANDLES];
	void *freed, *closed, *again;
	CUdeviceptr pooled;
	char byte;

	OK(cudaFree(0));
	allocate(8 * MIB, &handles.kept);
	freed = allocate(64 * MIB, &handles.freed);
	closed = allocate(32 * MIB, &handles.closed);
	for (int i = 0; i < HANDLES; i++)
		memory[i] = create(&handles.memory[i]);
	pooled = from_pool(&handles);
	for (int i = 0; i < 2; i++)
		put(openers[i].to[1], &handles, sizeof(handles));
	for (int i = 0; i < 2; i++)
		get(openers[i].from[0], &byte, 1);
	let_go(freed);
	let_go(closed);
	for (int i = 1; i < HANDLES; i++)
		OK(cuMemRelease(memory[i]));
	OK(cuMemFreeAsync(pooled, 0));
	if (working)
		OK(cudaMalloc(&again, MIB));
}

int main(int argc, char **argv)
{
	struct opener openers[2];

	if (argc < 2)
		return 1;
	start(&openers[0], 1);
	start(&openers[1], 0);
	own(openers, !strcmp(argv[1], "working"));
	for (int i = 0; i < 2; i++)
		close(openers[i].to[1]);
	for (int i = 0; i < 2; i++) {
		int status;

		OK(waitpid(openers[i].pid, &status, 0) < 0 || status);
	}
	printf("{\"owner\": %d, \"all\": %d, \"one\": %d, \"device\": %lu, \"vmm\": %lu, "
	       "\"async\": %lu}\n",
	       getpid(), openers[0].pid, openers[1].pid, 64 * MIB, 4 * MIB, 16 * MIB);
	return 0;
}
