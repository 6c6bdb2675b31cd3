/*
 * The real functions of the runtime (internal.h). A process may have several runtimes: an exported
 * name's function is found by the place of the call, a function that dlsym found by the cudart it
 * is of.
 */
#include "interpose/internal.h"
#include "interpose/resolve_runtime.h"
#include "recorder/state/libraries.h"
#include "store/hot.h"

#include <string.h>

#define SITE_BITS  11
#define SITE_SLOTS (1u << SITE_BITS)

/*
 * The function that a call site reaches. A seqlock: `sequence` is odd while the entry changes, and
 * readers hold no lock.
 */
struct call_site {
	uint32_t sequence;
	uint32_t generation;
	uint64_t key; /* the function and the return address of its call; 0: none yet */
	void *real;
} __attribute__((aligned(32)));

/* Changed under gm_lock_resolve; read without it. */
static struct {
	uintptr_t instances[GM_INSTANCES]; /* base of the cudart that each instance stands for */
	void *real[GM_INSTANCES][GM_FUNCTIONS];
} runtime;

static struct call_site sites[SITE_SLOTS]; /* changed and read likewise */

unsigned gm_cudart_major(const struct gm_object *cudart)
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
	return major == 13   ? "libcudart.so.13"
	       : major == 12 ? "libcudart.so.12"
			     : "libcudart.so.11.0";
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

	if (gm_pass_shims(object, &search->passed_own))
		return 0;
	if (search->needed_only ? !is_needed_by(search->caller, object) : !search->passed_own)
		return 0;
	search->found = gm_object_symbol(object, search->name, search->version);
	/* A hook library's definition has no version, and the loader takes it for any version. */
	if (!search->found && (!search->versioned_only || !gm_is_cudart(object)))
		search->found = gm_object_symbol(object, search->name, NULL);
	return search->found != NULL;
}

static int other_hook(const struct gm_object *object, void *data)
{
	struct runtime_search *search = data;

	if (gm_pass_shims(object, &search->passed_own))
		return 0;
	/*
	 * Other preloads stand behind the shim and before every library; one that has cudaMalloc
	 * and is no cudart is a hook.
	 */
	if (!search->passed_own || gm_is_cudart(object) || !gm_preloaded(object))
		return 0;
	search->found = gm_object_symbol(object, search->name, NULL);
	return search->found != NULL;
}

/*
 * Looks in the order in which the loader would have looked: in another preload behind the shim, in
 * the library that the caller itself names as needed, in any loaded library with the caller's
 * symbol version, in any with that name at all. Libraries loaded RTLD_LOCAL are in no global scope
 * but reach theirs by DT_NEEDED.
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

/* An address has 48 bits. */
static inline uint64_t key_of(enum gm_function function, uintptr_t caller)
{
	return caller ^ (uint64_t)(function + 1) << 48;
}

/* Reads what the call site reaches; false if the slot holds another site or an old answer. */
static inline bool read_site(const struct call_site *site, uint64_t key, uint32_t now, void **real)
{
	uint32_t sequence = __atomic_load_n(&site->sequence, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&site->key, __ATOMIC_RELAXED) != key ||
	    __atomic_load_n(&site->generation, __ATOMIC_RELAXED) != now)
		return false;
	*real = __atomic_load_n(&site->real, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* The masked value of an odd sequence equals no sequence. */
	return (sequence & ~1u) == __atomic_load_n(&site->sequence, __ATOMIC_RELAXED);
}

static void write_site(struct call_site *site, uint64_t key, uint32_t now, void *real)
{
	if (!gm_lock_resolve())
		return;
	/*
	 * `sequence` is odd already if a fork came between and the writing thread is not in this
	 * process.
	 */
	__atomic_store_n(&site->sequence, site->sequence | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&site->key, key, __ATOMIC_RELAXED);
	__atomic_store_n(&site->generation, now, __ATOMIC_RELAXED);
	__atomic_store_n(&site->real, real, __ATOMIC_RELAXED);
	__atomic_store_n(&site->sequence, site->sequence + 1, __ATOMIC_RELEASE);
	gm_unlock_resolve();
}

/*
 * The two slots where a call site may be kept, so that two sites of one slot do not evict each
 * other.
 */
static inline struct call_site *slot_of(uint64_t key, unsigned which)
{
	uint64_t hash = key * 0x9e3779b97f4a7c15ull;
	struct call_site *site =
		&sites[(which ? hash >> 20 : hash >> (64 - SITE_BITS)) % SITE_SLOTS];

	/*
	 * gcc else computes the address of each field anew: 57 instead of 54 instructions for a
	 * call that is only forwarded (tests/bench/events, "device, disabled").
	 */
	__asm__("" : "+r"(site));
	return site;
}

static GM_COLD void *find_slow(enum gm_function function, unsigned major, uintptr_t caller)
{
	uint64_t key = key_of(function, caller);
	struct call_site *site = slot_of(key, 0), *other = slot_of(key, 1);
	uint32_t now = gm_unloads();
	void *real;

	if (read_site(other, key, now, &real))
		return real;
	real = search_runtime(function, major, caller);
	if (!real)
		return NULL;
	if (site->real && site->generation == now && !(other->real && other->generation == now))
		site = other;
	write_site(site, key, now, real);
	return real;
}

GM_HOT_CODE void *gm_runtime_find(enum gm_function function, unsigned major, uintptr_t caller)
{
	uint64_t key = key_of(function, caller);
	void *real;

	if (__builtin_expect(read_site(slot_of(key, 0), key, gm_unloads(), &real), 1))
		return real;
	return find_slow(function, major, caller);
}

void *gm_runtime_instance_real(unsigned instance, enum gm_function function)
{
	return runtime.real[instance][function];
}

unsigned gm_runtime_instance(enum gm_function function, void *real, const struct gm_object *cudart)
{
	unsigned i;

	if (!gm_lock_resolve())
		return GM_INSTANCES;
	for (i = 0; i < GM_INSTANCES; i++) {
		if (runtime.instances[i] && runtime.instances[i] != cudart->base)
			continue;
		runtime.instances[i] = cudart->base;
		runtime.real[i][function] = real;
		break;
	}
	gm_unlock_resolve();
	return i;
}

static int is_loaded(const struct gm_object *object, void *data)
{
	return object->base == *(const uintptr_t *)data;
}

bool gm_has_runtime_instances(void)
{
	return runtime.instances[0] != 0;
}

void gm_forget_runtimes(void)
{
	for (unsigned i = 0; i < GM_INSTANCES; i++)
		if (runtime.instances[i] && !gm_objects_each(is_loaded, &runtime.instances[i])) {
			memset(runtime.real[i], 0, sizeof(runtime.real[i]));
			runtime.instances[i] = 0;
		}
}
