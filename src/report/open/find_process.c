/*
 * Finding a traced process's file (find_process.h): among its shared, writable mappings, the file
 * that begins as ours do. Only /proc is read.
 */
#include "report/open/find_process.h"
#include "store/layout.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* /proc writes a line feed in a path as \012. */
static void unescape(char *path)
{
	char *to = path;

	for (const char *at = path; *at; at++) {
		if (strncmp(at, "\\012", 4) == 0) {
			*to++ = '\n';
			at += 3;
		} else {
			*to++ = *at;
		}
	}
	*to = '\0';
}

static bool is_ours(const char *path)
{
	char magic[sizeof(((struct gm_header *)0)->magic)];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool ours = fd >= 0 && pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
		    memcmp(magic, GM_MAGIC, sizeof(magic)) == 0;

	if (fd >= 0)
		close(fd);
	return ours;
}

/* A file of ours in the directory of `path` that has this inode; NULL. */
static char *by_inode(const char *path, unsigned long long inode)
{
	const char *slash = strrchr(path, '/');
	char *directory = strndup(path, (size_t)(slash - path) + 1), *found = NULL;
	DIR *entries = directory ? opendir(directory) : NULL;
	struct dirent *entry;

	while (entries && !found && (entry = readdir(entries))) {
		if (entry->d_ino != inode || asprintf(&found, "%s%s", directory, entry->d_name) < 0)
			found = NULL;
		else if (!is_ours(found)) {
			free(found);
			found = NULL;
		}
	}
	if (entries)
		closedir(entries);
	free(directory);
	return found;
}

/*
 * The mapped file by one of its names. The one in maps is the name that it was made under, which is
 * gone: the shim gives a file its final name by a hard link in the same directory.
 */
static char *locate(const char *name, unsigned long long inode)
{
	static const char deleted[] = " (deleted)";
	size_t length = strlen(name), suffix = sizeof(deleted) - 1;

	if (length > suffix && strcmp(name + length - suffix, deleted) == 0)
		return by_inode(name, inode);
	return is_ours(name) ? strdup(name) : NULL;
}

/* The path in a line of maps if it is a shared mapping of one of our files. */
static char *file_of(int pid, char *line)
{
	char permissions[8], *name, *path, *found;
	unsigned long long inode;
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%*s %7s %*s %*s %llu %n", permissions, &inode, &at) < 2 || !at ||
	    strcmp(permissions, "rw-s") != 0 || line[at] != '/')
		return NULL;
	name = line + at;
	unescape(name);
	found = locate(name, inode);
	/* A process in a container has its own root. */
	if (found || asprintf(&path, "/proc/%d/root%s", pid, name) < 0)
		return found;
	found = locate(path, inode);
	free(path);
	return found;
}

char *gm_find_process_file(int pid, char *error, size_t error_bytes)
{
	char path[64], *line = NULL, *found = NULL;
	size_t room = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps) {
		snprintf(error, error_bytes,
			 errno == ENOENT ? "there is no process %d"
					 : "process %d belongs to someone else; name its file",
			 pid);
		return NULL;
	}
	while (!found && getline(&line, &room, maps) > 0)
		found = file_of(pid, line);
	if (!found && ferror(maps))
		snprintf(error, error_bytes, "process %d belongs to someone else; name its file",
			 pid);
	else if (!found)
		snprintf(
			error, error_bytes,
			"process %d is not traced, or did not call CUDA yet: it has no output file "
			"of gpumemtrace mapped",
			pid);
	fclose(maps);
	free(line);
	return found;
}
