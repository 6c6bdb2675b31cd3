/*
 * What the simulated libtorch_cuda.so exports beside the methods of CUDAPluggableAllocator.
 */
#ifndef SIM_TORCH_TORCH_CUDA_H
#define SIM_TORCH_TORCH_CUDA_H

#include <stddef.h>

struct gpusim_pluggable;

/* The program's functions, as torch.cuda.memory.CUDAPluggableAllocator finds them in its library.
 */
typedef void *gpusim_alloc_function(size_t bytes, int device, void *stream);
typedef void gpusim_free_function(void *pointer, size_t bytes, int device, void *stream);

struct gpusim_pluggable *gpusim_pluggable_make(gpusim_alloc_function *alloc,
					       gpusim_free_function *release);

#endif
