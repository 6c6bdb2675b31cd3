/*
 * The model of the driver's pool against what the driver of an H200 did (580.159.04, CUDA 13.0):
 * test_driver_pool FILE. A scenario begins with "# THRESHOLD NAME"; its operations are
 *
 *   a NUMBER BYTES ADDRESS RESERVED   a request, and where its block came to lie
 *   f NUMBER                          a free
 *   w RESERVED                        a wait for the stream
 *   m KEPT RESERVED                   the pool was trimmed
 *
 * Addresses are in units of 512 bytes from the pool's first one, hexadecimal; what was reserved
 * afterwards, and what was kept, in MiB. All of it is on one stream and the device had nothing else
 * to do.
 */
#include "report/whatif/driver_pool.h"
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB    (1ull << 20)
#define UNIT   512u
#define BLOCKS 20000u

static const char *path;
static uint32_t blocks[BLOCKS];
static struct gm_pool_model *model;
static uint64_t operations;
static char scenario[200];

static struct gm_pool_model *new_model(uint64_t threshold, uint64_t device_bytes)
{
	return gm_pool_model_new(&(struct gm_pool_options){.release_threshold_bytes = threshold,
							   .device_bytes = device_bytes});
}

static void begin(const char *line)
{
	uint64_t threshold;

	if (model)
		gm_pool_model_free(model);
	if (sscanf(line, "# %" SCNu64, &threshold) != 1)
		fail_msg("%s", line);
	snprintf(scenario, sizeof(scenario), "%s", line);
	model = new_model(threshold, UINT64_MAX);
}

static void reserved_is(uint64_t mib)
{
	uint64_t reserved = gm_pool_model_figures(model)->reserved_bytes;

	if (reserved != mib * MIB)
		fail_msg("%soperation %" PRIu64 ": %" PRIu64 " MiB reserved, not %" PRIu64,
			 scenario, operations, mib, reserved / MIB);
}

static void request(const char *line)
{
	uint64_t bytes, address, mib, got;
	unsigned number;

	if (sscanf(line, "a %u %" SCNu64 " %" SCNx64 " %" SCNu64, &number, &bytes, &address,
		   &mib) != 4 ||
	    number >= BLOCKS)
		fail_msg("%s", line);
	blocks[number] = gm_pool_model_alloc(model, 0, bytes);
	got = gm_pool_model_address(model, blocks[number]) / UNIT;
	if (got != address)
		fail_msg("%soperation %" PRIu64 ": block %u at %" PRIx64 ", not %" PRIx64, scenario,
			 operations, number, address, got);
	reserved_is(mib);
}

static void operate(const char *line)
{
	unsigned number, kept, mib;

	operations++;
	if (*line == '#') {
		begin(line);
	} else if (*line == 'a') {
		request(line);
	} else if (sscanf(line, "f %u", &number) == 1 && number < BLOCKS) {
		gm_pool_model_free_block(model, blocks[number], 0);
	} else if (sscanf(line, "w %u", &mib) == 1) {
		gm_pool_model_wait(model, 0);
		reserved_is(mib);
	} else if (sscanf(line, "m %u %u", &kept, &mib) == 2) {
		gm_pool_model_trim(model, kept * MIB);
		reserved_is(mib);
	} else {
		fail_msg("%s", line);
	}
}

static void blocks_lie_where_the_driver_put_them(void **state)
{
	FILE *file = fopen(path, "r");
	char line[200];

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		operate(line);
	fclose(file);
	gm_pool_model_free(model);
	model = NULL;
	assert_true(operations > 1000);
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_lie_where_the_driver_put_them),
	};

	if (count != 2)
		return 2;
	path = words[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
