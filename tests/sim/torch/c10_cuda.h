/*
 * What the simulated libc10_cuda.so exports; programs find it by dlsym, as the library is opened
 * RTLD_LOCAL.
 */
#ifndef SIM_TORCH_C10_CUDA_H
#define SIM_TORCH_C10_CUDA_H

/*
 * Replays a trace with the hooks' names of one PyTorch (c10.h, below C10_VARIANTS). `mark` is
 * called at each mark. 0, or 1 after a line on stderr when something did not go as the trace says.
 * May run in several threads.
 */
int gpusim_torch_replay(const char *path, unsigned variant, void (*mark)(const char *name));

#endif
