/*
 * From module and offset to function, file and line, by elfutils. A module is looked up by its path
 * and used only if its build id is the one recorded, so that names are never those of another
 * build.
 */
#ifndef GM_REPORT_SYMBOLS_SYMBOLIZE_H
#define GM_REPORT_SYMBOLS_SYMBOLIZE_H

#include "report/doc/doc.h"

struct gm_symbols;

/*
 * `use_cache`: what earlier runs found out is taken from the user's cache (symbol_cache.h), and
 * what this one finds out is kept there by gm_symbols_free. The answers are the same without.
 */
struct gm_symbols *gm_symbols_new(struct gm_zone *zone, bool use_cache);
void gm_symbols_free(struct gm_symbols *symbols);

/* Another document begins: the modules that gm_symbols_missing tells of are its own. */
void gm_symbols_begin(struct gm_symbols *symbols);

/*
 * The frames at `offset` of a module, innermost first: functions inlined there, then the function
 * itself. Fills at most `most` and returns how many, at least 1; function is NULL where nothing is
 * known. Texts live in the zone. Not thread-safe.
 */
unsigned gm_symbols_look_up(struct gm_symbols *symbols, const struct gm_module_record *module,
			    const char *path, uint64_t offset, struct gm_frame *frames,
			    unsigned most);

/* The reasons why a module's functions have no names. */
enum gm_missing {
	GM_MISSING_FILE,   /* it is not on this machine */
	GM_MISSING_BUILD,  /* another build of it is */
	GM_MISSING_FORMAT, /* it is no object file */
	GM_MISSING_REASONS
};

/*
 * Returns the number of modules of the present document that could not be used for a reason; the
 * paths of the first `most` are filled in.
 */
unsigned gm_symbols_missing(const struct gm_symbols *symbols, enum gm_missing reason,
			    const char **paths, unsigned most);

#endif
