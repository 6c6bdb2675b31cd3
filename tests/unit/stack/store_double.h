/*
 * A stand-in for the output file, in memory: writer.h with tables as plain arrays, and what tests
 * want to know and to break.
 */
#ifndef STORE_DOUBLE_H
#define STORE_DOUBLE_H

#include "store/writer.h"

/* Starts over with empty tables. */
void store_double_reset(void);

/* Records of a table. */
uint32_t store_double_count(enum gm_table_id table);

/* From now on appending to any table fails (true) or works again. */
void store_double_fill(bool full);

const char *store_double_string(uint32_t string);

#endif
