/*
 * Memory of another process opened and never closed (ucx#3030): imported, not counted as one's own.
 * The child makes the memory; it was forked before CUDA was touched.
 */
#include "family.h"

#include <sys/wait.h>
#include <unistd.h>

#define BYTES (24 * MIB)

static void exporter(int out, int in)
{
	cudaIpcMemHandle_t handles[2];
	void *p, *q;
	char done;

	OK(cudaMalloc(&p, BYTES));
	OK(cudaMalloc(&q, 3 * MIB));
	OK(cudaIpcGetMemHandle(&handles[0], p));
	OK(cudaIpcGetMemHandle(&handles[1], q));
	if (write(out, handles, sizeof(handles)) != sizeof(handles) || read(in, &done, 1) < 0)
		_exit(2);
	_exit(0);
}

NAMED void *open_here(cudaIpcMemHandle_t handle)
{
	void *p = NULL;

	OK(cudaIpcOpenMemHandle(&p, handle, 1));
	return p;
}

int main(void)
{
	cudaIpcMemHandle_t handles[2];
	int to[2], from[2], status;
	void *p, *q;
	pid_t child;

	if (pipe(to) || pipe(from))
		return 2;
	child = fork();
	if (child == 0) {
		close(to[1]);
		exporter(from[1], to[0]);
	}
	close(from[1]);
	close(to[0]);
	if (read(from[0], handles, sizeof(handles)) != sizeof(handles)) {
		printf("skip the other process could not export memory\n");
		return 0;
	}
	p = open_here(handles[0]);
	q = open_here(handles[1]);
	OK(cudaIpcCloseMemHandle(q));
	(void)p;
	expect("usage.imported.0.current_bytes", BYTES);
	expect("usage.imported.0.allocations", 2);
	expect("usage.imported.0.frees", 1);
	expect("site.open_here.live_bytes", BYTES);
	expect("usage.device.0.allocations", 0);
	expect("totals.0.current_bytes", 0);
	expect("leaks.exit_bytes", 0);
	expect("errors", 0);
	close(to[1]);
	waitpid(child, &status, 0);
	return 0;
}
