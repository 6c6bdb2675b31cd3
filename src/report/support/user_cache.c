/*
 * See user_cache.h. A file is made under a name of its own and renamed; its time of change is when
 * it was last used. Calls libc only.
 */
#include "report/support/user_cache.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* This user's own, and nobody else can write to it. */
static bool is_ours(const struct stat *status)
{
	return status->st_uid == geteuid() && (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* The directory `name` in another, made if it is not there. */
static int make_directory(int parent, const char *name)
{
	if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST)
		return -1;
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* The user's directory of caches, by the XDG Base Directory Specification. */
static int open_parent(void)
{
	const char *path = secure_getenv("XDG_CACHE_HOME");
	struct stat status;
	int home, fd = -1;

	/* A relative path is to be ignored. */
	if (path && *path == '/') {
		mkdir(path, 0700);
		return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	path = secure_getenv("HOME");
	if (!path || *path != '/')
		return -1;
	home = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* Another user's, as sudo may leave it: what root makes there its owner could not use. */
	if (home >= 0 && fstat(home, &status) == 0 && status.st_uid == geteuid()) {
		mkdirat(home, ".cache", 0700);
		fd = openat(home, ".cache", O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (home >= 0)
		close(home);
	return fd;
}

int gm_user_cache_open(void)
{
	int parent = open_parent(), fd = -1;
	struct stat status;

	if (parent < 0)
		return -1;
	fd = make_directory(parent, "gpumemtrace");
	close(parent);
	if (fd >= 0 && fstat(fd, &status) == 0 && is_ours(&status))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static unsigned char *read_file(struct gm_zone *zone, int fd, size_t most_bytes, size_t *bytes)
{
	struct stat status;
	unsigned char *data;
	size_t done = 0;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !is_ours(&status) ||
	    (uint64_t)status.st_size > most_bytes)
		return NULL;
	*bytes = (size_t)status.st_size;
	data = gm_zone_alloc(zone, *bytes, 1);
	while (done < *bytes) {
		ssize_t got = read(fd, data + done, *bytes - done);

		if (got <= 0)
			return NULL;
		done += (size_t)got;
	}
	return data;
}

unsigned char *gm_user_cache_read(struct gm_zone *zone, int directory, const char *name,
				  size_t most_bytes, size_t *bytes)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	unsigned char *data;

	if (fd < 0)
		return NULL;
	data = read_file(zone, fd, most_bytes, bytes);
	if (data)
		futimens(fd, NULL);
	close(fd);
	return data;
}

static bool write_all(int fd, const unsigned char *data, size_t bytes)
{
	while (bytes) {
		ssize_t put = write(fd, data, bytes);

		if (put <= 0)
			return false;
		data += put;
		bytes -= (size_t)put;
	}
	return true;
}

/* Writes under a name that no other process uses, then takes the right one. */
void gm_user_cache_write(int directory, const char *name, const void *data, size_t bytes)
{
	char temporary[GM_USER_CACHE_NAME_BYTES + 24];
	unsigned long long number;
	bool written;
	int fd;

	if (getentropy(&number, sizeof(number)) != 0)
		return;
	snprintf(temporary, sizeof(temporary), "%s.%016llx", name, number);
	fd = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	written = write_all(fd, data, bytes);
	if (close(fd) != 0 || !written || renameat(directory, temporary, directory, name) != 0)
		unlinkat(directory, temporary, 0);
}

struct file {
	char name[256];
	struct timespec used;
	uint64_t bytes;
};

static int compare_files(const void *a, const void *b)
{
	const struct timespec *x = &((const struct file *)a)->used;
	const struct timespec *y = &((const struct file *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* The files with that suffix in a directory; from malloc. */
static struct file *list_files(DIR *list, int directory, const char *suffix, size_t *count,
			       uint64_t *all_bytes)
{
	struct file *files = NULL;
	size_t room = 0;
	struct dirent *entry;
	struct stat status;

	*count = 0;
	*all_bytes = 0;
	while ((entry = readdir(list))) {
		if (!strstr(entry->d_name, suffix) ||
		    fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(status.st_mode))
			continue;
		if (*count == room) {
			room = room ? 2 * room : 64;
			files = gm_realloc(files, room * sizeof(*files));
		}
		snprintf(files[*count].name, sizeof(files->name), "%s", entry->d_name);
		files[*count].used = status.st_mtim;
		files[*count].bytes = (uint64_t)status.st_size;
		*all_bytes += files[(*count)++].bytes;
	}
	return files;
}

void gm_user_cache_trim(int directory, const char *suffix, uint64_t most_bytes)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct file *files;
	uint64_t bytes;
	size_t count;

	if (!list) {
		if (fd >= 0)
			close(fd);
		return;
	}
	files = list_files(list, directory, suffix, &count, &bytes);
	if (bytes > most_bytes)
		qsort(files, count, sizeof(*files), compare_files);
	for (size_t i = 0; i < count && bytes > most_bytes; i++)
		if (unlinkat(directory, files[i].name, 0) == 0)
			bytes -= files[i].bytes;
	free(files);
	closedir(list);
}
