/*
 * profile.proto for pprof, encoded by hand: the few wire forms that it needs, compressed by zlib.
 * The numbers of fields are those of github.com/google/pprof/proto/profile.proto.
 */
#include "report/doc/enum_names.h"
#include "report/doc/options.h"
#include "report/render/export/internal.h"
#include "report/support/memory.h"
#include "report/support/numbering.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Messages and their fields. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME_NS = 9,
	PROFILE_DURATION_NS,
	PROFILE_DEFAULT = 14
};
enum { TYPE_NAME = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER, LABEL_UNIT };
enum {
	MAPPING_ID = 1,
	MAPPING_FILE = 5,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES,
	MAPPING_HAS_LINES
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_NUMBER };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

struct buffer {
	unsigned char *bytes;
	size_t count, room;
};

struct profile {
	struct buffer out;
	struct gm_numbering strings, mappings, locations, functions;
};

static void put(struct buffer *buffer, const void *bytes, size_t count)
{
	if (buffer->room - buffer->count < count) {
		buffer->room = 2 * buffer->room + count + 64;
		buffer->bytes = gm_realloc(buffer->bytes, buffer->room);
	}
	if (count)
		memcpy(buffer->bytes + buffer->count, bytes, count);
	buffer->count += count;
}

static void put_varint(struct buffer *buffer, uint64_t value)
{
	unsigned char bytes[10];
	size_t count = 0;

	do {
		bytes[count] = (value & 0x7f) | (value > 0x7f ? 0x80 : 0);
		value >>= 7;
		count++;
	} while (value);
	put(buffer, bytes, count);
}

/* A number; 0 is the default and is left out, as proto3 does. */
static void put_number(struct buffer *buffer, unsigned field, uint64_t value)
{
	if (!value)
		return;
	put_varint(buffer, field << 3);
	put_varint(buffer, value);
}

static void put_bytes(struct buffer *buffer, unsigned field, const void *bytes, size_t count)
{
	put_varint(buffer, field << 3 | 2);
	put_varint(buffer, count);
	put(buffer, bytes, count);
}

/* Adds a message as a field and empties it for the next. */
static void put_message(struct buffer *buffer, unsigned field, struct buffer *message)
{
	put_bytes(buffer, field, message->bytes, message->count);
	message->count = 0;
}

/* The number of a text in the string table, which is written as texts appear. */
static unsigned text(struct profile *profile, const char *value)
{
	bool added;
	unsigned number = gm_number_of(&profile->strings, value, strlen(value), &added);

	if (added)
		put_bytes(&profile->out, PROFILE_STRING, value, strlen(value));
	return number;
}

static unsigned mapping(struct profile *profile, const char *module)
{
	struct buffer message = {0};
	bool added;
	unsigned id = gm_number_of(&profile->mappings, module, strlen(module), &added) + 1;

	if (added) {
		put_number(&message, MAPPING_ID, id);
		put_number(&message, MAPPING_FILE, text(profile, module));
		for (unsigned i = MAPPING_HAS_FUNCTIONS; i <= MAPPING_HAS_LINES; i++)
			put_number(&message, i, 1);
		put_message(&profile->out, PROFILE_MAPPING, &message);
	}
	free(message.bytes);
	return id;
}

static unsigned function(struct profile *profile, const char *name, const char *file)
{
	unsigned key[2] = {text(profile, name), text(profile, file)};
	struct buffer message = {0};
	bool added;
	unsigned id = gm_number_of(&profile->functions, key, sizeof(key), &added) + 1;

	if (added) {
		put_number(&message, FUNCTION_ID, id);
		put_number(&message, FUNCTION_NAME, key[0]);
		put_number(&message, FUNCTION_SYSTEM_NAME, key[0]);
		put_number(&message, FUNCTION_FILE, key[1]);
		put_message(&profile->out, PROFILE_FUNCTION, &message);
	}
	free(message.bytes);
	return id;
}

static unsigned location(struct profile *profile, const struct gm_frame *frame)
{
	char unnamed[512];
	struct buffer message = {0}, line = {0};
	uint64_t key[4] = {function(profile, gm_export_frame_name(frame, unnamed, sizeof(unnamed)),
				    frame->file ? frame->file : ""),
			   frame->line, frame->module ? mapping(profile, frame->module) : 0,
			   frame->offset};
	bool added;
	unsigned id = gm_number_of(&profile->locations, key, sizeof(key), &added) + 1;

	if (added) {
		put_number(&line, LINE_FUNCTION, key[0]);
		put_number(&line, LINE_NUMBER, key[1]);
		put_number(&message, LOCATION_ID, id);
		put_number(&message, LOCATION_MAPPING, key[2]);
		put_number(&message, LOCATION_ADDRESS, key[3]);
		put_message(&message, LOCATION_LINE, &line);
		put_message(&profile->out, PROFILE_LOCATION, &message);
	}
	free(line.bytes);
	free(message.bytes);
	return id;
}

static void label(struct profile *profile, struct buffer *sample, const char *key,
		  const char *value)
{
	struct buffer message = {0};

	put_number(&message, LABEL_KEY, text(profile, key));
	put_number(&message, LABEL_TEXT, text(profile, value));
	put_message(sample, SAMPLE_LABEL, &message);
	free(message.bytes);
}

static void label_bytes(struct profile *profile, struct buffer *sample, const char *key,
			uint64_t bytes)
{
	struct buffer message = {0};

	if (bytes != GM_NO_BYTES) {
		put_number(&message, LABEL_KEY, text(profile, key));
		put_number(&message, LABEL_NUMBER, bytes);
		put_number(&message, LABEL_UNIT, text(profile, "bytes"));
		put_message(sample, SAMPLE_LABEL, &message);
	}
	free(message.bytes);
}

/* Sample types in this order; Go's heap profiles have the same names for the same things. */
static const char *const types[][2] = {{"inuse_objects", "count"},
				       {"inuse_space", "bytes"},
				       {"peak_space", "bytes"},
				       {"alloc_objects", "count"},
				       {"alloc_space", "bytes"}};

/*
 * Labels a sample with its process: several, also of different hosts, need more than their ranks.
 */
static void label_process(struct profile *profile, struct buffer *sample, const struct gm_doc *doc)
{
	char number[16];

	if (doc->header->rank >= 0) {
		snprintf(number, sizeof(number), "%d", doc->header->rank);
		label(profile, sample, "rank", number);
	}
	snprintf(number, sizeof(number), "%u", doc->header->pid);
	label(profile, sample, "pid", number);
	if (doc->host)
		label(profile, sample, "host", doc->host);
}

static void sample(struct profile *profile, const struct gm_doc *doc, const struct gm_site *site)
{
	const struct gm_site_errors errors = gm_site_errors(doc, site);
	const struct gm_site_figures *record = &site->record;
	const uint64_t values[] = {record->live_count, record->live_bytes, record->bytes_at_peak,
				   record->allocations, record->allocated_bytes};
	struct buffer message = {0}, packed = {0};
	struct gm_frame unknown = {.function = site->function ? site->function : "unknown"};
	char device[16];

	for (unsigned i = 0; site->stack && i < site->stack->count; i++)
		put_varint(&packed, location(profile, gm_stack_frame(site->stack, i)));
	if (!packed.count)
		put_varint(&packed, location(profile, &unknown));
	put_message(&message, SAMPLE_LOCATION, &packed);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		put_varint(&packed, values[i]);
	put_message(&message, SAMPLE_VALUE, &packed);
	snprintf(device, sizeof(device), "%d", record->device);
	label(profile, &message, "kind", gm_kind_name(record->kind));
	label(profile, &message, "device", record->device < 0 ? "host" : device);
	label(profile, &message, "verdict", gm_verdict_name(site->verdict));
	if (site->library)
		label(profile, &message, "library", site->library);
	if (site->category)
		label(profile, &message, "category", site->category);
	label(profile, &message, "site", site->id);
	label_bytes(profile, &message, "inuse_space_error", errors.live_bytes);
	label_bytes(profile, &message, "peak_space_error", errors.at_peak_bytes);
	label_bytes(profile, &message, "alloc_space_error", errors.allocated_bytes);
	label_process(profile, &message, doc);
	put_message(&profile->out, PROFILE_SAMPLE, &message);
	free(packed.bytes);
	free(message.bytes);
}

static int write_gzip(const struct buffer *buffer, FILE *file)
{
	z_stream stream = {0};
	unsigned char *packed;
	size_t room;
	int rc;

	/* 15 + 16: the largest window, and gzip's header. */
	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	room = deflateBound(&stream, buffer->count);
	packed = gm_realloc(NULL, room);
	stream.next_in = buffer->bytes;
	stream.avail_in = (uInt)buffer->count;
	stream.next_out = packed;
	stream.avail_out = (uInt)room;
	rc = deflate(&stream, Z_FINISH) == Z_STREAM_END ? 0 : -EIO;
	if (rc == 0 && fwrite(packed, 1, stream.total_out, file) != stream.total_out)
		rc = -EIO;
	deflateEnd(&stream);
	free(packed);
	return rc ? rc : gm_export_end(file);
}

static void begin(struct profile *profile)
{
	struct buffer message = {0};

	text(profile, ""); /* number 0 must be the empty text */
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		put_number(&message, TYPE_NAME, text(profile, types[i][0]));
		put_number(&message, TYPE_UNIT, text(profile, types[i][1]));
		put_message(&profile->out, PROFILE_SAMPLE_TYPE, &message);
	}
	free(message.bytes);
}

static void samples(struct profile *profile, const struct gm_doc *doc,
		    const struct gm_options *options)
{
	for (unsigned i = 0; i < doc->sites_count; i++)
		if (!doc->sites[i].hidden && doc->sites[i].record.allocations &&
		    doc->sites[i].record.level == gm_export_level(options))
			sample(profile, doc, &doc->sites[i]);
}

/* Writes and frees the profile. */
static int end(struct profile *profile, uint64_t start_ns, uint64_t duration_ns, FILE *file)
{
	int rc;

	put_number(&profile->out, PROFILE_TIME_NS, start_ns);
	put_number(&profile->out, PROFILE_DURATION_NS, duration_ns);
	put_number(&profile->out, PROFILE_DEFAULT, text(profile, types[1][0]));
	rc = profile->out.count > UINT32_MAX / 2 ? -EFBIG : write_gzip(&profile->out, file);
	gm_numbering_free(&profile->strings);
	gm_numbering_free(&profile->mappings);
	gm_numbering_free(&profile->locations);
	gm_numbering_free(&profile->functions);
	free(profile->out.bytes);
	return rc;
}

int gm_export_pprof(struct gm_doc *doc, const struct gm_options *options, FILE *file)
{
	struct profile profile = {0};

	begin(&profile);
	samples(&profile, doc, options);
	return end(&profile, doc->header->started_realtime_ns, doc->header->last_event_ns, file);
}

/* Writes one profile of a job: facts that the processes have in common are written once. */
int gm_export_pprof_job(struct gm_job *job, const struct gm_options *options, FILE *file)
{
	uint64_t start_ns = gm_export_job_start(job), duration_ns = 0;
	struct profile profile = {0};

	begin(&profile);
	for (unsigned i = 0; i < job->count; i++) {
		const struct gm_header *header = job->docs[i]->header;
		uint64_t end_ns = header->last_event_ns;

		if (job->docs[i]->superseded)
			continue;
		samples(&profile, job->docs[i], options);
		if (header->started_realtime_ns)
			end_ns += header->started_realtime_ns - start_ns;
		duration_ns = end_ns > duration_ns ? end_ns : duration_ns;
	}
	return end(&profile, start_ns, duration_ns, file);
}
