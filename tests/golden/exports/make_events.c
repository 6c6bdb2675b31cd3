/*
 * Makes events.gmt (and other.gmt, another run's): a small training run of a PyTorch program whose
 * ring of events has gone round once. Every figure is written down here and again, by hand, in
 * exports.py.
 */
#include "../../unit/report/file.h"
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define MIB	(1ull << 20)
#define SEGMENT 0x7f0000000000ull /* above 2^31: 64-bit integers in every format */

static struct test_file file;

static uint32_t add_stack(const char *innermost)
{
	const char *const frames[] = {innermost, "step /home/user/train.py 41",
				      "<module> /home/user/train.py 80", NULL};

	return test_stack(&file, frames);
}

static uint32_t add_site(const char *innermost, unsigned level, uint64_t live, uint64_t total,
			 unsigned allocations)
{
	uint32_t number =
		test_add_site(&file, add_stack(innermost), level, GM_KIND_DEVICE, 0, 0, 0, 1);
	struct gm_site_record *site = test_site(&file, number);

	site->live_bytes = live;
	site->live_count = live != 0;
	site->allocated_bytes = total;
	site->freed_bytes = total - live;
	site->allocations = allocations;
	site->frees = allocations - (live != 0);
	site->peak_bytes = site->bytes_at_peak = total;
	return number;
}

static void device(void)
{
	struct gm_device_record record = {.used = 1,
					  .total_bytes = 8192 * MIB,
					  .capacity_bytes = GM_NO_BYTES,
					  .free_before_bytes = GM_NO_BYTES,
					  .context_bytes = GM_NO_BYTES,
					  .context_stack = GM_NONE,
					  .name_string = test_string(&file, "Test GPU")};

	TEST_ADD(&file, GM_TABLE_DEVICES, &record);
}

/* The five events of the ring as they lie in it: the last of them is in the first place. */
static void ring(uint32_t forward, uint32_t backward)
{
	const struct gm_event_record events[] = {
		/* free of the block that the event before the ring's oldest allocated */
		{.time_ns = 6000000,
		 .op = GM_OP_FREE,
		 .serial = 12,
		 .site = backward,
		 .key = SEGMENT + 8 * MIB},
		{.time_ns = 2000000,
		 .op = GM_OP_ALLOC,
		 .serial = 11,
		 .site = forward,
		 .key = SEGMENT,
		 .bytes = 8 * MIB},
		{.time_ns = 3000000,
		 .op = GM_OP_ALLOC,
		 .serial = 12,
		 .site = backward,
		 .key = SEGMENT + 8 * MIB,
		 .bytes = 4 * MIB},
		{.time_ns = 4000000,
		 .op = GM_OP_ALLOC,
		 .serial = 13,
		 .site = forward,
		 .key = SEGMENT + 12 * MIB,
		 .bytes = 2 * MIB},
		{.time_ns = 5000000,
		 .op = GM_OP_FREE,
		 .serial = 11,
		 .site = forward,
		 .key = SEGMENT},
	};

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct gm_event_record event = events[i];

		event.level = GM_LEVEL_TORCH;
		event.space = GM_SPACE_TORCH;
		event.kind = GM_KIND_DEVICE;
		event.thread = 77;
		event.stack = GM_NONE;
		event.function = UINT16_MAX;
		TEST_ADD(&file, GM_TABLE_EVENTS, &event);
	}
	file.header.event_head = 6;
	file.header.event_capacity = 5;
}

static void marks(void)
{
	struct gm_mark_record first = {.time_ns = 1000000, .current_bytes = 20 * MIB},
			      second = {.time_ns = 4500000, .current_bytes = 20 * MIB};

	first.name_string = test_string(&file, "step 1");
	second.name_string = test_string(&file, "step \"2\"");
	TEST_ADD(&file, GM_TABLE_MARKS, &first);
	TEST_ADD(&file, GM_TABLE_MARKS, &second);
}

/* A job of three ranks with the same pid, as three containers give it; rank 1 began 2 ms after rank
 * 0, whose earlier attempt is there too, and rank 2 does not say when it began. */
static bool job(void)
{
	uint64_t start = file.header.started_realtime_ns;
	struct {
		const char *name;
		int rank;
		uint64_t started_realtime_ns;
	} files[] = {{"rank0.gmt", 0, start},
		     {"rank0.gmt.old1", 0, start - 60000000000u},
		     {"rank1.gmt", 1, start + 2000000},
		     {"rank2.gmt", 2, 0}};
	bool fine = true;

	file.header.pid = 4321;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		file.header.rank = files[i].rank;
		file.header.started_realtime_ns = files[i].started_realtime_ns;
		fine = test_write(&file, files[i].name) == 0 && fine;
	}
	return fine;
}

int main(int argc, char **argv)
{
	struct gm_timeline_record line = {
		.series = GM_SERIES_TRACKED, .width_ns = 4000000, .points = 2};
	struct gm_oom_record oom = {.time_ns = 5500000,
				    .requested_bytes = 9000 * MIB,
				    .free_bytes = 100 * MIB,
				    .total_bytes = 8192 * MIB,
				    .others_bytes = GM_NO_BYTES,
				    .torch_largest_hole_bytes = GM_NO_BYTES,
				    .function = GM_NONE,
				    .error = 2,
				    .level = GM_LEVEL_TORCH,
				    .other_pids_string = GM_NONE};
	uint32_t segments, forward, backward;

	if (argc != 2 || chdir(argv[1]) != 0)
		return 2;
	test_begin(&file);
	device();
	segments = add_site("Linear.__init__ /usr/lib/python3/torch/nn/modules/linear.py 100",
			    GM_LEVEL_DRIVER, 20 * MIB, 20 * MIB, 1);
	forward = add_site("Model.forward /home/user/model.py 20", GM_LEVEL_TORCH, 2 * MIB,
			   10 * MIB, 2);
	backward = add_site("Tensor.backward /usr/lib/python3/torch/_tensor.py 9", GM_LEVEL_TORCH,
			    0, 4 * MIB, 1);
	test_block(&file, segments, GM_SPACE_POINTER, SEGMENT, 20 * MIB);
	test_block(&file, forward, GM_SPACE_TORCH, SEGMENT + 12 * MIB, 2 * MIB);
	ring(forward, backward);
	marks();
	line.max_bytes[0] = line.last_bytes[0] = line.min_bytes[1] = 20 * MIB;
	line.max_bytes[1] = line.last_bytes[1] = 20 * MIB;
	TEST_ADD(&file, GM_TABLE_TIMELINE, &line);
	oom.stack = test_site(&file, forward)->stack;
	TEST_ADD(&file, GM_TABLE_OOMS, &oom);
	file.header.started_realtime_ns = 1700000000000000000u;
	file.header.last_event_ns = 6000000;
	test_sum(&file);
	file.header.pid = 4321;
	if (test_write(&file, "events.gmt") != 0)
		return 1;
	file.header.pid = 4322; /* another run of the same program */
	if (test_write(&file, "other.gmt") != 0)
		return 1;
	return job() ? 0 : 1;
}
