/*
 * Writing JSON part by part. A document of a hundred thousand sites as one tree of jansson's took
 * gigabytes; its parts are made, written and dropped one after the other.
 */
#ifndef GM_REPORT_RENDER_JSON_JSON_OUT_H
#define GM_REPORT_RENDER_JSON_JSON_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Texts of frames that many stacks share; the documents own them. */
struct gm_json_frames {
	const char **texts;
	unsigned count, room;
};

struct gm_json_bound;

struct gm_json_out {
	json_dump_callback_t write; /* takes the text, with `data` */
	void *data;
	/* Stacks name frames by their place in this list, if there is one. */
	struct gm_json_frames *frames;
	const struct gm_json_bound *bound; /* --top; NULL: lists are complete */
	bool one_line;
	bool failed;
	size_t used;
	char text[1 << 16];
};

/* Text that is JSON already. */
void gm_json_put(struct gm_json_out *out, const char *text, size_t bytes);

/* A number, without printf, which takes several times as long. */
void gm_json_put_integer(struct gm_json_out *out, int64_t value);
void gm_json_put_text(struct gm_json_out *out, const char *text);

/*
 * A string in quotes, if no character of it has to be written otherwise than as itself; else
 * returns false and writes nothing.
 */
bool gm_json_put_plain(struct gm_json_out *out, const char *string);

/* A key of the document, with the comma before it. */
void gm_json_put_name(struct gm_json_out *out, const char *key);

/* Both functions drop the reference. */
void gm_json_put_value(struct gm_json_out *out, json_t *value);
void gm_json_put_key(struct gm_json_out *out, const char *key, json_t *value);

/* Writes what is left; false if anything could not be written. */
bool gm_json_out_end(struct gm_json_out *out);

/* For `write`: `file` is a FILE. */
int gm_json_to_file(const char *text, size_t bytes, void *file);

/* A small document of its own, indented, with a newline; 0 or -errno. Drops the reference. */
int gm_json_write(json_t *value, FILE *file);

#endif
