/*
 * What the simulated libc10_cuda.so exports; programs find it by dlsym, as the library is opened
 * RTLD_LOCAL.
 */
#ifndef SIM_TORCH_C10_CUDA_H
#define SIM_TORCH_C10_CUDA_H

/* A MemPool's allocator: segments of the letters B (id, bytes) and E (id) come and go by it. */
struct gpusim_mempool {
	void *self;
	void *(*raw_alloc)(void *self, unsigned long bytes);
	void (*raw_delete)(void *self, void *pointer);
};
extern struct gpusim_mempool gpusim_torch_mempool;

/*
 * Replays a trace with the hooks' names of one PyTorch (c10.h, below C10_VARIANTS). `mark` is
 * called at each mark. 0, or 1 after a line on stderr when something did not go as the trace says.
 * May run in several threads.
 */
int gpusim_torch_replay(const char *path, unsigned variant, void (*mark)(const char *name));

#endif
