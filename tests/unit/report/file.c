/*
 * See file.h. Uses nothing of the project but layout.h.
 */
#include "file.h"
#include "store/header.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char test_path[] = "/tmp/gm-report-XXXXXX";

static const uint32_t record_bytes[GM_TABLES_NOW] = {
	[GM_TABLE_STRINGS] = 1,
	[GM_TABLE_MODULES] = sizeof(struct gm_module_record),
	[GM_TABLE_FRAMES] = sizeof(struct gm_frame_record),
	[GM_TABLE_STACK_FRAMES] = sizeof(uint32_t),
	[GM_TABLE_STACKS] = sizeof(struct gm_stack_record),
	[GM_TABLE_SITES] = sizeof(struct gm_site_record),
	[GM_TABLE_ALLOCS] = sizeof(struct gm_alloc_record),
	[GM_TABLE_DEVICES] = sizeof(struct gm_device_record),
	[GM_TABLE_LEVELS] = sizeof(struct gm_level_record),
	[GM_TABLE_USAGE] = sizeof(struct gm_usage_record),
	[GM_TABLE_POOLS] = sizeof(struct gm_pool_record),
	[GM_TABLE_ERRORS] = sizeof(struct gm_error_record),
	[GM_TABLE_OOMS] = sizeof(struct gm_oom_record),
	[GM_TABLE_OOM_SITES] = sizeof(struct gm_oom_site_record),
	[GM_TABLE_OOM_BLOCKS] = sizeof(struct gm_oom_block_record),
	[GM_TABLE_IMPLICIT] = sizeof(struct gm_implicit_record),
	[GM_TABLE_MARKS] = sizeof(struct gm_mark_record),
	[GM_TABLE_TIMELINE] = sizeof(struct gm_timeline_record),
	[GM_TABLE_EVENTS] = sizeof(struct gm_event_record),
	[GM_TABLE_LEDGER] = sizeof(struct gm_ledger_record),
	[GM_TABLE_COSTS] = sizeof(struct gm_cost_record),
	[GM_TABLE_RETRIES] = sizeof(struct gm_retry_record),
	[GM_TABLE_TORCH] = sizeof(struct gm_torch_record),
	[GM_TABLE_VMM] = sizeof(struct gm_vmm_record),
	[GM_TABLE_CONTEXTS] = sizeof(struct gm_context_record),
	[GM_TABLE_LEDGER_HISTORY] = sizeof(struct gm_ledger_record),
	[GM_TABLE_FUNCTIONS] = sizeof(struct gm_function_record),
	[GM_TABLE_FREED_EXPORTS] = sizeof(struct gm_freed_export_record),
	[GM_TABLE_PEAKS] = sizeof(struct gm_peak_record),
	[GM_TABLE_PEAK_BLOCKS] = sizeof(struct gm_peak_block_record),
	[GM_TABLE_RANGES] = sizeof(struct gm_range_record),
	[GM_TABLE_CAPTURES] = sizeof(struct gm_capture_record),
};

void test_begin(struct test_file *file)
{
	struct gm_header *header = &file->header;
	uint32_t *strings[] = {
		&header->command_string,
		&header->cwd_string,
		&header->host_string,
		&header->program_string,
		&header->settings_string,
		&header->environment_string,
		&header->tracer_version_string,
		&header->backend_string,
		&header->unwinder_string,
		&header->python_string,
		&header->job_string,
	};

	memset(file, 0, sizeof(*file));
	for (unsigned i = 0; i < GM_TABLES_NOW; i++)
		file->tables[i].record_bytes = header->tables[i].record_bytes = record_bytes[i];
	for (unsigned i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		*strings[i] = GM_NONE;
	gm_header_identify(header);
	header->directory_capacity = 512;
	header->pid = 4242;
	header->ppid = 4241;
	header->rank = header->local_rank = header->world_size = -1;
	header->exit_status = -1;
	header->started_realtime_ns = 1800000000000000000u;
	header->last_event_ns = 990000000;
	header->ended_ns = 1000000000;
	header->end = GM_END_EXIT;
	header->heap_limit_bytes = header->stack_limit_bytes = GM_NO_BYTES;
	header->window_width = 1;
	for (unsigned i = 0; i < GM_WINDOWS; i++)
		header->window_mark[i] = GM_NONE;
	header->host_string = test_string(file, "example");
	header->program_string = test_string(file, "train");
	header->command_string = test_string(file, "python\ntrain.py\n--batch\n8\n");
	header->cwd_string = test_string(file, "/home/user");
	header->tracer_version_string = test_string(file, "0.1.0");
	header->backend_string = test_string(file, "preload");
	header->settings_string = test_string(file, "GPUMEMTRACE_STACKS=full\n");
}

void test_end(struct test_file *file)
{
	for (unsigned i = 0; i < GM_TABLES_NOW; i++)
		free(file->tables[i].bytes);
	memset(file, 0, sizeof(*file));
}

uint32_t test_add(struct test_file *file, enum gm_table_id table, const void *record, size_t bytes)
{
	uint32_t index = file->tables[table].count, size = file->tables[table].record_bytes;
	unsigned char *grown;

	if (bytes != size)
		abort();
	grown = realloc(file->tables[table].bytes, (size_t)(index + 1) * size);
	if (!grown)
		abort();
	memcpy(grown + (size_t)index * size, record, size);
	file->tables[table].bytes = grown;
	file->tables[table].count = index + 1;
	return index;
}

uint32_t test_string(struct test_file *file, const char *text)
{
	uint32_t first = file->tables[GM_TABLE_STRINGS].count;

	for (size_t i = 0; i <= strlen(text); i++)
		test_add(file, GM_TABLE_STRINGS, text + i, 1);
	return first;
}

uint32_t test_function(struct test_file *file, const char *name)
{
	struct gm_function_record record = {.name_string = test_string(file, name)};

	return TEST_ADD(file, GM_TABLE_FUNCTIONS, &record);
}

/* The union of a frame has padding: it is cleared whole, or what the stack held ends up in the
 * file. */
uint32_t test_native_frame(struct test_file *file, const char *module, uint64_t offset)
{
	struct gm_module_record record = {.path_string = test_string(file, module),
					  .end = UINT32_MAX};
	struct gm_frame_record frame;

	memset(&frame, 0, sizeof(frame));
	frame.kind = GM_FRAME_NATIVE;
	frame.native.module = TEST_ADD(file, GM_TABLE_MODULES, &record);
	frame.native.offset = offset;
	return TEST_ADD(file, GM_TABLE_FRAMES, &frame);
}

uint32_t test_python_frame(struct test_file *file, const char *function, const char *path,
			   unsigned line)
{
	struct gm_frame_record frame;

	memset(&frame, 0, sizeof(frame));
	frame.kind = GM_FRAME_PYTHON;
	frame.python.function_string = test_string(file, function);
	frame.python.file_string = test_string(file, path);
	frame.python.line = line;
	return TEST_ADD(file, GM_TABLE_FRAMES, &frame);
}

uint32_t test_stack(struct test_file *file, const char *const *frames)
{
	struct gm_stack_record stack = {.first = file->tables[GM_TABLE_STACK_FRAMES].count};

	for (; *frames; frames++, stack.frames++) {
		char function[200], path[200];
		unsigned line;
		uint32_t number;

		if (sscanf(*frames, "%199s %199s %u", function, path, &line) != 3)
			abort();
		number = test_python_frame(file, function, path, line);
		TEST_ADD(file, GM_TABLE_STACK_FRAMES, &number);
	}
	return TEST_ADD(file, GM_TABLE_STACKS, &stack);
}

struct gm_site_record *test_site(struct test_file *file, uint32_t site)
{
	return (struct gm_site_record *)(file->tables[GM_TABLE_SITES].bytes) + site;
}

uint32_t test_add_site(struct test_file *file, uint32_t stack, unsigned level, unsigned kind,
		       int device, unsigned live, unsigned freed, uint64_t bytes)
{
	struct gm_site_record site = {
		.stack = stack,
		.kind = (uint8_t)kind,
		.level = (uint8_t)level,
		.device = (int16_t)device,
		.live_bytes = live * bytes,
		.live_count = live,
		.peak_bytes = (live + (freed ? 1 : 0)) * bytes,
		.bytes_at_peak = live * bytes,
		.epoch = 1,
		.allocated_bytes = (live + freed) * bytes,
		.freed_bytes = freed * bytes,
		.allocations = live + freed,
		.frees = freed,
		.first_ns = 1000000,
		.last_ns = 990000000,
		.min_alloc_bytes = bytes,
		.max_alloc_bytes = bytes,
		.function = GM_NONE,
		.caller_module = GM_NONE,
		.first_serial = file->header.serial + 2,
	};
	uint32_t index = TEST_ADD(file, GM_TABLE_SITES, &site);

	for (unsigned i = 0; i < live; i++)
		test_block(file, index, level == GM_LEVEL_TORCH ? GM_SPACE_TORCH : GM_SPACE_POINTER,
			   ((uint64_t)(index + 1) << 40) + i * ((bytes + 4095) & ~4095ull), bytes);
	return index;
}

uint32_t test_block(struct test_file *file, uint32_t site, enum gm_space space, uint64_t address,
		    uint64_t bytes)
{
	const struct gm_site_record *of = test_site(file, site);
	struct gm_alloc_record block = {
		.state = GM_STATE_LIVE,
		.site = site,
		.key = address,
		.bytes = bytes,
		.physical_bytes = (bytes + 511) & ~511ull,
		.serial = file->header.serial += 2, /* one came and went in between */
		.owner = GM_NONE,
		.space = (uint8_t)space,
		.kind = of->kind,
		.device = of->device,
		.level = of->level,
		.time_ns = 500000 * file->header.serial,
	};

	return TEST_ADD(file, GM_TABLE_ALLOCS, &block);
}

static struct gm_level_record *find_level(struct test_file *file, const struct gm_site_record *site)
{
	struct gm_level_record *levels, level = {.device = site->device,
						 .level = site->level,
						 .epoch = 1,
						 .peak_at_ns = 500000000};
	uint32_t count = file->tables[GM_TABLE_LEVELS].count;

	levels = (struct gm_level_record *)file->tables[GM_TABLE_LEVELS].bytes;
	for (uint32_t i = 0; i < count; i++)
		if (levels[i].device == site->device && levels[i].level == site->level)
			return &levels[i];
	count = TEST_ADD(file, GM_TABLE_LEVELS, &level);
	return (struct gm_level_record *)file->tables[GM_TABLE_LEVELS].bytes + count;
}

static struct gm_usage_record *find_usage(struct test_file *file, const struct gm_site_record *site)
{
	struct gm_usage_record *usages, usage = {.device = site->device, .kind = site->kind};
	uint32_t count = file->tables[GM_TABLE_USAGE].count;

	usages = (struct gm_usage_record *)file->tables[GM_TABLE_USAGE].bytes;
	for (uint32_t i = 0; i < count; i++)
		if (usages[i].device == site->device && usages[i].kind == site->kind)
			return &usages[i];
	count = TEST_ADD(file, GM_TABLE_USAGE, &usage);
	return (struct gm_usage_record *)file->tables[GM_TABLE_USAGE].bytes + count;
}

/* One window of the whole run, unless the test made windows. */
static void one_window(struct gm_site_record *site)
{
	if (!site->window_current && !site->windows[0].max_bytes)
		site->windows[0] = (struct gm_window){.max_bytes = site->peak_bytes,
						      .last_bytes = site->live_bytes};
}

void test_sum(struct test_file *file)
{
	for (uint32_t i = 0; i < file->tables[GM_TABLE_SITES].count; i++) {
		const struct gm_site_record *site = test_site(file, i);
		struct gm_level_record *level;
		struct gm_usage_record *usage;

		one_window(test_site(file, i));
		if (site->kind < GM_KIND_REGISTERED) {
			level = find_level(file, site);
			level->current_bytes += site->live_bytes;
			level->current_count += site->live_count;
			level->peak_bytes += site->bytes_at_peak;
			level->physical_bytes += site->live_bytes;
			level->physical_peak_bytes += site->bytes_at_peak;
			level->allocations += site->allocations;
			level->frees += site->frees;
		}
		if (site->level != GM_LEVEL_DRIVER)
			continue;
		usage = find_usage(file, site);
		usage->current_bytes += site->live_bytes;
		usage->current_count += site->live_count;
		usage->peak_bytes += site->bytes_at_peak;
		usage->allocated_bytes += site->allocated_bytes;
		usage->freed_bytes += site->freed_bytes;
		usage->allocations += site->allocations;
		usage->frees += site->frees;
		file->header.events += site->allocations + site->frees;
	}
	for (uint32_t i = 0; i < file->tables[GM_TABLE_SITES].count; i++) {
		struct gm_site_record *site = test_site(file, i);

		if (!site->level_max_bytes && site->kind < GM_KIND_REGISTERED)
			site->level_max_bytes = find_level(file, site)->peak_bytes;
	}
}

/* Copies a table into its chunks; returns how many it took. */
static uint32_t lay_out(const struct test_file *file, unsigned table, uint32_t first_chunk,
			unsigned char *data, struct gm_directory_entry *directory)
{
	uint32_t size = file->tables[table].record_bytes, count = file->tables[table].count;
	uint32_t per_chunk = file->header.chunk_bytes / size,
		 chunks = (count + per_chunk - 1) / per_chunk;

	for (uint32_t c = 0; c < chunks; c++) {
		uint32_t records =
			count - c * per_chunk < per_chunk ? count - c * per_chunk : per_chunk;

		directory[first_chunk + c] = (struct gm_directory_entry){table, c};
		memcpy(data + (size_t)(first_chunk + c) * file->header.chunk_bytes,
		       file->tables[table].bytes + (size_t)c * per_chunk * size,
		       (size_t)records * size);
	}
	return chunks;
}

unsigned char *test_image(const struct test_file *file, size_t *bytes)
{
	size_t base = GM_HEADER_BYTES +
		      file->header.directory_capacity * sizeof(struct gm_directory_entry);
	struct gm_header header = file->header;
	unsigned char *image;
	uint32_t chunks = 0;

	for (unsigned i = 0; i < GM_TABLES_NOW; i++) {
		uint32_t per_chunk = file->header.chunk_bytes / file->tables[i].record_bytes;

		chunks += (file->tables[i].count + per_chunk - 1) / per_chunk;
	}
	*bytes = base + (size_t)chunks * file->header.chunk_bytes;
	image = calloc(1, *bytes);
	if (!image || chunks > header.directory_capacity)
		abort();
	chunks = 0;
	for (unsigned i = 0; i < GM_TABLES_NOW; i++) {
		header.tables[i].count = file->tables[i].count;
		chunks += lay_out(file, i, chunks, image + base,
				  (struct gm_directory_entry *)(image + GM_HEADER_BYTES));
	}
	header.chunk_count = chunks;
	header.data_offset = base;
	memcpy(image, &header, sizeof(header));
	return image;
}

int test_write(const struct test_file *file, const char *path)
{
	size_t bytes;
	unsigned char *image = test_image(file, &bytes);
	FILE *out = fopen(path, "w");
	int rc = -1;

	if (out) {
		rc = fwrite(image, 1, bytes, out) == bytes ? 0 : -1;
		rc = fclose(out) == 0 ? rc : -1;
	}
	free(image);
	return rc;
}

int test_path_make(void **state)
{
	int fd = mkstemp(test_path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

int test_path_remove(void **state)
{
	(void)state;
	return unlink(test_path);
}
