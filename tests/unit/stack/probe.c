/* See probe.h. */
#include "probe.h"

#include "stack/cfi.h"
#include "stack/walk_cache.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define BARRIER() __asm__ volatile("" ::: "memory")

static uint32_t latest_module = GM_NONE;

void probe_start(int mode, unsigned depth)
{
	store_double_reset();
	gm_stack_reset();
	gm_stack_init((enum gm_stack_mode)mode, depth);
	gm_native_init(NULL);
}

bool probe_start_with(const char *unwinder, unsigned depth)
{
	probe_start(GM_STACKS_FULL, depth);
	gm_native_init(unwinder);
	return !strcmp(gm_stack_unwinder(), unwinder);
}

/*
 * In every way there is; the third and fifth by what the walks before left, and the ones after them
 * by a cached result. The last two are as of a sampled block, which has all frames.
 */
static __attribute__((noinline)) uint32_t take(const struct gm_entry *entry, unsigned limit)
{
	struct gm_stack_taking taking;
	struct gm_raw_stack raw;
	uint32_t stack[6], module[6];
	unsigned ways = limit ? 4 : 6;

	gm_stack_capture(&raw, entry->pc, limit);
	for (unsigned i = 0; i < 2; i++)
		stack[i] = gm_stack_intern(&raw, &module[i]);
	for (unsigned i = 2; i < 4; i++)
		stack[i] = gm_stack_take(entry, limit, &module[i]);
	for (unsigned i = 4; i < ways; i++) {
		gm_stack_begin(&taking, entry, gm_stack_hint(512));
		stack[i] = gm_stack_end(&taking, &module[i]);
	}
	BARRIER();
	latest_module = module[0];
	for (unsigned i = 1; i < ways; i++)
		if (stack[i] != stack[0] || module[i] != module[0])
			return (uint32_t)-2;
	return stack[0];
}

__attribute__((noinline)) uint32_t probe_stack(unsigned limit)
{
	const struct gm_entry entry = GM_ENTRY_HERE();
	uint32_t stack = take(&entry, limit);

	BARRIER();
	return stack;
}

static __attribute__((noinline)) uint32_t descend(const struct gm_entry *entry, unsigned limit,
						 unsigned frames)
{
	uint32_t stack = frames ? descend(entry, limit, frames - 1) : take(entry, limit);

	BARRIER();
	return stack;
}

__attribute__((noinline)) uint32_t probe_stack_deep(unsigned limit, unsigned frames)
{
	const struct gm_entry entry = GM_ENTRY_HERE();
	uint32_t stack = descend(&entry, limit, frames);

	BARRIER();
	return stack;
}

uint32_t probe_many(unsigned captures)
{
	const struct gm_entry entry = GM_ENTRY_HERE();
	uint32_t stack = GM_NONE;

	for (unsigned i = 0; i < captures; i++)
		stack = take(&entry, 0);
	return stack;
}

static size_t describe_frame(const struct gm_frame_record *frame, char *to, size_t room)
{
	const struct gm_module_record *module;

	if (frame->kind == GM_FRAME_PYTHON)
		return (size_t)snprintf(to, room, "python\t%s\t%s\t%u\n",
					store_double_string(frame->python.function_string),
					store_double_string(frame->python.file_string),
					frame->python.line);
	module = frame->native.module == GM_NONE
			 ? NULL
			 : gm_store_record(GM_TABLE_MODULES, frame->native.module);
	return (size_t)snprintf(to, room, "native\t%s\t0x%llx\n",
				module ? store_double_string(module->path_string) : "",
				(unsigned long long)frame->native.offset);
}

size_t probe_describe(uint32_t stack, char *to, size_t room)
{
	const struct gm_stack_record *record;
	size_t used;

	to[0] = '\0';
	if (stack == GM_NONE || !(record = gm_store_record(GM_TABLE_STACKS, stack)))
		return 0;
	used = (size_t)snprintf(to, room, "flags\t%u\n", record->flags);
	for (unsigned i = 0; i < record->frames && used < room; i++) {
		const uint32_t *frame = gm_store_record(GM_TABLE_STACK_FRAMES, record->first + i);

		used += describe_frame(gm_store_record(GM_TABLE_FRAMES, *frame), to + used,
				       room - used);
	}
	return used;
}

const char *probe_caller_module(void)
{
	const struct gm_module_record *module;

	if (latest_module == GM_NONE)
		return "";
	module = gm_store_record(GM_TABLE_MODULES, latest_module);
	return store_double_string(module->path_string);
}

__attribute__((noinline)) void probe_call(void (*function)(void *), void *data)
{
	function(data);
	BARRIER();
}

static uint64_t disagreements;

uint64_t probe_disagreements(void)
{
	return disagreements;
}

/* Where the caller's frame is in a walk that began in here. */
static const uintptr_t *from_caller(const uintptr_t *pc, unsigned frames, uintptr_t caller)
{
	for (unsigned i = 0; i < frames; i++)
		if (pc[i] == caller)
			return pc + i;
	return NULL;
}

__attribute__((noinline)) bool probe_unwinders_agree(void)
{
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);
	uintptr_t pc[2][GM_CACHED_FRAMES]; /* few enough for the cache to be used */
	const uintptr_t *from[2];
	static bool ready; /* the tables alone were chosen: libgcc's functions were not looked up */
	size_t left[2];
	bool agree;

	if (!ready)
		ready = gm_unwinder_libgcc.init();
	for (int i = 0; i < 2; i++) {
		struct gm_walk walk = {.pc = pc[i], .max = GM_CACHED_FRAMES};

		(i ? &gm_unwinder_libgcc : &gm_unwinder_tables)->walk(&walk);
		from[i] = from_caller(pc[i], walk.frames, caller);
		left[i] = from[i] ? (size_t)(pc[i] + walk.frames - from[i]) : 0;
	}
	agree = left[0] && left[0] == left[1] &&
		!memcmp(from[0], from[1], left[0] * sizeof(uintptr_t));
	disagreements += !agree;
	return agree;
}

static void *thread_main(void *data)
{
	*(uint32_t *)data = probe_stack(0);
	return NULL;
}

uint32_t probe_stack_on_thread(void)
{
	uint32_t stack = GM_NONE;
	pthread_t thread;

	if (!pthread_create(&thread, NULL, thread_main, &stack))
		pthread_join(thread, NULL);
	return stack;
}
