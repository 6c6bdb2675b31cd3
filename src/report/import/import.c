/*
 * From a pickle file to a reader (import.h): read, understood, replayed, laid out.
 */
#include "report/import/import.h"
#include "report/import/snapshot_replay.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE_BYTES (4ull << 30)

bool gm_import_detect(const char *path)
{
	unsigned char bytes[2];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is = fd >= 0 && pread(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) &&
		  gm_is_pickle(bytes, sizeof(bytes));

	if (fd >= 0)
		close(fd);
	return is;
}

/* The file's bytes, from malloc: a mapping could lose its file under us. NULL with errno. */
static unsigned char *read_file(const char *path, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	unsigned char *content = NULL;
	struct stat st;
	size_t done = 0;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > MAX_FILE_BYTES) {
		close(fd);
		errno = EFBIG;
		return NULL;
	}
	content = gm_realloc(NULL, (size_t)st.st_size);
	while (done < (size_t)st.st_size) {
		ssize_t got = read(fd, content + done, (size_t)st.st_size - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	close(fd);
	*bytes = done;
	return content;
}

/* The first and the last moment of all traces, in microseconds; 0 without any. */
static uint64_t time_range(const struct gm_snapshot *snapshot, uint64_t *duration_ns)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (unsigned d = 0; d < snapshot->traces_count; d++)
		for (unsigned i = 0; i < snapshot->traces[d].count; i++) {
			uint64_t us = snapshot->traces[d].events[i].time_us;

			first = us < first ? us : first;
			last = us > last ? us : last;
		}
	*duration_ns = last > first && last - first < UINT64_MAX / 4000 ? (last - first) * 1000 : 0;
	return last ? first : 0;
}

/* Devices have a record each, by number. */
static void add_devices(struct gm_image *image, const bool *used, unsigned count)
{
	for (unsigned d = 0; d < count; d++) {
		struct gm_device_record *device =
			gm_image_add(image, GM_TABLE_DEVICES, sizeof(*device), NULL);

		device->used = used[d];
		device->name_string = GM_NONE;
		device->capacity_bytes = device->free_before_bytes = GM_NO_BYTES;
		device->context_bytes = GM_NO_BYTES;
		device->context_stack = GM_NONE;
	}
}

static struct gm_imported figures_of(const struct gm_snapshot *snapshot, int device)
{
	struct gm_imported figures = {.device = device};

	for (unsigned i = 0; i < snapshot->segments_count; i++) {
		const struct gm_snapshot_segment *segment = &snapshot->segments[i];

		for (unsigned b = 0; segment->device == device && b < segment->blocks_count; b++) {
			const struct gm_snapshot_block *block = &segment->blocks[b];

			if (block->state == GM_BLOCK_INACTIVE)
				continue;
			figures.active_bytes += block->bytes;
			if (block->requested_bytes == GM_NO_BYTES)
				figures.requested_bytes = GM_NO_BYTES;
			else if (figures.requested_bytes != GM_NO_BYTES)
				figures.requested_bytes += block->requested_bytes;
		}
	}
	return figures;
}

/* "PYTORCH_CUDA_ALLOC_CONF=..." where the snapshot has the setting, for advice. */
static void add_settings(struct gm_image *image, const struct gm_snapshot *snapshot)
{
	static const char name[] = "PYTORCH_CUDA_ALLOC_CONF";
	const struct gm_value *conf = gm_value_get(snapshot->settings, name);
	char text[1024];

	if (!conf || conf->type != GM_VALUE_TEXT || !conf->count || conf->count > 900)
		return;
	snprintf(text, sizeof(text), "%s=%.*s\n", name, (int)conf->count, conf->text);
	image->header.environment_string = gm_image_string(image, text, strlen(text));
}

/* Events of several devices, in order of time. */
struct timed {
	uint64_t time_ns;
	uint32_t number;
};

static int compare_timed(const void *a, const void *b)
{
	const struct timed *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void sort_events(struct gm_image *image)
{
	uint32_t count = image->tables[GM_TABLE_EVENTS].count;
	struct gm_event_record *events =
		(struct gm_event_record *)image->tables[GM_TABLE_EVENTS].bytes;
	struct gm_event_record *sorted = gm_realloc(NULL, count * sizeof(*sorted));
	struct timed *order = gm_realloc(NULL, count * sizeof(*order));

	for (uint32_t i = 0; i < count; i++)
		order[i] = (struct timed){events[i].time_ns, i};
	if (count)
		qsort(order, count, sizeof(*order), compare_timed);
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = events[order[i].number];
	if (count)
		memcpy(events, sorted, count * sizeof(*events));
	free(sorted);
	free(order);
	image->header.event_head = image->header.event_capacity = count;
	image->header.features |= GM_FEATURE_TORCH | GM_FEATURE_RING | GM_FEATURE_IMPORTED;
}

/* Warns of the limits of a device's figures that a reader of the report must know. */
static void warn(struct gm_reader *reader, int device, enum gm_replayed replayed)
{
	if (replayed == GM_REPLAY_PARTIAL)
		gm_reader_warn(reader,
			       "device %d: the snapshot's history begins in the middle of the run; "
			       "peaks and totals of sites are of that part",
			       device);
	else if (replayed == GM_REPLAY_NONE)
		gm_reader_warn(reader,
			       "device %d: the snapshot has no history that leads to its state; "
			       "peaks, totals and growth are not known",
			       device);
}

static bool is_free(enum gm_snapshot_action action)
{
	return action == GM_ACTION_FREE_REQUESTED || action == GM_ACTION_SEGMENT_FREE ||
	       action == GM_ACTION_SEGMENT_UNMAP;
}

static bool is_alloc(enum gm_snapshot_action action)
{
	return action == GM_ACTION_ALLOC || action == GM_ACTION_SEGMENT_ALLOC ||
	       action == GM_ACTION_SEGMENT_MAP;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* For each free of all devices that an allocation followed when it did, ascending; the caller's. */
static uint64_t *work_times(const struct gm_snapshot *snapshot, uint64_t base_us, size_t *count)
{
	uint64_t *times;
	size_t all = 0;

	*count = 0;
	for (unsigned d = 0; d < snapshot->traces_count; d++)
		all += snapshot->traces[d].count;
	times = gm_realloc(NULL, (all + 1) * sizeof(*times));
	for (unsigned d = 0; d < snapshot->traces_count; d++) {
		const struct gm_snapshot_trace *trace = &snapshot->traces[d];
		unsigned frees = 0;

		for (unsigned i = 0; i < trace->count; i++) {
			const struct gm_snapshot_event *event = &trace->events[i];

			frees += is_free(event->action);
			for (; frees && is_alloc(event->action); frees--)
				times[(*count)++] = event->time_us > base_us
							    ? (event->time_us - base_us) * 1000
							    : 0;
		}
	}
	if (*count)
		qsort(times, *count, sizeof(*times), compare_numbers);
	return times;
}

static struct gm_reader *build(struct gm_snapshot *snapshot, const char *path,
			       struct gm_imported **devices, unsigned *count, char *error,
			       size_t error_bytes)
{
	bool used[GM_SNAPSHOT_DEVICES] = {false};
	enum gm_replayed replayed[GM_SNAPSHOT_DEVICES];
	struct gm_image *image = snapshot->image;
	struct gm_reader *reader;
	struct gm_import_books books;
	unsigned all = 0;
	uint64_t duration_ns, base_us = time_range(snapshot, &duration_ns);
	size_t size, frees;
	uint64_t *work_ns = work_times(snapshot, base_us, &frees);
	unsigned char *bytes;

	for (unsigned i = 0; i < snapshot->segments_count; i++)
		used[snapshot->segments[i].device] = true;
	for (unsigned d = 0; d < snapshot->traces_count; d++)
		used[d] = used[d] || snapshot->traces[d].count;
	for (unsigned d = 0; d < GM_SNAPSHOT_DEVICES; d++)
		all = used[d] ? d + 1 : all;
	gm_import_books_begin(&books, image, duration_ns, work_ns, frees);
	free(work_ns);
	image->header.started_realtime_ns = base_us < UINT64_MAX / 1000 ? base_us * 1000 : 0;
	for (unsigned d = 0; d < all; d++) {
		if (!used[d])
			continue;
		replayed[d] = gm_import_replay(snapshot, &books, (int)d, base_us);
		*(struct gm_imported *)gm_zone_push(snapshot->zone, devices, count,
						    sizeof(**devices)) =
			figures_of(snapshot, (int)d);
	}
	image->header.serial = books.serial;
	gm_import_books_end(&books);
	add_devices(image, used, all);
	add_settings(image, snapshot);
	sort_events(image);
	image->header.backend_string = gm_image_string(image, "PyTorch's snapshot", 18);
	bytes = gm_image_bytes(image, &size);
	reader = gm_reader_from_image(path, bytes, size, error, error_bytes);
	for (unsigned d = 0; reader && d < all; d++)
		if (used[d])
			warn(reader, (int)d, replayed[d]);
	if (reader && snapshot->odd)
		gm_reader_warn(reader, "%u entries of the snapshot make no sense and were left out",
			       snapshot->odd);
	return reader;
}

struct gm_reader *gm_import_bytes(struct gm_zone *zone, const char *path, const void *bytes,
				  size_t size, struct gm_imported **devices, unsigned *count,
				  char *error, size_t error_bytes)
{
	struct gm_imported *found = NULL;
	struct gm_zone values_zone = {0};
	struct gm_reader *reader = NULL;
	const struct gm_value *values;
	struct gm_snapshot snapshot;
	struct gm_image image;
	char fault[256] = "";

	*devices = NULL;
	*count = 0;
	gm_image_begin(&image);
	values = gm_pickle_read(&values_zone, bytes, size, fault, sizeof(fault));
	if (values) {
		if (gm_snapshot_read(&snapshot, &values_zone, &image, values, size, fault,
				     sizeof(fault)))
			reader = build(&snapshot, path, &found, count, error, error_bytes);
		gm_snapshot_end(&snapshot);
	}
	if (*count) {
		*devices = gm_zone_alloc(zone, *count, sizeof(**devices));
		memcpy(*devices, found, *count * sizeof(**devices));
	}
	if (*fault)
		snprintf(error, error_bytes, "%s %s", path, fault);
	gm_image_end(&image);
	gm_zone_free(&values_zone);
	return reader;
}

struct gm_reader *gm_import_open(struct gm_zone *zone, const char *path,
				 struct gm_imported **devices, unsigned *count, char *error,
				 size_t error_bytes)
{
	struct gm_reader *reader;
	size_t size = 0;
	unsigned char *bytes = read_file(path, &size);

	if (!bytes) {
		snprintf(error, error_bytes, "%s: cannot be read: %s", path, strerror(errno));
		return NULL;
	}
	reader = gm_import_bytes(zone, path, bytes, size, devices, count, error, error_bytes);
	free(bytes);
	return reader;
}

bool gm_import_visit(const char *path,
		     void (*use)(const struct gm_snapshot *snapshot, uint64_t first_us, void *data),
		     void *data)
{
	struct gm_zone zone = {0};
	struct gm_snapshot snapshot;
	struct gm_image image;
	const struct gm_value *values;
	size_t size = 0;
	uint64_t duration_ns;
	char fault[256];
	unsigned char *bytes = read_file(path, &size);
	bool read;

	if (!bytes)
		return false;
	gm_image_begin(&image);
	values = gm_pickle_read(&zone, bytes, size, fault, sizeof(fault));
	read = values && gm_snapshot_read(&snapshot, &zone, &image, values, size, fault,
					  sizeof(fault));
	if (read)
		use(&snapshot, time_range(&snapshot, &duration_ns), data);
	if (values)
		gm_snapshot_end(&snapshot);
	gm_image_end(&image);
	gm_zone_free(&zone);
	free(bytes);
	return read;
}
