/*
 * Tells whether a program can be traced, see program_check.h. The reach of a preload is documented
 * in ld.so(8): programs that are linked dynamically, of the loader's own class and C library, and
 * that are not run in secure-execution mode.
 */
#include "program_check.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MOST_SCRIPTS 4 /* an interpreter may be a script again; Linux follows four */

/* The path that execvp(3) would try first; NULL if there is none. */
static const char *find_program(struct gm_zone *zone, const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return name;
	for (path = path ? path : "/bin:/usr/bin"; *path;) {
		size_t length = strcspn(path, ":");
		char *file = gm_zone_printf(zone, "%.*s%s%s", (int)length, path, length ? "/" : "",
					    name);
		struct stat st;

		if (stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0)
			return file;
		path += length;
		path += *path == ':';
	}
	return NULL;
}

/* The word at *text as a string in the zone, NULL at the end of the line; moves *text behind it. */
static char *next_word(struct gm_zone *zone, const char **text)
{
	size_t length;
	const char *word;

	*text += strspn(*text, " \t");
	word = *text;
	length = strcspn(word, " \t\n");
	*text += length;
	return length ? gm_zone_strndup(zone, word, length) : NULL;
}

/* The program of a first line like "#!/usr/bin/env -S python3 -u"; NULL. */
static const char *interpreter(struct gm_zone *zone, const char *line)
{
	char *name = next_word(zone, &line), *base = name ? strrchr(name, '/') : NULL;

	if (!base || strcmp(base, "/env") != 0)
		return name;
	do
		name = next_word(zone, &line);
	while (name && (*name == '-' || strchr(name, '=')));
	return name ? find_program(zone, name) : NULL;
}

/* True if the kernel gives the program rights that its caller lacks: then the loader ignores us. */
static bool is_privileged(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return false;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		return true;
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid())
		return true;
	return getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* The loader that the program asks for: "" if it asks for none, NULL if it cannot be read. */
static char *loader_of(struct gm_zone *zone, int fd, const Elf64_Ehdr *header)
{
	for (unsigned i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;
		char name[PATH_MAX];
		ssize_t got;

		if (pread(fd, &segment, sizeof(segment),
			  (off_t)(header->e_phoff + i * sizeof(segment))) != sizeof(segment))
			return NULL;
		if (segment.p_type != PT_INTERP)
			continue;
		got = pread(fd, name, segment.p_filesz < sizeof(name) ? segment.p_filesz : 0,
			    (off_t)segment.p_offset);
		return got > 0 ? gm_zone_strndup(zone, name, strnlen(name, (size_t)got)) : NULL;
	}
	return gm_zone_strdup(zone, "");
}

/* The processor that this tool, and the shim beside it, are built for. */
static unsigned own_machine(void)
{
	Elf64_Ehdr header = {0};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return EM_NONE;
	if (pread(fd, &header, sizeof(header), 0) != sizeof(header))
		header.e_machine = EM_NONE;
	close(fd);
	return header.e_machine;
}

static struct gm_program_check check_elf(struct gm_zone *zone, const char *path, int fd,
					 const Elf64_Ehdr *header)
{
	struct gm_program_check check = {0};
	const char *base = strrchr(path, '/'), *loader, *why = NULL;

	base = base ? base + 1 : path;
	if (header->e_ident[EI_CLASS] == ELFCLASS32) {
		why = "is a 32-bit program and the tracer is a 64-bit library";
	} else if (own_machine() != EM_NONE && header->e_machine != own_machine()) {
		why = "is built for another processor than the tracer";
	} else if (is_privileged(fd)) {
		why = "has privileges of its own (setuid, setgid or file capabilities), and for "
		      "such programs the loader ignores preloads";
	} else {
		loader = loader_of(zone, fd, header);
		if (!loader)
			return check;
		if (!*loader && !(strncmp(base, "ld-", 3) == 0 && strstr(base, ".so"))) {
			why = "is linked statically, and nothing can be preloaded into it";
		} else if (strstr(loader, "ld-musl")) {
			why = "is linked against musl and the tracer needs glibc; it is started "
			      "without the tracer";
			check.breaks = true;
		}
	}
	if (why)
		check.untraceable = gm_zone_printf(zone, "%s %s", path, why);
	return check;
}

static struct gm_program_check check_file(struct gm_zone *zone, const char *path, unsigned depth)
{
	union {
		Elf64_Ehdr elf;
		char text[512];
	} head;
	struct gm_program_check check = {0};
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	ssize_t got;

	if (fd < 0)
		return check;
	got = pread(fd, head.text, sizeof(head.text) - 1, 0);
	if (got > 2 && memcmp(head.text, "#!", 2) == 0 && depth < MOST_SCRIPTS) {
		head.text[got] = '\0';
		check = check_file(zone, interpreter(zone, head.text + 2), depth + 1);
	} else if (got >= (ssize_t)sizeof(head.elf) &&
		   memcmp(head.elf.e_ident, ELFMAG, SELFMAG) == 0) {
		check = check_elf(zone, path, fd, &head.elf);
	}
	close(fd);
	return check;
}

struct gm_program_check gm_check_program(struct gm_zone *zone, char *const *words)
{
	return check_file(zone, find_program(zone, words[0]), 0);
}

const char *gm_check_output(struct gm_zone *zone, const char *pattern)
{
	char *folder = gm_zone_strndup(zone, pattern, strcspn(pattern, "%")), *slash;
	struct stat st;

	while ((slash = strrchr(folder, '/'))) {
		slash[slash == folder] = '\0';
		if (stat(folder, &st) == 0)
			break;
		if (errno != ENOENT || slash == folder)
			return gm_zone_printf(zone, "%s: %s", folder, strerror(errno));
	}
	if (slash && !S_ISDIR(st.st_mode))
		return gm_zone_printf(zone, "%s is not a directory", folder);
	if (slash && access(folder, W_OK | X_OK) != 0)
		return gm_zone_printf(zone, "%s: %s", folder, strerror(errno));
	return NULL;
}
