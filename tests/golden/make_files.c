/*
 * Makes the files that the golden tests read, into the directory given: each a small run with one
 * subject, whose figures are written down here.
 */
#include "../unit/report/file.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static uint32_t stack(struct test_file *file, const char *innermost, const char *middle)
{
	const char *const frames[] = {innermost, middle, "<module> /home/user/train.py 80", NULL};

	return test_stack(file, frames);
}

static void device(struct test_file *file, uint64_t total)
{
	struct gm_device_record record = {
		.used = 1,
		.total_bytes = total,
		.capacity_bytes = GM_NO_BYTES,
		.free_before_bytes = GM_NO_BYTES,
		.context_bytes = 512 * MIB,
		.context_stack = GM_NONE,
		.name_string = test_string(file, "Test GPU"),
		.uuid = {0xab, 0xcd, 1, 2, 3},
	};

	TEST_ADD(file, GM_TABLE_DEVICES, &record);
}

static void save(struct test_file *file, const char *name)
{
	test_sum(file);
	if (test_write(file, name) != 0) {
		perror(name);
		exit(1);
	}
	test_end(file);
}

/* Sites of every verdict but cached; registered memory, a failing free. */
static void leaks(const char *name, unsigned steps)
{
	struct gm_error_record refused = {.type = GM_ERROR_FREE_FAILED,
					  .error = 800,
					  .count = 2,
					  .bytes = 2000,
					  .pointer = 0x7f0000001000,
					  .first_free_stack = GM_NONE};
	struct test_file file;
	uint32_t site, malloc_row;

	test_begin(&file);
	device(&file, 8 * GIB);
	malloc_row = test_function(&file, "cudaMalloc");
	site = test_add_site(
		&file,
		stack(&file, "load_weights /home/user/model.py 12", "build /home/user/model.py 40"),
		0, GM_KIND_DEVICE, 0, 4, 0, 64 * MIB);
	test_site(&file, site)->function = malloc_row;
	test_add_site(&file,
		      stack(&file, "scratch /home/user/ops.py 7", "step /home/user/train.py 41"), 0,
		      GM_KIND_DEVICE, 0, 0, 30, 16 * MIB);
	site = test_add_site(
		&file,
		stack(&file, "pin /home/user/loader.py 5", "batches /home/user/loader.py 31"), 0,
		GM_KIND_PINNED, GM_HOST, 2, 6, 1000);
	test_site(&file, site)->failed_frees = 2;
	refused.victim_site = site;
	refused.function = test_function(&file, "cudaFreeHost");
	refused.stack =
		stack(&file, "unpin /home/user/loader.py 9", "batches /home/user/loader.py 33");
	TEST_ADD(&file, GM_TABLE_ERRORS, &refused);
	test_add_site(
		&file,
		stack(&file, "register /home/user/loader.py 50", "batches /home/user/loader.py 31"),
		0, GM_KIND_REGISTERED, GM_HOST, 1, 0, 4096);
	/* last, so that it goes on to the end of the run */
	site = test_add_site(
		&file,
		stack(&file, "remember /home/user/train.py 22", "step /home/user/train.py 43"), 0,
		GM_KIND_DEVICE, 0, steps, 0, MIB);
	test_site(&file, site)->function = malloc_row;
	save(&file, name);
}

static void clean(void)
{
	struct test_file file;

	test_begin(&file);
	device(&file, 8 * GIB);
	test_add_site(&file,
		      stack(&file, "scratch /home/user/ops.py 7", "step /home/user/train.py 41"), 0,
		      GM_KIND_DEVICE, 0, 0, 10, 16 * MIB);
	test_site(&file, 0)->bytes_at_peak = 16 * MIB;
	save(&file, "clean.gmt");
}

static void killed(void)
{
	struct test_file file;

	test_begin(&file);
	device(&file, 8 * GIB);
	test_add_site(&file, stack(&file, "load /home/user/a.py 1", "main /home/user/a.py 9"), 0,
		      GM_KIND_DEVICE, 0, 3, 0, MIB);
	file.header.end = GM_END_NONE;
	file.header.ended_ns = 0;
	save(&file, "killed.gmt");
}

/* Two segments of 400 MiB with a block of 10 MiB each; an OOM that would fit in what is idle. */
static void torch(void)
{
	struct gm_torch_record record = {
		.reserved_bytes = 800 * MIB,
		.reserved_peak_bytes = 800 * MIB,
		.allocated_bytes = 20 * MIB,
		.allocated_peak_bytes = 700 * MIB,
		.allocations = 90,
		.frees = 88,
		.allocated_total_bytes = 5 * GIB,
		.freed_total_bytes = 5 * GIB - 20 * MIB,
		.reserved_total_bytes = 800 * MIB,
		.alloc_retries = 1,
		.ooms = 1,
	};
	struct gm_retry_record retry = {
		.attempts = 1, .exhausted = 1, .stall_ns = 2500000, .flushed_bytes = 64 * MIB};
	struct gm_oom_record oom = {
		.time_ns = 700000000,
		.requested_bytes = 600 * MIB,
		.free_bytes = 100 * MIB,
		.total_bytes = 2 * GIB,
		.tracked_bytes = 800 * MIB,
		.others_bytes = GM_NO_BYTES,
		.torch_reserved_bytes = 800 * MIB,
		.torch_allocated_bytes = 20 * MIB,
		.torch_largest_hole_bytes = 390 * MIB,
		.sites = 1,
		.error = 2,
		.level = GM_LEVEL_TORCH,
		.attempts = 2,
		.other_pids_string = GM_NONE,
	};
	struct gm_oom_site_record holder = {.count = 2, .bytes = 20 * MIB};
	struct gm_ledger_record ledger = {
		.source = GM_LEDGER_NVML_PROCESS,
		.samples = 3,
		.time_ns = 600000000,
		.process_used_bytes = 1400 * MIB,
		.device_used_bytes = 1400 * MIB,
		.tracked_physical_bytes = 800 * MIB,
		.context_bytes = 512 * MIB,
		.code_bytes = 4 * MIB,
		.unexplained_bytes = 84 * MIB,
		.unexplained_first_bytes = 84 * MIB,
	};
	struct test_file file;
	uint32_t segments, blocks;

	test_begin(&file);
	device(&file, 2 * GIB);
	segments =
		test_add_site(&file,
			      stack(&file,
				    "Linear.__init__ "
				    "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py 100",
				    "Model.__init__ /home/user/model.py 8"),
			      0, GM_KIND_DEVICE, 0, 0, 0, 1);
	blocks = test_add_site(
		&file,
		stack(&file, "Model.forward /home/user/model.py 20", "step /home/user/train.py 41"),
		GM_LEVEL_TORCH, GM_KIND_DEVICE, 0, 0, 0, 1);
	test_block(&file, segments, GM_SPACE_POINTER, 0x7000000000, 400 * MIB);
	test_block(&file, segments, GM_SPACE_POINTER, 0x7100000000, 400 * MIB);
	test_block(&file, blocks, GM_SPACE_TORCH, 0x7000000000 + 10 * MIB, 10 * MIB);
	test_block(&file, blocks, GM_SPACE_TORCH, 0x7100000000, 10 * MIB);
	for (uint32_t i = segments; i <= blocks; i++) {
		struct gm_site_record *site = test_site(&file, i);

		site->live_bytes = site->allocated_bytes = (i == blocks ? 20 : 800) * MIB;
		site->live_count = site->allocations = 2;
		site->bytes_at_peak = site->peak_bytes = (i == blocks ? 700 : 800) * MIB;
		site->level_max_bytes = 700 * MIB;
	}
	test_site(&file, blocks)->allocations = record.allocations;
	test_site(&file, blocks)->frees = record.frees;
	test_site(&file, blocks)->allocated_bytes = record.allocated_total_bytes;
	test_site(&file, blocks)->freed_bytes = record.freed_total_bytes;
	oom.stack = test_site(&file, blocks)->stack;
	oom.function = test_function(&file, "cudaMalloc");
	holder.site = blocks;
	TEST_ADD(&file, GM_TABLE_OOM_SITES, &holder);
	TEST_ADD(&file, GM_TABLE_OOMS, &oom);
	TEST_ADD(&file, GM_TABLE_TORCH, &record);
	TEST_ADD(&file, GM_TABLE_RETRIES, &retry);
	TEST_ADD(&file, GM_TABLE_LEDGER, &ledger);
	file.header.environment_string =
		test_string(&file, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128\n");
	save(&file, "torch.gmt");
}

/* A ledger whose rows add up to more than the driver's figure: said, not hidden. */
static void over(void)
{
	struct gm_ledger_record ledger = {
		.source = GM_LEDGER_NVML_PROCESS,
		.samples = 3,
		.time_ns = 600000000,
		.process_used_bytes = 600 * MIB,
		.device_used_bytes = 700 * MIB,
		.tracked_physical_bytes = 80 * MIB,
		.context_bytes = 524 * MIB,
		.code_bytes = 30 * MIB,
		.launch_bytes = 14 * MIB,
		.stream_bytes = 10 * MIB,
		.unexplained_bytes = -34 * (int64_t)MIB,
		.unexplained_min_bytes = -34 * (int64_t)MIB,
		.unexplained_first_bytes = -6 * (int64_t)MIB,
	};
	struct test_file file;

	test_begin(&file);
	device(&file, 2 * GIB);
	TEST_ADD(&file, GM_TABLE_LEDGER, &ledger);
	TEST_ADD(&file, GM_TABLE_LEDGER_HISTORY, &ledger);
	save(&file, "over.gmt");
}

static void timeline(void)
{
	struct gm_timeline_record line = {
		.series = GM_SERIES_TRACKED, .width_ns = 20000000, .points = 50};
	struct gm_mark_record mark = {.time_ns = 300000000, .current_bytes = 30 * MIB};
	struct test_file file;

	test_begin(&file);
	device(&file, 8 * GIB);
	for (unsigned i = 0; i < line.points; i++) {
		line.min_bytes[i] = i * MIB;
		line.max_bytes[i] = (i + 10 + (i % 5) * 8) * MIB;
		line.last_bytes[i] = (i + 1) * MIB;
	}
	mark.name_string = test_string(&file, "epoch 1");
	TEST_ADD(&file, GM_TABLE_MARKS, &mark);
	TEST_ADD(&file, GM_TABLE_TIMELINE, &line);
	save(&file, "timeline.gmt");
}

static void rank(const char *name, int number, unsigned blocks, uint64_t earlier_ns)
{
	struct test_file file;

	test_begin(&file);
	device(&file, 8 * GIB);
	file.header.pid = 5000 + (uint32_t)number;
	file.header.started_realtime_ns -= earlier_ns;
	file.header.rank = number;
	file.header.world_size = 2;
	test_add_site(&file, stack(&file, "shard /home/user/ddp.py 3", "main /home/user/ddp.py 30"),
		      0, GM_KIND_DEVICE, 0, blocks, 0, 256 * MIB);
	save(&file, name);
}

/* Cut within its tables, and no output file at all. */
static void damaged(void)
{
	FILE *out = fopen("foreign.gmt", "w");

	if (!out || fputs("this is a text\n", out) < 0 || fclose(out) != 0)
		exit(1);
	leaks("older.gmt", 20);
	out = fopen("older.gmt", "r+");
	if (!out || fputs("GPUMEMT", out) < 0 || fclose(out) != 0)
		exit(1);
	leaks("cut.gmt", 20);
	if (truncate("cut.gmt", 8192 + 6 * GM_CHUNK_BYTES) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]) != 0) {
		fprintf(stderr, "make_files DIRECTORY\n");
		return 2;
	}
	leaks("leaks.gmt", 20);
	leaks("before.gmt", 10);
	clean();
	killed();
	torch();
	over();
	timeline();
	rank("rank0.gmt", 0, 2, 0);
	rank("rank0.gmt.old1", 0, 3, 60000000000u); /* an earlier attempt */
	rank("rank1.gmt", 1, 5, 0);
	damaged();
	return 0;
}
