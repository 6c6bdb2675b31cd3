/*
 * The one way in which the shim creates files: the output file, its history, its copies, and
 * pointers to it. Each is a new inode with mode 0600, which gets its name when its content is
 * there. A name that is taken is never written through: an earlier file of ours is kept under
 * another name, and the file of a live process, a link, or a file of another kind is left alone.
 *
 * A file belongs to a live process as long as it is locked by flock(2). The lock is that of the
 * open file that a process maps, so the kernel drops it when the mapping goes, however the process
 * ends; no descriptor is kept for it. Where a filesystem has no such locks, the pid in the header
 * decides (GM_FEATURE_LOCKED is not set then).
 *
 * All functions use buffers that gm_files_lock guards. They call libc's system call wrappers only
 * and no malloc, and are safe in signal handlers.
 */
#ifndef GM_STORE_NEW_FILE_H
#define GM_STORE_NEW_FILE_H

#include "store/layout.h"

#include <stdbool.h>
#include <stddef.h>

#define GM_PATH_BYTES 4096

/* The content that is written before the file has its name. */
struct gm_content {
	const void *data;
	size_t bytes;
	struct gm_header
		*header; /* `data` if that is one: told whether the file is locked; or NULL */
};

enum gm_found { GM_FOUND_LIVE, GM_FOUND_OLD, GM_FOUND_FOREIGN };

/*
 * Takes the lock of the buffers; if another thread holds it, tries again for a while where `wait`
 * is set. Returns whether the lock was taken: a signal handler may have interrupted its holder.
 */
bool gm_files_lock(bool wait);
void gm_files_unlock(void);

/* Frees the lock in the child of a fork, where the thread that held it does not exist. */
void gm_files_forget(void);

/*
 * Creates a file without a name yet, on the disk of `path`, and locks it. `named`: it gets a name
 * of its own beside `path`, by which it can be renamed over an existing file. Returns a descriptor
 * of 3 or above, or -errno. The caller calls gm_file_publish, gm_file_replace or gm_file_abandon,
 * and closes it.
 */
int gm_file_begin(const char *path, bool named);

/* Gives the file the name `path`. Returns 0 or -errno: -EEXIST if the name is taken. */
int gm_file_publish(int fd, const char *path);

/* Puts a file that has a name of its own in the place of a file at `path`. */
int gm_file_replace(const char *path);

/* Removes a file that was begun and neither published nor put in another's place. */
void gm_file_abandon(void);

/*
 * Creates `path` with its content in one step, so that no other process finds it without an owner.
 * Returns a descriptor or -errno: -EEXIST if the name is taken.
 */
int gm_file_create(const char *path, const struct gm_content *content);

/* Returns whether the file has the lock of a live process. */
bool gm_file_is_locked(int fd);

/*
 * Returns what exists at a path: a live process's file, an earlier one of ours, or anything else.
 * `follow`: a pointer is live if the file that it leads to is.
 */
enum gm_found gm_file_found(const char *path, bool follow);

/*
 * Renames an earlier file of ours to the first free NAME.oldN, and the history beside it. Returns
 * 0, also where there is nothing, or -errno: -EBUSY for a live process's file, -EEXIST for one that
 * is not ours.
 */
int gm_file_keep_old(const char *path);

/*
 * Publishes a file, after keeping the earlier one at `path` if there is one. Returns 0 or -errno as
 * the two functions do.
 */
int gm_file_publish_keeping(int fd, const char *path);

/* Returns a number for this host, by its name; never 0. */
uint64_t gm_machine(void);

/* The last line of a pointer file says by gm_machine's number on which machine its target lies. */
#define GM_MACHINE_LINE "machine "

/*
 * Returns the start time of a process in clock ticks (field 22 of /proc/PID/stat), 0 if it cannot
 * be read.
 */
uint64_t gm_process_start_ticks(int pid);

/*
 * Writes `path` and a suffix, for which the last name is cut at a character's boundary if it would
 * be longer than 255 bytes. Returns false if it does not fit into `bytes`.
 */
bool gm_path_with_suffix(char *out, size_t bytes, const char *path, const char *suffix);

/* Writes `prefix` and a number, as in ".old1". `out` has 32 bytes. Async-signal-safe. */
void gm_numbered(char *out, const char *prefix, unsigned number);

#endif
