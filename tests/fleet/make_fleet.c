/*
 * A week of simulated jobs for the queries of docs/fleet.md: make_fleet DIRECTORY writes
 * JOB/RANK.gmt. Two programs, four commits, two ranks each; what leaks and what peaks is written
 * down here:
 *
 *   commit  job  remember() keeps   load() holds   peak of a rank
 *   aaaa    11   10 MiB             64 MiB         200 MiB
 *   bbbb    12   20 MiB             64 MiB         210 MiB
 *   cccc    13   40 MiB             64 MiB         130 MiB; rank 1 runs out of memory first
 *   dddd    14   nothing            32 MiB         90 MiB (another program)
 */
#include "../unit/report/file.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB 1048576ull
#define DAY 86400000000000ull

static const struct job {
	const char *commit, *name, *program;
	unsigned day;
	uint64_t kept, held, peak;
	bool fails;
} jobs[] = {
	{"aaaa", "11", "train", 0, 10 * MIB, 64 * MIB, 200 * MIB, false},
	{"bbbb", "12", "train", 1, 20 * MIB, 64 * MIB, 210 * MIB, false},
	{"cccc", "13", "train", 3, 40 * MIB, 64 * MIB, 130 * MIB, true},
	{"dddd", "14", "serve", 5, 0, 32 * MIB, 90 * MIB, false},
};

static uint32_t place(struct test_file *file, const char *frame)
{
	const char *const frames[] = {frame, "main /home/user/train.py 80", NULL};

	return test_stack(file, frames);
}

static void add_device(struct test_file *file, int rank)
{
	struct gm_device_record unused = {.name_string = GM_NONE};
	struct gm_device_record record = {.used = 1,
					  .total_bytes = 1024 * MIB,
					  .capacity_bytes = GM_NO_BYTES,
					  .free_before_bytes = GM_NO_BYTES,
					  .context_bytes = GM_NO_BYTES,
					  .context_stack = GM_NONE,
					  .uuid = {0xab, (uint8_t)rank}};

	record.name_string = test_string(file, "Test GPU");
	for (int i = 0; i < rank; i++)
		TEST_ADD(file, GM_TABLE_DEVICES, &unused);
	TEST_ADD(file, GM_TABLE_DEVICES, &record);
}

static void add_oom(struct test_file *file, int rank, uint32_t stack)
{
	struct gm_oom_record oom = {.time_ns = rank == 1 ? 400000000 : 500000000,
				    .requested_bytes = 900 * MIB,
				    .free_bytes = 100 * MIB,
				    .total_bytes = 1024 * MIB,
				    .tracked_bytes = 104 * MIB,
				    .others_bytes = GM_NO_BYTES,
				    .own_bytes = GM_NO_BYTES,
				    .torch_reserved_bytes = GM_NO_BYTES,
				    .torch_allocated_bytes = GM_NO_BYTES,
				    .torch_largest_hole_bytes = GM_NO_BYTES,
				    .error = 2,
				    .device = (int16_t)rank,
				    .stack = stack,
				    .attempts = 1,
				    .function = GM_NONE,
				    .other_pids_string = GM_NONE};

	TEST_ADD(file, GM_TABLE_OOMS, &oom);
	TEST_ADD(file, GM_TABLE_RETRIES,
		 (&(struct gm_retry_record){.device = (int16_t)rank, .exhausted = 1}));
}

static void add_rank(const struct job *job, int rank)
{
	char path[64], text[128];
	struct test_file file;
	uint32_t site, stack;

	test_begin(&file);
	file.header.pid = 1000 + (uint32_t)rank;
	file.header.rank = file.header.local_rank = rank;
	file.header.world_size = 2;
	file.header.started_realtime_ns = 1800000000000000000u + job->day * DAY;
	snprintf(text, sizeof(text), "SLURM_JOB_ID=%s\nGIT_COMMIT=%s\n", job->name, job->commit);
	file.header.job_string = test_string(&file, text);
	file.header.program_string = test_string(&file, job->program);
	add_device(&file, rank);
	stack = place(&file, "load /home/user/model.py 5");
	test_add_site(&file, stack, 0, GM_KIND_DEVICE, rank, 1, 0, job->held);
	if (job->kept)
		test_add_site(&file, place(&file, "remember /home/user/train.py 22"), 0,
			      GM_KIND_DEVICE, rank, (unsigned)(job->kept / MIB), 0, MIB);
	/* what was there at the peak and is gone */
	site = test_add_site(&file, place(&file, "step /home/user/train.py 41"), 0, GM_KIND_DEVICE,
			     rank, 0, 1, job->peak - job->held - job->kept);
	test_site(&file, site)->bytes_at_peak = job->peak - job->held - job->kept;
	if (job->fails)
		add_oom(&file, rank, stack);
	test_sum(&file);
	snprintf(path, sizeof(path), "%s/rank%d.gmt", job->name, rank);
	mkdir(job->name, 0700);
	if (test_write(&file, path) != 0) {
		perror(path);
		exit(1);
	}
	test_end(&file);
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]) != 0) {
		fprintf(stderr, "make_fleet DIRECTORY\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		for (int rank = 0; rank < 2; rank++)
			add_rank(&jobs[i], rank);
	return 0;
}
