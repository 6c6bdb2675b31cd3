/*
 * A plug-in is loaded for each job and unloaded after it, each time at another address: reload
 * PLUG-IN. The first page after the plug-in is taken before it is unloaded, so that the next one
 * cannot lie where it lay.
 */
#include "gpu.h"

#include <dlfcn.h>
#include <sys/mman.h>

#define JOBS 150

static void occupy(void *address)
{
	uintptr_t page = (uintptr_t)address & ~(uintptr_t)4095;

	mmap((void *)page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
	     0);
}

int main(int argc, char **argv)
{
	for (volatile int i = 0; argc > 1 && i < JOBS; i++) {
		void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		void (*run_job)(void) = NULL;
		void *where;

		if (!plugin) {
			fprintf(stderr, "%s\n", dlerror());
			return 98;
		}
		where = dlsym(plugin, "run_job");
		memcpy(&run_job, &where, sizeof(run_job));
		run_job();
		clean_step(8 * MIB);
		dlclose(plugin);
		occupy(where);
	}
	return 0;
}
