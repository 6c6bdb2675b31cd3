/*
 * NVTX ranges. NVTX consists of headers that each library compiles in; at its first call it opens
 * the library that NVTX_INJECTION64_PATH names (recorder/process/injection.c sets it) and lets it
 * register its own functions. Ours look only at ranges, which the tracker records
 * (track/named_ranges.h). Each end of a range that has the name in GPUMEMTRACE_MARK, in any domain,
 * is a mark.
 *
 * Nothing is allocated.
 */
#include "interpose/public.h"
#include "recorder/state/settings.h"
#include "recorder/process/start.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#define EXPORT __attribute__((visibility("default")))

/* NVTX's own numbers (nvtxTypes.h, nvToolsExt.h). */
enum { MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum { ETID_CALLBACKS = 1 };
enum {
	CORE_RANGE_START_EX = 4,
	CORE_RANGE_START_A,
	CORE_RANGE_START_W,
	CORE_RANGE_END,
	CORE_RANGE_PUSH_EX,
	CORE_RANGE_PUSH_A,
	CORE_RANGE_PUSH_W,
	CORE_RANGE_POP
};
enum {
	CORE2_RANGE_START_EX = 2,
	CORE2_RANGE_END,
	CORE2_RANGE_PUSH_EX,
	CORE2_RANGE_POP,
	CORE2_REGISTER_STRING_A = 10,
	CORE2_REGISTER_STRING_W,
	CORE2_CREATE_A = 12,
	CORE2_CREATE_W
};
#define WIDE_BYTES 256 /* names are cut to 255 bytes, as marks' names are */

enum { MESSAGE_ASCII = 1, MESSAGE_UNICODE, MESSAGE_REGISTERED };

struct event_attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};

struct callbacks {
	size_t bytes;
	int (*module_table)(uint32_t module, void ****table, unsigned *size);
};

typedef const void *(*export_table)(uint32_t id);

#define DOMAINS	     64	   /* of more the last number stands for all */
#define STRING_BYTES 65536 /* of registered strings */

/*
 * The domains and strings that NVTX's clients register, which live as long as the process. Strings
 * beyond STRING_BYTES have the handle `other_string`.
 */
static struct {
	uint32_t domains; /* made so far; handles are their numbers from 1 (atomic) */
	char domain_names[DOMAINS][GM_RANGE_NAME_BYTES];
	uint32_t string_bytes; /* in use (atomic) */
	char strings[STRING_BYTES];
} nvtx;

static const char other_string[] = "(registered string)";

/* ---- names ---- */

/* Converts wide characters, which are UTF-32 on Linux, to UTF-8, as many as there is room for. */
static const char *narrow(const wchar_t *text, char *to, size_t bytes)
{
	size_t at = 0;

	for (; text && *text && at + 4 < bytes; text++) {
		uint32_t code = (uint32_t)*text;
		unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
		static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};

		to[at++] = (char)(first[more] | code >> 6 * more);
		while (more--)
			to[at++] = (char)(0x80 | (code >> 6 * more & 0x3f));
	}
	to[at] = '\0';
	return to;
}

static bool is_marked(const char *text)
{
	return text && gm_settings.mark_range && strcmp(text, gm_settings.mark_range) == 0;
}

static const char *registered(const void *handle)
{
	const char *text = handle;

	return text >= nvtx.strings && text < nvtx.strings + STRING_BYTES ? text : other_string;
}

static const char *text_of(const struct event_attributes *event, char *wide, size_t bytes)
{
	if (!event || event->size < offsetof(struct event_attributes, message) + sizeof(void *))
		return NULL;
	switch (event->message_type) {
	case MESSAGE_ASCII:
		return event->message;
	case MESSAGE_UNICODE:
		return narrow(event->message, wide, bytes);
	case MESSAGE_REGISTERED:
		return registered(event->message);
	default:
		return NULL;
	}
}

static uint16_t number_of(const void *domain)
{
	uintptr_t number = (uintptr_t)domain;

	return number < DOMAINS ? (uint16_t)number : DOMAINS - 1;
}

static struct gm_range_name named(const void *domain, const char *text)
{
	uint16_t number = number_of(domain);

	return (struct gm_range_name){.text = text ? text : "(no name)",
				      .domain = number ? nvtx.domain_names[number] : NULL,
				      .domain_number = number,
				      .source = GM_RANGE_NVTX,
				      .marked = is_marked(text),
				      .recorded = !gm_settings.no_ranges};
}

/* ---- push and pop ---- */

static int push(const void *domain, const char *text)
{
	struct gm_range_name name = named(domain, text);

	return gm_public_range_push(&name);
}

static int pop(const void *domain)
{
	bool marked;
	int level = gm_public_range_pop(number_of(domain), &marked);

	if (marked)
		gm_public_mark(gm_settings.mark_range, GM_MARK_NVTX);
	return level;
}

static int push_ex(const struct event_attributes *event)
{
	char wide[WIDE_BYTES];

	return push(NULL, text_of(event, wide, sizeof(wide)));
}

static int push_a(const char *text)
{
	return push(NULL, text);
}

static int push_w(const wchar_t *text)
{
	char wide[WIDE_BYTES];

	return push(NULL, narrow(text, wide, sizeof(wide)));
}

static int pop_default(void)
{
	return pop(NULL);
}

static int domain_push_ex(void *domain, const struct event_attributes *event)
{
	char wide[WIDE_BYTES];

	return push(domain, text_of(event, wide, sizeof(wide)));
}

static int domain_pop(void *domain)
{
	return pop(domain);
}

/* ---- start and end, which may be in different threads ---- */

static uint64_t start(const void *domain, const char *text)
{
	struct gm_range_name name = named(domain, text);

	return gm_public_range_start(&name);
}

static uint64_t start_ex(const struct event_attributes *event)
{
	char wide[WIDE_BYTES];

	return start(NULL, text_of(event, wide, sizeof(wide)));
}

static uint64_t start_a(const char *text)
{
	return start(NULL, text);
}

static uint64_t start_w(const wchar_t *text)
{
	char wide[WIDE_BYTES];

	return start(NULL, narrow(text, wide, sizeof(wide)));
}

static void end(uint64_t id)
{
	if (gm_public_range_end(id))
		gm_public_mark(gm_settings.mark_range, GM_MARK_NVTX);
}

static uint64_t domain_start_ex(void *domain, const struct event_attributes *event)
{
	char wide[WIDE_BYTES];

	return start(domain, text_of(event, wide, sizeof(wide)));
}

static void domain_end(void *domain, uint64_t id)
{
	(void)domain;
	end(id);
}

/* ---- domains and registered strings ---- */

static void *domain_create(const char *text)
{
	uint32_t number = __atomic_add_fetch(&nvtx.domains, 1, __ATOMIC_RELAXED);

	if (number < DOMAINS && text)
		snprintf(nvtx.domain_names[number], GM_RANGE_NAME_BYTES, "%s", text);
	return (void *)(uintptr_t)number;
}

static void *domain_create_w(const wchar_t *text)
{
	char wide[WIDE_BYTES];

	return domain_create(narrow(text, wide, sizeof(wide)));
}

static void *register_a(void *domain, const char *text)
{
	size_t bytes = text ? strnlen(text, WIDE_BYTES - 1) + 1 : 0;
	uint32_t at = __atomic_fetch_add(&nvtx.string_bytes, bytes, __ATOMIC_RELAXED);

	(void)domain;
	if (!bytes || at + bytes > STRING_BYTES) {
		__atomic_fetch_sub(&nvtx.string_bytes, bytes, __ATOMIC_RELAXED);
		return (void *)(uintptr_t)other_string;
	}
	memcpy(nvtx.strings + at, text, bytes - 1);
	return nvtx.strings + at;
}

static void *register_w(void *domain, const wchar_t *text)
{
	char wide[WIDE_BYTES];

	return register_a(domain, narrow(text, wide, sizeof(wide)));
}

/* ---- injection ---- */

static const struct slot {
	uint32_t module, id;
	void (*function)(void);
} slots[] = {
	{MODULE_CORE, CORE_RANGE_START_EX, (void (*)(void))start_ex},
	{MODULE_CORE, CORE_RANGE_START_A, (void (*)(void))start_a},
	{MODULE_CORE, CORE_RANGE_START_W, (void (*)(void))start_w},
	{MODULE_CORE, CORE_RANGE_END, (void (*)(void))end},
	{MODULE_CORE, CORE_RANGE_PUSH_EX, (void (*)(void))push_ex},
	{MODULE_CORE, CORE_RANGE_PUSH_A, (void (*)(void))push_a},
	{MODULE_CORE, CORE_RANGE_PUSH_W, (void (*)(void))push_w},
	{MODULE_CORE, CORE_RANGE_POP, (void (*)(void))pop_default},
	{MODULE_CORE2, CORE2_RANGE_START_EX, (void (*)(void))domain_start_ex},
	{MODULE_CORE2, CORE2_RANGE_END, (void (*)(void))domain_end},
	{MODULE_CORE2, CORE2_RANGE_PUSH_EX, (void (*)(void))domain_push_ex},
	{MODULE_CORE2, CORE2_RANGE_POP, (void (*)(void))domain_pop},
	{MODULE_CORE2, CORE2_REGISTER_STRING_A, (void (*)(void))register_a},
	{MODULE_CORE2, CORE2_REGISTER_STRING_W, (void (*)(void))register_w},
	{MODULE_CORE2, CORE2_CREATE_A, (void (*)(void))domain_create},
	{MODULE_CORE2, CORE2_CREATE_W, (void (*)(void))domain_create_w},
};

/*
 * NVTX calls this once for each library that has its headers compiled in. Returns 1 if it set
 * functions.
 */
EXPORT int InitializeInjectionNvtx2(export_table get);

EXPORT int InitializeInjectionNvtx2(export_table get)
{
	const struct callbacks *callbacks = get ? get(ETID_CALLBACKS) : NULL;

	if (gm_disabled() || !(!gm_settings.no_ranges || gm_settings.mark_range) || !callbacks ||
	    callbacks->bytes < sizeof(*callbacks) || !callbacks->module_table)
		return 0;
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		void ***table;
		unsigned size;

		/* Each entry is the address of a pointer; the table ends with a NULL. */
		if (callbacks->module_table(slots[i].module, &table, &size) && slots[i].id < size &&
		    table[slots[i].id])
			*table[slots[i].id] = (void *)slots[i].function;
	}
	return 1;
}
