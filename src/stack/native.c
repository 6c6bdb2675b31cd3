/*
 * Choosing an unwinder, and the two that come out of other libraries: libunwind's cached trace and
 * libgcc's. Both are opened privately and by the loader's own dlopen, found by hand, because the
 * shim exports a dlsym of its own and may run where dlopen lives in another library than libc.
 *
 * The order: our own reader of unwind tables (cfi.c), which has libgcc look up what JIT compilers
 * registered with it; libunwind; libgcc; frame pointers. The first and the last of these read only
 * what is there, the two others trust the stack.
 */
#include "stack/native.h"

#include "stack/cfi.h"
#include "stack/elf_symbols.h"
#include "stack/frame_pointers.h"
#include "stack/thread_stack.h"
#include "stack/unwinder_check.h"
#include "store/hot.h"
#include "store/layout.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef int backtrace_fn(void **, int);
typedef int unwind_fn(int (*)(void *, void *), void *);
typedef uintptr_t unwind_ip_fn(void *);

GM_HOT_STACK bool gm_native_cached;

#define MOST_FRAMES (GM_MAX_DEPTH + 48u) /* more than any walk is asked for */

static struct {
	bool no_cache, checked;
	const struct gm_unwinder *chosen;
	bool libgcc_works; /* to take libunwind's place */
	bool registered; /* code that was registered with libgcc is looked up */
	bool has_tables; /* gm_cfi_walk works on this processor */
	uintptr_t own_start, own_end;
	backtrace_fn *libunwind_backtrace;
	unwind_fn *libgcc_backtrace;
	unwind_ip_fn *libgcc_ip;
} native;

bool gm_library_open(const char *name, struct gm_object *object)
{
	void *(*open)(const char *, int) = gm_objects_symbol("dlopen", NULL);
	const struct link_map *map;

	/* libdl is not there before glibc 2.34 unless the program wanted it; libc has this one */
	if (!open)
		open = gm_objects_symbol("__libc_dlopen_mode", NULL);
	if (!open)
		return false;
	map = open(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	return map && gm_object_of_dynamic(map->l_ld, object);
}

/* The one beside the shim, or the system's. */
static bool open_libunwind(struct gm_object *object)
{
	char path[PATH_MAX];
	const char *slash;

	if (gm_object_at((uintptr_t)open_libunwind, object)) {
		slash = strrchr(object->path, '/');
		if (slash &&
		    snprintf(path, sizeof(path), "%.*s/libunwind.so.8",
			     (int)(slash - object->path), object->path) < (int)sizeof(path) &&
		    gm_library_open(path, object))
			return true;
	}
	return gm_library_open("libunwind.so.8", object);
}

static bool init_libunwind(void)
{
	struct gm_object object;

	if (!open_libunwind(&object))
		return false;
	native.libunwind_backtrace = gm_object_symbol(&object, "unw_backtrace", NULL);
	return native.libunwind_backtrace != NULL;
}

static void walk_libunwind(struct gm_walk *walk)
{
	int frames = native.libunwind_backtrace((void **)walk->pc, (int)walk->max);

	walk->frames = 0;
	while ((int)walk->frames < frames)
		if (walk->pc[walk->frames++] - walk->stop_start < walk->stop_bytes)
			break;
}

/*
 * libunwind keeps what it learnt of each return address in a table per thread, which it maps at the
 * thread's first trace; it hangs the table on a pthread key, made here at the self-test, so that
 * the key is a low one whose slot needs no memory from malloc.
 */
const struct gm_unwinder gm_unwinder_libunwind = {"libunwind", init_libunwind, walk_libunwind};

static int is_libgcc(const struct gm_object *object, void *data)
{
	if (strncmp(gm_object_basename(object), "libgcc_s.so", 11))
		return 0;
	*(struct gm_object *)data = *object;
	return 1;
}

static bool find_libgcc(struct gm_object *object)
{
	return gm_objects_each(is_libgcc, object) || gm_library_open("libgcc_s.so.1", object);
}

static bool init_libgcc(void)
{
	struct gm_object object;

	if (!find_libgcc(&object))
		return false;
	native.libgcc_backtrace = gm_object_symbol(&object, "_Unwind_Backtrace", NULL);
	native.libgcc_ip = gm_object_symbol(&object, "_Unwind_GetIP", NULL);
	return native.libgcc_backtrace && native.libgcc_ip;
}

static int note_libgcc(void *context, void *data)
{
	enum { GO_ON = 0, END = 5 }; /* _URC_NO_REASON, _URC_END_OF_STACK */
	struct gm_walk *walk = data;
	uintptr_t pc = native.libgcc_ip(context);

	if (!pc || walk->frames == walk->max)
		return END;
	walk->pc[walk->frames++] = pc;
	return pc - walk->stop_start < walk->stop_bytes ? END : GO_ON;
}

static void walk_libgcc(struct gm_walk *walk)
{
	walk->frames = 0;
	native.libgcc_backtrace(note_libgcc, walk);
}

const struct gm_unwinder gm_unwinder_libgcc = {"libgcc", init_libgcc, walk_libgcc};

static bool init_tables(void)
{
	gm_find_entry *find_registered = NULL;
	struct gm_object object;

	if (native.registered && find_libgcc(&object))
		find_registered = gm_object_symbol(&object, "_Unwind_Find_FDE", NULL);
	return gm_cfi_init(find_registered);
}

static void walk_tables(struct gm_walk *walk)
{
	walk->incomplete = !gm_cfi_walk(walk);
}

const struct gm_unwinder gm_unwinder_tables = {"unwind tables", init_tables, walk_tables};

/*
 * The self-test: three calls into each other must be found with the very return addresses that the
 * compiler says they have, next to each other and in order.
 */
struct self_test {
	const struct gm_unwinder *unwinder;
	uintptr_t expected[3];
	uintptr_t pc[64];
};

static __attribute__((noinline)) unsigned test_third(struct self_test *test)
{
	struct gm_walk walk = {.pc = test->pc, .max = 64};

	test->expected[0] = (uintptr_t)__builtin_return_address(0);
	test->unwinder->walk(&walk);
	__asm__ volatile("" ::: "memory"); /* no tail call */
	return walk.frames;
}

static __attribute__((noinline)) unsigned test_second(struct self_test *test)
{
	unsigned frames;

	test->expected[1] = (uintptr_t)__builtin_return_address(0);
	frames = test_third(test);
	__asm__ volatile("" ::: "memory");
	return frames;
}

static __attribute__((noinline)) unsigned test_first(struct self_test *test)
{
	unsigned frames;

	test->expected[2] = (uintptr_t)__builtin_return_address(0);
	frames = test_second(test);
	__asm__ volatile("" ::: "memory");
	return frames;
}

static bool passes_self_test(const struct gm_unwinder *unwinder)
{
	struct self_test test = {.unwinder = unwinder};
	unsigned frames = test_first(&test);

	for (unsigned i = 0; i + 3 <= frames; i++)
		if (!memcmp(&test.pc[i], test.expected, sizeof(test.expected)))
			return true;
	return false;
}

/*
 * True if the tables carry this stack to its end, or further than any walk goes. Where there are no
 * tables nothing is known, and it is true.
 */
static bool is_whole_by_tables(void)
{
	uintptr_t pc[MOST_FRAMES];
	struct gm_walk walk = {.pc = pc, .max = MOST_FRAMES, .anew = true};

	return !native.has_tables || gm_cfi_walk(&walk);
}

/* libgcc and libunwind follow the tables and read, wherever that leads. */
static bool looks_before_it_reads(const struct gm_unwinder *unwinder)
{
	return unwinder == &gm_unwinder_tables || unwinder == &gm_unwinder_frame_pointers;
}

/* Of one that trusts the stack no test is made on a stack that is not to be trusted. */
static bool works(const struct gm_unwinder *unwinder)
{
	if (!unwinder->init())
		return false;
	if (!looks_before_it_reads(unwinder) && !is_whole_by_tables())
		return true;
	return passes_self_test(unwinder);
}

static void choose(const char *only)
{
	static const struct gm_unwinder *const order[] = {
		&gm_unwinder_tables,
		&gm_unwinder_libunwind,
		&gm_unwinder_libgcc,
		&gm_unwinder_frame_pointers,
	};
	struct gm_object own;

	if (gm_object_at((uintptr_t)gm_native_init, &own)) {
		native.own_start = own.start;
		native.own_end = own.end;
	}
	native.chosen = NULL;
	native.checked = false;
	native.registered = !only || strcmp(only, gm_unwinder_tables.name) != 0;
	native.has_tables = init_tables();
	for (unsigned i = 0; i < sizeof(order) / sizeof(*order); i++) {
		if (only && strcmp(only, order[i]->name))
			continue;
		if (!works(order[i]))
			continue;
		native.chosen = order[i];
		if (order[i] == &gm_unwinder_libunwind)
			native.libgcc_works = works(&gm_unwinder_libgcc);
		return;
	}
}

static void settle_cache(void)
{
	gm_native_cached =
		native.chosen == &gm_unwinder_tables && !native.no_cache && !native.checked;
}

bool gm_native_init(const char *only)
{
	gm_thread_stack_init();
	choose(only);
	settle_cache();
	return native.chosen;
}

bool gm_native_check(void (*log)(const char *line))
{
	struct gm_object object;

	native.checked = native.chosen == &gm_unwinder_tables && open_libunwind(&object) &&
			 gm_unwinder_check_init(&object, log);
	settle_cache();
	return native.checked;
}

void gm_native_use_cache(bool keep)
{
	native.no_cache = !keep;
	gm_cfi_use_cache(keep);
	settle_cache();
}

/*
 * libunwind 1.6 cannot be made to forget: a library loaded where another was gives wrong frames, so
 * from then on libgcc has to do.
 */
void gm_native_code_unloaded(void)
{
	gm_cfi_forget();
	if (native.chosen == &gm_unwinder_libunwind && native.libgcc_works)
		native.chosen = &gm_unwinder_libgcc;
}

/*
 * A thread that is not there may have had one of libunwind's locks. libgcc's only guard what JIT
 * compilers register.
 */
void gm_native_in_child(void)
{
	native.checked = false;
	if (native.chosen == &gm_unwinder_libunwind && (native.has_tables || native.libgcc_works))
		native.chosen = native.has_tables ? &gm_unwinder_tables : &gm_unwinder_libgcc;
	settle_cache();
}

const char *gm_native_name(void)
{
	if (native.checked)
		return "unwind tables, compared with libunwind";
	return native.chosen ? native.chosen->name : "none";
}

/*
 * By an unwinder that begins where it is. Those that do not look before they read only get stacks
 * that can be read; of others the tables' walk is what there is.
 */
static void walk_from_inside(const struct gm_unwinder *unwinder, struct gm_walk *walk)
{
	if (!looks_before_it_reads(unwinder) && !is_whole_by_tables()) {
		walk_tables(walk);
		return;
	}
	if (walk->sp)
		walk->max += walk->spare;
	walk->sp = 0;
	if (!gm_objects_enter()) {
		walk->incomplete = true;
		return;
	}
	unwinder->walk(walk);
	gm_objects_leave();
}

/* Returns how many of a walk's innermost frames are the shim's. */
static unsigned count_own(const struct gm_walk *walk)
{
	unsigned own = 0;

	while (own < walk->frames && gm_native_is_own(walk->pc[own]))
		own++;
	return own;
}

void gm_native_walk(struct gm_walk *walk)
{
	walk->frames = 0;
	walk->hashed = false;
	walk->kept = false;
	walk->incomplete = false;
	if (native.chosen == &gm_unwinder_tables)
		walk_tables(walk);
	else if (native.chosen)
		walk_from_inside(native.chosen, walk);
	if (native.checked)
		gm_unwinder_check(walk, count_own(walk));
	/* no tail call: our frame is one that callers count on */
	__asm__ volatile("" ::: "memory");
}

bool gm_native_is_own(uintptr_t pc)
{
	return pc >= native.own_start && pc < native.own_end;
}
