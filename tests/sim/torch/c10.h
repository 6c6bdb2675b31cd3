/*
 * What the simulated libc10.so exports, and the names of PyTorch's hooks (facts.md): 2.x, 1.10 to
 * 1.13, one source tree.
 */
#ifndef SIM_TORCH_C10_H
#define SIM_TORCH_C10_H

#include <stdint.h>

#define C10_VARIANTS 3

struct c10_device {
	int8_t type, index;
};

#define C10_HOOKS(memory, oom)                                                                     \
	memory(0, _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)                           \
		memory(1, _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)                   \
			memory(2, _ZN3c1027reportMemoryUsageToProfilerEPvmmmNS_6DeviceE) oom(      \
				3, _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE)            \
				oom(4, _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE) oom(   \
					5, _ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE)

#define C10_MEMORY_PROTOTYPE(number, symbol)                                                       \
	void symbol(void *block, int64_t bytes, uint64_t allocated, uint64_t reserved,             \
		    struct c10_device device);
#define C10_OOM_PROTOTYPE(number, symbol)                                                          \
	void symbol(int64_t bytes, uint64_t allocated, uint64_t reserved, struct c10_device device);
C10_HOOKS(C10_MEMORY_PROTOTYPE, C10_OOM_PROTOTYPE)

/* What reached the real hooks. */
struct gpusim_c10 {
	uint64_t calls[2 * C10_VARIANTS];
	int64_t bytes;
	uint64_t checksum; /* of everything but addresses */
	uint64_t null_blocks;
};
extern struct gpusim_c10 gpusim_c10;

#endif
