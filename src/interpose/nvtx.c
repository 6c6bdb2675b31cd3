/*
 * Marks by NVTX ranges. NVTX consists of headers that each library compiles in; at its first call
 * it opens the library that NVTX_INJECTION64_PATH names (recorder/process/injection.c sets it) and
 * lets it register its own functions. Ours look only at ranges: each end of a range that has the
 * name in GPUMEMTRACE_MARK, in any domain, is a mark.
 *
 * Nothing is allocated. Whether a range has the name is known when it begins, and kept as one bit
 * of a per-thread stack for push and pop, and as the lowest bit of the id for start and end.
 */
#include "interpose/public.h"
#include "recorder/state/settings.h"
#include "recorder/process/start.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

/* A thread's pushed ranges of one domain. Bit i of `named` is set if range i has the name. */
struct ranges {
	uint64_t named;
	uint16_t depth, domain;
};

#define DOMAINS_PER_THREAD 4
#define MOST_NESTED	   64 /* deeper ranges make no marks */

static __thread struct ranges pushed[DOMAINS_PER_THREAD] __attribute__((tls_model("initial-exec")));

static struct {
	uint64_t last_id;
	uint32_t domains; /* made so far; handles are their numbers from 1 */
} nvtx;

/* Handles of registered strings, of which one is the name and all others are not. */
static char named_string, other_string;

static bool is_name(const char *text)
{
	return text && gm_settings.mark_range && strcmp(text, gm_settings.mark_range) == 0;
}

/* Compares wide characters with the name in gm_settings, which is UTF-8. */
static bool is_wide_name(const wchar_t *text)
{
	const unsigned char *at = (const unsigned char *)gm_settings.mark_range;

	if (!text || !at)
		return false;
	while (*at) {
		uint32_t code = *at++;
		int more = code >= 0xf0 ? 3 : code >= 0xe0 ? 2 : code >= 0xc0 ? 1 : 0;

		if (more)
			code &= 0x3fu >> more;
		while (more-- && (*at & 0xc0) == 0x80)
			code = code << 6 | (*at++ & 0x3f);
		if ((uint32_t)*text++ != code)
			return false;
	}
	return *text == L'\0';
}

static bool is_named_event(const struct event_attributes *event)
{
	if (!event || event->size < offsetof(struct event_attributes, message) + sizeof(void *))
		return false;
	switch (event->message_type) {
	case MESSAGE_ASCII:
		return is_name(event->message);
	case MESSAGE_UNICODE:
		return is_wide_name(event->message);
	case MESSAGE_REGISTERED:
		return event->message == &named_string;
	default:
		return false;
	}
}

static void mark(void)
{
	gm_public_mark(gm_settings.mark_range, GM_MARK_NVTX);
}

/* ---- push and pop ---- */

/* The thread's ranges of a domain; NULL if it has ranges open in too many domains at once. */
static struct ranges *ranges_of(uint16_t domain, bool push)
{
	struct ranges *unused = NULL;

	for (unsigned i = 0; i < DOMAINS_PER_THREAD; i++) {
		if (pushed[i].depth && pushed[i].domain == domain)
			return &pushed[i];
		if (!pushed[i].depth && !unused)
			unused = &pushed[i];
	}
	if (push && unused)
		unused->domain = domain;
	return push ? unused : NULL;
}

static int push(uint16_t domain, bool named)
{
	struct ranges *ranges = ranges_of(domain, true);

	if (!ranges)
		return -1;
	if (ranges->depth < MOST_NESTED) {
		ranges->named &= ~(1ull << ranges->depth);
		ranges->named |= (uint64_t)named << ranges->depth;
	}
	return ranges->depth++;
}

static int pop(uint16_t domain)
{
	struct ranges *ranges = ranges_of(domain, false);

	if (!ranges)
		return -1;
	ranges->depth--;
	if (ranges->depth < MOST_NESTED && ranges->named >> ranges->depth & 1)
		mark();
	return ranges->depth;
}

static int push_ex(const struct event_attributes *event)
{
	return push(0, is_named_event(event));
}

static int push_a(const char *name)
{
	return push(0, is_name(name));
}

static int push_w(const wchar_t *name)
{
	return push(0, is_wide_name(name));
}

static int pop_default(void)
{
	return pop(0);
}

static int domain_push_ex(void *domain, const struct event_attributes *event)
{
	return push((uint16_t)(uintptr_t)domain, is_named_event(event));
}

static int domain_pop(void *domain)
{
	return pop((uint16_t)(uintptr_t)domain);
}

/* ---- start and end, which may be in different threads ---- */

static uint64_t start(bool named)
{
	return __atomic_add_fetch(&nvtx.last_id, 2, __ATOMIC_RELAXED) | named;
}

static uint64_t start_ex(const struct event_attributes *event)
{
	return start(is_named_event(event));
}

static uint64_t start_a(const char *name)
{
	return start(is_name(name));
}

static uint64_t start_w(const wchar_t *name)
{
	return start(is_wide_name(name));
}

static void end(uint64_t id)
{
	if (id & 1)
		mark();
}

static uint64_t domain_start_ex(void *domain, const struct event_attributes *event)
{
	(void)domain;
	return start_ex(event);
}

static void domain_end(void *domain, uint64_t id)
{
	(void)domain;
	end(id);
}

/* ---- domains and registered strings ---- */

static void *domain_create(const void *name)
{
	(void)name;
	return (void *)(uintptr_t)__atomic_add_fetch(&nvtx.domains, 1, __ATOMIC_RELAXED);
}

static void *register_a(void *domain, const char *text)
{
	(void)domain;
	return is_name(text) ? &named_string : &other_string;
}

static void *register_w(void *domain, const wchar_t *text)
{
	(void)domain;
	return is_wide_name(text) ? &named_string : &other_string;
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
	{MODULE_CORE2, CORE2_CREATE_W, (void (*)(void))domain_create},
};

/*
 * NVTX calls this once for each library that has its headers compiled in. Returns 1 if it set
 * functions.
 */
EXPORT int InitializeInjectionNvtx2(export_table get);

EXPORT int InitializeInjectionNvtx2(export_table get)
{
	const struct callbacks *callbacks = get ? get(ETID_CALLBACKS) : NULL;

	if (gm_disabled() || !gm_settings.mark_range || !callbacks ||
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
