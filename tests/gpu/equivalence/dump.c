/*
 * Prints what an output file holds as JSON, as it stands: sites with their stacks, totals and the
 * ring of events. For compare.py; links the reader alone, so it runs where the report tool's
 * libraries are not.
 */
#include "store/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct gm_reader *file;

#define GM_EACH_RECORD(table, type, record)                                                        \
	for (uint32_t i_ = 0; i_ < gm_reader_count(file, table); i_++)                             \
		for (type record = {0}, *once_ = &record;                                          \
		     once_ && gm_reader_get(file, table, i_, &record, sizeof(record));             \
		     once_ = NULL)

static void print_text(const char *text)
{
	putchar('"');
	for (; text && *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text >= 0x20)
			putchar(*text);
	}
	putchar('"');
}

static const char *base_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "?";
}

/* "module+0x1234" or "function (file:line)": the same in every run of the same program. */
static void print_frame(uint32_t number)
{
	struct gm_module_record module;
	struct gm_frame_record frame;
	char text[1024] = "?";

	if (gm_reader_get(file, GM_TABLE_FRAMES, number, &frame, sizeof(frame))) {
		if (frame.kind == GM_FRAME_PYTHON)
			snprintf(text, sizeof(text), "%s (%s:%u)",
				 gm_reader_string(file, frame.python.function_string),
				 base_of(gm_reader_string(file, frame.python.file_string)),
				 frame.python.line);
		else if (gm_reader_get(file, GM_TABLE_MODULES, frame.native.module, &module,
				       sizeof(module)))
			snprintf(text, sizeof(text), "%s+0x%" PRIx64,
				 base_of(gm_reader_string(file, module.path_string)),
				 frame.native.offset);
	}
	print_text(text);
}

static void print_stack(uint32_t number)
{
	struct gm_stack_record stack;
	uint32_t i, frame;

	putchar('[');
	if (gm_reader_get(file, GM_TABLE_STACKS, number, &stack, sizeof(stack)))
		for (i = 0; i < stack.frames; i++) {
			gm_reader_get(file, GM_TABLE_STACK_FRAMES, stack.first + i, &frame,
				      sizeof(frame));
			fputs(i ? ", " : "", stdout);
			print_frame(frame);
		}
	putchar(']');
}

static void print_library(uint32_t number)
{
	struct gm_module_record module;
	bool known = gm_reader_get(file, GM_TABLE_MODULES, number, &module, sizeof(module));

	print_text(known ? base_of(gm_reader_string(file, module.path_string)) : "?");
}

static void print_function(uint32_t number)
{
	struct gm_function_record function;

	if (gm_reader_get(file, GM_TABLE_FUNCTIONS, number, &function, sizeof(function)))
		print_text(gm_reader_string(file, function.name_string));
	else
		fputs("null", stdout);
}

static void print_sites(void)
{
	struct gm_site_record site;
	uint32_t i;

	fputs("\"sites\": [", stdout);
	for (i = 0; gm_reader_get(file, GM_TABLE_SITES, i, &site, sizeof(site)); i++) {
		printf("%s\n{\"level\": %u, \"kind\": %u, \"device\": %d, \"live_bytes\": %" PRIu64
		       ", \"live_count\": %" PRIu64 ", \"peak_bytes\": %" PRIu64
		       ", \"allocated_bytes\": %" PRIu64 ", \"freed_bytes\": %" PRIu64
		       ", \"allocations\": %" PRIu64 ", \"frees\": %" PRIu64
		       ", \"failures\": %" PRIu64 ", \"function\": ",
		       i ? "," : "", site.level, site.kind, site.device, site.live_bytes,
		       site.live_count, site.peak_bytes, site.allocated_bytes, site.freed_bytes,
		       site.allocations, site.frees, site.failures);
		print_function(site.function);
		fputs(", \"stack\": ", stdout);
		print_stack(site.stack);
		putchar('}');
	}
	fputs("],\n", stdout);
}

static void print_totals(void)
{
	fputs("\"usage\": [", stdout);
	GM_EACH_RECORD (GM_TABLE_USAGE, struct gm_usage_record, usage)
		printf("%s\n{\"kind\": %u, \"device\": %d, \"current_bytes\": %" PRIu64
		       ", \"current_count\": %" PRIu64 ", \"peak_bytes\": %" PRIu64
		       ", \"allocated_bytes\": %" PRIu64 ", \"freed_bytes\": %" PRIu64
		       ", \"allocations\": %" PRIu64 ", \"frees\": %" PRIu64
		       ", \"failures\": %" PRIu64 "}",
		       i_ ? "," : "", usage.kind, usage.device, usage.current_bytes,
		       usage.current_count, usage.peak_bytes, usage.allocated_bytes,
		       usage.freed_bytes, usage.allocations, usage.frees, usage.failures);
	fputs("],\n\"errors\": [", stdout);
	GM_EACH_RECORD (GM_TABLE_ERRORS, struct gm_error_record, error)
		printf("%s\n{\"type\": %u, \"error\": %d, \"count\": %" PRIu64
		       ", \"bytes\": %" PRIu64 "}",
		       i_ ? "," : "", error.type, error.error, error.count, error.bytes);
	fputs("],\n\"implicit\": [", stdout);
	GM_EACH_RECORD (GM_TABLE_IMPLICIT, struct gm_implicit_record, implicit)
		printf("%s\n{\"device\": %d, \"cause\": %u, \"bytes\": %" PRIu64
		       ", \"count\": %" PRIu64 "}",
		       i_ ? "," : "", implicit.device, implicit.cause, implicit.bytes,
		       implicit.count);
}

static void print_things(void)
{
	fputs("],\n\"contexts\": [", stdout);
	GM_EACH_RECORD (GM_TABLE_CONTEXTS, struct gm_context_record, context)
		printf("%s\n{\"device\": %d, \"state\": %u, \"primary\": %u}", i_ ? "," : "",
		       context.device, context.state, context.primary);
	fputs("],\n\"vmm\": [", stdout);
	GM_EACH_RECORD (GM_TABLE_VMM, struct gm_vmm_record, vmm)
		printf("%s\n{\"device\": %d, \"created_bytes\": %" PRIu64
		       ", \"mapped_bytes\": %" PRIu64 ", \"reserved_va_bytes\": %" PRIu64
		       ", \"handles\": %" PRIu64 "}",
		       i_ ? "," : "", vmm.device, vmm.created_bytes, vmm.mapped_bytes,
		       vmm.reserved_va_bytes, vmm.handles);
	fputs("],\n\"pools\": [", stdout);
	GM_EACH_RECORD (GM_TABLE_POOLS, struct gm_pool_record, pool)
		printf("%s\n{\"device\": %d, \"type\": %u, \"state\": %u, \"allocations\": %" PRIu64
		       ", \"live_bytes\": %" PRIu64 ", \"threshold_bytes\": %" PRIu64
		       ", \"trims\": %" PRIu64 ", \"trimmed_bytes\": %" PRIu64 "}",
		       i_ ? "," : "", pool.device, pool.type, pool.state, pool.allocations,
		       pool.live_bytes, pool.release_threshold_bytes, pool.trims,
		       pool.trimmed_bytes);
	fputs("],\n\"costs\": [", stdout);
	GM_EACH_RECORD (GM_TABLE_COSTS, struct gm_cost_record, cost) {
		printf("%s\n{\"device\": %d, \"cost\": %u, \"calls\": %" PRIu64
		       ", \"ends\": %" PRIu64 ", \"live\": %" PRIu64 ", \"bytes\": %" PRId64
		       ", \"library\": ",
		       i_ ? "," : "", cost.device, cost.cost, cost.calls, cost.ends, cost.live,
		       cost.bytes);
		print_library(cost.module);
		putchar('}');
	}
	fputs("],\n\"torch\": [", stdout);
	GM_EACH_RECORD (GM_TABLE_TORCH, struct gm_torch_record, torch)
		printf("%s\n{\"device\": %d, \"allocated_bytes\": %" PRIu64
		       ", \"reserved_bytes\": %" PRIu64 ", \"allocations\": %" PRIu64
		       ", \"frees\": %" PRIu64 "}",
		       i_ ? "," : "", torch.device, torch.allocated_bytes, torch.reserved_bytes,
		       torch.allocations, torch.frees);
	fputs("],\n", stdout);
}

static void print_events(const struct gm_header *header)
{
	uint64_t capacity = header->event_capacity, head = header->event_head, first, i;
	const char *comma = "";

	first = head > capacity ? head - capacity : 0;
	printf("\"events_lost\": %" PRIu64 ",\n\"events\": [", first);
	for (i = first; capacity && i < head; i++) {
		struct gm_event_record event;

		if (!gm_reader_get(file, GM_TABLE_EVENTS, (uint32_t)(i % capacity), &event,
				   sizeof(event)))
			continue;
		printf("%s\n{\"op\": %u, \"key\": %" PRIu64 ", \"bytes\": %" PRIu64
		       ", \"serial\": %" PRIu64 ", \"thread\": %u, \"kind\": %u, \"device\": %d, "
		       "\"level\": %u, \"space\": %u, "
		       "\"error\": %d, \"stream\": %" PRIu64 ", \"function\": ",
		       comma, event.op, event.key, event.bytes, event.serial, event.thread,
		       event.kind, event.device, event.level, event.space, event.error,
		       event.stream);
		print_function(event.function);
		putchar('}');
		comma = ",";
	}
	fputs("]\n", stdout);
}

int main(int argc, char **argv)
{
	const struct gm_header *header;
	struct gm_reader *reader;
	char error[512];

	if (argc != 2) {
		fprintf(stderr, "usage: dump FILE\n");
		return 2;
	}
	reader = gm_reader_open(argv[1], error, sizeof(error));
	if (!reader) {
		fprintf(stderr, "%s\n", error);
		return 3;
	}
	file = reader;
	header = gm_reader_header(reader);
	printf("{\"backend\": \"%s\", \"unwinder\": \"%s\", \"cupti\": %s, \"end\": %u, "
	       "\"seen\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"unknown_frees\": %" PRIu64
	       ", \"teardown_frees\": %" PRIu64 ", \"lost_stacks\": %" PRIu64
	       ", \"passed\": %" PRIu64 ", \"ooms\": %" PRIu64 ",\n",
	       gm_reader_string(reader, header->backend_string),
	       gm_reader_string(reader, header->unwinder_string),
	       header->features & GM_FEATURE_CUPTI ? "true" : "false", header->end, header->events,
	       header->dropped_records, header->unknown_frees, header->teardown_frees,
	       header->lost_stacks, header->passed_calls, header->oom_events);
	print_sites();
	print_totals();
	print_things();
	print_events(header);
	fputs("}\n", stdout);
	gm_reader_close(reader);
	return 0;
}
