/*
 * Allocates, has a memory saver pause and resume (hook_saver.c), frees all but two blocks; pauses
 * once more at the end where its argument says so.
 */
#include "cuda_calls.h"

#include <dlfcn.h>
#include <stdio.h>

#define MIB (1ull << 20)

int main(int argc, char **argv)
{
	int (*pause_it)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "saver_pause");
	int (*resume_it)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "saver_resume");
	void *blocks[10];
	int i;

	if (!pause_it || !resume_it)
		return 2;
	for (i = 0; i < 10; i++)
		if (cudaMalloc(&blocks[i], 4 * MIB))
			return 3;
	if (pause_it() || resume_it())
		return 4;
	for (i = 2; i < 10; i++)
		if (cudaFree(blocks[i]))
			return 5;
	if (argc > 1 && argv[1][0] == 'p' && pause_it())
		return 6;
	printf("{\"live\": %llu}\n", argc > 1 ? 0 : 8 * MIB);
	return 0;
}
