/*
 * The reader against whole, cut, damaged and foreign files, and the window rules of layout.h.
 */
#include "file.h"
#include "../../hygiene/effort.h"
#include "account/site_windows.h"
#include "report/render/json/json.h"
#include "report/doc/options.h"
#include "report/open/open.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define SMALL_CHUNK 8192u

static char directory[] = "/tmp/gm-reader-XXXXXX";
static char path[64], other[64];

static const struct gm_options options = {
	.symbols = true,
	.device = -1,
	.kind = -1,
	.level = -1,
	.warmup = 2,
	.top = 20,
};

static void write_bytes(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* Writes one byte of a file in place. */
static void patch(const char *name, size_t at, unsigned char byte)
{
	FILE *file = fopen(name, "r+");

	assert_non_null(file);
	assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
	assert_int_equal(fputc(byte, file), byte);
	assert_int_equal(fclose(file), 0);
}

/* A small file with a record in every table that the document shows. */
static void fill(struct test_file *file)
{
	const char *const frames[] = {"step train.py 41", "main train.py 60", NULL};
	uint32_t stack, site, function;
	struct gm_device_record device = {.used = 1,
					  .total_bytes = 8ull << 30,
					  .capacity_bytes = GM_NO_BYTES,
					  .context_stack = 0,
					  .free_before_bytes = GM_NO_BYTES,
					  .context_bytes = 500ull << 20};
	struct gm_error_record error = {.type = GM_ERROR_DOUBLE_FREE, .error = 1, .count = 2};
	struct gm_oom_record oom = {.requested_bytes = 1ull << 33,
				    .free_bytes = 1 << 20,
				    .total_bytes = 8ull << 30,
				    .sites = 1,
				    .first_block = 0};
	struct gm_oom_site_record holder = {.bytes = 3000, .count = 3};
	struct gm_mark_record mark = {.time_ns = 5};
	struct gm_timeline_record line = {.width_ns = 1000, .points = 3};
	struct gm_ledger_record ledger = {.source = GM_LEDGER_NVML_PROCESS,
					  .samples = 2,
					  .process_used_bytes = 600 << 20,
					  .tracked_physical_bytes = 3072,
					  .context_bytes = 500 << 20,
					  .unexplained_bytes = 90 << 20};
	struct gm_torch_record torch = {.allocations = 1};
	struct gm_pool_record pool = {.state = GM_STATE_LIVE, .reserved_bytes = 64 << 20};
	struct gm_vmm_record vmm = {.handles = 1};
	struct gm_retry_record retry = {.attempts = 1};
	struct gm_implicit_record implicit = {.bytes = 5, .count = 1};
	struct gm_cost_record cost = {.cost = GM_COST_MODULE, .bytes = 5};

	test_begin(file);
	file->header.chunk_bytes = SMALL_CHUNK; /* there are thousands of files to write */
	file->header.features |= GM_FEATURE_LOCKED; /* and nobody holds the lock: it is settled */
	stack = test_stack(file, frames);
	test_native_frame(file, "/nowhere/libx.so", 0x1234);
	site = test_add_site(file, stack, GM_LEVEL_DRIVER, GM_KIND_DEVICE, 0, 3, 2, 1000);
	test_add_site(file, stack, GM_LEVEL_TORCH, GM_KIND_DEVICE, 0, 2, 0, 512);
	function = test_function(file, "cudaMalloc");
	test_site(file, site)->function = function;
	error.victim_site = site;
	error.first_free_stack = GM_NONE;
	mark.name_string = test_string(file, "epoch");
	TEST_ADD(file, GM_TABLE_DEVICES, &device);
	TEST_ADD(file, GM_TABLE_ERRORS, &error);
	TEST_ADD(file, GM_TABLE_OOM_SITES, &holder);
	TEST_ADD(file, GM_TABLE_OOMS, &oom);
	TEST_ADD(file, GM_TABLE_MARKS, &mark);
	TEST_ADD(file, GM_TABLE_TIMELINE, &line);
	TEST_ADD(file, GM_TABLE_LEDGER, &ledger);
	TEST_ADD(file, GM_TABLE_TORCH, &torch);
	TEST_ADD(file, GM_TABLE_POOLS, &pool);
	TEST_ADD(file, GM_TABLE_VMM, &vmm);
	TEST_ADD(file, GM_TABLE_RETRIES, &retry);
	TEST_ADD(file, GM_TABLE_IMPLICIT, &implicit);
	TEST_ADD(file, GM_TABLE_COSTS, &cost);
	test_sum(file);
}

/* Everything a reader can be asked about a file, rendered; returns whether it could be opened. */
static bool look(const char *name, bool *complete)
{
	char error[1024] = "";
	struct gm_doc *doc = gm_doc_open(name, &options, error, sizeof(error));
	char *text = NULL;
	size_t bytes = 0;
	FILE *memory;
	json_t *json;

	if (!doc) {
		assert_non_null(strstr(error, name));
		return false;
	}
	memory = open_memstream(&text, &bytes);
	assert_int_equal(gm_json_write_doc(doc, NULL, NULL, memory), 0);
	fclose(memory);
	json = json_loadb(text, bytes, 0, NULL);
	free(text);
	assert_non_null(json);
	assert_true(json_is_array(json_object_get(json, "sites")));
	assert_true(json_is_array(json_object_get(json, "findings")));
	json_decref(json);
	if (complete)
		*complete = doc->complete;
	gm_doc_close(doc);
	return true;
}

static void whole_file(void **state)
{
	struct gm_reader *reader;
	struct gm_site_record site;
	struct test_file file;
	char error[256];

	(void)state;
	fill(&file);
	assert_int_equal(test_write(&file, path), 0);
	reader = gm_reader_open(path, error, sizeof(error));
	assert_non_null(reader);
	assert_true(gm_reader_complete(reader));
	assert_false(gm_reader_torn(reader));
	assert_int_equal(gm_reader_header(reader)->pid, 4242);
	assert_int_equal(gm_reader_count(reader, GM_TABLE_SITES), 2);
	assert_int_equal(gm_reader_count(reader, GM_TABLE_ALLOCS), 5);
	assert_true(gm_reader_get(reader, GM_TABLE_SITES, 0, &site, sizeof(site)));
	assert_int_equal(site.live_bytes, 3000);
	assert_false(gm_reader_get(reader, GM_TABLE_SITES, 2, &site, sizeof(site)));
	assert_string_equal(gm_reader_string(reader, gm_reader_header(reader)->host_string),
			    "example");
	assert_null(gm_reader_string(reader, GM_NONE));
	assert_null(gm_reader_string(reader, file.tables[GM_TABLE_STRINGS].count));
	gm_reader_close(reader);
	test_end(&file);
}

/* Of a state only the low bits are the state; what is above them in a damaged file is nothing. */
static void odd_states(void **state)
{
	struct gm_alloc_record *records;
	struct test_file file;
	struct gm_doc *doc;
	char error[256];

	(void)state;
	fill(&file);
	records = (struct gm_alloc_record *)file.tables[GM_TABLE_ALLOCS].bytes;
	records[0].state = GM_STATE_LIVE | ~0u << GM_STATE_BITS;
	records[1].state = GM_STATE_PENDING | 1u << 31;
	assert_int_equal(test_write(&file, path), 0);
	doc = gm_doc_open(path, &options, error, sizeof(error));
	assert_non_null(doc);
	assert_int_equal(doc->blocks_count, 5);
	for (unsigned i = 0; i < doc->blocks_count; i++)
		assert_true(gm_doc_block(doc, i).state == GM_STATE_LIVE ||
			    gm_doc_block(doc, i).state == GM_STATE_PENDING);
	gm_doc_close(doc);
	test_end(&file);
}

/* Killed after an allocation was counted, and before the header has its time. */
static void killed_before_the_time(void **state)
{
	struct test_file file;
	struct gm_doc *doc;
	char error[256];

	(void)state;
	fill(&file);
	file.header.sequence |= 1;
	file.header.end = GM_END_NONE;
	file.header.last_event_ns = file.header.ended_ns = 1000;
	test_site(&file, 0)->last_ns = 3000000000;
	assert_int_equal(test_write(&file, path), 0);
	doc = gm_doc_open(path, &options, error, sizeof(error));
	assert_non_null(doc);
	assert_string_equal(doc->end, "killed");
	assert_true(doc->duration_s == 3.0);
	gm_doc_close(doc);
	test_end(&file);
}

static void pointer_file(void **state)
{
	struct test_file file;
	char text[256];
	bool complete;

	(void)state;
	fill(&file);
	assert_int_equal(test_write(&file, path), 0);
	write_bytes(other, text,
		    (size_t)snprintf(text, sizeof(text), "gpumemtrace-pointer 1\n%s\n", path));
	assert_true(look(other, &complete));
	assert_true(complete);
	/* beside the pointer */
	write_bytes(other, text,
		    (size_t)snprintf(text, sizeof(text), "gpumemtrace-pointer 1\n%s\n",
				     strrchr(path, '/') + 1));
	assert_true(look(other, NULL));
	/* to itself: an error, no loop */
	write_bytes(other, text,
		    (size_t)snprintf(text, sizeof(text), "gpumemtrace-pointer 1\n%s\n", other));
	assert_false(look(other, NULL));
	write_bytes(other, "gpumemtrace-pointer 1\n/nowhere/x\n", 34);
	assert_false(look(other, NULL));
	write_bytes(other, "gpumemtrace-pointer 1\n", 22);
	assert_false(look(other, NULL));
	test_end(&file);
}

static void foreign_files(void **state)
{
	struct test_file file;
	struct gm_reader *reader;
	char error[512];
	bool complete;

	(void)state;
	write_bytes(path, "", 0);
	assert_false(look(path, NULL));
	write_bytes(path, "#!/bin/sh\necho no\n", 18);
	assert_false(look(path, NULL));
	assert_false(look("/nowhere/at/all", NULL));
	assert_false(look("/dev/null", NULL));
	assert_false(look("/tmp", NULL));

	fill(&file);
	file.header.byte_order = __builtin_bswap32(GM_BYTE_ORDER);
	assert_int_equal(test_write(&file, path), 0);
	reader = gm_reader_open(path, error, sizeof(error));
	assert_null(reader);
	assert_non_null(strstr(error, "byte order"));

	file.header.byte_order = GM_BYTE_ORDER;
	memcpy(file.header.magic, "GPUMEMT", sizeof(file.header.magic));
	assert_int_equal(test_write(&file, path), 0);
	assert_null(gm_reader_open(path, error, sizeof(error)));
	assert_non_null(strstr(error, "before format 1"));
	memcpy(file.header.magic, GM_MAGIC, sizeof(file.header.magic));
	file.header.format_version = file.header.oldest_version = GM_FORMAT_VERSION + 1;
	assert_int_equal(test_write(&file, path), 0);
	assert_null(gm_reader_open(path, error, sizeof(error)));
	assert_non_null(strstr(error, "version"));

	/* newer, but written so that we can read it */
	file.header.oldest_version = GM_FORMAT_VERSION;
	assert_int_equal(test_write(&file, path), 0);
	assert_true(look(path, &complete));
	assert_true(complete);
	test_end(&file);
}

/* A file cut anywhere: what is left is reported, and never as complete. */
static void cut_files(void **state)
{
	struct test_file file;
	unsigned char *image;
	size_t bytes, opened = 0, thinned = test_thinned();

	(void)state;
	fill(&file);
	image = test_image(&file, &bytes);
	for (size_t cut = 0; cut < bytes;) {
		bool complete = true;

		write_bytes(path, image, cut);
		if (look(path, &complete)) {
			assert_false(complete);
			opened++;
		}
		cut += (cut < 2200 ? 1 : cut < 8300 ? 61 : 4093) * thinned;
	}
	assert_true(opened > 100 / thinned);
	free(image);
	test_end(&file);
}

/* Each byte of header, directory and records turned over: any result is right but a crash. */
static void damaged_bytes(void **state)
{
	static const unsigned char patterns[] = {0x00, 0xff, 0x7f};
	struct test_file file;
	unsigned char *image;
	size_t bytes, thinned = test_thinned();

	(void)state;
	fill(&file);
	image = test_image(&file, &bytes);
	write_bytes(path, image, bytes);
	for (size_t at = 0; at < bytes;) {
		unsigned char before = image[at];
		size_t in_chunk = at < 8192 ? at : (at - 8192) % SMALL_CHUNK;

		for (size_t p = 0; p < sizeof(patterns); p++) {
			if (patterns[p] == before)
				continue;
			patch(path, at, patterns[p]);
			look(path, NULL);
		}
		patch(path, at, before);
		/* The header closely; of each chunk the first record or two. */
		if (at < 2100 || (at >= 4096 && at < 4400))
			at += thinned;
		else if (at < 4096)
			at = 4096;
		else if (at < 8192)
			at = 8192;
		else if (in_chunk < 900)
			at += 3 * thinned;
		else
			at += SMALL_CHUNK - in_chunk;
	}
	free(image);
	test_end(&file);
}

/* A chunk of strings said to be far out in their table: no more strings than the file could hold.
 */
static void far_chunk(void **state)
{
	struct gm_directory_entry *entries;
	struct gm_reader *reader;
	struct test_file file;
	unsigned char *image;
	char error[256];
	size_t bytes;

	(void)state;
	fill(&file);
	image = test_image(&file, &bytes);
	entries = (struct gm_directory_entry *)(image + GM_HEADER_BYTES);
	assert_int_equal(entries[0].table, GM_TABLE_STRINGS);
	entries[0].ordinal = 5;
	((struct gm_header *)image)->tables[GM_TABLE_STRINGS].count = 6 * SMALL_CHUNK;
	write_bytes(path, image, bytes);
	reader = gm_reader_open(path, error, sizeof(error));
	assert_non_null(reader);
	assert_false(gm_reader_complete(reader));
	assert_int_equal(gm_reader_count(reader, GM_TABLE_STRINGS), 0);
	assert_non_null(strstr(gm_reader_warning(reader, 0), "1 entries of the file's directory"));
	gm_reader_close(reader);
	assert_true(look(path, NULL));
	free(image);
	test_end(&file);
}

/* Numbers drawn at random over whole files. */
static void damaged_words(void **state)
{
	struct test_file file;
	unsigned char *image, *copy;
	uint64_t random = 88172645463325252u;
	size_t bytes;

	(void)state;
	fill(&file);
	file.header.features &= ~(uint64_t)GM_FEATURE_LOCKED; /* copied at once */
	image = test_image(&file, &bytes);
	copy = malloc(bytes);
	assert_non_null(copy);
	for (unsigned round = 0; round < 400 / test_thinned(); round++) {
		memcpy(copy, image, bytes);
		for (unsigned change = 0; change < 8; change++) {
			size_t chunk, at;
			uint32_t word;

			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			chunk = (random >> 8) % ((bytes - 8192) / SMALL_CHUNK + 1);
			at = chunk ? 8192 + (chunk - 1) * SMALL_CHUNK + (random >> 20) % 1000
				   : 48 + (random >> 20) % 1800;
			word = random & 1 ? (uint32_t)(random >> 32) : (uint32_t)(random >> 32) % 5;
			memcpy(copy + (at & ~(size_t)3), &word, sizeof(word));
		}
		write_bytes(path, copy, bytes);
		look(path, NULL);
	}
	free(copy);
	free(image);
	test_end(&file);
}

/* Names that are no UTF-8, or would drive a terminal, come out harmless. */
static void hostile_names(void **state)
{
	const char *const frames[] = {"\033[31mred bad\xff\xfe.py 1", NULL};
	struct gm_reader *reader;
	struct test_file file;
	char error[256];
	uint32_t name;

	(void)state;
	fill(&file);
	test_stack(&file, frames);
	name = test_string(&file, "a\033[2Jb\xc3\xa9\xed\xa0\x80z\x7f");
	assert_int_equal(test_write(&file, path), 0);
	reader = gm_reader_open(path, error, sizeof(error));
	assert_non_null(reader);
	assert_string_equal(gm_reader_string(reader, name), "a\033[2Jb\xc3\xa9???z\x7f");
	gm_reader_close(reader);
	assert_true(look(path, NULL));
	test_end(&file);
}

/* A module's path names a pipe: nobody who writes there is woken. */
static void modules_that_are_no_files(void **state)
{
	struct test_file file;
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char event[sizeof(struct inotify_event) + 256];
	uint32_t number, stack;

	(void)state;
	unlink(other);
	assert_int_equal(mkfifo(other, 0600), 0);
	assert_true(watch >= 0 && inotify_add_watch(watch, other, IN_OPEN) >= 0);
	test_begin(&file);
	number = test_native_frame(&file, other, 0x10);
	stack = TEST_ADD(
		&file, GM_TABLE_STACKS,
		(&(struct gm_stack_record){.first = TEST_ADD(&file, GM_TABLE_STACK_FRAMES, &number),
					   .frames = 1}));
	test_add_site(&file, stack, GM_LEVEL_DRIVER, GM_KIND_DEVICE, 0, 1, 0, 1000);
	test_sum(&file);
	assert_int_equal(test_write(&file, path), 0);
	assert_true(look(path, NULL));
	assert_int_equal(read(watch, event, sizeof(event)), -1);
	close(open(other, O_RDONLY | O_NONBLOCK | O_CLOEXEC)); /* it would be seen */
	assert_true(read(watch, event, sizeof(event)) > 0);
	close(watch);
	unlink(other);
	test_end(&file);
}

/* A table longer than a chunk, and a string that lies in two. */
static void several_chunks(void **state)
{
	struct gm_reader *reader;
	struct gm_site_record site;
	struct test_file file;
	char text[300], error[256];
	uint32_t name;

	(void)state;
	test_begin(&file);
	while (file.tables[GM_TABLE_STRINGS].count < GM_CHUNK_BYTES - 100)
		test_string(&file, "fill");
	memset(text, 'x', 200);
	strcpy(text + 200, "end");
	name = test_string(&file, text);
	for (unsigned i = 0; i < 400; i++)
		test_add_site(&file, GM_NONE, GM_LEVEL_DRIVER, GM_KIND_DEVICE, 0, 0, 1, 100 + i);
	assert_int_equal(test_write(&file, path), 0);
	reader = gm_reader_open(path, error, sizeof(error));
	assert_non_null(reader);
	assert_true(gm_reader_complete(reader));
	assert_string_equal(gm_reader_string(reader, name), text);
	assert_int_equal(gm_reader_count(reader, GM_TABLE_SITES), 400);
	for (unsigned i = 0; i < 400; i++) {
		assert_true(gm_reader_get(reader, GM_TABLE_SITES, i, &site, sizeof(site)));
		assert_int_equal(site.allocated_bytes, 100 + i);
	}
	gm_reader_close(reader);
	test_end(&file);
}

static bool has_sites(const struct gm_reader *reader, unsigned from, unsigned past)
{
	struct gm_site_record site;
	bool has = true;

	for (unsigned i = from; i < past; i++)
		has &= gm_reader_get(reader, GM_TABLE_SITES, i, &site, sizeof(site)) &&
		       site.allocated_bytes == 100 + i;
	return has;
}

/* A file that its process had locked is read chunk by chunk once the lock is gone. */
static void settled_file(void **state)
{
	struct gm_reader *reader;
	struct test_file file;
	unsigned in_chunk;
	char error[256];
	int fd;

	(void)state;
	test_begin(&file);
	file.header.features |= GM_FEATURE_LOCKED;
	for (unsigned i = 0; i < 400; i++)
		test_add_site(&file, GM_NONE, GM_LEVEL_DRIVER, GM_KIND_DEVICE, 0, 0, 1, 100 + i);
	assert_int_equal(test_write(&file, path), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	reader = gm_reader_open(path, error, sizeof(error));
	assert_non_null(reader);
	in_chunk = gm_reader_chunk_records(reader, GM_TABLE_SITES);
	assert_true(has_sites(reader, 0, 400));
	gm_reader_release_settled(reader);
	assert_true(has_sites(reader, 0, 400));
	gm_reader_release(reader, GM_TABLE_SITES, 0);
	assert_false(has_sites(reader, 0, 1));
	assert_true(has_sites(reader, in_chunk, 400));
	assert_false(gm_reader_failed(reader));
	gm_reader_close(reader);

	assert_int_equal(flock(fd, LOCK_UN), 0);
	reader = gm_reader_open(path, error, sizeof(error));
	assert_non_null(reader);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0); /* the reader keeps no lock */
	assert_true(has_sites(reader, 0, 400));
	gm_reader_release(reader, GM_TABLE_SITES, 0);
	assert_true(has_sites(reader, 0, 400));
	gm_reader_release_settled(reader);
	assert_true(has_sites(reader, 0, 400));
	gm_reader_release_settled(reader);
	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_false(gm_reader_failed(reader));
	assert_false(has_sites(reader, 0, 1));
	assert_true(gm_reader_failed(reader));
	assert_null(gm_reader_image(reader));
	gm_reader_close(reader);
	close(fd);

	/* A process that did not say that it ended may live where its lock is not seen. */
	file.header.end = GM_END_NONE;
	assert_int_equal(test_write(&file, path), 0);
	reader = gm_reader_open(path, error, sizeof(error));
	assert_non_null(reader);
	assert_int_equal(truncate(path, 8192), 0);
	assert_true(has_sites(reader, 0, 400));
	gm_reader_close(reader);
	test_end(&file);
}

static void set_windows(struct gm_site_record *site, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		site->windows[i] = (struct gm_window){10 * i + 1, 10 * i + 9, 10 * i + 5};
	site->window_current = count - 1;
}

static void site_windows(const struct test_file *file, struct gm_site_record *site)
{
	struct gm_reader *reader;
	char error[256];

	assert_int_equal(test_write(file, path), 0);
	reader = gm_reader_open(path, error, sizeof(error));
	assert_non_null(reader);
	assert_true(gm_reader_get(reader, GM_TABLE_SITES, 0, site, sizeof(*site)));
	gm_site_complete_windows(site, gm_reader_header(reader));
	gm_reader_close(reader);
}

static void check_window(const struct gm_window *window, uint64_t min, uint64_t max, uint64_t last)
{
	assert_int_equal(window->min_bytes, min);
	assert_int_equal(window->max_bytes, max);
	assert_int_equal(window->last_bytes, last);
}

/* The site was last touched in window 2 of an unmerged run that is now in window 5. */
static void windows_repeat_the_last(void **state)
{
	struct gm_site_record site;
	struct test_file file;

	(void)state;
	fill(&file);
	set_windows(test_site(&file, 0), 3);
	file.header.window_current = 5;
	site_windows(&file, &site);
	assert_int_equal(site.window_current, 5);
	check_window(&site.windows[2], 21, 29, 25);
	for (unsigned i = 3; i <= 5; i++)
		check_window(&site.windows[i], 25, 25, 25);
	test_end(&file);
}

/* The run merged once since: windows (0,1), (2,3), ... are one each, the rest repeats the last. */
static void windows_merge(void **state)
{
	struct gm_site_record site;
	struct test_file file;

	(void)state;
	fill(&file);
	set_windows(test_site(&file, 0), 3);
	file.header.window_current = 9;
	file.header.window_merges = 1;
	site_windows(&file, &site);
	assert_int_equal(site.window_current, 9);
	check_window(&site.windows[0], 1, 19, 15);
	check_window(&site.windows[1], 21, 29, 25);
	for (unsigned i = 2; i <= 9; i++)
		check_window(&site.windows[i], 25, 25, 25);

	/* A second merge. */
	file.header.window_merges = 2;
	file.header.window_current = 8;
	site_windows(&file, &site);
	check_window(&site.windows[0], 1, 29, 25);
	check_window(&site.windows[8], 25, 25, 25);
	test_end(&file);
}

/* The first mark made the time windows into window 0; two marks followed. */
static void windows_collapse(void **state)
{
	struct gm_site_record site;
	struct test_file file;

	(void)state;
	fill(&file);
	set_windows(test_site(&file, 0), 7);
	test_site(&file, 0)->window_merges = 3;
	file.header.window_marks = file.header.window_resets = 1;
	file.header.window_current = 2;
	site_windows(&file, &site);
	assert_int_equal(site.window_current, 2);
	check_window(&site.windows[0], 1, 69, 65);
	check_window(&site.windows[1], 65, 65, 65);
	check_window(&site.windows[2], 65, 65, 65);
	test_end(&file);
}

/* Killed inside an update: current figures come from the live records. */
static void torn_counters(void **state)
{
	struct gm_alloc_record *blocks;
	struct test_file file;
	struct gm_doc *doc;
	char error[256];

	(void)state;
	fill(&file);
	blocks = (struct gm_alloc_record *)file.tables[GM_TABLE_ALLOCS].bytes;
	blocks[1].state = GM_STATE_FREEING;
	blocks[2].state = GM_STATE_EMPTY;
	file.header.end = GM_END_NONE;
	file.header.sequence = 7;
	assert_int_equal(test_write(&file, path), 0);
	doc = gm_doc_open(path, &options, error, sizeof(error));
	assert_non_null(doc);
	assert_string_equal(doc->end, "killed");
	assert_int_equal(doc->sites[0].record.live_bytes, 2000);
	assert_int_equal(doc->sites[0].record.live_count, 2);
	assert_int_equal(doc->sites[0].record.allocations, 5);
	assert_int_equal(doc->sites[0].record.frees, 3);
	assert_int_equal(gm_doc_level(doc, 0, GM_LEVEL_DRIVER)->current_bytes, 2000);
	assert_int_equal(gm_doc_level(doc, 0, GM_LEVEL_TORCH)->current_bytes, 1024);
	assert_int_equal(doc->usage[0].current_bytes, 2000);
	assert_true(doc->exit_bytes == GM_NO_BYTES);
	gm_doc_close(doc);

	/* An even number: the counters are believed. */
	file.header.sequence = 8;
	assert_int_equal(test_write(&file, path), 0);
	doc = gm_doc_open(path, &options, error, sizeof(error));
	assert_non_null(doc);
	assert_int_equal(doc->sites[0].record.live_bytes, 3000);
	gm_doc_close(doc);
	test_end(&file);
}

/* Among PyTorch's blocks their level alone is kept up to date; a kill can come before the rest
 * followed. */
static void blocks_by_level(void **state)
{
	struct gm_timeline_record line = {.series = GM_SERIES_TORCH_ALLOCATED,
					  .width_ns = 1000,
					  .points = 2,
					  .min_bytes = {0, 500},
					  .max_bytes = {0, 500},
					  .last_bytes = {0, 500}};
	struct gm_level_record *level;
	struct gm_torch_record *torch;
	struct test_file file;
	struct gm_doc *doc;
	char error[256];

	(void)state;
	fill(&file);
	TEST_ADD(&file, GM_TABLE_TIMELINE, &line);
	torch = (struct gm_torch_record *)file.tables[GM_TABLE_TORCH].bytes;
	*torch = (struct gm_torch_record){.by_level = 1,
					  .beyond_bytes = 100,
					  .allocated_bytes = 500,
					  .allocated_peak_bytes = 600,
					  .allocations = 6,
					  .frees = 4};
	level = (struct gm_level_record *)file.tables[GM_TABLE_LEVELS].bytes;
	while (level->level != GM_LEVEL_TORCH)
		level++;
	level->allocations = 6;
	level->frees = 4;
	level->allocated_bytes = 3072;
	level->freed_bytes = 2048;
	file.header.end = GM_END_NONE;
	assert_int_equal(test_write(&file, path), 0);
	doc = gm_doc_open(path, &options, error, sizeof(error));
	assert_non_null(doc);
	assert_int_equal(doc->torches[0].allocated_bytes, 1124);
	assert_int_equal(doc->torches[0].allocated_peak_bytes, 1124);
	assert_int_equal(doc->torches[0].allocated_total_bytes, 3072);
	assert_int_equal(doc->torches[0].freed_total_bytes, 2048);
	assert_int_equal(doc->timeline[1].last_bytes[1], 1024);
	assert_int_equal(doc->timeline[1].max_bytes[1], 1024);
	assert_int_equal(doc->timeline[1].min_bytes[1], 500);
	gm_doc_close(doc);

	/* Else PyTorch's record is believed, whatever the level counts. */
	torch->by_level = 0;
	torch->allocations = 5;
	assert_int_equal(test_write(&file, path), 0);
	doc = gm_doc_open(path, &options, error, sizeof(error));
	assert_non_null(doc);
	assert_int_equal(doc->torches[0].allocated_bytes, 500);
	assert_int_equal(doc->torches[0].allocations, 5);
	assert_int_equal(doc->timeline[1].last_bytes[1], 500);
	gm_doc_close(doc);
	test_end(&file);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/a.gmt", directory);
	snprintf(other, sizeof(other), "%s/b.gmt", directory);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	unlink(other);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_file),
		cmocka_unit_test(odd_states),
		cmocka_unit_test(killed_before_the_time),
		cmocka_unit_test(pointer_file),
		cmocka_unit_test(foreign_files),
		cmocka_unit_test(cut_files),
		cmocka_unit_test(damaged_bytes),
		cmocka_unit_test(damaged_words),
		cmocka_unit_test(far_chunk),
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(modules_that_are_no_files),
		cmocka_unit_test(several_chunks),
		cmocka_unit_test(settled_file),
		cmocka_unit_test(windows_repeat_the_last),
		cmocka_unit_test(windows_merge),
		cmocka_unit_test(windows_collapse),
		cmocka_unit_test(torn_counters),
		cmocka_unit_test(blocks_by_level),
	};

	return cmocka_run_group_tests_name("reader", tests, set_up, tear_down);
}
