/*
 * A running process as the tool sees it from outside (target.h).
 */
#include "attach/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static FILE *open_maps(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	return fopen(path, "re");
}

/* A line of maps; false at one of another form. */
static bool parse_line(char *line, uint64_t *start, uint64_t *end, char permissions[8], char **path)
{
	unsigned long long first, last;
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %7s %*s %*s %*s %n", &first, &last, permissions, &at) < 3)
		return false;
	*start = first;
	*end = last;
	*path = line + at;
	return at > 0;
}

static bool add_mapping(struct gm_target *target, const char *path, uint64_t start, uint64_t end,
			bool code)
{
	struct gm_target_object *object, *more;

	object = target->count ? &target->objects[target->count - 1] : NULL;
	if (!object || strcmp(object->path, path) != 0) {
		more = reallocarray(target->objects, target->count + 1, sizeof(*more));
		if (!more)
			return false;
		target->objects = more;
		object = &more[target->count];
		*object = (struct gm_target_object){.path = strdup(path), .start = start};
		if (!object->path)
			return false;
		target->count++;
	}
	object->end = end;
	object->code = object->code || code;
	return true;
}

bool gm_target_open(struct gm_target *target, pid_t pid, char *error, size_t error_bytes)
{
	char *line = NULL, *path, permissions[8];
	FILE *maps = open_maps(pid);
	uint64_t start, end;
	size_t room = 0;
	bool good = true;

	*target = (struct gm_target){.pid = pid};
	elf_version(EV_CURRENT);
	if (!maps) {
		snprintf(error, error_bytes,
			 errno == ENOENT ? "there is no process %d"
					 : "the mappings of process %d cannot be read",
			 pid);
		return false;
	}
	while (good && getline(&line, &room, maps) > 0)
		if (parse_line(line, &start, &end, permissions, &path) && *path == '/')
			good = add_mapping(target, path, start, end, permissions[2] == 'x');
	free(line);
	fclose(maps);
	if (!good)
		snprintf(error, error_bytes, "out of memory");
	return good;
}

void gm_target_close(struct gm_target *target)
{
	for (unsigned i = 0; i < target->count; i++)
		free(target->objects[i].path);
	free(target->objects);
	*target = (struct gm_target){0};
}

const struct gm_target_object *gm_target_find(const struct gm_target *target, const char *name)
{
	for (unsigned i = 0; i < target->count; i++) {
		const struct gm_target_object *object = &target->objects[i];
		const char *slash = strrchr(object->path, '/'), *base = slash ? slash + 1 : "";

		if (strncmp(base, "memfd:", 6) == 0)
			base += 6;
		if (object->code && strncmp(base, name, strlen(name)) == 0)
			return object;
	}
	return NULL;
}

int gm_target_open_object(const struct gm_target *target, const char *path)
{
	char *name;
	int fd;

	if (asprintf(&name, "/proc/%d/root%s", target->pid, path) < 0)
		return -1;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	free(name);
	return fd;
}

/* Address in the process less address in the file. */
static uint64_t bias_of(Elf *elf, const struct gm_target_object *object)
{
	size_t headers = 0;
	GElf_Phdr segment;

	elf_getphdrnum(elf, &headers);
	for (size_t i = 0; i < headers; i++)
		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD)
			return object->start - (segment.p_vaddr & ~(uint64_t)4095);
	return 0;
}

static uint64_t symbol_of(Elf *elf, const char *wanted, uint64_t *size)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		Elf_Data *data;
		GElf_Sym symbol;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM ||
		    !header.sh_entsize || !(data = elf_getdata(section, NULL)))
			continue;
		for (size_t i = 0; i < header.sh_size / header.sh_entsize; i++) {
			const char *name;

			if (!gelf_getsym(data, (int)i, &symbol) || !symbol.st_value ||
			    symbol.st_shndx == SHN_UNDEF)
				continue;
			name = elf_strptr(elf, header.sh_link, symbol.st_name);
			if (!name || strcmp(name, wanted) != 0)
				continue;
			if (size)
				*size = symbol.st_size;
			return symbol.st_value;
		}
	}
	return 0;
}

uint64_t gm_target_symbol(const struct gm_target *target, const struct gm_target_object *object,
			  const char *file, const char *name, uint64_t *size)
{
	int fd = file ? open(file, O_RDONLY | O_CLOEXEC)
		      : gm_target_open_object(target, object->path);
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	uint64_t at = elf ? symbol_of(elf, name, size) : 0;

	if (at)
		at += bias_of(elf, object);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return at;
}

bool gm_target_read(const struct gm_target *target, uint64_t from, void *to, size_t bytes)
{
	struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};

	return process_vm_readv(target->pid, &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

bool gm_target_write(const struct gm_target *target, uint64_t to, const void *from, size_t bytes)
{
	struct iovec local = {(void *)(uintptr_t)from, bytes};
	struct iovec remote = {(void *)(uintptr_t)to, bytes};

	return process_vm_writev(target->pid, &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

uint64_t gm_target_stack_room(const struct gm_target *target, uint64_t sp)
{
	char *line = NULL, *path, permissions[8];
	FILE *maps = open_maps(target->pid);
	uint64_t start, end, room_bytes = 0;
	size_t room = 0;

	while (maps && getline(&line, &room, maps) > 0) {
		if (!parse_line(line, &start, &end, permissions, &path) || sp < start || sp >= end)
			continue;
		room_bytes = strcmp(path, "[stack]") == 0 ? UINT64_MAX
			     : permissions[1] == 'w'	  ? sp - start
							  : 0;
		break;
	}
	free(line);
	if (maps)
		fclose(maps);
	return room_bytes;
}

unsigned gm_target_threads(const struct gm_target *target, pid_t *threads, unsigned most)
{
	struct dirent *entry;
	unsigned count = 0;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", target->pid);
	tasks = opendir(path);
	while (tasks && count < most && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			threads[count++] = atoi(entry->d_name);
	if (tasks)
		closedir(tasks);
	return count;
}

uint64_t gm_process_started(pid_t pid)
{
	char path[64], text[1024] = "", *at;
	unsigned long long ticks = 0;
	int fd, field;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	at = strrchr(text, ')'); /* the end of field 2; field 3 is the state, field 22 the start */
	if (!at || strncmp(at, ") Z", 3) == 0 || strncmp(at, ") X", 3) == 0)
		return 0;
	for (field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, "%llu", &ticks) == 1 ? ticks : 0;
}
