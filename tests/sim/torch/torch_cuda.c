/*
 * A simulated libtorch_cuda.so: PyTorch's CUDAPluggableAllocator, which keeps the size of every
 * pointer that the program's functions gave and calls no hook. Under the names that PyTorch 2.2 and
 * later exports; a C function for each method, `self` first.
 */
#include <pthread.h>
#include <stdlib.h>
#include "torch_cuda.h"

#define KEPT 4096

struct gpusim_pluggable {
	gpusim_alloc_function *alloc;
	gpusim_free_function *free;
	pthread_mutex_t lock;
	struct {
		void *pointer;
		size_t bytes;
		int device;
		void *stream;
	} kept[KEPT];
};

#define METHOD(name) _ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator##name

struct gpusim_pluggable *gpusim_pluggable_make(gpusim_alloc_function *alloc,
					       gpusim_free_function *release)
{
	struct gpusim_pluggable *self = calloc(1, sizeof(*self));

	self->alloc = alloc;
	self->free = release;
	pthread_mutex_init(&self->lock, NULL);
	return self;
}

void *METHOD(6mallocEmaP11CUstream_st)(struct gpusim_pluggable *self, size_t bytes,
				       signed char device, void *stream);
void *METHOD(9raw_allocEm)(struct gpusim_pluggable *self, size_t bytes);
void METHOD(10raw_deleteEPv)(struct gpusim_pluggable *self, void *pointer);

void *METHOD(6mallocEmaP11CUstream_st)(struct gpusim_pluggable *self, size_t bytes,
				       signed char device, void *stream)
{
	void *pointer = self->alloc(bytes, device, stream);
	unsigned i;

	pthread_mutex_lock(&self->lock);
	for (i = 0; i < KEPT && self->kept[i].pointer; i++)
		;
	if (i < KEPT) {
		self->kept[i].pointer = pointer;
		self->kept[i].bytes = bytes;
		self->kept[i].device = device;
		self->kept[i].stream = stream;
	}
	pthread_mutex_unlock(&self->lock);
	return pointer;
}

void *METHOD(9raw_allocEm)(struct gpusim_pluggable *self, size_t bytes)
{
	void *pointer = METHOD(6mallocEmaP11CUstream_st)(self, bytes, 0, NULL);

	__asm__ volatile("" : : : "memory"); /* no tail call: PyTorch has a frame here */
	return pointer;
}

void METHOD(10raw_deleteEPv)(struct gpusim_pluggable *self, void *pointer)
{
	unsigned i;

	pthread_mutex_lock(&self->lock);
	for (i = 0; i < KEPT && self->kept[i].pointer != pointer; i++)
		;
	if (i == KEPT)
		abort();
	self->kept[i].pointer = NULL;
	pthread_mutex_unlock(&self->lock);
	self->free(pointer, self->kept[i].bytes, self->kept[i].device, self->kept[i].stream);
}
