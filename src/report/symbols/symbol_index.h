/*
 * The symbols of a module by address. libdwfl looks through all of them for each address, which is
 * 20 ms where there are a million; sorted once they are found by bisection.
 */
#ifndef GM_REPORT_SYMBOLS_SYMBOL_INDEX_H
#define GM_REPORT_SYMBOLS_SYMBOL_INDEX_H

#include <elfutils/libdwfl.h>

struct gm_symbol_index;

/* Sorts a module's symbols. Never NULL; freed by gm_symbol_index_free. */
struct gm_symbol_index *gm_symbol_index_new(Dwfl_Module *module);
void gm_symbol_index_free(struct gm_symbol_index *index);

/*
 * The name of the symbol that dwfl_module_addrinfo would give for `address`, NULL where there is
 * none. It lives as long as the module.
 */
const char *gm_symbol_index_name(const struct gm_symbol_index *index, GElf_Addr address);

#endif
