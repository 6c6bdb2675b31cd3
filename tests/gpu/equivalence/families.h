/*
 * What the parts of the program `families` share. It is built with the table's own prototypes, so
 * the same sources run on the simulated GPU and, linked with NVIDIA's cudart, on a real one.
 */
#ifndef TESTS_GPU_EQUIVALENCE_FAMILIES_H
#define TESTS_GPU_EQUIVALENCE_FAMILIES_H

#include "cuda_calls.h"

#define KIB (1ull << 10)
#define MIB (1ull << 20)

/* Ends the program with a sentence when a call that must succeed fails, or one that must fail does
 * not. */
void must(int error, const char *what);
void must_fail(int error, const char *what);
#define OK(call)    must((int)(call), #call)
#define FAILS(call) must_fail((int)(call), #call)

/* A function of the driver by its exported name, through dlsym as cudart and frameworks do it. */
void *driver_function(const char *name);
#define DRIVER(name) ((__typeof__(&name))driver_function(#name))

/*
 * A stream, which family "streams" destroys with all others: the handle of a destroyed stream is
 * given out again or not as the driver pleases, and which stream a call was on could not be told
 * from its handle.
 */
cudaStream_t new_stream(void);

/* Families of the driver's own (families_driver.c) and of graphs (families_graph.c). */
void family_virtual(void);
void family_direct(void);
void family_contexts(void);
void family_graphs(void);

/* families_time.c: what a pair of calls costs, as JSON. */
void time_pairs(void);

#endif
