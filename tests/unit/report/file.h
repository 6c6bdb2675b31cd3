/*
 * Makes output files for tests directly from layout.h, independently of the shim's writer: records
 * are gathered table by table and laid out in chunks when the file is written.
 */
#ifndef TEST_REPORT_FILE_H
#define TEST_REPORT_FILE_H

#include "store/layout.h"
#include <stdio.h>

struct test_file {
	struct gm_header header;
	struct {
		unsigned char *bytes;
		uint32_t count, record_bytes;
	} tables[GM_TABLES_NOW];
};

/* An empty file of a process that ended well after one second on the host "example". */
void test_begin(struct test_file *file);
void test_end(struct test_file *file);

/* Adds a record; returns its number. All records of a table have the same size. */
uint32_t test_add(struct test_file *file, enum gm_table_id table, const void *record, size_t bytes);
#define TEST_ADD(file, table, record) test_add(file, table, record, sizeof(*(record)))

uint32_t test_string(struct test_file *file, const char *text);

/* Adds a function, and returns its number. */
uint32_t test_function(struct test_file *file, const char *name);

/* Adds a frame, of a module of its own or of Python, and returns its number. */
uint32_t test_native_frame(struct test_file *file, const char *module, uint64_t offset);
uint32_t test_python_frame(struct test_file *file, const char *function, const char *path,
			   unsigned line);

/* A stack of Python frames "function file line", innermost first, ended by NULL. */
uint32_t test_stack(struct test_file *file, const char *const *frames);

/* The record of a site, for changes; and of an allocation. Valid until the next one is added. */
struct gm_site_record *test_site(struct test_file *file, uint32_t site);

/*
 * A site with `live` live allocations of `bytes` each that were made one after the other, and
 * `freed` that are gone; records of the live ones are added. The level's and usage's records are
 * not.
 */
uint32_t test_add_site(struct test_file *file, uint32_t stack, unsigned level, unsigned kind,
		       int device, unsigned live, unsigned freed, uint64_t bytes);

/* A live allocation with an address. */
uint32_t test_block(struct test_file *file, uint32_t site, enum gm_space space, uint64_t address,
		    uint64_t bytes);

/* Level and usage records that add up what the sites of level driver hold, for each device. */
void test_sum(struct test_file *file);

/* The whole file in memory (free it), or written to a path; 0 or -1. */
unsigned char *test_image(const struct test_file *file, size_t *bytes);
int test_write(const struct test_file *file, const char *path);

/* The temporary file of a group of cmocka's tests: what makes it, and what removes it. 0 or -1. */
extern char test_path[];
int test_path_make(void **state);
int test_path_remove(void **state);

#endif
