/*
 * Relocation slots and tables of driver functions (slots.h).
 */
#include "interpose/slots.h"
#include "interpose/internal.h"
#include "interpose/resolve_driver.h"
#include "interpose/route.h"
#include "recorder/state/fork_page.h"
#include "recorder/state/libraries.h"
#include "store/descriptor.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MOST_SLOTS   16384u
#define MOST_OBJECTS 4096u
#define MOST_ENTRIES 8192u /* functions that libcuda exports */
#define LEAST_RUN    8u

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT  R_X86_64_GLOB_DAT
#define ABSOLUTE  R_X86_64_64
#else
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT  R_AARCH64_GLOB_DAT
#define ABSOLUTE  R_AARCH64_ABS64
#endif

struct slot {
	uintptr_t *at;
	uintptr_t old, ours;
	uint32_t object; /* in self.objects */
	uint16_t read_only, in_table;
};

struct known_object {
	uintptr_t base, end;
	const void *dynamic;
	bool there; /* it was, when the objects were last listed */
};

/* Changed by one thread at a time, under the fork page's lock `slots`. */
static struct {
	bool active;		  /* between gm_slots_redirect and gm_slots_restore (atomic) */
	unsigned long long loads; /* and unloads, when the objects were last looked at (atomic) */
	int memory;		  /* /proc/self/mem while words are changed, -1 */
	struct gm_object own;
	uint32_t slots_count, objects_count, entries_count;
	struct gm_slot_counts counts;
	struct slot slots[MOST_SLOTS];
	struct known_object objects[MOST_OBJECTS];
	struct gm_object present[MOST_OBJECTS]; /* the objects of this pass, by load order */
	uint32_t present_count;
	uintptr_t entries[MOST_ENTRIES]; /* libcuda's functions, sorted */
} self = {.memory = -1};

/* ---- one word ---- */

static bool write_word(uintptr_t *at, uintptr_t from, uintptr_t to, bool read_only)
{
	if (!read_only)
		return __atomic_compare_exchange_n(at, &from, to, false, __ATOMIC_SEQ_CST,
						   __ATOMIC_SEQ_CST);
	return __atomic_load_n(at, __ATOMIC_SEQ_CST) == from && self.memory >= 0 &&
	       pwrite(self.memory, &to, sizeof(to), (off_t)(uintptr_t)at) == (ssize_t)sizeof(to);
}

static void redirect(uintptr_t *at, uintptr_t ours, uint32_t object, bool read_only, bool in_table)
{
	struct slot *slot = &self.slots[self.slots_count];
	uintptr_t old = __atomic_load_n(at, __ATOMIC_SEQ_CST);

	if (self.slots_count == MOST_SLOTS) {
		self.counts.failed++;
		return;
	}
	*slot = (struct slot){at, old, ours, object, read_only, in_table};
	if (!write_word(at, old, ours, read_only)) {
		self.counts.failed++;
		return;
	}
	self.slots_count++;
	if (in_table)
		self.counts.table_words++;
	else
		self.counts.slots++;
}

/* ---- the relocations of one object ---- */

struct tables {
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Rela) * plt, *rela;
	size_t plt_count, rela_count;
	uintptr_t read_only, read_only_end;
};

static uintptr_t address(const struct gm_object *object, ElfW(Addr) value)
{
	return value < object->base ? value + object->base : value;
}

static bool read_tables(const struct gm_object *object, struct tables *tables)
{
	const uintptr_t page = (uintptr_t)getpagesize() - 1;

	memset(tables, 0, sizeof(*tables));
	if (!object->dynamic)
		return false;
	for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		uintptr_t where = address(object, entry->d_un.d_ptr);

		switch (entry->d_tag) {
		case DT_SYMTAB:
			tables->symbols = (const void *)where;
			break;
		case DT_STRTAB:
			tables->strings = (const void *)where;
			break;
		case DT_JMPREL:
			tables->plt = (const void *)where;
			break;
		case DT_RELA:
			tables->rela = (const void *)where;
			break;
		case DT_PLTRELSZ:
			tables->plt_count = entry->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_RELASZ:
			tables->rela_count = entry->d_un.d_val / sizeof(ElfW(Rela));
			break;
		}
	}
	/* The loader rounds the range that it protects down to pages at both ends. */
	for (unsigned i = 0; i < object->phdrs; i++)
		if (object->phdr[i].p_type == PT_GNU_RELRO) {
			tables->read_only = (object->base + object->phdr[i].p_vaddr) & ~page;
			tables->read_only_end =
				(object->base + object->phdr[i].p_vaddr + object->phdr[i].p_memsz) &
				~page;
		}
	return tables->symbols && tables->strings;
}

static bool in_read_only(const struct tables *tables, const uintptr_t *at)
{
	return (uintptr_t)at >= tables->read_only && (uintptr_t)at < tables->read_only_end;
}

/* Names by which the shim stands in front of other libraries; all others are passed over quickly.
 */
static bool may_be_ours(const char *name)
{
	static const char *const prefixes[] = {
		"cu",	    "_ZN3c1027report", "dlsym",	       "dlclose", "exec",
		"fexecve",  "_exit",	       "_Exit",	       "quick_",  "longjmp",
		"_longjmp", "siglongjmp",      "__longjmp_chk"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* The object of this pass that an address lies in. */
static const struct gm_object *present_at(uintptr_t pc)
{
	for (uint32_t i = 0; i < self.present_count; i++)
		if (pc >= self.present[i].start && pc < self.present[i].end)
			return &self.present[i];
	return NULL;
}

/*
 * The shim's function for a name that `object` refers to, at the version that it is bound to: of a
 * runtime's function the wrapper of its major. NULL: there is none.
 */
static uintptr_t own_function(const struct gm_object *object, const char *name)
{
	const char *version = gm_object_needed_version(object, name, NULL);
	void *found = version ? gm_object_symbol(&self.own, name, version) : NULL;

	if (!found)
		found = gm_object_symbol(&self.own, name, NULL);
	return (uintptr_t)found;
}

/* True if a word holds what the loader put there for the name: the function, or its own stub yet.
 */
static bool is_loaders(const struct gm_object *object, const char *name, uintptr_t value,
		       unsigned type)
{
	const struct gm_object *definer = present_at(value);
	const char *version;

	if (!definer || gm_is_own(value))
		return false;
	version = gm_object_needed_version(object, name, NULL);
	if ((uintptr_t)gm_object_symbol(definer, name, version) == value ||
	    (version && (uintptr_t)gm_object_symbol(definer, name, NULL) == value))
		return true;
	return type == JUMP_SLOT && definer->base == object->base;
}

static void look_at_relocation(const struct gm_object *object, uint32_t number,
			       const struct tables *tables, const ElfW(Rela) * relocation)
{
	unsigned type = ELF64_R_TYPE(relocation->r_info);
	const char *name;
	uintptr_t *at, ours;

	if ((type != JUMP_SLOT && type != GLOB_DAT && type != ABSOLUTE) ||
	    !ELF64_R_SYM(relocation->r_info) || relocation->r_addend)
		return;
	name = tables->strings + tables->symbols[ELF64_R_SYM(relocation->r_info)].st_name;
	if (!may_be_ours(name))
		return;
	at = (uintptr_t *)(object->base + relocation->r_offset);
	ours = own_function(object, name);
	if (!ours || *at == ours || !is_loaders(object, name, *at, type))
		return;
	redirect(at, ours, number, in_read_only(tables, at), false);
}

static void look_at_relocations(const struct gm_object *object, uint32_t number,
				const struct tables *tables)
{
	size_t i;

	for (i = 0; i < tables->plt_count; i++)
		look_at_relocation(object, number, tables, &tables->plt[i]);
	for (i = 0; i < tables->rela_count; i++)
		look_at_relocation(object, number, tables, &tables->rela[i]);
}

/* ---- tables of driver functions ---- */

static bool is_entry(uintptr_t word)
{
	uint32_t low = 0, high = self.entries_count;

	if (!gm_in_libcuda((const void *)word))
		return false;
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (self.entries[middle] < word)
			low = middle + 1;
		else
			high = middle;
	}
	return low < self.entries_count && self.entries[low] == word;
}

static void redirect_run(uintptr_t *from, uintptr_t *to, uint32_t number,
			 const struct tables *tables)
{
	for (; from < to; from++) {
		enum gm_function row = gm_driver_row_of((const void *)*from);
		void *wrapper =
			row < GM_FUNCTIONS ? gm_driver_wrapper_of(row, (void *)*from) : NULL;

		if (wrapper && wrapper != (void *)*from)
			redirect(from, (uintptr_t)wrapper, number, in_read_only(tables, from),
				 true);
	}
}

static void look_at_data(const struct gm_object *object, uint32_t number,
			 const struct tables *tables)
{
	for (unsigned i = 0; i < object->phdrs; i++) {
		const ElfW(Phdr) *segment = &object->phdr[i];
		uintptr_t *word, *end, *run;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
			continue;
		word = (uintptr_t *)((object->base + segment->p_vaddr + 7) & ~(uintptr_t)7);
		end = (uintptr_t *)((object->base + segment->p_vaddr + segment->p_memsz) &
				    ~(uintptr_t)7);
		for (run = word; word <= end; word++) {
			if (word < end && is_entry(*word))
				continue;
			if (word - run >= (ptrdiff_t)LEAST_RUN)
				redirect_run(run, word, number, tables);
			run = word + 1;
		}
	}
}

/* Returns the number of an object's dynamic symbols, by its hash table [System V ABI, GNU's]. */
static uint32_t count_symbols(const struct gm_object *object)
{
	const uint32_t *hash = NULL, *buckets, *chains;
	uint32_t most = 0;

	for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_HASH)
			return ((const uint32_t *)address(object, entry->d_un.d_ptr))[1];
		if (entry->d_tag == DT_GNU_HASH)
			hash = (const uint32_t *)address(object, entry->d_un.d_ptr);
	}
	if (!hash)
		return 0;
	buckets = hash + 4 + hash[2] * (sizeof(uintptr_t) / sizeof(uint32_t));
	chains = buckets + hash[0];
	for (uint32_t i = 0; i < hash[0]; i++)
		if (buckets[i] > most)
			most = buckets[i];
	if (most < hash[1])
		return most;
	while (!(chains[most - hash[1]] & 1))
		most++;
	return most + 1;
}

/* Lists libcuda's exported functions, sorted; few are out of order in the symbol table. */
static void list_entries(const struct gm_object *libcuda)
{
	struct tables tables;
	uint32_t count, i, k;

	self.entries_count = 0;
	if (!read_tables(libcuda, &tables))
		return;
	count = count_symbols(libcuda);
	for (i = 1; i < count && self.entries_count < MOST_ENTRIES; i++) {
		const ElfW(Sym) *symbol = &tables.symbols[i];

		if (symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
		    ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
			self.entries[self.entries_count++] = libcuda->base + symbol->st_value;
	}
	for (uint32_t gap = self.entries_count / 2; gap; gap /= 2)
		for (i = gap; i < self.entries_count; i++) {
			uintptr_t entry = self.entries[i];

			for (k = i; k >= gap && self.entries[k - gap] > entry; k -= gap)
				self.entries[k] = self.entries[k - gap];
			self.entries[k] = entry;
		}
}

/* ---- passes over all objects ---- */

static int collect(const struct gm_object *object, void *unused)
{
	(void)unused;
	if (self.present_count < MOST_OBJECTS)
		self.present[self.present_count++] = *object;
	else
		self.counts.failed++;
	return 0;
}

/* The number of an object, which is entered if it is new (*known false); MOST_OBJECTS: no room. */
static uint32_t number_of(const struct gm_object *object, bool *known)
{
	uint32_t i, free_one = self.objects_count;

	for (i = 0; i < self.objects_count; i++) {
		const struct known_object *entry = &self.objects[i];

		if (entry->base == object->base && entry->dynamic == object->dynamic &&
		    entry->end == object->end) {
			*known = true;
			return i;
		}
		if (!entry->there)
			free_one = i;
	}
	*known = false;
	if (free_one == MOST_OBJECTS)
		return MOST_OBJECTS;
	self.objects[free_one] =
		(struct known_object){object->base, object->end, object->dynamic, true};
	if (free_one == self.objects_count)
		self.objects_count++;
	return free_one;
}

/* Forgets the slots of objects that were unloaded: other memory may lie there now. */
static void forget_unloaded(void)
{
	uint32_t kept = 0, i;

	for (i = 0; i < self.objects_count; i++) {
		struct known_object *object = &self.objects[i];

		object->there = false;
		for (uint32_t k = 0; k < self.present_count && !object->there; k++)
			object->there = self.present[k].base == object->base &&
					self.present[k].dynamic == object->dynamic &&
					self.present[k].end == object->end;
	}
	for (i = 0; i < self.slots_count; i++)
		if (self.objects[self.slots[i].object].there)
			self.slots[kept++] = self.slots[i];
	self.slots_count = kept;
	for (i = 0; i < self.objects_count; i++)
		if (!self.objects[i].there)
			self.objects[i] = (struct known_object){0};
}

static bool is_looked_at(const struct gm_object *object)
{
	return object->base != self.own.base &&
	       strncmp(gm_object_basename(object), "linux-vdso", 10);
}

static void look_at_present(int anew)
{
	struct gm_object libcuda;
	bool driver = gm_find_driver() && gm_find_libcuda(&libcuda);
	struct tables tables;

	if (driver && (anew || !self.entries_count))
		list_entries(&libcuda);
	for (uint32_t i = 0; i < self.present_count; i++) {
		const struct gm_object *object = &self.present[i];
		uint32_t number;
		bool known;

		if (!is_looked_at(object) || !read_tables(object, &tables))
			continue;
		number = number_of(object, &known);
		if (number == MOST_OBJECTS || (known && !anew))
			continue;
		look_at_relocations(object, number, &tables);
		if (driver && object->base != libcuda.base)
			look_at_data(object, number, &tables);
	}
}

struct pass {
	int anew;
	bool restores;
};

static void restore_present(void)
{
	uint32_t i;

	for (i = self.slots_count; i-- > 0;) {
		const struct slot *slot = &self.slots[i];

		/* The loader may have bound it meanwhile, or another hook: then it is theirs. */
		if (__atomic_load_n(slot->at, __ATOMIC_SEQ_CST) == slot->ours &&
		    !write_word(slot->at, slot->ours, slot->old, slot->read_only) &&
		    __atomic_load_n(slot->at, __ATOMIC_SEQ_CST) == slot->ours)
			self.counts.lost++;
	}
	self.slots_count = 0;
	self.objects_count = 0;
	self.entries_count = 0;
}

/* Runs under the loader's list lock, so that no object goes away meanwhile. */
static int pass_over(const struct gm_object *first, void *data)
{
	const struct pass *pass = data;

	__atomic_store_n(&self.loads, first->adds + first->subs, __ATOMIC_RELAXED);
	self.present_count = 0;
	gm_objects_each(collect, NULL);
	forget_unloaded();
	if (pass->restores)
		restore_present();
	else
		look_at_present(pass->anew);
	return 1;
}

static void run(const struct pass *pass)
{
	if (!self.own.end)
		gm_object_at((uintptr_t)run, &self.own);
	self.memory = gm_open("/proc/self/mem", O_RDWR, 0);
	gm_objects_each(pass_over, (void *)(uintptr_t)pass);
	if (self.memory >= 0)
		close(self.memory);
	self.memory = -1;
}

void gm_slots_redirect(int anew, struct gm_slot_counts *counts)
{
	const struct pass pass = {.anew = anew};

	gm_lock_acquire(&gm_fork_page()->slots);
	if (!self.active)
		self.counts = (struct gm_slot_counts){0};
	__atomic_store_n(&self.active, true, __ATOMIC_RELEASE);
	run(&pass);
	*counts = self.counts;
	gm_lock_release(&gm_fork_page()->slots);
}

static int loads_of(const struct gm_object *object, void *loads)
{
	*(unsigned long long *)loads = object->adds + object->subs;
	return 1;
}

void gm_slots_refresh(void)
{
	const struct pass pass = {0};
	unsigned long long loads = 0;

	if (!__atomic_load_n(&self.active, __ATOMIC_ACQUIRE))
		return;
	gm_objects_each(loads_of, &loads);
	if (loads == __atomic_load_n(&self.loads, __ATOMIC_RELAXED) ||
	    !gm_lock_try(&gm_fork_page()->slots))
		return;
	if (self.active)
		run(&pass);
	gm_lock_release(&gm_fork_page()->slots);
}

void gm_slots_restore(struct gm_slot_counts *counts)
{
	const struct pass pass = {.restores = true};

	gm_lock_acquire(&gm_fork_page()->slots);
	self.counts.lost = 0;
	run(&pass);
	__atomic_store_n(&self.active, false, __ATOMIC_RELEASE);
	*counts = self.counts;
	gm_lock_release(&gm_fork_page()->slots);
}
