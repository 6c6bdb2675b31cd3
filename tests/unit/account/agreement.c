/*
 * The tracker's accounting, the replay of the complete history and the recount of a killed
 * process's file give the same figures, those of a model that knows nothing of src/account: for
 * random runs (random_run.c). Arguments: the program random_run, a directory, how many steps, and
 * how many in a few runs whose history has checkpoints.
 */
#include "report/doc/doc.h"
#include "report/doc/options.h"
#include "report/journal/journal_file.h"
#include "report/open/open.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEEDS	   40u /* runs without pools, and as many with them */
#define LONG_SEEDS 2u  /* the first of them are long */

static char path[4096], model_path[4096];
static unsigned differences;

#define SAME(what, a, b)                                                                           \
	do {                                                                                       \
		uint64_t a_ = (a), b_ = (b);                                                       \
		if (a_ != b_) {                                                                    \
			fprintf(stderr, "%s: %s: %llu, expected %llu\n", what, #a,                 \
				(unsigned long long)a_, (unsigned long long)b_);                   \
			differences++;                                                             \
		}                                                                                  \
	} while (0)

static struct gm_doc *open_doc(uint64_t at_ns)
{
	const struct gm_options options = {.device = -1,
					   .kind = -1,
					   .level = -1,
					   .warmup = 2,
					   .top = 20,
					   .at = at_ns != GM_NO_BYTES,
					   .at_ns = at_ns};
	char error[512];
	struct gm_doc *doc = gm_doc_open(path, &options, error, sizeof(error));

	if (!doc) {
		fprintf(stderr, "%s\n", error);
		exit(2);
	}
	return doc;
}

/* ---- against the model ---- */

static const struct gm_usage_record *usage_of(const struct gm_doc *doc, int device, unsigned kind)
{
	for (unsigned i = 0; i < doc->usage_count; i++)
		if (doc->usage[i].device == device && doc->usage[i].kind == kind)
			return &doc->usage[i];
	return NULL;
}

static void check_usage(const struct gm_doc *doc, int device, unsigned kind,
			const unsigned long long n[7])
{
	const struct gm_usage_record *usage = usage_of(doc, device, kind);
	char what[64];

	snprintf(what, sizeof(what), "model, usage of device %d, kind %u", device, kind);
	SAME(what, usage != NULL, true);
	if (!usage)
		return;
	SAME(what, usage->current_bytes, n[0]);
	SAME(what, usage->current_count, n[1]);
	SAME(what, usage->allocated_bytes, n[2]);
	SAME(what, usage->allocations, n[3]);
	SAME(what, usage->frees, n[4]);
	SAME(what, usage->peak_bytes, n[5]);
	SAME(what, usage->failures, n[6]);
}

static void check_level(const struct gm_doc *doc, int device, unsigned number,
			const unsigned long long n[7])
{
	const struct gm_level_record *level = gm_doc_level(doc, device, number);
	char what[64];

	snprintf(what, sizeof(what), "model, level %u of device %d", number, device);
	SAME(what, level != NULL, true);
	if (!level)
		return;
	SAME(what, level->current_bytes, n[0]);
	SAME(what, level->current_count, n[1]);
	SAME(what, level->allocated_bytes, n[2]);
	SAME(what, level->allocations, n[3]);
	SAME(what, level->frees, n[4]);
	SAME(what, level->peak_bytes, n[5]);
	SAME(what, level->failures, n[6]);
}

static void check_device(const struct gm_doc *doc, int device, const unsigned long long n[7])
{
	char what[64];

	snprintf(what, sizeof(what), "model, device %d", device);
	for (unsigned i = 0; i < doc->torches_count; i++)
		if (doc->torches[i].device == device) {
			SAME(what, doc->torches[i].reserved_bytes, n[0]);
			SAME(what, doc->torches[i].reserved_peak_bytes, n[1]);
			SAME(what, doc->torches[i].allocated_bytes, n[2]);
			SAME(what, doc->torches[i].mismatches, 0);
		}
	for (unsigned i = 0; i < doc->vmm_count; i++)
		if (doc->vmm[i].device == device) {
			SAME(what, doc->vmm[i].created_bytes, n[3]);
			SAME(what, doc->vmm[i].mapped_bytes, n[4]);
			SAME(what, doc->vmm[i].reserved_va_bytes, n[5]);
			SAME(what, doc->vmm[i].handles, n[6]);
		}
}

static void check_model(const struct gm_doc *doc)
{
	FILE *in = fopen(model_path, "re");
	unsigned long long n[7];
	unsigned lines = 0, number = 0;
	char what[16];
	int device;

	while (in && fscanf(in, "%15s %d", what, &device) == 2 &&
	       (strcmp(what, "device") == 0 || fscanf(in, "%u", &number) == 1) &&
	       fscanf(in, "%llu %llu %llu %llu %llu %llu %llu", n, n + 1, n + 2, n + 3, n + 4,
		      n + 5, n + 6) == 7) {
		if (strcmp(what, "usage") == 0)
			check_usage(doc, device, number, n);
		else if (strcmp(what, "level") == 0)
			check_level(doc, device, number, n);
		else
			check_device(doc, device, n);
		lines++;
	}
	SAME("model", lines > 20, true);
	if (in)
		fclose(in);
}

/* ---- against the tracker ---- */

static void same_site(const char *what, const struct gm_site *site, const struct gm_site *expected)
{
	SAME(what, site->record.live_bytes, expected->record.live_bytes);
	SAME(what, site->record.live_count, expected->record.live_count);
	SAME(what, site->record.allocated_bytes, expected->record.allocated_bytes);
	SAME(what, site->record.allocations, expected->record.allocations);
	SAME(what, site->record.freed_bytes, expected->record.freed_bytes);
	SAME(what, site->record.frees, expected->record.frees);
	SAME(what, site->record.failures, expected->record.failures);
	SAME(what, site->record.failed_frees, expected->record.failed_frees);
	SAME(what, site->record.peak_bytes, expected->record.peak_bytes);
	SAME(what, site->record.bytes_at_peak, expected->record.bytes_at_peak);
	SAME(what, site->record.level_max_bytes, expected->record.level_max_bytes);
	SAME(what, site->record.min_alloc_bytes, expected->record.min_alloc_bytes);
	SAME(what, site->record.max_alloc_bytes, expected->record.max_alloc_bytes);
	SAME(what, site->record.first_serial, expected->record.first_serial);
	SAME(what, site->record.first_ns, expected->record.first_ns);
	SAME(what, site->record.last_ns, expected->record.last_ns);
	SAME(what, site->record.stray_bytes, expected->record.stray_bytes);
	SAME(what, site->record.stray_count, expected->record.stray_count);
	SAME(what, site->record.window_current, expected->record.window_current);
	for (unsigned i = 0; i <= expected->record.window_current; i++) {
		SAME(what, gm_site_window(site, i).min_bytes,
		     gm_site_window(expected, i).min_bytes);
		SAME(what, gm_site_window(site, i).max_bytes,
		     gm_site_window(expected, i).max_bytes);
		SAME(what, gm_site_window(site, i).last_bytes,
		     gm_site_window(expected, i).last_bytes);
	}
}

static void same_levels(const char *what, const struct gm_doc *doc, const struct gm_doc *expected)
{
	for (unsigned i = 0; i < expected->levels_count; i++) {
		const struct gm_level_record *old = &expected->levels[i];
		const struct gm_level_record *level = gm_doc_level(doc, old->device, old->level);

		SAME(what, level != NULL, true);
		if (!level)
			continue;
		SAME(what, level->current_bytes, old->current_bytes);
		SAME(what, level->current_count, old->current_count);
		SAME(what, level->peak_bytes, old->peak_bytes);
		SAME(what, level->peak_at_ns, old->peak_at_ns);
		SAME(what, level->allocated_bytes, old->allocated_bytes);
		SAME(what, level->freed_bytes, old->freed_bytes);
		SAME(what, level->allocations, old->allocations);
		SAME(what, level->frees, old->frees);
		SAME(what, level->failures, old->failures);
		if (level->level == GM_LEVEL_DRIVER && level->physical_bytes != GM_NO_BYTES)
			SAME(what, level->physical_bytes, old->physical_bytes);
	}
}

static void same_usage(const char *what, const struct gm_doc *doc, const struct gm_doc *expected)
{
	for (unsigned i = 0; i < expected->usage_count; i++) {
		const struct gm_usage_record *old = &expected->usage[i];
		const struct gm_usage_record *usage = usage_of(doc, old->device, old->kind);

		SAME(what, usage != NULL, true);
		if (!usage)
			continue;
		SAME(what, usage->current_bytes, old->current_bytes);
		SAME(what, usage->current_count, old->current_count);
		SAME(what, usage->peak_bytes, old->peak_bytes);
		SAME(what, usage->allocated_bytes, old->allocated_bytes);
		SAME(what, usage->freed_bytes, old->freed_bytes);
		SAME(what, usage->allocations, old->allocations);
		SAME(what, usage->frees, old->frees);
		SAME(what, usage->failures, old->failures);
	}
}

static void same_devices(const char *what, const struct gm_doc *doc, const struct gm_doc *expected)
{
	SAME(what, doc->torches_count, expected->torches_count);
	SAME(what, doc->vmm_count, expected->vmm_count);
	for (unsigned i = 0; i < expected->torches_count; i++) {
		const struct gm_torch_record *torch = &doc->torches[i],
					     *old = &expected->torches[i];

		SAME(what, torch->allocated_bytes, old->allocated_bytes);
		SAME(what, torch->allocated_peak_bytes, old->allocated_peak_bytes);
		SAME(what, torch->allocated_total_bytes, old->allocated_total_bytes);
		SAME(what, torch->freed_total_bytes, old->freed_total_bytes);
		SAME(what, torch->allocations, old->allocations);
		SAME(what, torch->frees, old->frees);
		SAME(what, torch->reserved_bytes, old->reserved_bytes);
		SAME(what, torch->reserved_peak_bytes, old->reserved_peak_bytes);
		SAME(what, torch->reserved_total_bytes, old->reserved_total_bytes);
		SAME(what, torch->released_total_bytes, old->released_total_bytes);
	}
	for (unsigned i = 0; i < expected->vmm_count; i++) {
		const struct gm_vmm_record *vmm = &doc->vmm[i], *old = &expected->vmm[i];

		SAME(what, vmm->created_bytes, old->created_bytes);
		SAME(what, vmm->mapped_bytes, old->mapped_bytes);
		SAME(what, vmm->reserved_va_bytes, old->reserved_va_bytes);
		SAME(what, vmm->handles, old->handles);
		SAME(what, vmm->created_peak_bytes, old->created_peak_bytes);
		SAME(what, vmm->mapped_peak_bytes, old->mapped_peak_bytes);
	}
}

static void same(const char *what, struct gm_doc *doc, const struct gm_doc *expected)
{
	char site[64];

	same_levels(what, doc, expected);
	same_usage(what, doc, expected);
	same_devices(what, doc, expected);
	SAME(what, doc->blocks_count, expected->blocks_count);
	SAME(what, doc->sites_count, expected->sites_count);
	for (unsigned i = 0; i < expected->sites_count; i++) {
		snprintf(site, sizeof(site), "%s, site %u (level %u, kind %u)", what, i,
			 expected->sites[i].record.level, expected->sites[i].record.kind);
		same_site(site, &doc->sites[i], &expected->sites[i]);
	}
	gm_doc_close(doc);
}

/* ---- a file whose counters of what is live are wrong, as a kill inside an update leaves them ----
 */

static void scramble(enum gm_table_id table, void *record)
{
	struct gm_site_record *site = record;
	struct gm_level_record *level = record;
	struct gm_usage_record *usage = record;
	struct gm_torch_record *torch = record;
	struct gm_vmm_record *vmm = record;

	if (table == GM_TABLE_SITES) {
		site->live_bytes ^= 4096;
		site->live_count += 3;
		site->stray_bytes += 5;
		site->stray_count++;
	} else if (table == GM_TABLE_LEVELS) {
		level->current_bytes += 512;
		level->current_count += 7;
		if (level->level == GM_LEVEL_DRIVER)
			level->physical_bytes += 4096;
	} else if (table == GM_TABLE_USAGE) {
		usage->current_bytes -= 512;
		usage->current_count++;
	} else if (table == GM_TABLE_TORCH) {
		torch->reserved_bytes += 4096;
	} else if (table == GM_TABLE_VMM) {
		vmm->created_bytes++;
		vmm->mapped_bytes++;
		vmm->reserved_va_bytes = 0;
		vmm->handles += 2;
	}
}

static void scramble_file(void)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	const struct gm_directory_entry *entries;
	struct gm_header *header;
	char *file, *data;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		exit(2);
	file = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		exit(2);
	close(fd);
	header = (struct gm_header *)file;
	header->sequence |= 1;
	entries = (const struct gm_directory_entry *)(file + header->directory_offset);
	data = file + (header->data_offset ? header->data_offset
					   : (header->directory_offset + 4095 +
					      header->directory_capacity * sizeof(*entries)) &
						     ~4095ull);
	for (uint32_t i = 0; i < header->chunk_count; i++) {
		const struct gm_table_info *table = &header->tables[entries[i].table];
		uint32_t in_chunk = header->chunk_bytes / table->record_bytes;

		for (uint32_t n = 0;
		     n < in_chunk && entries[i].ordinal * in_chunk + n < table->count; n++)
			scramble(entries[i].table, data + (size_t)i * header->chunk_bytes +
							   (size_t)n * table->record_bytes);
	}
	munmap(file, (size_t)st.st_size);
}

static void run(const char *program, const char *seed, const char *steps, const char *with_pools)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		execl(program, program, path, seed, steps, with_pools, model_path, NULL);
		_exit(2);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status) ||
	    WEXITSTATUS(status)) {
		fprintf(stderr, "%s did not end well\n", program);
		exit(2);
	}
}

static void remove_files(void)
{
	char events[4200];

	snprintf(events, sizeof(events), "%s.events", path);
	unlink(path);
	unlink(events);
	unlink(model_path);
}

int main(int argc, char **argv)
{
	char seed[16];

	if (argc < 5)
		return 2;
	snprintf(path, sizeof(path), "%s/agreement-%d.gmt", argv[2], getpid());
	snprintf(model_path, sizeof(model_path), "%s/agreement-%d.model", argv[2], getpid());
	for (unsigned i = 0; i < 2 * SEEDS; i++) {
		bool with_checkpoints = i < 2 * LONG_SEEDS;
		struct gm_doc *tracker;

		snprintf(seed, sizeof(seed), "%u", i / 2 + 1);
		run(argv[1], seed, argv[with_checkpoints ? 4 : 3], i % 2 ? "1" : "0");
		tracker = open_doc(GM_NO_BYTES);
		SAME("history", gm_journal_header(tracker->journal)->checkpoints > 1,
		     with_checkpoints);
		check_model(tracker);
		same("history", open_doc(tracker->header->last_event_ns), tracker);
		scramble_file();
		same("recount", open_doc(GM_NO_BYTES), tracker);
		gm_doc_close(tracker);
		remove_files();
	}
	return differences ? 1 : 0;
}
