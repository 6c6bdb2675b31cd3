/*
 * Loaded objects and their dynamic symbols (elf_symbols.h). Everything is read where the loader
 * mapped it; nothing is kept, so nothing can go stale.
 */
#include "stack/elf_symbols.h"
#include "stack/safe_read.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE		 4096u
#define MOST_OBJECTS	 65536u /* of a namespace, whose list may change while it is read */
#define LISTS_NAMESPACES 2	/* r_version of a loader that has more than one */

#ifndef NT_GNU_BUILD_ID
#define NT_GNU_BUILD_ID 3
#endif

/* The parts of a dynamic section that finding symbols takes. */
struct dynamic {
	const ElfW(Sym) * symbols;
	const char *strings;
	size_t strings_bytes;
	const uint32_t *gnu_hash;
	const ElfW(Word) * hash;
	const ElfW(Half) * versions;
	const ElfW(Verdef) * defined;
	const ElfW(Verneed) * needed;
	unsigned defined_count, needed_count;
	uintptr_t next_table; /* the lowest table above the symbols: they end before it */
};

/*
 * glibc relocates the addresses in most dynamic sections in place, but not in read-only ones (the
 * vDSO's); musl never does. An address below the object's own base cannot have been relocated.
 */
static uintptr_t address(const struct gm_object *object, ElfW(Addr) value)
{
	return value < object->base ? value + object->base : value;
}

/* Leaves out next_table. */
static bool parse_dynamic(const struct gm_object *object, struct dynamic *dyn)
{
	const ElfW(Dyn) * entry;

	memset(dyn, 0, sizeof(*dyn));
	if (!object->dynamic)
		return false;
	for (entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		uintptr_t where = address(object, entry->d_un.d_ptr);

		switch (entry->d_tag) {
		case DT_SYMTAB:
			dyn->symbols = (const void *)where;
			break;
		case DT_STRTAB:
			dyn->strings = (const void *)where;
			break;
		case DT_STRSZ:
			dyn->strings_bytes = entry->d_un.d_val;
			break;
		case DT_GNU_HASH:
			dyn->gnu_hash = (const void *)where;
			break;
		case DT_HASH:
			dyn->hash = (const void *)where;
			break;
		case DT_VERSYM:
			dyn->versions = (const void *)where;
			break;
		case DT_VERDEF:
			dyn->defined = (const void *)where;
			break;
		case DT_VERDEFNUM:
			dyn->defined_count = entry->d_un.d_val;
			break;
		case DT_VERNEED:
			dyn->needed = (const void *)where;
			break;
		case DT_VERNEEDNUM:
			dyn->needed_count = entry->d_un.d_val;
			break;
		}
	}
	return dyn->symbols && dyn->strings;
}

static void note_table(const struct gm_object *object, struct dynamic *dyn, const ElfW(Dyn) * entry)
{
	uintptr_t where;

	switch (entry->d_tag) {
	case DT_STRTAB:
	case DT_GNU_HASH:
	case DT_HASH:
	case DT_VERSYM:
	case DT_VERDEF:
	case DT_VERNEED:
	case DT_RELA:
	case DT_REL:
	case DT_JMPREL:
	case DT_INIT:
	case DT_FINI:
	case DT_INIT_ARRAY:
	case DT_FINI_ARRAY:
		where = address(object, entry->d_un.d_ptr);
		if (where > (uintptr_t)dyn->symbols &&
		    (!dyn->next_table || where < dyn->next_table))
			dyn->next_table = where;
	}
}

/* Finds the end of the symbols, for searches that look through all of them. */
static void find_next_table(const struct gm_object *object, struct dynamic *dyn)
{
	for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++)
		note_table(object, dyn, entry);
}

static void describe(const struct dl_phdr_info *info, struct gm_object *object)
{
	memset(object, 0, sizeof(*object));
	object->base = info->dlpi_addr;
	object->path = info->dlpi_name ? info->dlpi_name : "";
	object->phdr = info->dlpi_phdr;
	object->phdrs = info->dlpi_phnum;
	object->adds = info->dlpi_adds;
	object->subs = info->dlpi_subs;
	object->start = UINTPTR_MAX;
	for (unsigned i = 0; i < object->phdrs; i++) {
		const ElfW(Phdr) *segment = &object->phdr[i];
		uintptr_t from = object->base + segment->p_vaddr;

		if (segment->p_type == PT_DYNAMIC)
			object->dynamic = (const void *)from;
		if (segment->p_type != PT_LOAD || !segment->p_memsz)
			continue;
		if (from < object->start)
			object->start = from;
		if (from + segment->p_memsz > object->end)
			object->end = from + segment->p_memsz;
	}
	if (object->start > object->end)
		object->start = object->end = 0;
}

struct each {
	int (*found)(const struct gm_object *, void *);
	void *data;
	bool hidden; /* the program's headers cannot be read */
};

/*
 * A program may have made its own headers unreadable since it was loaded, and with them the name of
 * its loader, which the first page has, too. Such a program is passed over. Only the program itself
 * is looked at, because this takes a system call.
 */
static bool is_hidden(const struct dl_phdr_info *info)
{
	ElfW(Phdr) segment;

	return info->dlpi_name && !*info->dlpi_name && info->dlpi_phnum &&
	       !gm_safe_read(&segment, (uintptr_t)info->dlpi_phdr, sizeof(segment));
}

static int each_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct each *each = data;
	struct gm_object object;
	char first;

	(void)bytes;
	if (each->hidden && !gm_safe_read(&first, (uintptr_t)info->dlpi_name, 1))
		info->dlpi_name = NULL;
	if (is_hidden(info)) {
		each->hidden = true;
		return 0;
	}
	describe(info, &object);
	return each->found(&object, each->data);
}

/* A namespace as the loader shows it to debuggers [glibc 2.35, elf/link.h, r_debug_extended]. */
struct namespace
{
	struct r_debug list;
	const struct namespace *next;
};

/*
 * The loader's list. In the child of a raw clone its lock may be held by a thread that the child
 * does not have, and no handler of fork() has kept threads out of it.
 */
static struct {
	uint32_t inside, forks;	      /* threads inside dl_iterate_phdr, and forks under way */
	uint32_t *lockable;	      /* 0: by a raw clone; NULL: not known */
	bool lost;		      /* that was so when the fork began */
	const struct r_debug *loader; /* debuggers read the list from it */
} list;

static bool may_be_locked_for_ever(void)
{
	return list.lockable && !*list.lockable;
}

static __thread uint32_t depth __attribute__((tls_model("initial-exec")));

#define MOST_YIELDS 1000u
/* of 0.1 ms; a wait ends after so many, because a signal handler may fork inside a look-up */
#define MOST_SLEEPS 3000u

/* The sleep is the system call alone: libc's would end a thread that was cancelled. */
static void wait_for_zero(const uint32_t *word, uint32_t zero)
{
	const struct timespec sleep = {.tv_nsec = 100000};
	int saved = errno;

	for (unsigned i = 0; i < MOST_YIELDS + MOST_SLEEPS; i++) {
		if (__atomic_load_n(word, __ATOMIC_SEQ_CST) <= zero)
			break;
		if (i < MOST_YIELDS)
			sched_yield();
		else
			syscall(SYS_nanosleep, &sleep, NULL);
	}
	errno = saved;
}

bool gm_objects_enter(void)
{
	if (may_be_locked_for_ever())
		return false;
	if (depth++)
		return true;
	__atomic_add_fetch(&list.inside, 1, __ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&list.forks, __ATOMIC_SEQ_CST) == 0, 1))
		return true;
	__atomic_sub_fetch(&list.inside, 1, __ATOMIC_SEQ_CST);
	wait_for_zero(&list.forks, 0);
	__atomic_add_fetch(&list.inside, 1, __ATOMIC_SEQ_CST);
	return true;
}

void gm_objects_leave(void)
{
	if (!--depth)
		__atomic_sub_fetch(&list.inside, 1, __ATOMIC_SEQ_CST);
}

void gm_objects_pause(void)
{
	__atomic_add_fetch(&list.forks, 1, __ATOMIC_SEQ_CST);
	list.lost = may_be_locked_for_ever();
	if (!list.lost)
		wait_for_zero(&list.inside, depth ? 1 : 0);
}

void gm_objects_go_on(void)
{
	__atomic_sub_fetch(&list.forks, 1, __ATOMIC_SEQ_CST);
}

void gm_objects_in_child(void)
{
	list.forks = 0;
	list.inside = depth ? 1 : 0;
	if (list.lockable)
		*list.lockable = !list.lost;
}

/* As dl_iterate_phdr, without its lock: a list of this process's one thread, as debuggers read it.
 */
static int each_link(struct each *each)
{
	const struct link_map *map = list.loader ? list.loader->r_map : NULL;
	struct dl_phdr_info info = {.dlpi_subs = UINT64_MAX};
	int result = 0;

	for (const struct link_map *next = map; next; next = next->l_next)
		info.dlpi_adds++;
	for (bool program = true; map && !result; map = map->l_next, program = false) {
		ElfW(Ehdr) header;

		info.dlpi_addr = map->l_addr;
		info.dlpi_name = map->l_name;
		info.dlpi_phdr = (const void *)getauxval(AT_PHDR);
		info.dlpi_phnum = (ElfW(Half))getauxval(AT_PHNUM);
		if (!program) {
			if (!gm_safe_read(&header, map->l_addr, sizeof(header)) ||
			    memcmp(header.e_ident, ELFMAG, SELFMAG))
				continue;
			info.dlpi_phdr = (const void *)(map->l_addr + header.e_phoff);
			info.dlpi_phnum = header.e_phnum;
		}
		result = each_object(&info, sizeof(info), each);
	}
	return result;
}

int gm_objects_each(int (*found)(const struct gm_object *, void *), void *data)
{
	struct each each = {.found = found, .data = data};
	int result;

	if (!gm_objects_enter())
		return each_link(&each);
	result = dl_iterate_phdr(each_object, &each);
	gm_objects_leave();
	return result;
}

/* Copies a text that may not be there, piece by piece up to the ends of pages; "" if it is longer.
 */
static void read_text(char *text, size_t room, uintptr_t from)
{
	size_t used = 0, bytes;

	while (used < room) {
		bytes = PAGE - (from + used) % PAGE;
		if (bytes > room - used)
			bytes = room - used;
		if (!gm_safe_read(text + used, from + used, bytes))
			break;
		if (memchr(text + used, 0, bytes))
			return;
		used += bytes;
	}
	text[0] = '\0';
}

static bool is_elsewhere(const struct link_map *map, bool (*wanted)(const char *path))
{
	struct link_map link;
	char path[1024];
	bool found = false;

	for (unsigned i = 0; map && i < MOST_OBJECTS; i++, map = link.l_next) {
		if (!gm_safe_read(&link, (uintptr_t)map, sizeof(link)))
			break;
		if (link.l_ld == _DYNAMIC)
			return false; /* the namespace that the shim is in */
		if (found)
			continue;
		read_text(path, sizeof(path), (uintptr_t)link.l_name);
		found = wanted(path);
	}
	return found;
}

unsigned gm_objects_elsewhere(bool (*wanted)(const char *path))
{
	const struct namespace *at = (const void *)list.loader;
	unsigned count = 0;

	if (!at || __atomic_load_n(&at->list.r_version, __ATOMIC_ACQUIRE) < LISTS_NAMESPACES)
		return 0;
	for (; at; at = __atomic_load_n(&at->next, __ATOMIC_ACQUIRE))
		count += is_elsewhere(at->list.r_map, wanted);
	return count;
}

void gm_objects_init(uint32_t *lockable)
{
	list.loader = gm_objects_symbol("_r_debug", NULL);
	list.lockable = lockable;
	*lockable = 1;
}

struct wanted {
	uintptr_t pc;
	const void *dynamic;
	const char *symbol;
	void *address;
	struct gm_object *out;
};

static int covers_pc(const struct gm_object *object, void *data)
{
	struct wanted *wanted = data;

	if (wanted->pc < object->start || wanted->pc >= object->end)
		return 0;
	*wanted->out = *object;
	return 1;
}

bool gm_object_at(uintptr_t pc, struct gm_object *out)
{
	struct wanted wanted = {.pc = pc, .out = out};

	return gm_objects_each(covers_pc, &wanted);
}

static int has_dynamic(const struct gm_object *object, void *data)
{
	struct wanted *wanted = data;

	if (object->dynamic != wanted->dynamic)
		return 0;
	*wanted->out = *object;
	return 1;
}

bool gm_object_of_dynamic(const void *dynamic, struct gm_object *out)
{
	struct wanted wanted = {.dynamic = dynamic, .out = out};

	return dynamic && gm_objects_each(has_dynamic, &wanted);
}

static int defines(const struct gm_object *object, void *data)
{
	struct wanted *wanted = data;

	wanted->address = gm_object_symbol(object, wanted->symbol, NULL);
	if (wanted->address && wanted->out)
		*wanted->out = *object;
	return wanted->address != NULL;
}

void *gm_objects_symbol(const char *name, struct gm_object *out)
{
	struct wanted wanted = {.symbol = name, .out = out};

	return gm_objects_each(defines, &wanted) ? wanted.address : NULL;
}

static const char *string_at(const struct dynamic *dyn, size_t offset)
{
	return offset < dyn->strings_bytes ? dyn->strings + offset : "";
}

/* Name of the version with this index among those the object defines. */
static const char *defined_version(const struct dynamic *dyn, unsigned index)
{
	const ElfW(Verdef) *def = dyn->defined;

	for (unsigned i = 0; def && i < dyn->defined_count; i++) {
		const ElfW(Verdaux) *aux = (const void *)((const char *)def + def->vd_aux);

		if (def->vd_ndx == index)
			return string_at(dyn, aux->vda_name);
		if (!def->vd_next)
			break;
		def = (const void *)((const char *)def + def->vd_next);
	}
	return NULL;
}

/*
 * A search: the name, and the best symbol so far. A hidden version is taken if there is no other.
 */
struct match {
	const char *name, *version;
	const ElfW(Sym) * best;
	bool best_is_default;
};

/*
 * strcmp() may be the program's own: sanitizers put theirs in front, and look up the real one by
 * dlsym(), which comes here first.
 */
static bool same_text(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	return *a == *b;
}

static void consider(const struct dynamic *dyn, struct match *match, size_t index)
{
	const ElfW(Sym) *symbol = &dyn->symbols[index];
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	unsigned version;

	if (symbol->st_shndx == SHN_UNDEF || match->best_is_default)
		return;
	if (type != STT_NOTYPE && type != STT_OBJECT && type != STT_FUNC && type != STT_COMMON &&
	    type != STT_GNU_IFUNC)
		return;
	if (!same_text(string_at(dyn, symbol->st_name), match->name))
		return;
	version = dyn->versions ? dyn->versions[index] : 1;
	if (match->version) {
		const char *name = defined_version(dyn, version & 0x7fff);

		if (!name || !same_text(name, match->version))
			return;
	}
	if (match->version || !(version & 0x8000)) {
		match->best = symbol;
		match->best_is_default = true;
	} else if (!match->best) {
		match->best = symbol;
	}
}

static void search_gnu_hash(const struct dynamic *dyn, struct match *match)
{
	uint32_t buckets = dyn->gnu_hash[0], first = dyn->gnu_hash[1];
	uint32_t bloom_words = dyn->gnu_hash[2], shift = dyn->gnu_hash[3];
	const ElfW(Addr) *bloom = (const void *)&dyn->gnu_hash[4];
	const uint32_t *bucket = (const void *)&bloom[bloom_words];
	const uint32_t *chain = &bucket[buckets];
	const unsigned bits = sizeof(ElfW(Addr)) * 8;
	uint32_t hash = 5381, index;
	ElfW(Addr) word;

	for (const unsigned char *c = (const void *)match->name; *c; c++)
		hash = hash * 33 + *c;
	if (!buckets || !bloom_words)
		return;
	word = bloom[(hash / bits) % bloom_words];
	if (!(word >> (hash % bits) & 1) || !(word >> ((hash >> shift) % bits) & 1))
		return;
	for (index = bucket[hash % buckets]; index >= first && index; index++) {
		uint32_t entry = chain[index - first];

		if ((entry | 1) == (hash | 1))
			consider(dyn, match, index);
		if (entry & 1)
			break;
	}
}

static void search_hash(const struct dynamic *dyn, struct match *match)
{
	ElfW(Word) buckets = dyn->hash[0], symbols = dyn->hash[1];
	const ElfW(Word) *bucket = &dyn->hash[2], *chain = &bucket[buckets];
	uint32_t hash = 0;

	for (const unsigned char *c = (const void *)match->name; *c; c++) {
		hash = (hash << 4) + *c;
		hash ^= (hash >> 24) & 0xf0;
		hash &= 0x0fffffff;
	}
	if (!buckets)
		return;
	for (ElfW(Word) index = bucket[hash % buckets], steps = 0;
	     index && index < symbols && steps < symbols; index = chain[index], steps++)
		consider(dyn, match, index);
}

static void *resolve_indirect(uintptr_t resolver)
{
#if defined(__aarch64__)
	struct {
		unsigned long bytes, hwcap, hwcap2;
	} features = {sizeof(features), getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};

	/* bit 62 says that the second argument is there (glibc, sys/ifunc.h) */
	return ((void *(*)(uint64_t, void *))resolver)(features.hwcap | 1ull << 62, &features);
#else
	return ((void *(*)(void))resolver)();
#endif
}

/* NULL if the object does not define it. */
static const ElfW(Sym) *best_symbol(const struct dynamic *dyn, const char *name,
				    const char *version)
{
	struct match match = {name, version, NULL, false};

	if (dyn->gnu_hash)
		search_gnu_hash(dyn, &match);
	else if (dyn->hash)
		search_hash(dyn, &match);
	return match.best;
}

bool gm_object_function(const struct gm_object *object, const char *name, uintptr_t *start,
			uintptr_t *end)
{
	const ElfW(Sym) *symbol;
	struct dynamic dyn;

	if (!parse_dynamic(object, &dyn))
		return false;
	symbol = best_symbol(&dyn, name, NULL);
	if (!symbol || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)
		return false;
	*start = object->base + symbol->st_value;
	*end = *start + symbol->st_size;
	return true;
}

static void *find_symbol(const struct gm_object *object, const struct dynamic *dyn,
			 const char *name, const char *version)
{
	const ElfW(Sym) *symbol = best_symbol(dyn, name, version);
	uintptr_t value;

	if (!symbol)
		return NULL;
	value = symbol->st_value;
	if (symbol->st_shndx != SHN_ABS)
		value += object->base;
	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		return resolve_indirect(value);
	return (void *)value;
}

void *gm_object_symbol(const struct gm_object *object, const char *name, const char *version)
{
	struct dynamic dyn;

	return parse_dynamic(object, &dyn) ? find_symbol(object, &dyn, name, version) : NULL;
}

unsigned gm_object_symbols(const struct gm_object *object, const char *const *names,
			   void **addresses, unsigned count)
{
	struct dynamic dyn;
	unsigned missing = 0;

	if (!parse_dynamic(object, &dyn))
		return count;
	for (unsigned i = 0; i < count; i++) {
		if (!addresses[i])
			addresses[i] = find_symbol(object, &dyn, names[i], NULL);
		missing += addresses[i] == NULL;
	}
	return missing;
}

static const char *dynamic_string(const struct gm_object *object, ElfW(Sxword) tag, unsigned index)
{
	struct dynamic dyn;

	if (!parse_dynamic(object, &dyn))
		return NULL;
	for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == tag && !index--)
			return string_at(&dyn, entry->d_un.d_val);
	return NULL;
}

const char *gm_object_soname(const struct gm_object *object)
{
	return dynamic_string(object, DT_SONAME, 0);
}

const char *gm_object_basename(const struct gm_object *object)
{
	const char *slash = strrchr(object->path, '/'), *soname;

	if (*object->path)
		return slash ? slash + 1 : object->path;
	soname = gm_object_soname(object);
	return soname ? soname : "";
}

const char *gm_object_needed(const struct gm_object *object, unsigned index)
{
	return dynamic_string(object, DT_NEEDED, index);
}

/*
 * An upper bound of the number of symbols. Undefined ones are not in the GNU hash table and the
 * dynamic section has no count, but every linker puts another table right after the symbols.
 */
static size_t symbol_bound(const struct gm_object *object, const struct dynamic *dyn)
{
	uintptr_t end = dyn->next_table ? dyn->next_table : object->end;

	if (dyn->hash)
		return dyn->hash[1];
	return (end - (uintptr_t)dyn->symbols) / sizeof(ElfW(Sym));
}

/* Index of the object's undefined symbol `name`, 0 if there is none. */
static size_t find_reference(const struct gm_object *object, const struct dynamic *dyn,
			     const char *name)
{
	size_t bound = symbol_bound(object, dyn);

	for (size_t i = 1; i < bound; i++) {
		const ElfW(Sym) *symbol = &dyn->symbols[i];

		if (symbol->st_shndx == SHN_UNDEF && symbol->st_name &&
		    !strcmp(string_at(dyn, symbol->st_name), name))
			return i;
	}
	return 0;
}

const char *gm_object_needed_version(const struct gm_object *object, const char *name,
				     const char **file)
{
	const ElfW(Verneed) * need;
	struct dynamic dyn;
	unsigned version;
	size_t index;

	if (!parse_dynamic(object, &dyn) || !dyn.versions || !dyn.needed)
		return NULL;
	find_next_table(object, &dyn);
	index = find_reference(object, &dyn, name);
	if (!index)
		return NULL;
	version = dyn.versions[index] & 0x7fff;
	need = dyn.needed;
	for (unsigned i = 0; i < dyn.needed_count; i++) {
		const ElfW(Vernaux) *aux = (const void *)((const char *)need + need->vn_aux);

		for (unsigned k = 0; k < need->vn_cnt; k++) {
			if ((aux->vna_other & 0x7fff) == version) {
				if (file)
					*file = string_at(&dyn, need->vn_file);
				return string_at(&dyn, aux->vna_name);
			}
			aux = (const void *)((const char *)aux + aux->vna_next);
		}
		if (!need->vn_next)
			break;
		need = (const void *)((const char *)need + need->vn_next);
	}
	return NULL;
}

const unsigned char *gm_object_build_id(const struct gm_object *object, unsigned *bytes)
{
	for (unsigned i = 0; i < object->phdrs; i++) {
		const ElfW(Phdr) *segment = &object->phdr[i];
		const char *at = (const char *)object->base + segment->p_vaddr;
		size_t left = segment->p_memsz, align = segment->p_align == 8 ? 8 : 4;

		if (segment->p_type != PT_NOTE)
			continue;
		while (left >= sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *note = (const void *)at;
			size_t name = sizeof(*note), desc = name + note->n_namesz, whole;

			desc = (desc + align - 1) & ~(align - 1);
			whole = (desc + note->n_descsz + align - 1) & ~(align - 1);
			if (whole > left)
				break;
			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			    !memcmp(at + name, "GNU", 4)) {
				*bytes = note->n_descsz;
				return (const unsigned char *)at + desc;
			}
			at += whole;
			left -= whole;
		}
	}
	return NULL;
}
