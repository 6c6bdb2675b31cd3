/*
 * Symbols sorted by where they begin, see symbol_index.h. Those with a size are kept; which of
 * several over the same address is chosen follows libdwfl's dwfl_module_addrinfo, and an address
 * that none of them covers (labels of assembly have no size) is left to it. Calls libdwfl and libc.
 */
#include "report/symbols/symbol_index.h"
#include "report/support/memory.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct symbol {
	GElf_Addr start, size;
	int number; /* in the module's table */
};

struct gm_symbol_index {
	Dwfl_Module *module;
	int first_global;
	size_t count;
	struct symbol *symbols; /* by start, then by number */
	GElf_Addr *reach;	/* end of the furthest of the symbols up to this one */
};

static bool covers_code_or_data(const char *name, const GElf_Sym *symbol)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	return name && *name && symbol->st_shndx != SHN_UNDEF && symbol->st_size &&
	       type != STT_SECTION && type != STT_FILE && type != STT_TLS;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->number - y->number;
}

static void read_symbols(struct gm_symbol_index *index, int all)
{
	for (int i = 1; i < all; i++) {
		GElf_Sym symbol;
		GElf_Addr start;
		GElf_Word section = (GElf_Word)-1;
		const char *name = dwfl_module_getsym_info(index->module, i, &symbol, &start,
							   &section, NULL, NULL);

		/* -1: of a section that is not loaded, so that it has no address. */
		if (section != (GElf_Word)-1 && covers_code_or_data(name, &symbol))
			index->symbols[index->count++] = (struct symbol){start, symbol.st_size, i};
	}
}

static void measure_reach(struct gm_symbol_index *index)
{
	GElf_Addr furthest = 0;

	for (size_t i = 0; i < index->count; i++) {
		const struct symbol *symbol = &index->symbols[i];
		GElf_Addr end = symbol->start + symbol->size;

		if (end < symbol->start) /* a hostile size */
			end = UINT64_MAX;
		if (end > furthest)
			furthest = end;
		index->reach[i] = furthest;
	}
}

struct gm_symbol_index *gm_symbol_index_new(Dwfl_Module *module)
{
	struct gm_symbol_index *index = gm_realloc(NULL, sizeof(*index));
	int all = dwfl_module_getsymtab(module);
	size_t room = all > 0 ? (size_t)all : 0;

	*index = (struct gm_symbol_index){
		.module = module,
		.first_global = dwfl_module_getsymtab_first_global(module),
		.symbols = gm_realloc(NULL, room * sizeof(*index->symbols)),
	};
	read_symbols(index, all);
	if (index->count)
		qsort(index->symbols, index->count, sizeof(*index->symbols), compare_symbols);
	index->reach = gm_realloc(NULL, index->count * sizeof(*index->reach));
	measure_reach(index);
	return index;
}

void gm_symbol_index_free(struct gm_symbol_index *index)
{
	if (!index)
		return;
	free(index->symbols);
	free(index->reach);
	free(index);
}

/* Counts the symbols that begin at or before an address. */
static size_t count_up_to(const struct gm_symbol_index *index, GElf_Addr address)
{
	size_t low = 0, high = index->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->symbols[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int strength(const GElf_Sym *symbol)
{
	switch (GELF_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
		return 3;
	case STB_WEAK:
		return 2;
	case STB_LOCAL:
		return 1;
	default:
		return 0;
	}
}

/*
 * Decides which of two symbols over an address libdwfl gives: the table's globals are asked before
 * its locals, in order; a later one wins by beginning nearer or binding stronger, and of those that
 * begin at the same place by being smaller.
 */
static bool replaces(const struct gm_symbol_index *index, const struct symbol *candidate,
		     const struct symbol *best)
{
	GElf_Sym a, b;

	dwfl_module_getsym(index->module, candidate->number, &a, NULL);
	dwfl_module_getsym(index->module, best->number, &b, NULL);
	if (candidate->start > best->start || strength(&a) > strength(&b))
		return true;
	return candidate->start == best->start && candidate->size < best->size &&
	       strength(&a) >= strength(&b);
}

static int compare_numbers(const void *a, const void *b)
{
	return (*(const struct symbol *const *)a)->number -
	       (*(const struct symbol *const *)b)->number;
}

#define MOST_OVER 64 /* symbols over one address; where there are more, libdwfl chooses */

/* The symbols over an address in the table's order; MOST_OVER if there are as many or more. */
static unsigned find_over(const struct gm_symbol_index *index, GElf_Addr address,
			  const struct symbol *over[MOST_OVER])
{
	unsigned count = 0;

	for (size_t i = count_up_to(index, address);
	     i-- > 0 && index->reach[i] > address && count < MOST_OVER;)
		if (address - index->symbols[i].start < index->symbols[i].size)
			over[count++] = &index->symbols[i];
	if (count)
		qsort(over, count, sizeof(*over), compare_numbers);
	return count;
}

const char *gm_symbol_index_name(const struct gm_symbol_index *index, GElf_Addr address)
{
	const struct symbol *over[MOST_OVER], *best = NULL;
	unsigned count = find_over(index, address, over);
	GElf_Sym symbol;

	if (count == 0 || count == MOST_OVER)
		return dwfl_module_addrname(index->module, address);
	for (unsigned i = 0; i < count; i++)
		if (over[i]->number >= index->first_global &&
		    (!best || replaces(index, over[i], best)))
			best = over[i];
	/* Without a global one all of them are local. */
	for (unsigned i = 0; i < count && (!best || best->number < index->first_global); i++)
		if (!best || replaces(index, over[i], best))
			best = over[i];
	return dwfl_module_getsym(index->module, best->number, &symbol, NULL);
}
