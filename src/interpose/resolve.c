/*
 * Finding the real functions (resolve.h).
 */
#include "interpose/resolve.h"
#include "interpose/preload.h"
#include "stack/arena.h"
#include "stack/elf_symbols.h"
#include "stack/stack.h"
#include "store/lock.h"

#include <dlfcn.h>
#include <string.h>

#define NAME_SLOTS 1024 /* power of two, over twice the rows */
#define REAL_SLOTS 1024
#define SITE_SLOTS 2048
#define RTLD_DEFAULT_HANDLE ((void *)0)
#define RTLD_NEXT_HANDLE ((void *)-1l)

void *gm_driver_real[GM_FUNCTIONS];

struct call_site {
	uintptr_t caller;
	uint32_t function, generation;
	void *real;
};

static struct {
	struct gm_lock lock;		/* guards what is below but the two flags and `sites` */
	uint16_t by_name[NAME_SLOTS];	/* row + 1, open addressing */
	uint16_t by_real[REAL_SLOTS];	/* driver row + 1 by its real address */
	uintptr_t libcuda_start, libcuda_end;
	uintptr_t own_start, own_end;	/* our own object */
	uintptr_t instances[GM_INSTANCES]; /* base of the cudart that each instance stands for */
	void *instance_real[GM_INSTANCES][GM_FUNCTIONS];
	struct gm_arena arena;		/* call sites; never freed, readers hold no lock */
	bool names_ready;
	bool driver_seen;
	struct call_site *sites[SITE_SLOTS];
} resolve;

static uint32_t generation; /* raised by every dlclose */

uint32_t gm_unloads(void)
{
	return __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
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

	if (__atomic_load_n(&resolve.names_ready, __ATOMIC_ACQUIRE))
		return;
	gm_lock_acquire(&resolve.lock);
	for (row = 0; row < GM_FUNCTIONS && !resolve.names_ready; row++) {
		uint32_t slot = hash_name(gm_rows[row].name);

		while (resolve.by_name[slot % NAME_SLOTS])
			slot++;
		resolve.by_name[slot % NAME_SLOTS] = (uint16_t)(row + 1);
	}
	__atomic_store_n(&resolve.names_ready, true, __ATOMIC_RELEASE);
	gm_lock_release(&resolve.lock);
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

	gm_driver_real[function] = real;
	for (slot = hash_address(real); resolve.by_real[slot % REAL_SLOTS]; slot++)
		if (gm_driver_real[resolve.by_real[slot % REAL_SLOTS] - 1] == real)
			return; /* an alias: the first row stands for it */
	__atomic_store_n(&resolve.by_real[slot % REAL_SLOTS], (uint16_t)(function + 1),
			 __ATOMIC_RELEASE);
}

/* Finds every driver row in libcuda. Again when another libcuda took its place. */
static bool ready_driver(void)
{
	struct gm_object libcuda;
	unsigned row;

	if (__atomic_load_n(&resolve.driver_seen, __ATOMIC_ACQUIRE))
		return true;
	if (!gm_objects_each(find_libcuda, &libcuda))
		return false;
	gm_lock_acquire(&resolve.lock);
	for (row = 0; row < GM_FUNCTIONS && !resolve.driver_seen; row++) {
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
	gm_lock_release(&resolve.lock);
	gm_driver_found();
	return true;
}

bool gm_driver_seen(void)
{
	return __atomic_load_n(&resolve.driver_seen, __ATOMIC_ACQUIRE);
}

/* A program that links libcuda itself, or calls through a hook library between us and it. */
void *gm_driver_find(enum gm_function function)
{
	void *real = gm_driver_real[function];

	if (real)
		return real;
	ready_driver();
	return gm_driver_real[function];
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
	if (!gm_driver_wrapper[function])
		return hook;
	gm_lock_acquire(&resolve.lock);
	enter_real(function, hook);
	gm_lock_release(&resolve.lock);
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

void *gm_runtime_find(enum gm_function function, unsigned major, uintptr_t caller)
{
	uint64_t hash = (caller ^ ((uint64_t)function << 48)) * 0x9e3779b97f4a7c15ull;
	struct call_site **slot = &resolve.sites[(hash >> 40) % SITE_SLOTS], *site;
	uint32_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
	void *real;

	site = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	if (site && site->caller == caller && site->function == function && site->generation == now)
		return site->real;
	real = search_runtime(function, major, caller);
	if (!real)
		return NULL;
	gm_lock_acquire(&resolve.lock);
	site = gm_arena_alloc(&resolve.arena, sizeof(*site));
	gm_lock_release(&resolve.lock);
	if (site) {
		*site = (struct call_site){caller, function, now, real};
		__atomic_store_n(slot, site, __ATOMIC_RELEASE);
	}
	return real;
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

	gm_lock_acquire(&resolve.lock);
	for (i = 0; i < GM_INSTANCES; i++) {
		if (resolve.instances[i] && resolve.instances[i] != cudart->base)
			continue;
		resolve.instances[i] = cudart->base;
		resolve.instance_real[i][function] = real;
		if (gm_runtime_wrapper[i][function])
			wrapper = gm_runtime_wrapper[i][function];
		break;
	}
	gm_lock_release(&resolve.lock);
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

/* Raises the generation after each unloading: call sites and modules are to be looked at again. */
__attribute__((visibility("default"))) int dlclose(void *handle)
{
	static int (*real)(void *);
	int result;

	if (!real)
		real = (int (*)(void *))gm_next_symbol("dlclose");
	if (!real)
		return -1;
	result = real(handle);
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
	gm_stack_modules_changed();
	return result;
}
