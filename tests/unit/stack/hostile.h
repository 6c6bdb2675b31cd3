/* What hostile.c and its C++ part call of each other. */
#ifndef HOSTILE_H
#define HOSTILE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the caller's stack in every way and compares: as wrappers of three makes do. */
void hostile_capture(void);
void hostile_capture_aligned(void);
void hostile_capture_outer(void);

/* Only takes it, without any chance. */
void hostile_capture_plainly(void);

/* Calls something, chosen at random, that calls it again with less, and captures at 0. */
void hostile_wander(unsigned depth);

/* Throws; calls and catches, if there is C++ here. */
void hostile_throw(void);
void hostile_catch(void (*function)(void *), void *data);

#ifdef __cplusplus
}
#else

#include "sanitized.h"

#include <stdbool.h>
#include <stdint.h>

/* Of hostile.c, for the thread: its dice; a function that a walk is to end at, 0 for none. */
unsigned hostile_dice(unsigned sides);
uintptr_t hostile_stop(void);

/* The function that all walks with Python frames end at until the next start; 0 for none. */
uintptr_t hostile_interpreter(void);
#define HOSTILE_STOP_BYTES 64u
void hostile_took_one(void);

/*
 * Of hostile_check.c. In a signal's handler; and the tables' view of the caller's stack, libgcc's.
 */
void hostile_check_in_handler(bool may_intern);
void hostile_check_agreement(void);

/* The thread is in that library, or, NULL, in none any more. */
void hostile_in_plugin(const char *path);

/* Forgets all stacks, as the child of a fork does; false if there is no reader of unwind tables. */
bool hostile_start_over(void);

/* From now on nothing new can be recorded. */
void hostile_fill_store(void);

/* False if anything differed, or nothing was shown. */
bool hostile_print_totals(void);

#endif

/* In the libraries: has a frame full of `fill`, calls `capture`, and says where it returns to. */
typedef unsigned long hostile_plugin(unsigned long fill, void (*capture)(void));

#define HOSTILE_SMALL 256u
#define HOSTILE_LARGE 4096u

#endif
