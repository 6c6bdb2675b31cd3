/*
 * The simulated pool of stream-ordered memory against the driver's on an H200: test_pool FILE, the
 * recording that tests/unit/whatif/test_driver_pool.c describes. Blocks lie where they lay there,
 * and as much is reserved after each operation.
 */
#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include "selftest.h"

#define BLOCKS 20000u

static CUmemoryPool pool;
static CUstream stream;
static CUdeviceptr blocks[BLOCKS], first;
static unsigned count;

static uint64_t reserved(void)
{
	cuuint64_t bytes = 0;

	CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes), 0);
	return bytes / MIB;
}

static void end(void)
{
	for (unsigned i = 0; i < count; i++)
		if (blocks[i])
			CHECK(cuMemFreeAsync(blocks[i], stream), 0);
	count = 0;
	CHECK(cuStreamSynchronize(stream), 0);
	CHECK(cuMemPoolDestroy(pool), 0);
}

static void begin(uint64_t threshold)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	cuuint64_t value = threshold;

	if (pool)
		end();
	first = 0;
	CHECK(cuMemPoolCreate(&pool, &props), 0);
	CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value), 0);
}

static void operate(const char *line)
{
	uint64_t bytes, address, mib, keep;
	unsigned number;

	if (sscanf(line, "# %" SCNu64, &bytes) == 1) {
		begin(bytes);
	} else if (sscanf(line, "a %u %" SCNu64 " %" SCNx64 " %" SCNu64, &number, &bytes, &address,
			  &mib) == 4 &&
		   number < BLOCKS) {
		while (count <= number)
			blocks[count++] = 0;
		CHECK(cuMemAllocFromPoolAsync(&blocks[number], bytes, pool, stream), 0);
		first = first ? first : blocks[number];
		CHECK((blocks[number] - first) / 512, address);
		CHECK(reserved(), mib);
	} else if (sscanf(line, "f %u", &number) == 1 && number < count) {
		CHECK(cuMemFreeAsync(blocks[number], stream), 0);
		blocks[number] = 0;
	} else if (sscanf(line, "w %" SCNu64, &mib) == 1) {
		CHECK(cuStreamSynchronize(stream), 0);
		CHECK(reserved(), mib);
	} else if (sscanf(line, "m %" SCNu64 " %" SCNu64, &keep, &mib) == 2) {
		CHECK(cuMemPoolTrimTo(pool, keep * MIB), 0);
		CHECK(reserved(), mib);
	} else {
		CHECK(0, 1);
	}
}

int main(int words, char **word)
{
	FILE *file = words == 2 ? fopen(word[1], "r") : NULL;
	CUcontext context;
	char line[200];

	if (!file)
		return 2;
	CHECK(cuInit(0), 0);
	CHECK(cuDevicePrimaryCtxRetain(&context, 0), 0);
	CHECK(cuCtxSetCurrent(context), 0);
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
	while (fgets(line, sizeof(line), file))
		operate(line);
	fclose(file);
	end();
	return done();
}
