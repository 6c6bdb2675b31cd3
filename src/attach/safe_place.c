/*
 * Tells whether a stopped thread stands where a call may be made in it (safe_place.h).
 */
#include "attach/safe_place.h"

#include <elf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#define MOST_RANGES	  64
#define LEAST_STACK	  (192u << 10) /* dlopen and the shim's constructor take a third of it */
#define LEAST_FOR_CUDA	  (512u << 10) /* the stack that CUPTI takes is not known */
#define RSEQ_CRITICAL	  8	       /* offset of rseq_cs in struct rseq */
#define R_STATE		  24	       /* offset of r_state in struct r_debug */
#define STACK_LOCK	  48	       /* offset of _dl_stack_cache_lock from _dl_stack_user */
#define MOST_LOCK	  2	       /* of a lock's word: taken, and waited for */
#define STATICS_OF_MALLOC 0x4000 /* malloc.c's static functions lie before its exported ones */
#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

struct range {
	uint64_t start, end;
	const char *what;
	bool cuda; /* in the way of calls that call the driver, and of no others */
};

struct gm_safe_place {
	const struct gm_target *target;
	struct range ranges[MOST_RANGES];
	unsigned count;
	uint64_t libc_start, loader_start;
	uint64_t r_state; /* address of the loader's r_debug.r_state */
	uint64_t stack_lock; /* address of the word of the lock of thread stacks; 0: not known */
	Dwfl *dwfl;
	const char *why;   /* of the frames that are being looked at */
	bool outside_cuda; /* they may not lie in CUDA */
};

const char gm_other_program[] = "it has begun another program";

static void add(struct gm_safe_place *place, uint64_t start, uint64_t end, const char *what)
{
	if (place->count < MOST_RANGES && start < end)
		place->ranges[place->count++] = (struct range){start, end, what, false};
}

/* The driver, its companions, the runtime and CUPTI, whose locks a thread may hold. */
static void add_cuda(struct gm_safe_place *place)
{
	static const char *const names[] = {"libcuda.so", "libcudart", "libcupti", "libnvidia-"};

	for (unsigned i = 0; i < place->target->count; i++) {
		const struct gm_target_object *object = &place->target->objects[i];
		const char *slash = strrchr(object->path, '/');

		for (size_t k = 0; slash && k < sizeof(names) / sizeof(names[0]); k++)
			if (strncmp(slash + 1, names[k], strlen(names[k])) == 0 &&
			    place->count < MOST_RANGES)
				place->ranges[place->count++] = (struct range){
					object->start, object->end, "it is in CUDA", true};
	}
}

/*
 * libc has no symbols for malloc's inner functions. malloc.c is one translation unit, so they lie
 * between the exported ones and shortly before.
 */
static void add_malloc_of_libc(struct gm_safe_place *place, const struct gm_target_object *libc)
{
	static const char *const names[] = {"malloc",	"free",	       "calloc",       "realloc",
					    "memalign", "malloc_trim", "malloc_stats", "mallopt",
					    "mallinfo", "malloc_info"};
	uint64_t lowest = UINT64_MAX, highest = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t size = 0,
			 at = gm_target_symbol(place->target, libc, NULL, names[i], &size);

		if (at && at < lowest)
			lowest = at;
		if (at && at + size > highest)
			highest = at + size;
	}
	if (highest)
		add(place, lowest > STATICS_OF_MALLOC ? lowest - STATICS_OF_MALLOC : 0, highest,
		    "it is in malloc");
}

/* Adds functions of libc that hold a lock which a call takes too. */
static void add_functions(struct gm_safe_place *place, const struct gm_target_object *libc,
			  const char *const *names, size_t count, const char *what)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t size = 0,
			 at = gm_target_symbol(place->target, libc, NULL, names[i], &size);

		if (at)
			add(place, at, at + size, what);
	}
}

/*
 * fork() holds malloc's lock and that of stdio while the kernel copies the process, and the locks
 * that handlers of pthread_atfork took before it [glibc 2.41, posix/fork.c, __libc_fork]. The shim
 * adds handlers of exit and fork, whose lists have a lock each.
 */
static void add_lists_of_libc(struct gm_safe_place *place, const struct gm_target_object *libc)
{
	static const char *const forks[] = {"fork", "_Fork"};
	static const char *const lists[] = {"exit", "on_exit", "__cxa_atexit", "__cxa_finalize",
					    "__register_atfork"};

	add_functions(place, libc, forks, 2, "it is in fork, which holds malloc's lock");
	add_functions(place, libc, lists, sizeof(lists) / sizeof(lists[0]),
		      "it is in exit, or changes the handlers of exit or fork");
}

/*
 * dlopen makes room for the shim's thread-local storage in all threads, and takes the lock of the
 * lists of their stacks for that. Threads hold it while they create or free others, and wait for
 * the end of others in the same functions without it, so the word of the lock is read. Debuggers
 * are told where the second of the lists is; the lock comes after the third, a size and an address
 * [glibc 2.34 to 2.43, sysdeps/generic/ldsodefs.h, struct rtld_global]. Before, it was a static
 * variable of libpthread, whose symbols are kept for debuggers.
 */
static uint64_t find_stack_lock(const struct gm_target *target, const struct gm_target_object *libc,
				const struct gm_target_object *loader)
{
	const struct gm_target_object *threads = gm_target_find(target, "libpthread");
	uint64_t globals = gm_target_symbol(target, loader, NULL, "_rtld_global", NULL);
	uint64_t described =
		gm_target_symbol(target, libc, NULL, "_thread_db_rtld_global__dl_stack_user", NULL);
	uint32_t field[3], word; /* bits, elements, offset [glibc, nptl_db/db_info.c] */
	uint64_t lock = 0;

	if (globals && described && gm_target_read(target, described, field, sizeof(field)))
		lock = globals + field[2] + STACK_LOCK;
	else if (threads)
		lock = gm_target_static_symbol(target, threads, "stack_cache_lock");
	/* A word that is no lock's lies in a C library that is not known. */
	return lock && gm_target_read(target, lock, &word, sizeof(word)) && word <= MOST_LOCK ? lock
											      : 0;
}

/* Every object with a malloc of its own, such as jemalloc, counts as a whole. */
static void add_mallocs(struct gm_safe_place *place, const struct gm_target_object *libc)
{
	for (unsigned i = 0; i < place->target->count; i++) {
		const struct gm_target_object *object = &place->target->objects[i];
		const char *slash = strrchr(object->path, '/');

		if (!object->code || object == libc || strncmp(slash + 1, "ld-linux", 8) == 0)
			continue;
		if (gm_target_symbol(place->target, object, NULL, "malloc", NULL))
			add(place, object->start, object->end, "it is in malloc");
	}
}

/* ---- the unwinder's callbacks ---- */

/* The file as the process sees it; what cannot be opened is read from its memory. */
static int find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	const struct gm_safe_place *place = *data;
	int fd = *name == '/' ? gm_target_open_object(place->target, name) : -1;

	if (fd < 0)
		return dwfl_linux_proc_find_elf(module, data, name, base, file_name, elf);
	*file_name = strdup(name);
	return fd;
}

/* Unwind tables are enough: files with debug information would take long to find and to read. */
static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			     const char *file, const char *link, GElf_Word crc, char **debug_file)
{
	(void)module, (void)data, (void)name, (void)base;
	(void)file, (void)link, (void)crc, (void)debug_file;
	return -1;
}

static int remember_place(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			  void *place)
{
	(void)module, (void)name, (void)base;
	*data = place;
	return DWARF_CB_OK;
}

/*
 * Reads a module's unwind table now: the unwinder would do it at the first frame in the module,
 * while a thread is stopped.
 */
static int read_unwind_table(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			     void *unused)
{
	Dwarf_Addr bias;

	(void)data, (void)name, (void)base, (void)unused;
	dwfl_module_eh_cfi(module, &bias);
	return DWARF_CB_OK;
}

static bool prepare_unwinder(struct gm_safe_place *place, char *error, size_t bytes)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = find_elf,
						 .find_debuginfo = find_no_debuginfo};
	pid_t pid = place->target->pid;

	place->dwfl = dwfl_begin(&callbacks);
	if (place->dwfl && dwfl_linux_proc_report(place->dwfl, pid) == 0 &&
	    dwfl_report_end(place->dwfl, NULL, NULL) == 0) {
		dwfl_getmodules(place->dwfl, remember_place, place, 0);
		dwfl_getmodules(place->dwfl, read_unwind_table, NULL, 0);
		if (dwfl_linux_proc_attach(place->dwfl, pid, true) == 0)
			return true;
	}
	snprintf(error, bytes, "the stacks of process %d cannot be unwound: %s", pid,
		 dwfl_errmsg(-1));
	return false;
}

struct gm_safe_place *gm_safe_place_open(const struct gm_target *target, char *error,
					 size_t error_bytes)
{
	struct gm_safe_place *place = calloc(1, sizeof(*place));
	const struct gm_target_object *libc, *loader, *shim;

	if (!place) {
		snprintf(error, error_bytes, "out of memory");
		return NULL;
	}
	place->target = target;
	libc = gm_target_find(target, "libc.so.6");
	if (!libc)
		libc = gm_target_find(target, "libc-2.");
	loader = gm_target_find(target, "ld-linux");
	if (!loader)
		loader = gm_target_find(target, "ld-2.");
	shim = gm_target_find(target, "libgpumemtrace");
	if (!libc || !loader) {
		snprintf(error, error_bytes, "process %d has no loader", target->pid);
		free(place);
		return NULL;
	}
	place->libc_start = libc->start;
	place->loader_start = loader->start;
	place->r_state = gm_target_symbol(target, loader, NULL, "_r_debug", NULL);
	place->r_state += place->r_state ? R_STATE : 0;
	place->stack_lock = find_stack_lock(target, libc, loader);
	add(place, loader->start, loader->end, "it is in the loader");
	if (shim)
		add(place, shim->start, shim->end, "it is in the shim");
	add_malloc_of_libc(place, libc);
	add_lists_of_libc(place, libc);
	add_mallocs(place, libc);
	add_cuda(place);
	if (prepare_unwinder(place, error, error_bytes))
		return place;
	gm_safe_place_close(place);
	return NULL;
}

void gm_safe_place_close(struct gm_safe_place *place)
{
	if (place && place->dwfl)
		dwfl_end(place->dwfl);
	free(place);
}

/* ---- one thread ---- */

static const char *bad_place(const struct gm_safe_place *place, uint64_t pc)
{
	for (unsigned i = 0; i < place->count; i++)
		if (pc >= place->ranges[i].start && pc < place->ranges[i].end &&
		    (place->outside_cuda || !place->ranges[i].cuda))
			return place->ranges[i].what;
	return NULL;
}

static int look_at_frame(Dwfl_Frame *frame, void *data)
{
	struct gm_safe_place *place = data;
	bool exact;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, &exact)) {
		place->why = "its stack cannot be unwound";
		return DWARF_CB_ABORT;
	}
	place->why = bad_place(place, exact ? pc : pc - 1);
	return place->why ? DWARF_CB_ABORT : DWARF_CB_OK;
}

/* In a restartable sequence the kernel would resume the thread elsewhere. */
static bool in_restartable_sequence(const struct gm_safe_place *place, pid_t thread)
{
	struct {
		uint64_t address;
		uint32_t size, signature, flags, padding;
	} rseq = {0};
	uint64_t critical = 0;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, thread, sizeof(rseq), &rseq) <= 0 ||
	    !rseq.address)
		return false;
	return !gm_target_read(place->target, rseq.address + RSEQ_CRITICAL, &critical,
			       sizeof(critical)) ||
	       critical;
}

/* After exec other objects lie where these did, if any. */
static bool is_object(const struct gm_target *target, uint64_t start)
{
	char magic[SELFMAG];

	return gm_target_read(target, start, magic, sizeof(magic)) &&
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

const char *gm_unsafe(struct gm_safe_place *place, pid_t thread, uint64_t pc, uint64_t sp,
		      bool outside_cuda)
{
	uint32_t state = 0;

	if (!is_object(place->target, place->loader_start) ||
	    !is_object(place->target, place->libc_start))
		return gm_other_program;
	place->outside_cuda = outside_cuda;
	place->why = bad_place(place, pc);
	if (place->why)
		return place->why;
	if (in_restartable_sequence(place, thread))
		return "it is in a restartable sequence";
	if (place->stack_lock &&
	    (!gm_target_read(place->target, place->stack_lock, &state, sizeof(state)) || state))
		return "the list of the threads' stacks is changing";
	if (place->r_state &&
	    (!gm_target_read(place->target, place->r_state, &state, sizeof(state)) || state))
		return "the loader's list is changing";
	if (gm_target_stack_room(place->target, sp) < (outside_cuda ? LEAST_FOR_CUDA : LEAST_STACK))
		return "its stack is small";
	if (dwfl_getthread_frames(place->dwfl, thread, look_at_frame, place) && !place->why)
		place->why = "its stack cannot be unwound to its end";
	return place->why;
}
