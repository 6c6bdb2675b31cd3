/*
 * Programs whose memory a recording can only tell if it has what the allocator's own trace says:
 * the first argument is one of
 *
 *   sizes    blocks of the large pool that hold up to 1 MiB more than was asked for
 *   streams  blocks of three streams
 *   graph    blocks of a graph's private pool between others
 *   waits    blocks whose free waits for another stream
 *
 * "expandable" behind it sets expandable segments, "alone" leaves out libtorch_cuda, "changed"
 * exports an allocator of another class, a number N leaves block N out of the trace. Prints how
 * many trackers the allocator has at the end. Exit status 3 if memory is refused.
 */
#include "caching.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB  ((uint64_t)1024)
#define MIB  ((uint64_t)1 << 20)
#define KEPT 24u

static struct block *take(uint64_t bytes, int stream, int pool)
{
	struct block *block = standin_allocate(bytes, 0, stream, pool, 1);

	if (!block)
		exit(3);
	return block;
}

/* Requests of 1 to 30 MiB, in an order that repeats nowhere, each freed `KEPT` requests later. */
static void churn(int streams)
{
	struct block *kept[KEPT] = {NULL};
	uint64_t random = 12345;

	for (unsigned i = 0; i < 400; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		if (kept[i % KEPT])
			standin_free(kept[i % KEPT]);
		kept[i % KEPT] = take(MIB + (random >> 33) % (29 * MIB) / (i % 5 + 1),
				      streams > 1 ? (int)(random >> 20) % streams : 0, 0);
	}
	for (unsigned i = 0; i < KEPT; i++)
		standin_free(kept[i]);
}

static void graph(void)
{
	struct block *outside = take(3 * MIB, 0, 0), *inside[3], *after[3];

	standin_empty_cache();
	for (int i = 0; i < 3; i++)
		inside[i] = take((uint64_t)(1 + 3 * i) * MIB + 300 * KIB, 0, 1);
	for (int i = 0; i < 3; i++)
		after[i] = take((uint64_t)(2 + 4 * i) * MIB, 0, 0);
	standin_free(inside[1]);
	standin_free(outside);
	take(2 * MIB, 0, 1);
	take(2 * MIB, 0, 0);
	standin_free(after[2]);
	take(9 * MIB, 0, 0);
}

static void waits(void)
{
	for (int i = 0; i < 30; i++) {
		struct block *used = take((uint64_t)(2 + i % 7) * MIB, 0, 0), *other;

		standin_record_stream(used);
		standin_free(used);
		other = take(4 * MIB, 0, 0);
		if (i % 4 == 3)
			standin_synchronize();
		standin_free(other);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	bool alone = false;

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "expandable") == 0)
			standin_set_expandable(true);
		else if (strcmp(argv[i], "alone") == 0)
			alone = true;
		else if (strcmp(argv[i], "changed") == 0)
			standin_change_allocator();
		else
			standin_trace_fault((unsigned)strtoul(argv[i], NULL, 10));
	}
	if (!alone && !dlopen("libtorch_cuda.so", RTLD_NOW))
		return 4;
	if (strcmp(what, "streams") == 0)
		churn(3);
	else if (strcmp(what, "graph") == 0)
		graph();
	else if (strcmp(what, "waits") == 0)
		waits();
	else
		churn(1);
	printf("%u\n", standin_trackers());
	return 0;
}
