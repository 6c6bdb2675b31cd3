/*
 * Finding the real functions (resolve.h).
 */
#include "interpose/resolve.h"
#include "interpose/ask.h"
#include "interpose/own_page.h"
#include "interpose/preload.h"
#include "stack/elf_symbols.h"
#include "stack/stack.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define NAME_SLOTS 1024 /* power of two, over twice the rows */
#define REAL_SLOTS 1024
#define SITE_SLOTS 2048
#define RTLD_DEFAULT_HANDLE ((void *)0)
#define RTLD_NEXT_HANDLE ((void *)-1l)

void *gm_driver_real[GM_FUNCTIONS];

/* What a call site reaches. `sequence` is odd while it changes; readers hold no lock. */
struct call_site {
	uint32_t sequence;
	uint32_t function, generation;
	uintptr_t caller;
	void *real;
};

/* Changed under the lock `resolve` of the own page; read without it. */
static struct {
	uint16_t by_name[NAME_SLOTS];	/* row + 1, open addressing */
	uint16_t by_real[REAL_SLOTS];	/* driver row + 1 by its real address */
	uintptr_t libcuda_start, libcuda_end;
	uintptr_t own_start, own_end;	/* our own object */
	uintptr_t instances[GM_INSTANCES]; /* base of the cudart that each instance stands for */
	void *instance_real[GM_INSTANCES][GM_FUNCTIONS];
	bool names_ready;
	bool driver_seen;
	struct call_site sites[SITE_SLOTS];
} resolve;

GM_HOT uint32_t gm_generation; /* raised by every dlclose */

/* This thread holds the lock: a signal handler that comes between must not wait for it. */
static __thread uint8_t resolving __attribute__((tls_model("initial-exec")));

static bool lock_resolve(void)
{
	if (resolving)
		return false;
	resolving = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	gm_lock_acquire(&gm_own_page()->resolve);
	return true;
}

static void unlock_resolve(void)
{
	gm_lock_release(&gm_own_page()->resolve);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	resolving = 0;
}

/* ---- objects ---- */

static void own_range(void)
{
	struct gm_object own;

	if (!resolve.own_end && gm_object_at((uintptr_t)&own_range, &own)) {
		resolve.own_start = own.start;
		__atomic_store_n(&resolve.own_end, own.end, __ATOMIC_RELEASE);
	}
}

static bool is_own(uintptr_t address)
{
	own_range();
	return address >= resolve.own_start && address < resolve.own_end;
}

/* "libcuda.so", "libcuda.so.1", "libcuda.so.580.159.04"; not libcuda_stub.so. */
static bool named(const char *name, const char *library)
{
	size_t bytes = strlen(library);

	if (!name || strncmp(name, library, bytes))
		return false;
	for (name += bytes; *name; name++)
		if (*name != '.' && (*name < '0' || *name > '9'))
			return false;
	return true;
}

static bool is_libcuda(const struct gm_object *object)
{
	return named(gm_object_basename(object), "libcuda.so") ||
	       named(gm_object_soname(object), "libcuda.so");
}

/* Wheels rename libraries: libcudart-d9f3.so.12, libcudart.d9f3.so.12. A libcudart_stub.so is none. */
static bool is_cudart(const struct gm_object *object)
{
	const char *name = gm_object_basename(object), *soname = gm_object_soname(object);

	if (soname && !strncmp(soname, "libcudart.so", 12))
		return true;
	return !strncmp(name, "libcudart", 9) && (name[9] == '.' || name[9] == '-') &&
	       strstr(name, ".so") != NULL;
}

static int find_libcuda(const struct gm_object *object, void *data)
{
	if (is_own(object->start) || !is_libcuda(object))
		return 0;
	*(struct gm_object *)data = *object;
	return 1;
}

bool gm_libcuda_loaded(void)
{
	struct gm_object object;

	return gm_objects_each(find_libcuda, &object) != 0;
}

void *gm_libcuda_symbol(const char *name)
{
	struct gm_object object;

	if (!gm_objects_each(find_libcuda, &object))
		return NULL;
	return gm_object_symbol(&object, name, NULL);
}

struct next_search {
	const char *name;
	bool passed_own;
	void *found;
};

static int next_definition(const struct gm_object *object, void *data)
{
	struct next_search *search = data;

	if (is_own(object->start)) {
		search->passed_own = true;
		return 0;
	}
	if (search->passed_own)
		search->found = gm_object_symbol(object, search->name, NULL);
	return search->found != NULL;
}

void *gm_next_symbol(const char *name)
{
	struct next_search search = {.name = name};

	gm_objects_each(next_definition, &search);
	if (!search.found) { /* loaded late: libc came before us */
		search.passed_own = true;
		gm_objects_each(next_definition, &search);
	}
	return search.found;
}

/* ---- rows by name and by real address ---- */

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash;
}

static uint32_t hash_address(const void *address)
{
	return (uint32_t)(((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15ull >> 40);
}

static void ready_names(void)
{
	unsigned row;

	if (__atomic_load_n(&resolve.names_ready, __ATOMIC_ACQUIRE) || !lock_resolve())
		return;
	for (row = 0; row < GM_FUNCTIONS && !resolve.names_ready; row++) {
		uint32_t slot = hash_name(gm_rows[row].name);
		uint16_t taken;

		/* a fork can have come between: what is there already stays */
		while ((taken = resolve.by_name[slot % NAME_SLOTS]) != 0 && taken != row + 1)
			slot++;
		resolve.by_name[slot % NAME_SLOTS] = (uint16_t)(row + 1);
	}
	__atomic_store_n(&resolve.names_ready, true, __ATOMIC_RELEASE);
	unlock_resolve();
}

/* The first row of that name (the runtime has two of some, one per signature) or GM_FUNCTIONS. */
static enum gm_function row_named(const char *name, unsigned majors)
{
	uint32_t slot;

	ready_names();
	for (slot = hash_name(name); resolve.by_name[slot % NAME_SLOTS]; slot++) {
		const struct gm_row *row = &gm_rows[resolve.by_name[slot % NAME_SLOTS] - 1];

		if (!strcmp(row->name, name) && (!row->majors || (row->majors & majors)))
			return (enum gm_function)(row - gm_rows);
	}
	return GM_FUNCTIONS;
}

static void enter_real(enum gm_function function, void *real)
{
	uint32_t slot;

	__atomic_store_n(&gm_driver_real[function], real, __ATOMIC_RELEASE);
	for (slot = hash_address(real); resolve.by_real[slot % REAL_SLOTS]; slot++)
		if (gm_driver_real[resolve.by_real[slot % REAL_SLOTS] - 1] == real)
			return; /* an alias: the first row stands for it */
	__atomic_store_n(&resolve.by_real[slot % REAL_SLOTS], (uint16_t)(function + 1),
			 __ATOMIC_RELEASE);
}

/* Finds every driver row in libcuda; again when it was unloaded and another took its place. */
static bool ready_driver(void)
{
	struct gm_object libcuda;
	bool first;
	unsigned row;

	if (__atomic_load_n(&resolve.driver_seen, __ATOMIC_ACQUIRE))
		return true;
	if (!gm_objects_each(find_libcuda, &libcuda) || !lock_resolve())
		return false;
	first = !resolve.driver_seen;
	for (row = 0; row < GM_FUNCTIONS && first; row++) {
		void *real;

		if (gm_rows[row].layer != GM_LAYER_DRIVER)
			continue;
		real = gm_object_symbol(&libcuda, gm_rows[row].name, NULL);
		if (real)
			enter_real((enum gm_function)row, real);
	}
	resolve.libcuda_start = libcuda.start;
	resolve.libcuda_end = libcuda.end;
	__atomic_store_n(&resolve.driver_seen, true, __ATOMIC_RELEASE);
	unlock_resolve();
	if (first) /* no other thread waits for this: it opens libraries */
		gm_driver_found();
	return true;
}

static int is_there(const struct gm_object *object, void *data)
{
	return object->base == *(const uintptr_t *)data;
}

static int libcuda_is_there(const struct gm_object *object, void *data)
{
	(void)data;
	return object->start == resolve.libcuda_start && is_libcuda(object);
}

/* After an unloading: nothing may be kept of a libcuda or cudart that is gone. */
static void forget_unloaded(void)
{
	unsigned i;

	if (!__atomic_load_n(&resolve.driver_seen, __ATOMIC_ACQUIRE) && !resolve.instances[0])
		return;
	if (!lock_resolve())
		return;
	if (resolve.driver_seen && !gm_objects_each(libcuda_is_there, NULL)) {
		__atomic_store_n(&resolve.driver_seen, false, __ATOMIC_RELEASE);
		memset(resolve.by_real, 0, sizeof(resolve.by_real));
		memset(gm_driver_real, 0, sizeof(gm_driver_real));
		gm_ask_init();
	}
	for (i = 0; i < GM_INSTANCES; i++)
		if (resolve.instances[i] && !gm_objects_each(is_there, &resolve.instances[i])) {
			memset(resolve.instance_real[i], 0, sizeof(resolve.instance_real[i]));
			resolve.instances[i] = 0;
		}
	unlock_resolve();
}

bool gm_driver_seen(void)
{
	return __atomic_load_n(&resolve.driver_seen, __ATOMIC_ACQUIRE);
}

/* A program that links libcuda itself, or calls through a hook library between us and it. */
void *gm_driver_search(enum gm_function function)
{
	void *real;

	ready_driver();
	real = gm_driver_real[function];
	/* a signal handler came into the first look-up, whose lock this thread holds */
	return real || !resolving ? real : gm_libcuda_symbol(gm_rows[function].name);
}

static void *wrapper_by_real(void *real)
{
	uint32_t slot;
	uint16_t row;

	for (slot = hash_address(real); (row = resolve.by_real[slot % REAL_SLOTS]) != 0; slot++)
		if (gm_driver_real[row - 1] == real)
			return gm_driver_wrapper[row - 1];
	return NULL;
}

/* A hook's own function came back instead of the driver's: ours goes in front of it. */
static void *adopt(enum gm_function function, void *hook)
{
	if (!gm_driver_wrapper[function] || !lock_resolve())
		return hook;
	enter_real(function, hook);
	unlock_resolve();
	return gm_driver_wrapper[function];
}

static bool in_libcuda(const void *address)
{
	return (uintptr_t)address >= resolve.libcuda_start &&
	       (uintptr_t)address < resolve.libcuda_end;
}

/* Latest variant of a name as cuGetProcAddress gives it: NAME_v2 before NAME, _ptsz by the flag. */
static enum gm_function latest_variant(const char *symbol, uint64_t flags)
{
	static const char *const versions[] = {"_v4", "_v3", "_v2", ""};
	char name[128];
	unsigned i;

	for (i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		enum gm_function row;
		size_t bytes = strlen(symbol) + strlen(versions[i]);

		if (bytes + sizeof("_ptsz") > sizeof(name))
			return GM_FUNCTIONS;
		strcpy(stpcpy(name, symbol), versions[i]);
		if (flags & 2) { /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
			strcpy(name + bytes, "_ptsz");
			row = row_named(name, 7);
			if (row < GM_FUNCTIONS && gm_rows[row].layer == GM_LAYER_DRIVER)
				return row;
			name[bytes] = '\0';
		}
		row = row_named(name, 7);
		if (row < GM_FUNCTIONS && gm_rows[row].layer == GM_LAYER_DRIVER)
			return row;
	}
	return GM_FUNCTIONS;
}

void *gm_wrapper_of(void *real, const char *symbol, uint64_t flags)
{
	enum gm_function function;
	void *wrapper;

	if (!real || is_own((uintptr_t)real) || !ready_driver())
		return real;
	wrapper = wrapper_by_real(real);
	if (wrapper)
		return wrapper;
	if (in_libcuda(real))
		return real; /* a function that is no row */
	function = latest_variant(symbol, flags);
	return function < GM_FUNCTIONS ? adopt(function, real) : real;
}

/* ---- the runtime ---- */

static unsigned major_of(const struct gm_object *cudart)
{
	static const struct {
		const char *version;
		unsigned major;
	} nodes[] = {{"libcudart.so.13", 13}, {"libcudart.so.12", 12}, {"libcudart.so.11.0", 11}};
	const char *soname = gm_object_soname(cudart), *dot;
	size_t i;

	for (i = 0; i < sizeof(nodes) / sizeof(*nodes); i++)
		if (gm_object_symbol(cudart, "cudaMalloc", nodes[i].version))
			return nodes[i].major;
	dot = soname ? strstr(soname, ".so.") : NULL;
	return dot ? (unsigned)(dot[4] - '0') * 10 + (unsigned)(dot[5] - '0') : 0;
}

static const char *node_of(unsigned major)
{
	return major == 13 ? "libcudart.so.13" : major == 12 ? "libcudart.so.12" : "libcudart.so.11.0";
}

struct runtime_search {
	const char *name, *version;
	const struct gm_object *caller;
	bool passed_own, needed_only, versioned_only;
	void *found;
};

static bool is_needed_by(const struct gm_object *caller, const struct gm_object *object)
{
	const char *needed, *soname = gm_object_soname(object), *name = gm_object_basename(object);
	unsigned i;

	for (i = 0; (needed = gm_object_needed(caller, i)) != NULL; i++) {
		const char *slash = strrchr(needed, '/');

		if (slash)
			needed = slash + 1;
		if (!strcmp(needed, name) || (soname && !strcmp(needed, soname)))
			return true;
	}
	return false;
}

static int runtime_definition(const struct gm_object *object, void *data)
{
	struct runtime_search *search = data;

	if (is_own(object->start)) {
		search->passed_own = true;
		return 0;
	}
	if (search->needed_only ? !is_needed_by(search->caller, object) : !search->passed_own)
		return 0;
	search->found = gm_object_symbol(object, search->name, search->version);
	/* A hook library's definition has no version, and the loader takes it for any. */
	if (!search->found && (!search->versioned_only || !is_cudart(object)))
		search->found = gm_object_symbol(object, search->name, NULL);
	return search->found != NULL;
}

static int other_hook(const struct gm_object *object, void *data)
{
	struct runtime_search *search = data;

	if (is_own(object->start)) {
		search->passed_own = true;
		return 0;
	}
	/* Preloads stand behind us and before every library; theirs has cudaMalloc but is no cudart. */
	if (!search->passed_own || is_cudart(object) || !gm_preloaded(object))
		return 0;
	search->found = gm_object_symbol(object, search->name, NULL);
	return search->found != NULL;
}

/*
 * In the order in which the loader would have looked: another preload behind us; the library that the
 * caller itself names as needed; any loaded library with the caller's symbol version; any with that
 * name at all. Libraries loaded RTLD_LOCAL are in no global scope but reach theirs by DT_NEEDED.
 */
static void *search_runtime(enum gm_function function, unsigned major, uintptr_t caller_pc)
{
	struct runtime_search search = {.name = gm_rows[function].name, .version = node_of(major)};
	struct gm_object caller;
	const char *version;

	if (gm_objects_each(other_hook, &search))
		return search.found;
	if (gm_object_at(caller_pc, &caller)) {
		search.caller = &caller;
		version = gm_object_needed_version(&caller, search.name, NULL);
		if (version)
			search.version = version;
		search.needed_only = true;
		search.versioned_only = version != NULL;
		if (gm_objects_each(runtime_definition, &search))
			return search.found;
	}
	search.needed_only = false;
	search.passed_own = true;
	search.versioned_only = true;
	if (gm_objects_each(runtime_definition, &search))
		return search.found;
	search.versioned_only = false;
	gm_objects_each(runtime_definition, &search);
	return search.found;
}

/* What the call site is known to reach, NULL if nothing or something else is kept in its slot. */
static inline void *read_site(const struct call_site *site, uintptr_t caller, uint32_t function, uint32_t now)
{
	uint32_t sequence = __atomic_load_n(&site->sequence, __ATOMIC_ACQUIRE);
	bool same = __atomic_load_n(&site->caller, __ATOMIC_RELAXED) == caller &&
		    __atomic_load_n(&site->function, __ATOMIC_RELAXED) == function &&
		    __atomic_load_n(&site->generation, __ATOMIC_RELAXED) == now;
	void *real = __atomic_load_n(&site->real, __ATOMIC_RELAXED);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!same || (sequence & 1) || sequence != __atomic_load_n(&site->sequence, __ATOMIC_RELAXED))
		return NULL;
	return real;
}

static void write_site(struct call_site *site, uintptr_t caller, uint32_t function, uint32_t now,
		       void *real)
{
	if (!lock_resolve())
		return;
	/* odd already: a fork came between, and the thread that wrote is not here */
	__atomic_store_n(&site->sequence, site->sequence | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&site->caller, caller, __ATOMIC_RELAXED);
	__atomic_store_n(&site->function, function, __ATOMIC_RELAXED);
	__atomic_store_n(&site->generation, now, __ATOMIC_RELAXED);
	__atomic_store_n(&site->real, real, __ATOMIC_RELAXED);
	__atomic_store_n(&site->sequence, site->sequence + 1, __ATOMIC_RELEASE);
	unlock_resolve();
}

/* Two sites of one slot have a second place each, so that they do not drive each other out for ever. */
/* The two places where a call site may be kept. */
static inline struct call_site *place_of(enum gm_function function, uintptr_t caller, unsigned which)
{
	uint64_t hash = (caller ^ ((uint64_t)function << 48)) * 0x9e3779b97f4a7c15ull;

	return &resolve.sites[(hash >> (which ? 20 : 40)) % SITE_SLOTS];
}

static __attribute__((noinline)) void *find_slowly(enum gm_function function, unsigned major,
						   uintptr_t caller)
{
	struct call_site *site = place_of(function, caller, 0), *other = place_of(function, caller, 1);
	uint32_t now = gm_unloads();
	void *real = read_site(other, caller, function, now);

	if (real)
		return real;
	real = search_runtime(function, major, caller);
	if (!real)
		return NULL;
	if (site->real && site->generation == now && !(other->real && other->generation == now))
		site = other;
	write_site(site, caller, function, now, real);
	return real;
}

void *gm_runtime_find(enum gm_function function, unsigned major, uintptr_t caller)
{
	void *real = read_site(place_of(function, caller, 0), caller, function, gm_unloads());

	return __builtin_expect(real != NULL, 1) ? real : find_slowly(function, major, caller);
}

void *gm_runtime_instance_real(unsigned instance, enum gm_function function)
{
	return resolve.instance_real[instance][function];
}

/* The wrapper that stands for this very cudart, or the function itself when there are too many. */
static void *wrap_runtime(enum gm_function function, void *real, const struct gm_object *cudart)
{
	void *wrapper = real;
	unsigned i;

	if (!lock_resolve())
		return real;
	for (i = 0; i < GM_INSTANCES; i++) {
		if (resolve.instances[i] && resolve.instances[i] != cudart->base)
			continue;
		resolve.instances[i] = cudart->base;
		resolve.instance_real[i][function] = real;
		if (gm_runtime_wrapper[i][function])
			wrapper = gm_runtime_wrapper[i][function];
		break;
	}
	unlock_resolve();
	return wrapper;
}

/* ---- dlsym ---- */

typedef void *dlsym_fn(void *handle, const char *name);

static dlsym_fn *real_dlsym;

/* For the trampoline (trampoline.S): the dlsym that callers would reach without us. */
void *gm_real_dlsym(void);
void *gm_real_dlsym(void)
{
	dlsym_fn *real = __atomic_load_n(&real_dlsym, __ATOMIC_ACQUIRE);

	if (!real) {
		real = (dlsym_fn *)gm_next_symbol("dlsym");
		__atomic_store_n(&real_dlsym, real, __ATOMIC_RELEASE);
	}
	return (void *)real;
}

static void *wrap_symbol(const char *name, void *real)
{
	struct gm_object object;
	enum gm_function function;

	if (!real || is_own((uintptr_t)real) || !gm_object_at((uintptr_t)real, &object))
		return real;
	if (name[2] == 'd' && is_cudart(&object)) { /* cuda... */
		unsigned major = major_of(&object);

		function = row_named(name, major >= 13 ? 4 : major == 12 ? 2 : 1);
		return function < GM_FUNCTIONS ? wrap_runtime(function, real, &object) : real;
	}
	function = row_named(name, 7);
	if (function == GM_FUNCTIONS || gm_rows[function].layer != GM_LAYER_DRIVER || !ready_driver())
		return real;
	if (real == gm_driver_real[function])
		return gm_driver_wrapper[function] ? gm_driver_wrapper[function] : real;
	return in_libcuda(real) ? real : adopt(function, real);
}

/*
 * For the trampoline: answers a look-up of one of our names in a real handle by `*result` and true;
 * false means that the caller's own jump to the real dlsym is to be made, from the caller's place.
 * RTLD_NEXT and RTLD_DEFAULT depend on who asks; the latter finds our exports by itself.
 */
bool gm_dlsym_hook(void *handle, const char *name, void **result);
bool gm_dlsym_hook(void *handle, const char *name, void **result)
{
	dlsym_fn *real;

	if (!name || name[0] != 'c' || name[1] != 'u' || handle == RTLD_DEFAULT_HANDLE ||
	    handle == RTLD_NEXT_HANDLE || gm_disabled())
		return false;
	if (row_named(name, 7) == GM_FUNCTIONS)
		return false;
	real = (dlsym_fn *)gm_real_dlsym();
	if (!real)
		return false;
	*result = wrap_symbol(name, real(handle, name));
	return true;
}

static int (*real_dlclose)(void *);

/* Raises the generation after each unloading: call sites and modules are to be looked at again. */
__attribute__((visibility("default"))) int dlclose(void *handle)
{
	int result, error;

	if (!real_dlclose)
		gm_resolve_init();
	if (!real_dlclose)
		return -1;
	result = real_dlclose(handle);
	error = errno;
	__atomic_fetch_add(&gm_generation, 1, __ATOMIC_RELEASE);
	forget_unloaded();
	gm_stack_modules_changed();
	errno = error;
	return result;
}

void gm_resolve_init(void)
{
	gm_real_dlsym();
	real_dlclose = (int (*)(void *))gm_next_symbol("dlclose");
	ready_names();
}
