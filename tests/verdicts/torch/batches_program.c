/*
 * A loop of training on the stand-in for PyTorch's allocator, with the batch that the first
 * argument says: weights and gradients, and activations and logits that follow the batch. The
 * second argument is the number of steps. Prints nothing; exit status 3 if memory is refused.
 */
#include "caching.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS 12
#define KIB    ((uint64_t)1024)

static struct block *take(uint64_t bytes)
{
	struct block *block = standin_allocate(bytes, 0, 0, 0, 1);

	if (!block)
		exit(3);
	return block;
}

static void step(uint64_t batch)
{
	struct block *activations[LAYERS], *scores, *logits;

	for (int i = 0; i < LAYERS; i++) {
		activations[i] = take(batch * (uint64_t)(900 + 64 * i) * KIB);
		scores = take(batch * 700 * KIB);
		standin_free(scores);
	}
	logits = take(batch * 2500 * KIB);
	standin_free(logits);
	for (int i = LAYERS; i-- > 0;) {
		struct block *gradient = take((uint64_t)(6000 + 512 * i) * KIB);

		standin_free(activations[i]);
		standin_free(gradient);
	}
}

int main(int argc, char **argv)
{
	uint64_t batch = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	int steps = argc > 2 ? atoi(argv[2]) : 4;

	dlopen("libtorch_cuda.so", RTLD_NOW); /* where there is one, the allocator can be traced */
	if (argc > 3 && strcmp(argv[3], "expandable") == 0)
		standin_set_expandable(true);
	for (int i = 0; i < LAYERS; i++)
		take((uint64_t)(6000 + 512 * i) * KIB);
	for (int i = 0; i < steps; i++)
		step(batch);
	return 0;
}
