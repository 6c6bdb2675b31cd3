/*
 * From module and offset to function, file and line, by elfutils. A module is looked up by its path
 * and used only if its build id is the one recorded, so that names are never those of another
 * build.
 */
#ifndef GM_REPORT_SYMBOLIZE_H
#define GM_REPORT_SYMBOLIZE_H

#include "report/doc.h"

struct gm_symbols;

struct gm_symbols *gm_symbols_new(struct gm_arena *arena);
void gm_symbols_free(struct gm_symbols *symbols);

/*
 * The frames at `offset` of a module, innermost first: functions inlined there, then the function
 * itself. Fills at most `most` and returns how many, at least 1; function is NULL where nothing is
 * known. Texts live in the arena. Not thread-safe.
 */
unsigned gm_symbols_look_up(struct gm_symbols *symbols, const struct gm_module_record *module,
			    const char *path, uint64_t offset, struct gm_frame *frames,
			    unsigned most);

/* Modules that could not be used: their number, and a sentence about one of them. */
unsigned gm_symbols_missing(const struct gm_symbols *symbols);
const char *gm_symbols_missing_text(const struct gm_symbols *symbols, unsigned index);

/* A readable form of a mangled C++ name, in the arena; the name itself if it is none. */
const char *gm_demangle(struct gm_arena *arena, const char *name);

#endif
