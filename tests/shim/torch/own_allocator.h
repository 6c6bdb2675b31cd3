#ifndef OWN_ALLOCATOR_H
#define OWN_ALLOCATOR_H

#include <stddef.h>

struct own_counters {
	unsigned long bytes, peak, total;
};
extern struct own_counters own_counters;

void *own_malloc(size_t bytes, int device, void *stream);
void own_free(void *pointer, size_t bytes, int device, void *stream);

#endif
