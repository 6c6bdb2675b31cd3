/*
 * Who frees which block at the end of the process late, and its books (late_books.c).
 */
#ifndef TESTS_LATE_H
#define TESTS_LATE_H

#ifdef __cplusplus
extern "C" {
#endif

enum { FIRST_HANDLER, OTHER_HANDLER, STATIC_OBJECT, LIBRARY, LAST_HANDLER, BLOCKS };

void take_blocks(void);
void take(unsigned long bytes);
void release(int block);
void make_stream(void);
void print_books(void);

#ifdef __cplusplus
}
#endif

#endif
