/*
 * See json_values.h.
 */
#include "report/render/json/json_values.h"
#include <stdlib.h>
#include <string.h>

json_t *gm_json_bytes(uint64_t bytes)
{
	return bytes == GM_NO_BYTES
		       ? json_null()
		       : json_integer(bytes > INT64_MAX ? INT64_MAX : (json_int_t)bytes);
}

json_t *gm_json_string(const char *text)
{
	json_t *string = text ? json_string(text) : NULL;
	char *copy;

	if (string || !text)
		return string ? string : json_null();
	/* A path or symbol that is no UTF-8: what is readable of it is better than nothing. */
	copy = gm_realloc(NULL, strlen(text) + 1);
	strcpy(copy, text);
	for (char *at = copy; *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	string = json_string(copy);
	free(copy);
	return string ? string : json_null();
}

json_t *gm_json_strings(const char *const *texts, unsigned count)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(list, gm_json_string(texts[i]));
	return list;
}

json_t *gm_json_seconds(uint64_t ns)
{
	return ns == GM_NO_BYTES ? json_null() : json_real((double)ns / 1e9);
}

json_t *gm_json_device(int device)
{
	return device < 0 ? json_null() : json_integer(device);
}

json_t *gm_json_percent(uint64_t part, uint64_t whole)
{
	if (!whole || whole == GM_NO_BYTES || part == GM_NO_BYTES)
		return json_null();
	return json_real(100.0 * (double)part / (double)whole);
}

json_t *gm_json_total(const struct gm_level_record *level, uint64_t limit)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "device", gm_json_device(level->device),
		"current_bytes", gm_json_bytes(level->current_bytes), "current_count",
		gm_json_bytes(level->current_count), "peak_bytes", gm_json_bytes(level->peak_bytes),
		"peak_at_s", level->allocations ? gm_json_seconds(level->peak_at_ns) : json_null(),
		"physical_bytes", gm_json_bytes(level->physical_bytes), "physical_peak_bytes",
		gm_json_bytes(level->physical_peak_bytes), "utilization_percent",
		gm_json_percent(level->physical_peak_bytes, limit));
}

json_t *gm_json_holes(const struct gm_fragmentation *row)
{
	uint64_t unused = gm_unused_bytes(row);
	uint64_t scattered = gm_scattered_bytes(row);

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o}", "reserved_bytes",
		gm_json_bytes(row->reserved_bytes), "used_bytes", gm_json_bytes(row->used_bytes),
		"free_bytes", gm_json_bytes(unused), "largest_free_bytes",
		gm_json_bytes(row->largest_free_bytes),
		"percent", gm_json_percent(unused, row->reserved_bytes), "external_percent",
		scattered == GM_NO_BYTES ? json_null() : gm_json_percent(scattered, unused));
}

json_t *gm_json_frame(const struct gm_frame *frame)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "kind",
			 frame->python ? "python" : "native", "function",
			 gm_json_string(frame->function), "file", gm_json_string(frame->file),
			 "line", frame->line ? json_integer(frame->line) : json_null(), "module",
			 gm_json_string(frame->module), "offset",
			 frame->python ? json_null() : gm_json_bytes(frame->offset));
}

json_t *gm_json_stack(const struct gm_stack *stack)
{
	json_t *list = json_array();

	for (unsigned i = 0; stack && i < stack->count; i++)
		json_array_append_new(list, gm_json_frame(gm_stack_frame(stack, i)));
	return list;
}
