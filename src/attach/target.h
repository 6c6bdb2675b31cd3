/*
 * A running process as the tool sees it from outside: its objects, their symbols, its memory, its
 * threads. Everything is read through /proc/PID and /proc/PID/root, so that a process in another
 * mount namespace is seen as it sees itself. Nothing here stops or changes the process but
 * gm_target_write.
 */
#ifndef GM_ATTACH_TARGET_H
#define GM_ATTACH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A file that is mapped: from its first to its last mapping. */
struct gm_target_object {
	char *path; /* as /proc/PID/maps has it */
	uint64_t start, end;
	bool code; /* part of it can be executed */
};

struct gm_target {
	pid_t pid;
	struct gm_target_object *objects;
	unsigned count;
};

/* Reads the objects, again if need be. Returns false after a sentence in `error`. */
bool gm_target_open(struct gm_target *target, pid_t pid, char *error, size_t error_bytes);
void gm_target_close(struct gm_target *target);

/* The object whose file name begins with `name`; NULL. */
const struct gm_target_object *gm_target_find(const struct gm_target *target, const char *name);

/*
 * A dynamic symbol that an object defines: its address in the process, 0 if there is none. `file`:
 * the object's file where it cannot be reached by its path, else NULL. `size` may be NULL.
 */
uint64_t gm_target_symbol(const struct gm_target *target, const struct gm_target_object *object,
			  const char *file, const char *name, uint64_t *size);

bool gm_target_read(const struct gm_target *target, uint64_t from, void *to, size_t bytes);
bool gm_target_write(const struct gm_target *target, uint64_t to, const void *from, size_t bytes);

/*
 * Returns the number of bytes below `sp` in the stack that `sp` lies in; a main thread's stack can
 * grow.
 */
uint64_t gm_target_stack_room(const struct gm_target *target, uint64_t sp);

/* A descriptor of the object's file as the process sees it, or -1. */
int gm_target_open_object(const struct gm_target *target, const char *path);

/*
 * When a process started, in clock ticks since the machine did [proc(5), stat]; 0 if there is none,
 * or if it has ended and its parent has not waited for it. Tells a process from a later one that
 * was given the same number.
 */
uint64_t gm_process_started(pid_t pid);

/* Stores the ids of up to `most` threads; returns how many. */
unsigned gm_target_threads(const struct gm_target *target, pid_t *threads, unsigned most);

#endif
