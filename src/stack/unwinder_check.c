/*
 * Comparing walks by the tables with libunwind's (unwinder_check.h).
 *
 * libunwind is stepped frame by frame with its caches off. Its unw_backtrace is faster, but
 * remembers code of libraries that were unloaded. libunwind does not look before it reads; so it
 * only gets stacks that the tables carried to their end, is stepped no further than they were, and
 * once it went another way only goes on within the thread's own stack.
 *
 * Two differences are the same if the two walks part after the same return address and with the
 * same two next ones, whatever lies further in or out.
 */
#include "stack/unwinder_check.h"

#include "stack/elf_symbols.h"
#include "stack/map.h"
#include "stack/thread_stack.h"
#include "stack/unwinder.h"
#include "store/layout.h"
#include "store/writer.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)

#define MOST_OWN_FRAMES 48u /* between this file and the first frame that is compared */
#define MOST_FRAMES	(GM_MAX_DEPTH + MOST_OWN_FRAMES)

enum { REGISTER_SP = 7, REGISTER_IP = 16 }; /* UNW_X86_64_RSP, UNW_REG_IP */
enum { CACHE_NONE = 0 };		    /* UNW_CACHE_NONE */

/*
 * unw_context_t is a ucontext_t, unw_cursor_t 127 words, in libunwind's include/libunwind-x86_64.h.
 */
struct context {
	uint64_t words[128];
};
struct cursor {
	uint64_t words[128];
};

static struct {
	int (*getcontext)(struct context *);
	int (*init_local)(struct cursor *, struct context *);
	int (*step)(struct cursor *);
	int (*get_reg)(struct cursor *, int, uint64_t *);
	void (*log)(const char *line);
	uint64_t seen[GM_MOST_DIFFERENCES]; /* atomic; 0: free */
} check;

bool gm_unwinder_check_init(const struct gm_object *libunwind, void (*log)(const char *line))
{
	int (*set_caching_policy)(void *, int) =
		gm_object_symbol(libunwind, "_ULx86_64_set_caching_policy", NULL);
	void *const *address_space =
		gm_object_symbol(libunwind, "_ULx86_64_local_addr_space", NULL);

	check.getcontext = gm_object_symbol(libunwind, "_Ux86_64_getcontext", NULL);
	check.init_local = gm_object_symbol(libunwind, "_ULx86_64_init_local", NULL);
	check.step = gm_object_symbol(libunwind, "_ULx86_64_step", NULL);
	check.get_reg = gm_object_symbol(libunwind, "_ULx86_64_get_reg", NULL);
	check.log = log;
	if (!check.getcontext || !check.init_local || !check.step || !check.get_reg ||
	    !set_caching_policy || !address_space)
		return false;
	set_caching_policy(*address_space, CACHE_NONE);
	return true;
}

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/*
 * The return addresses that libunwind finds from walk->pc[first] outwards, no more than the walk
 * has, into `pc`. Returns how many; 0 if it does not find the first.
 */
static unsigned walk_by_libunwind(const struct gm_walk *walk, unsigned first, uintptr_t *pc)
{
	const uintptr_t *wanted = walk->pc + first;
	unsigned most = walk->frames - first, frames = 0;
	struct context context;
	struct cursor cursor;
	bool parted = false;
	uint64_t ip, sp;

	check.getcontext(&context);
	if (check.init_local(&cursor, &context) < 0)
		return 0;
	for (unsigned i = 0; frames < most && i < MOST_FRAMES && check.step(&cursor) > 0; i++) {
		if (check.get_reg(&cursor, REGISTER_IP, &ip) ||
		    check.get_reg(&cursor, REGISTER_SP, &sp) || !ip)
			break;
		if (!frames && (i == MOST_OWN_FRAMES || (walk->sp && sp > walk->sp)))
			break;
		if (!frames && ip != *wanted)
			continue;
		parted = parted || ip != wanted[frames];
		pc[frames++] = ip;
		if (parted && !gm_thread_stack_end(sp))
			break;
	}
	return frames;
}

static void log_stack(const char *name, const uintptr_t *pc, unsigned frames)
{
	struct gm_object object;
	char line[512];

	for (unsigned i = 0; i < frames; i++) {
		if (!gm_object_at(pc[i] - 1, &object))
			snprintf(line, sizeof(line), "  %-9s #%-3u %#lx in no object", name, i,
				 pc[i]);
		else
			snprintf(line, sizeof(line), "  %-9s #%-3u %s+%#lx", name, i,
				 *object.path ? object.path : "the program", pc[i] - object.base);
		check.log(line);
	}
}

/* True the first time that it is asked for this difference. */
static bool is_new(uint64_t difference)
{
	for (unsigned i = 0; i < GM_MOST_DIFFERENCES; i++) {
		uint64_t seen = __atomic_load_n(&check.seen[i], __ATOMIC_RELAXED);

		if (!seen && __atomic_compare_exchange_n(&check.seen[i], &seen, difference, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
		if (seen == difference)
			return false;
	}
	return false;
}

static void log_difference(const uintptr_t *tables, unsigned table_frames, const uintptr_t *other,
			   unsigned other_frames, unsigned parted)
{
	char line[200];

	snprintf(line, sizeof(line),
		 "unwinders differ: the tables' walk has %u frames, libunwind's %u, "
		 "the first %u are the same",
		 table_frames, other_frames, parted);
	check.log(line);
	log_stack("tables", tables, table_frames);
	log_stack("libunwind", other, other_frames);
}

static void compare(const struct gm_walk *walk, unsigned first)
{
	const uintptr_t *tables = walk->pc + first;
	unsigned table_frames = walk->frames - first, other_frames, parted = 0;
	uintptr_t other[MOST_FRAMES], key[3];

	gm_objects_enter();
	other_frames = walk_by_libunwind(walk, first, other);
	gm_objects_leave();
	if (!other_frames) {
		__atomic_fetch_add(&gm_file->walks_not_compared, 1, __ATOMIC_RELAXED);
		return;
	}
	__atomic_fetch_add(&gm_file->walks_compared, 1, __ATOMIC_RELAXED);
	while (parted < smaller(table_frames, other_frames) && tables[parted] == other[parted])
		parted++;
	if (parted == table_frames && parted == other_frames)
		return;
	__atomic_fetch_add(&gm_file->walks_differing, 1, __ATOMIC_RELAXED);
	key[0] = tables[parted - 1];
	key[1] = parted < table_frames ? tables[parted] : 0;
	key[2] = parted < other_frames ? other[parted] : 0;
	if (is_new(gm_hash(key, sizeof(key), 0) | 1))
		log_difference(tables, table_frames, other, other_frames, parted);
}

__attribute__((noinline)) void gm_unwinder_check(const struct gm_walk *walk, unsigned first)
{
	int saved = errno;

	if (!gm_file)
		return;
	if (walk->incomplete || first >= walk->frames || walk->frames - first > GM_MAX_DEPTH + 1)
		__atomic_fetch_add(&gm_file->walks_not_compared, 1, __ATOMIC_RELAXED);
	else
		compare(walk, first);
	errno = saved;
}

#else

bool gm_unwinder_check_init(const struct gm_object *libunwind, void (*log)(const char *line))
{
	(void)libunwind;
	(void)log;
	return false;
}

void gm_unwinder_check(const struct gm_walk *walk, unsigned first)
{
	(void)walk;
	(void)first;
}

#endif
