/*
 * A simulated libc10.so: PyTorch's two reporting hooks under every name they have had. They count
 * what arrives, so that tests can hold a preload in front of them to passing everything on
 * unchanged.
 */
#include "c10.h"

struct gpusim_c10 gpusim_c10;

static void seen(unsigned name, int64_t bytes, uint64_t allocated, uint64_t reserved,
		 struct c10_device device)
{
	gpusim_c10.calls[name]++;
	gpusim_c10.bytes += bytes;
	gpusim_c10.checksum = gpusim_c10.checksum * 31 + (uint64_t)bytes + 3 * allocated +
			      7 * reserved + (uint64_t)(device.type * 256 + device.index);
}

#define MEMORY(number, symbol)                                                                     \
	void symbol(void *block, int64_t bytes, uint64_t allocated, uint64_t reserved,             \
		    struct c10_device device)                                                      \
	{                                                                                          \
		gpusim_c10.null_blocks += !block;                                                  \
		seen(number, bytes, allocated, reserved, device);                                  \
	}
#define OOM(number, symbol)                                                                        \
	void symbol(int64_t bytes, uint64_t allocated, uint64_t reserved,                          \
		    struct c10_device device)                                                      \
	{                                                                                          \
		seen(number, bytes, allocated, reserved, device);                                  \
	}

C10_HOOKS(MEMORY, OOM)
