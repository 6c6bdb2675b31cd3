/*
 * Stands between PyTorch and the shim and switches the shim's recording of blocks off and on within
 * one process: LD_PRELOAD="switch.so libgpumemtrace.so". While it is on, PyTorch's hook goes to the
 * shim, which goes on to PyTorch's own; else straight to PyTorch's own. Either way the processor's
 * ticks are counted. For switched.py; reads and writes without a lock: what two threads lose of a
 * sum does not matter.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#define HOOK	    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define NAME(hook)  NAME_OF(hook)
#define NAME_OF(hook) #hook
#define MOST_TICKS 100000 /* of an event: what takes longer was interrupted */
#define EXPORT	   __attribute__((visibility("default")))

struct device {
	int8_t type, index;
};

struct sum {
	uint64_t ticks, events;
};

typedef void memory_hook(void *block, int64_t bytes, uint64_t allocated, uint64_t reserved,
			 struct device device);

EXPORT volatile int switch_on = 1;
EXPORT struct sum switch_sums[2][2]; /* [on][free] */
EXPORT memory_hook HOOK;
EXPORT uint64_t switch_ticks(void);

uint64_t switch_ticks(void)
{
	unsigned processor;

	return __rdtscp(&processor);
}

static memory_hook *hooks[2]; /* PyTorch's own, the shim's */

static memory_hook *look_up(int on)
{
	void *own = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);

	hooks[1] = (memory_hook *)dlsym(RTLD_NEXT, NAME(HOOK));
	hooks[0] = own ? (memory_hook *)dlsym(own, NAME(HOOK)) : NULL;
	if (!hooks[0] || !hooks[1] || hooks[0] == hooks[1]) {
		fputs("switch.so: libc10.so and the shim are to be there, the shim after switch.so "
		      "in LD_PRELOAD\n",
		      stderr);
		abort();
	}
	return hooks[on];
}

void HOOK(void *block, int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device)
{
	int on = switch_on;
	memory_hook *hook = hooks[on] ? hooks[on] : look_up(on);
	struct sum *sum = &switch_sums[on][bytes < 0];
	unsigned processor;
	uint64_t ticks;

	ticks = __rdtscp(&processor);
	hook(block, bytes, allocated, reserved, device);
	ticks = __rdtscp(&processor) - ticks;
	if (device.type == 1 && ticks < MOST_TICKS) {
		sum->ticks += ticks;
		sum->events++;
	}
}
