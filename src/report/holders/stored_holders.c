/*
 * Stored holders (stored_holders.h): a JSON object with the keys of the document, in which a site
 * is its number in the file.
 */
#include "report/holders/stored_holders.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_FILES 8u /* that the shim writes */
#define WAIT_STEPS 100
#define MAKING_S   90 /* older ones were given up */

/* ---- writing ---- */

static json_t *texts(const char *const *list, unsigned count)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(array, json_string(list[i]));
	return array;
}

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

int gm_store_holders(struct gm_doc *doc, const char *path)
{
	json_t *list = json_array(), *all;
	char *made = gm_doc_printf(doc, "%s.%ld", path, (long)getpid());
	int error = 0;

	for (unsigned i = 0; i < doc->holders_count; i++) {
		const struct gm_holder *holder = &doc->holders[i];

		json_array_append_new(list, json_pack("{s:I, s:I, s:I, s:o, s:b, s:b, s:o}", "site",
						      (json_int_t)holder->site, "bytes",
						      (json_int_t)holder->bytes, "blocks",
						      (json_int_t)holder->blocks, "chain",
						      texts(holder->chain, holder->chain_count),
						      "garbage", holder->garbage, "complete",
						      holder->complete, "note",
						      text_or_null(holder->note)));
	}
	all = json_pack("{s:I, s:I, s:s, s:I, s:o, s:I, s:b, s:o}", "pid",
			(json_int_t)doc->header->pid, "started_ns",
			(json_int_t)doc->header->started_realtime_ns, "when", doc->holders_when,
			"time_ns", (json_int_t)doc->header->last_event_ns, "python",
			text_or_null(doc->holders_python), "objects",
			(json_int_t)doc->holders_objects, "whole", doc->holders_whole, "holders",
			list);
	if (json_dump_file(all, made, JSON_COMPACT) != 0 || rename(made, path) != 0) {
		error = errno ? -errno : -EIO;
		unlink(made);
	}
	json_decref(all);
	return error;
}

/* ---- reading ---- */

static const char *copy_text(struct gm_doc *doc, json_t *value)
{
	const char *text = json_string_value(value);

	return text ? gm_zone_strdup(&doc->zone, text) : NULL;
}

static void add_holder(struct gm_doc *doc, json_t *value)
{
	json_int_t site = json_integer_value(json_object_get(value, "site"));
	json_t *chain = json_object_get(value, "chain");
	struct gm_holder *holder;

	if (site < 0 || site >= doc->sites_count || doc->sites[site].hidden)
		return;
	holder = gm_zone_push(&doc->zone, &doc->holders, &doc->holders_count, sizeof(*holder));
	holder->site = doc->sites[site].merged;
	holder->bytes = (uint64_t)json_integer_value(json_object_get(value, "bytes"));
	holder->blocks = (uint64_t)json_integer_value(json_object_get(value, "blocks"));
	holder->garbage = json_is_true(json_object_get(value, "garbage"));
	holder->complete = json_is_true(json_object_get(value, "complete"));
	holder->note = copy_text(doc, json_object_get(value, "note"));
	holder->chain =
		gm_zone_alloc(&doc->zone, json_array_size(chain) + 1, sizeof(*holder->chain));
	for (size_t i = 0; i < json_array_size(chain); i++) {
		const char *step = copy_text(doc, json_array_get(chain, i));

		if (step)
			holder->chain[holder->chain_count++] = step;
	}
}

/* An earlier run of the same output file, which wrote more of them, may have left its own. */
static bool is_of_run(const struct gm_header *header, json_t *all)
{
	return json_integer_value(json_object_get(all, "pid")) == header->pid &&
	       json_integer_value(json_object_get(all, "started_ns")) ==
		       (json_int_t)header->started_realtime_ns;
}

/* False if the holders are of another run, or cannot be read. */
static bool load_file(struct gm_doc *doc, const char *path)
{
	json_t *all = json_load_file(path, 0, NULL), *list = json_object_get(all, "holders");
	const char *when = copy_text(doc, json_object_get(all, "when"));

	if (all && !is_of_run(doc->header, all)) {
		json_decref(all);
		return false;
	}
	if (!when || !json_is_array(list)) {
		gm_doc_warn(doc, "%s cannot be read; what it says of holders is not shown", path);
		json_decref(all);
		return false;
	}
	doc->holders_when = when;
	doc->holders_ns = (uint64_t)json_integer_value(json_object_get(all, "time_ns"));
	doc->holders_python = copy_text(doc, json_object_get(all, "python"));
	doc->holders_objects = (uint64_t)json_integer_value(json_object_get(all, "objects"));
	doc->holders_whole = json_is_true(json_object_get(all, "whole"));
	for (size_t i = 0; i < json_array_size(list); i++)
		add_holder(doc, json_array_get(list, i));
	json_decref(all);
	return true;
}

/* The shim's copy of the output file is there while the tool works on it. */
static bool is_being_made(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && time(NULL) - st.st_mtime < MAKING_S;
}

void gm_load_holders(struct gm_doc *doc)
{
	const struct timespec step = {0, 100000000};

	for (unsigned n = MOST_FILES; n; n--) {
		const char *path = gm_doc_printf(doc, "%s.holders%u", doc->path, n);
		const char *copy = gm_doc_printf(doc, "%s.new", path);

		for (unsigned i = 0; i < WAIT_STEPS && is_being_made(copy); i++)
			nanosleep(&step, NULL);
		if (access(path, F_OK) == 0 && load_file(doc, path))
			return;
	}
}
