/*
 * Look-ups by libdwfl and libdw, see symbolize.h. Each module is opened once, in a session of its
 * own, at bias 0, so that its addresses are the recorded offsets whatever else is loaded.
 * Separate debug files of an object that is here are found by libdwfl's usual rules (build id,
 * debug link, debuginfod), an object that is not by debug_files.h.
 */
#include "report/symbols/symbolize.h"
#include "report/symbols/debug_files.h"
#include "report/symbols/demangle.h"
#include "report/support/user_cache.h"
#include "report/symbols/symbol_cache.h"
#include "report/symbols/symbol_index.h"
#include "report/symbols/symbol_source.h"
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct module {
	const char *path;
	unsigned char build_id[24];
	unsigned build_id_bytes;
	Dwfl *session;
	Dwfl_Module *dwfl;	       /* NULL: cannot be used */
	enum gm_missing reason;	       /* GM_MISSING_REASONS if it can be */
	struct gm_symbol_index *index; /* once enough was asked */
	unsigned asked;		       /* queries of its symbols */
	struct gm_symbol_source source;
	struct gm_symbol_answers answers;
	unsigned document; /* the latest that asked for it */
	struct module *next;
};

struct gm_symbols {
	struct gm_zone *zone;
	struct module *modules; /* the latest opened first */
	unsigned document;
	int cache; /* directory; -1: there is none */
};

struct gm_symbols *gm_symbols_new(struct gm_zone *zone, bool use_cache)
{
	struct gm_symbols *symbols = gm_zone_alloc(zone, 1, sizeof(*symbols));

	symbols->zone = zone;
	symbols->cache = use_cache ? gm_user_cache_open() : -1;
	return symbols;
}

static void keep_answers(const struct gm_symbols *symbols)
{
	bool any = false;

	for (const struct module *m = symbols->modules; m; m = m->next)
		if (m->answers.added_count) {
			gm_symbol_cache_write(symbols->cache, m->build_id, m->build_id_bytes,
					      m->source.text, &m->answers);
			any = true;
		}
	if (any)
		gm_user_cache_trim(symbols->cache, GM_SYMBOL_CACHE_SUFFIX, GM_SYMBOL_CACHE_BYTES);
	if (symbols->cache >= 0)
		close(symbols->cache);
}

void gm_symbols_free(struct gm_symbols *symbols)
{
	if (!symbols)
		return;
	keep_answers(symbols);
	for (struct module *m = symbols->modules; m; m = m->next) {
		gm_symbol_index_free(m->index);
		if (m->session)
			dwfl_end(m->session);
	}
}

void gm_symbols_begin(struct gm_symbols *symbols)
{
	symbols->document++;
}

/* True if the opened file is the build that ran. */
static bool same_build(const struct module *module)
{
	const unsigned char *bits;
	GElf_Addr address;
	int bytes = dwfl_module_build_id(module->dwfl, &bits, &address);

	if (module->build_id_bytes == 0)
		return bytes <= 0;
	return bytes > 0 && (unsigned)bytes >= module->build_id_bytes &&
	       memcmp(bits, module->build_id, module->build_id_bytes) == 0;
}

/* Opens a file for a module; GM_MISSING_REASONS if it can be used. The descriptor is taken. */
static enum gm_missing try_file(struct module *module, const char *path, int fd)
{
	if (fd < 0)
		return GM_MISSING_FILE;
	module->session = dwfl_begin(&gm_symbol_callbacks);
	if (module->session) {
		dwfl_report_begin(module->session);
		/* The descriptor is the session's if it is taken. */
		module->dwfl = dwfl_report_elf(module->session, module->path, path, fd, 0, true);
		dwfl_report_end(module->session, NULL, NULL);
	}
	if (!module->dwfl)
		close(fd);
	else if (same_build(module)) {
		gm_symbol_source_attach(&module->source, module->dwfl);
		return GM_MISSING_REASONS;
	}
	if (module->session)
		dwfl_end(module->session);
	module->session = NULL;
	if (!module->dwfl)
		return GM_MISSING_FORMAT;
	module->dwfl = NULL;
	return GM_MISSING_BUILD;
}

/*
 * Tries a file as try_file does, and takes in the answers of earlier runs about a module that can
 * be used.
 */
static enum gm_missing use_file(struct gm_symbols *symbols, struct module *module, const char *path,
				int fd)
{
	int copy = symbols->cache >= 0 && fd >= 0 && module->build_id_bytes
			   ? fcntl(fd, F_DUPFD_CLOEXEC, 0)
			   : -1;
	enum gm_missing reason = try_file(module, path, fd);

	if (copy < 0)
		return reason;
	if (reason == GM_MISSING_REASONS)
		gm_symbol_source_describe(symbols->zone, &module->source, path, copy);
	close(copy);
	if (module->source.text)
		gm_symbol_cache_read(symbols->zone, symbols->cache, module->build_id,
				     module->build_id_bytes, module->source.text, &module->answers);
	return reason;
}

/* Paths are those of a file from anywhere: opening a device or a pipe may already do something. */
static int open_regular(const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* The file at the recorded path, else one of the same build id from elsewhere. */
static void open_module(struct gm_symbols *symbols, struct module *module)
{
	enum gm_missing reason =
		use_file(symbols, module, module->path, open_regular(module->path));
	const char *path;
	int fd;

	if (reason != GM_MISSING_REASONS && module->build_id_bytes) {
		fd = gm_debug_file_open(symbols->zone, module->build_id, module->build_id_bytes,
					&path);
		if (fd >= 0 && use_file(symbols, module, path, fd) == GM_MISSING_REASONS)
			reason = GM_MISSING_REASONS;
	}
	module->reason = reason;
}

static struct module *find_module(struct gm_symbols *symbols, const struct gm_module_record *record,
				  const char *path)
{
	unsigned bytes = record->build_id_bytes;
	struct module *m;

	if (bytes > sizeof(record->build_id))
		bytes = sizeof(record->build_id);
	for (m = symbols->modules; m; m = m->next)
		if (strcmp(m->path, path) == 0 && m->build_id_bytes == bytes &&
		    memcmp(m->build_id, record->build_id, bytes) == 0) {
			m->document = symbols->document;
			return m;
		}
	m = gm_zone_alloc(symbols->zone, 1, sizeof(*m));
	m->path = gm_zone_strdup(symbols->zone, path);
	m->reason = GM_MISSING_REASONS;
	m->document = symbols->document;
	m->build_id_bytes = bytes;
	memcpy(m->build_id, record->build_id, bytes);
	m->next = symbols->modules;
	symbols->modules = m;
	if (path[0] == '/')
		open_module(symbols, m);
	return m;
}

/* The compilation unit that covers an address; units of compilers that write no index are walked.
 */
static Dwarf_Die *find_unit(Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *bias)
{
	Dwarf_Die *unit = dwfl_module_addrdie(module, address, bias);

	if (unit)
		return unit;
	while ((unit = dwfl_module_nextcu(module, unit, bias)))
		if (dwarf_haspc(unit, address - *bias) == 1)
			return unit;
	return NULL;
}

/* The declaration that an instance of a function refers to, by one or more steps. */
static void find_declaration(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Die next;

	for (unsigned i = 0; i < 4; i++) {
		if (!dwarf_attr(die, DW_AT_abstract_origin, &attribute) &&
		    !dwarf_attr(die, DW_AT_specification, &attribute))
			return;
		if (!dwarf_formref_die(&attribute, &next))
			return;
		*die = next;
	}
}

/*
 * The name with its classes and namespaces: "DeviceArray::reserve". GCC writes no linkage name for
 * functions of unnamed namespaces, nor for local classes.
 */
static const char *qualified_name(struct gm_zone *zone, const Dwarf_Die *die, const char *name)
{
	Dwarf_Die declaration = *die, *scopes = NULL;
	int count;

	find_declaration(&declaration);
	count = dwarf_getscopes_die(&declaration, &scopes);
	for (int i = 1; i < count; i++) {
		int tag = dwarf_tag(&scopes[i]);
		const char *scope = dwarf_diename(&scopes[i]);

		if (tag == DW_TAG_namespace && !scope)
			scope = "(anonymous namespace)";
		if (scope && (tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
			      tag == DW_TAG_structure_type || tag == DW_TAG_union_type))
			name = gm_zone_printf(zone, "%s::%s", scope, name);
	}
	free(scopes);
	return name;
}

static bool is_cxx(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	default:
		return false;
	}
}

static const char *die_name(struct gm_zone *zone, Dwarf_Die *unit, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	if (name)
		return name;
	name = dwarf_diename(die);
	return name && is_cxx(unit) ? qualified_name(zone, die, name) : name;
}

/* Returns the file and the line at which an inlined function was called. */
static const char *call_site(Dwarf_Die *unit, Dwarf_Die *die, uint32_t *line)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;
	Dwarf_Files *files;
	size_t count;

	*line = 0;
	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &number) == 0)
		*line = (uint32_t)number;
	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &number) != 0 ||
	    dwarf_getsrcfiles(unit, &files, &count) != 0 || number >= count)
		return NULL;
	return dwarf_filesrc(files, number, NULL, NULL);
}

/*
 * Fills frames for the inlined functions around an address and the function they are in. The first
 * frame's file and line are the caller's to give. Returns how many, 0 without debug information.
 */
static unsigned inlined_frames(struct gm_symbols *symbols, Dwarf_Die *unit, Dwarf_Addr address,
			       struct gm_frame *frames, unsigned most)
{
	Dwarf_Die *scopes = NULL, *nest = NULL;
	int count = dwarf_getscopes(unit, address, &scopes);
	unsigned filled = 0;

	if (count > 0)
		count = dwarf_getscopes_die(&scopes[0], &nest);
	for (int i = 0; i < count && filled < most; i++) {
		int tag = dwarf_tag(&nest[i]);
		struct gm_frame *frame = &frames[filled];

		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		frame->function = die_name(symbols->zone, unit, &nest[i]);
		filled++;
		if (tag == DW_TAG_subprogram)
			break;
		frame->inlined = true;
		if (filled < most) {
			const char *file = call_site(unit, &nest[i], &frames[filled].line);

			frames[filled].file = file ? gm_zone_strdup(symbols->zone, file) : NULL;
		}
	}
	free(scopes);
	free(nest);
	return filled;
}

/* Sorting a module's symbols takes about as long as looking through them so often. */
#define INDEX_FROM 16

static const char *symbol_name(struct module *module, Dwarf_Addr address)
{
	if (!module->index && ++module->asked >= INDEX_FROM)
		module->index = gm_symbol_index_new(module->dwfl);
	return module->index ? gm_symbol_index_name(module->index, address)
			     : dwfl_module_addrname(module->dwfl, address);
}

/* "/build/dir/../src/a.c" reads better as "/build/src/a.c". */
static const char *tidy_path(struct gm_zone *zone, const char *path)
{
	char *text, *dots;

	if (!path || !strstr(path, "/../"))
		return path;
	text = gm_zone_strdup(zone, path);
	while ((dots = strstr(text, "/../")) && dots != text) {
		char *parent = dots - 1;

		while (parent > text && *parent != '/')
			parent--;
		if (parent == text || memcmp(parent, "/..", 3) == 0)
			break;
		memmove(parent, dots + 3, strlen(dots + 3) + 1);
	}
	return text;
}

/*
 * Looks an offset up in the module's files: names as they stand there. Returns the number of
 * frames, at least 1; `*whole` tells that these files will never say more.
 */
static unsigned ask_files(struct gm_symbols *symbols, struct module *module, uint64_t offset,
			  struct gm_frame *frames, unsigned most, bool *whole)
{
	Dwarf_Addr bias = 0, address = offset ? offset - 1 : 0;
	Dwarf_Die *unit = find_unit(module->dwfl, address, &bias);
	Dwfl_Line *line = dwfl_module_getsrc(module->dwfl, address);
	unsigned filled = 0;
	int number;

	/* Names of a split unit are in a file beside it, which may come later. */
	*whole = !unit ||
		 (!dwarf_hasattr(unit, DW_AT_dwo_name) && !dwarf_hasattr(unit, DW_AT_GNU_dwo_name));
	if (unit)
		filled = inlined_frames(symbols, unit, address - bias, frames, most);
	if (line) {
		const char *file = dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);

		frames[0].file = file ? gm_zone_strdup(symbols->zone, file) : NULL;
		frames[0].line = number > 0 ? (uint32_t)number : 0;
	}
	if (filled == 0) {
		const char *name = symbol_name(module, address);

		frames[0].function = name ? gm_zone_strdup(symbols->zone, name) : NULL;
		filled = 1;
	}
	return filled;
}

/* Finds the frames of an offset, from an earlier answer if there is one. */
static unsigned find_frames(struct gm_symbols *symbols, struct module *module, uint64_t offset,
			    struct gm_frame *frames, unsigned most)
{
	const struct gm_symbol_answer *answer = gm_symbol_answers_find(&module->answers, offset);
	unsigned filled;
	bool whole;

	if (answer && answer->count <= most) {
		memcpy(frames, answer->frames, answer->count * sizeof(*frames));
		return answer->count;
	}
	filled = ask_files(symbols, module, offset, frames, most, &whole);
	if (whole && module->source.text)
		gm_symbol_answers_add(symbols->zone, &module->answers, offset, frames, filled);
	return filled;
}

unsigned gm_symbols_look_up(struct gm_symbols *symbols, const struct gm_module_record *record,
			    const char *path, uint64_t offset, struct gm_frame *frames,
			    unsigned most)
{
	struct module *module = find_module(symbols, record, path);
	unsigned filled = 1;

	memset(frames, 0, most * sizeof(*frames));
	if (module->dwfl)
		filled = find_frames(symbols, module, offset, frames, most);
	for (unsigned i = 0; i < filled; i++) {
		frames[i].function = gm_demangle(symbols->zone, frames[i].function);
		frames[i].file = tidy_path(symbols->zone, frames[i].file);
		frames[i].module = path;
		frames[i].offset = offset;
	}
	return filled;
}

unsigned gm_symbols_missing(const struct gm_symbols *symbols, enum gm_missing reason,
			    const char **paths, unsigned most)
{
	unsigned count = 0, skip;

	for (const struct module *m = symbols->modules; m; m = m->next)
		count += m->reason == reason && m->document == symbols->document;
	/* In the order in which they were met: the list has the latest first. */
	skip = count;
	for (const struct module *m = symbols->modules; m; m = m->next)
		if (m->reason == reason && m->document == symbols->document && --skip < most)
			paths[skip] = m->path;
	return count;
}
