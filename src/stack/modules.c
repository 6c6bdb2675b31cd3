/*
 * The table of loaded objects (modules.h). An object that is loaded at the address of an unloaded
 * one becomes another module, told apart by path and build id.
 */
#include "stack/modules.h"

#include "stack/elf_symbols.h"
#include "stack/map.h"
#include "stack/native.h"
#include "store/writer.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SNAPSHOT_BYTES (4u << 20) /* address space; only what is used is touched */

static struct {
	struct gm_module *sorted; /* by start */
	unsigned count, room;
	unsigned last;		       /* the one found last */
	unsigned long long adds, subs; /* the loader's counters at the last merge */
	bool merged;		       /* there was one */
	uintptr_t interpreter_start, interpreter_end;
} modules;

/* Entries lie at the front of a snapshot's memory, their paths at its back. */
struct loaded {
	uintptr_t start, end, bias;
	uint32_t path; /* offset in the memory */
	uint8_t build_id_bytes;
	uint8_t build_id[24];
	bool program;
};

struct listing {
	struct gm_modules_snapshot *snapshot;
	size_t strings; /* offset of the paths */
	bool first;
};

static int read_counters(const struct gm_object *object, void *data)
{
	struct gm_modules_snapshot *snapshot = data;

	snapshot->adds = object->adds;
	snapshot->subs = object->subs;
	return 1;
}

static int list_object(const struct gm_object *object, void *data)
{
	struct listing *listing = data;
	struct gm_modules_snapshot *snapshot = listing->snapshot;
	struct loaded *loaded = (struct loaded *)snapshot->memory + snapshot->count;
	size_t length = strlen(object->path);
	const unsigned char *build_id;
	unsigned bytes = 0;

	snapshot->adds = object->adds;
	snapshot->subs = object->subs;
	if (object->start == object->end)
		return 0;
	if ((snapshot->count + 1) * sizeof(*loaded) + length + 1 > listing->strings)
		return 1;
	listing->strings -= length + 1;
	memcpy(snapshot->memory + listing->strings, object->path, length + 1);
	*loaded = (struct loaded){.start = object->start,
				  .end = object->end,
				  .bias = object->base,
				  .path = (uint32_t)listing->strings,
				  .program = listing->first};
	listing->first = false;
	build_id = gm_object_build_id(object, &bytes);
	if (build_id) {
		loaded->build_id_bytes =
			bytes < sizeof(loaded->build_id) ? bytes : sizeof(loaded->build_id);
		memcpy(loaded->build_id, build_id, loaded->build_id_bytes);
	}
	snapshot->count++;
	return 0;
}

bool gm_modules_snapshot(struct gm_modules_snapshot *snapshot)
{
	struct listing listing = {snapshot, SNAPSHOT_BYTES, true};

	*snapshot = (struct gm_modules_snapshot){.bytes = SNAPSHOT_BYTES};
	gm_objects_each(read_counters, snapshot);
	if (__atomic_load_n(&modules.merged, __ATOMIC_ACQUIRE) &&
	    snapshot->adds == __atomic_load_n(&modules.adds, __ATOMIC_RELAXED) &&
	    snapshot->subs == __atomic_load_n(&modules.subs, __ATOMIC_RELAXED))
		return true;
	snapshot->memory = mmap(NULL, SNAPSHOT_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (snapshot->memory == MAP_FAILED) {
		snapshot->memory = NULL;
		return false;
	}
	gm_objects_each(list_object, &listing);
	return true;
}

void gm_modules_drop(struct gm_modules_snapshot *snapshot)
{
	if (snapshot->memory)
		munmap(snapshot->memory, snapshot->bytes);
	snapshot->memory = NULL;
}

/* True for NAME.so…, NAME-HASH.so… and NAME.HASH.so…, as wheels rename libraries; not NAME_stub.so.
 */
static bool is_library(const char *base, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(base, name, length) && (base[length] == '.' || base[length] == '-') &&
	       strstr(base + length, ".so");
}

static void classify(struct gm_module *module)
{
	const char *slash = strrchr(module->path, '/');
	const char *base = slash ? slash + 1 : module->path;

	module->cuda = is_library(base, "libcudart") || is_library(base, "libcuda") ||
		       is_library(base, "libcupti");
	module->libc = is_library(base, "libc") || is_library(base, "libpthread") ||
		       !strncmp(base, "ld-", 3);
	module->ours = gm_native_is_own(module->start);
	module->interpreter =
		module->start < modules.interpreter_end && modules.interpreter_start < module->end;
}

/*
 * The file a module came from. The loader has no name for the program, and names as the program
 * gave them for others; a relative one is made absolute while the working directory is likely still
 * right.
 */
static const char *file_path(const char *name, bool program, char *buffer, size_t room)
{
	size_t length;
	ssize_t got;

	if (program) {
		got = readlink("/proc/self/exe", buffer, room - 1);
		if (got <= 0)
			return *name ? name : "[program]";
		buffer[got] = '\0';
		return buffer;
	}
	if (name[0] == '/' || !strchr(name, '/') || !getcwd(buffer, room))
		return name;
	length = strlen(buffer);
	if (length + 1 + strlen(name) + 1 > room)
		return name;
	buffer[length] = '/';
	strcpy(buffer + length + 1, name);
	return access(buffer, F_OK) ? name : buffer;
}

static uint64_t identity_of(const struct loaded *loaded, const char *path)
{
	uint64_t hash = gm_hash(path, strlen(path), loaded->bias);

	return gm_hash(loaded->build_id, loaded->build_id_bytes, hash);
}

static struct gm_module *find_same(const struct loaded *loaded, uint64_t identity)
{
	for (unsigned i = 0; i < modules.count; i++) {
		struct gm_module *module = &modules.sorted[i];

		if (module->start == loaded->start && module->end == loaded->end &&
		    module->identity == identity)
			return module;
	}
	return NULL;
}

static bool make_room(struct gm_arena *arena, unsigned count)
{
	struct gm_module *larger;
	unsigned room = modules.room ? modules.room : 64;

	while (room < count)
		room *= 2;
	if (room == modules.room)
		return true;
	larger = gm_arena_alloc(arena, room * sizeof(*larger));
	if (!larger)
		return false;
	if (modules.count)
		memcpy(larger, modules.sorted, modules.count * sizeof(*larger));
	gm_arena_free(arena, modules.sorted, modules.room * sizeof(*larger));
	modules.sorted = larger;
	modules.room = room;
	return true;
}

static struct gm_module *add(const struct loaded *loaded, uint64_t identity, const char *name,
			     struct gm_arena *arena)
{
	struct gm_module *module = &modules.sorted[modules.count];
	char buffer[PATH_MAX];
	const char *path = file_path(name, loaded->program, buffer, sizeof(buffer));
	char *copy = gm_arena_alloc(arena, strlen(path) + 1);

	if (!copy)
		return NULL;
	strcpy(copy, path);
	*module = (struct gm_module){.start = loaded->start,
				     .end = loaded->end,
				     .bias = loaded->bias,
				     .identity = identity,
				     .path = copy,
				     .record = GM_NONE,
				     .program = loaded->program,
				     .build_id_bytes = loaded->build_id_bytes,
				     .seen = true};
	memcpy(module->build_id, loaded->build_id, sizeof(module->build_id));
	classify(module);
	modules.count++;
	return module;
}

/* Takes out what was not seen and puts the rest, new ones last, into order. */
static void sort_seen(void)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < modules.count; i++) {
		struct gm_module module = modules.sorted[i];
		unsigned at = kept;

		if (!module.seen)
			continue;
		while (at && modules.sorted[at - 1].start > module.start) {
			modules.sorted[at] = modules.sorted[at - 1];
			at--;
		}
		modules.sorted[at] = module;
		kept++;
	}
	modules.count = kept;
	modules.last = 0;
}

static void note_change(const struct gm_module *module, struct gm_range *changed, unsigned room,
			unsigned *changes)
{
	if (*changes < room)
		changed[*changes] = (struct gm_range){module->start, module->end};
	++*changes;
}

static void note_gone(struct gm_module *module, struct gm_arena *arena)
{
	struct gm_module_record *record = NULL;

	if (module->record != GM_NONE)
		record = gm_store_record(GM_TABLE_MODULES, module->record);
	if (record)
		record->unloaded = 1;
	gm_arena_free(arena, (void *)module->path, strlen(module->path) + 1);
}

unsigned gm_modules_merge(struct gm_modules_snapshot *snapshot, struct gm_arena *arena,
			  bool also_new, struct gm_range *changed, unsigned room)
{
	const struct loaded *loaded = (const void *)snapshot->memory;
	unsigned changes = 0, known = modules.count;

	/* older than what is known: another thread was quicker */
	if (!snapshot->memory ||
	    (modules.merged && snapshot->adds + snapshot->subs < modules.adds + modules.subs) ||
	    !make_room(arena, modules.count + snapshot->count)) {
		gm_modules_drop(snapshot);
		return 0;
	}
	for (unsigned i = 0; i < known; i++)
		modules.sorted[i].seen = false;
	for (unsigned i = 0; i < snapshot->count; i++) {
		const char *name = snapshot->memory + loaded[i].path;
		uint64_t identity = identity_of(&loaded[i], name);
		struct gm_module *module = find_same(&loaded[i], identity);

		if (module)
			module->seen = true;
		else if ((module = add(&loaded[i], identity, name, arena)) && also_new)
			note_change(module, changed, room, &changes);
	}
	for (unsigned i = 0; i < known; i++) {
		if (modules.sorted[i].seen)
			continue;
		if (modules.sorted[i].record != GM_NONE)
			note_change(&modules.sorted[i], changed, room, &changes);
		note_gone(&modules.sorted[i], arena);
	}
	sort_seen();
	__atomic_store_n(&modules.adds, snapshot->adds, __ATOMIC_RELAXED);
	__atomic_store_n(&modules.subs, snapshot->subs, __ATOMIC_RELAXED);
	__atomic_store_n(&modules.merged, true, __ATOMIC_RELEASE);
	gm_modules_drop(snapshot);
	return changes;
}

struct gm_module *gm_modules_find(uintptr_t pc)
{
	unsigned low = 0, high = modules.count;

	if (modules.last < modules.count && pc >= modules.sorted[modules.last].start &&
	    pc < modules.sorted[modules.last].end)
		return &modules.sorted[modules.last];
	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (modules.sorted[middle].end <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == modules.count || pc < modules.sorted[low].start)
		return NULL;
	modules.last = low;
	return &modules.sorted[low];
}

uint32_t gm_modules_record(struct gm_module *module)
{
	struct gm_module_record *record;
	uint32_t index;

	if (module->record != GM_NONE)
		return module->record;
	record = gm_store_append(GM_TABLE_MODULES, 1, &index);
	if (!record)
		return GM_NONE;
	record->start = module->start;
	record->end = module->end;
	record->bias = module->bias;
	record->path_string = gm_store_string(module->path, PATH_MAX);
	record->build_id_bytes = module->build_id_bytes;
	record->interpreter = module->interpreter;
	memcpy(record->build_id, module->build_id, sizeof(module->build_id));
	gm_store_publish(GM_TABLE_MODULES);
	module->record = index;
	return index;
}

void gm_modules_set_interpreter(uintptr_t start, uintptr_t end)
{
	modules.interpreter_start = start;
	modules.interpreter_end = end;
	for (unsigned i = 0; i < modules.count; i++) {
		uint32_t index = modules.sorted[i].record;
		struct gm_module_record *record;

		classify(&modules.sorted[i]);
		if (index == GM_NONE)
			continue;
		record = gm_store_record(GM_TABLE_MODULES, index);
		if (record)
			record->interpreter = modules.sorted[i].interpreter;
	}
}

void gm_modules_reset(void)
{
	memset(&modules, 0, sizeof(modules));
}
