/*
 * Reading another process or a core file (process_memory.h). A process is read by process_vm_readv,
 * which needs the permission of ptrace (PTRACE_MODE_ATTACH_REALCREDS, man 2 process_vm_readv) and
 * neither attaches nor stops; a core file by pread.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "holders/process_memory.h"

#include "holders/read_refusal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE	    4096u
#define CHUNK_PAGES 8u
#define CHUNK	    (PAGE * CHUNK_PAGES)
#define WAYS	    4u
#define SETS	    1024u /* 128 MiB in all */
#define MOST_WORDS  1024u /* of one process_vm_readv: IOV_MAX */
#define MOST_NOTES  (64u << 20)

struct chunk {
	uint64_t number; /* address / CHUNK; UINT64_MAX: empty */
	uint32_t used;	 /* when, by the memory's clock */
	uint32_t pages;	 /* a bit for each page that could be read */
	unsigned char *bytes;
};

struct gm_memory {
	int pid;
	int core; /* the core file, -1 of a process */
	bool fresh, still;
	struct gm_mapping *mappings;
	unsigned count;
	uint32_t clock;
	struct chunk *chunks;
	struct chunk *last;
};

/* ---- mappings ---- */

/*
 * Memory of devices is not read: an access may block, have effects, or move managed memory from the
 * device to the host. Shared memory of /dev/shm is memory like any other.
 */
static bool is_device(const char *path)
{
	return (strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0 &&
		strncmp(path, "/dev/zero", 9) != 0) ||
	       strncmp(path, "anon_inode:", 11) == 0 || strcmp(path, "[vvar]") == 0 ||
	       strcmp(path, "[vvar_vclock]") == 0 || strcmp(path, "[vsyscall]") == 0;
}

static struct gm_mapping *add_mapping(struct gm_memory *memory)
{
	if (memory->count % 256 == 0) {
		struct gm_mapping *more =
			realloc(memory->mappings, (memory->count + 256) * sizeof(*more));

		if (!more)
			return NULL;
		memory->mappings = more;
	}
	memory->mappings[memory->count] = (struct gm_mapping){.path = ""};
	return &memory->mappings[memory->count++];
}

static bool read_maps(struct gm_memory *memory)
{
	char path[64], *line = NULL;
	size_t room = 0;
	ssize_t length;
	FILE *maps;
	bool enough = true;

	snprintf(path, sizeof(path), "/proc/%d/maps", memory->pid);
	maps = fopen(path, "re");
	if (!maps)
		return false;
	while (enough && (length = getline(&line, &room, maps)) > 0) {
		unsigned long long start, end, offset, inode;
		char permissions[8];
		struct gm_mapping *mapping;
		int at = 0;

		if (sscanf(line, "%llx-%llx %7s %llx %*s %llu %n", &start, &end, permissions,
			   &offset, &inode, &at) < 5)
			continue;
		line[strcspn(line, "\n")] = '\0';
		mapping = add_mapping(memory);
		enough = mapping != NULL;
		if (!mapping)
			break;
		mapping->start = start;
		mapping->end = end;
		mapping->offset = offset;
		mapping->inode = inode;
		if (at && line[at])
			mapping->path = strdup(line + at);
		enough = mapping->path != NULL;
		mapping->readable = enough && permissions[0] == 'r' && !is_device(mapping->path);
		mapping->writable = permissions[1] == 'w';
		mapping->executable = permissions[2] == 'x';
		mapping->shared = permissions[3] == 's';
	}
	free(line);
	fclose(maps);
	return enough && memory->count > 0;
}

const struct gm_mapping *gm_memory_mappings(const struct gm_memory *memory, unsigned *count)
{
	*count = memory->count;
	return memory->mappings;
}

const struct gm_mapping *gm_memory_find(const struct gm_memory *memory, uint64_t address)
{
	unsigned low = 0, high = memory->count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (memory->mappings[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < memory->count && memory->mappings[low].start <= address
		       ? &memory->mappings[low]
		       : NULL;
}

/* ---- reading ---- */

/* Bytes of one mapping that could be read, from the beginning on. */
static size_t read_piece(struct gm_memory *memory, const struct gm_mapping *mapping,
			 uint64_t address, void *to, size_t bytes)
{
	struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)address, bytes};
	uint64_t into = address - mapping->start;
	ssize_t got;

	if (memory->core < 0) {
		got = process_vm_readv(memory->pid, &local, 1, &remote, 1, 0);
		return got > 0 ? (size_t)got : 0;
	}
	if (into >= mapping->file_bytes) {
		got = mapping->file
			      ? pread(mapping->file - 1, to, bytes, (off_t)(mapping->offset + into))
			      : 0;
		return got > 0 ? (size_t)got : 0;
	}
	if (bytes > mapping->file_bytes - into)
		bytes = mapping->file_bytes - into;
	got = pread(memory->core, to, bytes, (off_t)(mapping->file_at + into));
	return got > 0 ? (size_t)got : 0;
}

bool gm_memory_fresh(struct gm_memory *memory, uint64_t address, void *to, size_t bytes)
{
	unsigned char *at = to;

	if (address + bytes < address)
		return false;
	while (bytes) {
		const struct gm_mapping *mapping = gm_memory_find(memory, address);
		size_t piece;

		if (!mapping || !mapping->readable)
			return false;
		piece = mapping->end - address < bytes ? mapping->end - address : bytes;
		if (read_piece(memory, mapping, address, at, piece) != piece)
			return false;
		address += piece;
		at += piece;
		bytes -= piece;
	}
	return true;
}

/* Fills a chunk page by page where it does not lie in one mapping. */
static void fill(struct gm_memory *memory, struct chunk *chunk, uint64_t number)
{
	uint64_t start = number * CHUNK, end = start + CHUNK, at = start;

	chunk->number = number;
	chunk->pages = 0;
	while (at < end) {
		const struct gm_mapping *mapping = gm_memory_find(memory, at);
		size_t piece, got;

		if (!mapping || !mapping->readable) {
			at += PAGE;
			continue;
		}
		piece = (mapping->end < end ? mapping->end : end) - at;
		got = read_piece(memory, mapping, at, chunk->bytes + (at - start), piece);
		for (size_t page = 0; page < got / PAGE; page++)
			chunk->pages |= 1u << ((at - start) / PAGE + page);
		at += got == piece ? piece : (got / PAGE + 1) * PAGE;
	}
}

static struct chunk *find_chunk(struct gm_memory *memory, uint64_t number)
{
	struct chunk *set, *oldest;

	if (memory->last && memory->last->number == number)
		return memory->last;
	set = &memory->chunks[(number * 0x9E3779B97F4A7C15u >> 40) % SETS * WAYS];
	oldest = set;
	for (unsigned way = 0; way < WAYS; way++) {
		if (set[way].number == number) {
			set[way].used = ++memory->clock;
			return memory->last = &set[way];
		}
		if (set[way].used < oldest->used)
			oldest = &set[way];
	}
	if (!oldest->bytes)
		oldest->bytes = malloc(CHUNK);
	if (!oldest->bytes)
		return NULL;
	fill(memory, oldest, number);
	oldest->used = ++memory->clock;
	return memory->last = oldest;
}

bool gm_memory_read(struct gm_memory *memory, uint64_t address, void *to, size_t bytes)
{
	unsigned char *at = to;

	if (memory->fresh)
		return gm_memory_fresh(memory, address, to, bytes);
	if (address + bytes < address || address + bytes > 1ull << 47)
		return false;
	while (bytes) {
		struct chunk *chunk = find_chunk(memory, address / CHUNK);
		size_t into = address % CHUNK, piece = CHUNK - into < bytes ? CHUNK - into : bytes;
		size_t first = into / PAGE, last = (into + piece - 1) / PAGE;
		uint32_t wanted = (uint32_t)(((1ull << (last + 1)) - 1) & ~((1ull << first) - 1));

		if (!chunk || (chunk->pages & wanted) != wanted)
			return false;
		memcpy(at, chunk->bytes + into, piece);
		address += piece;
		at += piece;
		bytes -= piece;
	}
	return true;
}

bool gm_memory_words(struct gm_memory *memory, const uint64_t *addresses, uint64_t *words,
		     unsigned count)
{
	struct iovec local[MOST_WORDS], remote[MOST_WORDS];

	if (memory->core >= 0) {
		for (unsigned i = 0; i < count; i++)
			if (!gm_memory_fresh(memory, addresses[i], &words[i], sizeof(*words)))
				return false;
		return true;
	}
	while (count) {
		unsigned piece = count < MOST_WORDS ? count : MOST_WORDS;

		for (unsigned i = 0; i < piece; i++) {
			const struct gm_mapping *mapping = gm_memory_find(memory, addresses[i]);

			if (!mapping || !mapping->readable)
				return false;
			local[i] = (struct iovec){&words[i], sizeof(*words)};
			remote[i] = (struct iovec){(void *)(uintptr_t)addresses[i], sizeof(*words)};
		}
		if (process_vm_readv(memory->pid, local, piece, remote, piece, 0) !=
		    (ssize_t)(piece * sizeof(*words)))
			return false;
		addresses += piece;
		words += piece;
		count -= piece;
	}
	return true;
}

void gm_memory_forget(struct gm_memory *memory)
{
	for (unsigned i = 0; i < SETS * WAYS; i++)
		memory->chunks[i].number = UINT64_MAX;
	memory->last = NULL;
}

void gm_memory_set_fresh(struct gm_memory *memory, bool fresh)
{
	memory->fresh = fresh;
}

/* ---- a process ---- */

static void close_files(struct gm_memory *memory)
{
	for (unsigned i = 0; i < memory->count; i++)
		if (memory->mappings[i].file &&
		    (!i || memory->mappings[i - 1].file != memory->mappings[i].file))
			close(memory->mappings[i].file - 1);
}

void gm_memory_close(struct gm_memory *memory)
{
	if (!memory)
		return;
	close_files(memory);
	for (unsigned i = 0; i < memory->count; i++)
		if (memory->mappings[i].path && *memory->mappings[i].path)
			free((char *)memory->mappings[i].path);
	free(memory->mappings);
	for (unsigned i = 0; i < SETS * WAYS; i++)
		free(memory->chunks[i].bytes);
	free(memory->chunks);
	if (memory->core >= 0)
		close(memory->core);
	free(memory);
}

static struct gm_memory *make(void)
{
	struct gm_memory *memory = calloc(1, sizeof(*memory));

	if (memory)
		memory->chunks = calloc(SETS * WAYS, sizeof(*memory->chunks));
	if (memory && memory->chunks) {
		memory->core = -1;
		gm_memory_forget(memory);
		return memory;
	}
	free(memory);
	return NULL;
}

/* Yama's setting, 0 where the kernel has none. */
static int ptrace_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (file && fscanf(file, "%d", &scope) != 1)
		scope = 0;
	if (file)
		fclose(file);
	return scope;
}

static void say_refused(int pid, int reason, char *error, size_t error_bytes)
{
	struct gm_read_refusal refusal = {.pid = pid, .reason = reason, .scope = ptrace_scope()};
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &st) != 0)
		refusal.reason = ESRCH;
	else
		refusal.other_user = geteuid() && st.st_uid != geteuid();
	gm_read_refusal_text(&refusal, error, error_bytes);
}

struct gm_memory *gm_memory_of_process(int pid, char *error, size_t error_bytes)
{
	struct gm_memory *memory = make();
	int reason = ENOENT;

	snprintf(error, error_bytes, "out of memory");
	if (!memory)
		return NULL;
	memory->pid = pid;
	if (read_maps(memory)) {
		const struct gm_mapping *first = NULL;
		uint64_t word;

		for (unsigned i = 0; i < memory->count && !first; i++)
			if (memory->mappings[i].readable)
				first = &memory->mappings[i];
		errno = EPERM;
		if (first && gm_memory_fresh(memory, first->start, &word, sizeof(word)))
			return memory;
		reason = errno;
	}
	say_refused(pid, reason, error, error_bytes);
	gm_memory_close(memory);
	return NULL;
}

int gm_memory_pid(const struct gm_memory *memory)
{
	return memory->pid;
}

bool gm_memory_still(const struct gm_memory *memory)
{
	return memory->still || memory->core >= 0;
}

void gm_memory_set_still(struct gm_memory *memory)
{
	memory->still = true;
}

bool gm_memory_is_core(const struct gm_memory *memory)
{
	return memory->core >= 0;
}

/* ---- a core file ---- */

static bool core_bytes(int fd, uint64_t at, void *to, size_t bytes)
{
	return pread(fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static bool add_segment(struct gm_memory *memory, const Elf64_Phdr *segment)
{
	struct gm_mapping *mapping;

	if (segment->p_type != PT_LOAD || !segment->p_memsz ||
	    segment->p_vaddr + segment->p_memsz < segment->p_vaddr)
		return true;
	mapping = add_mapping(memory);
	if (!mapping)
		return false;
	mapping->start = segment->p_vaddr;
	mapping->end = segment->p_vaddr + segment->p_memsz;
	mapping->file_at = segment->p_offset;
	mapping->file_bytes =
		segment->p_filesz < segment->p_memsz ? segment->p_filesz : segment->p_memsz;
	mapping->readable = mapping->file_bytes > 0;
	mapping->writable = segment->p_flags & PF_W;
	mapping->executable = segment->p_flags & PF_X;
	return true;
}

/*
 * Reads which file is mapped where from NT_FILE: the number of mappings and the unit of offsets,
 * three words for each, and then their names. A mapping of which the core holds nothing has no
 * segment.
 */
static bool name_segments(struct gm_memory *memory, const unsigned char *note, size_t bytes)
{
	const char *name, *end = (const char *)note + bytes;
	unsigned segments = memory->count;
	uint64_t count, unit, row[3];

	if (bytes < 16)
		return true;
	memcpy(&count, note, 8);
	memcpy(&unit, note + 8, 8);
	if (count > (bytes - 16) / 24)
		return true;
	name = (const char *)note + 16 + count * 24;
	for (uint64_t i = 0; i < count && name < end; i++) {
		size_t length = strnlen(name, (size_t)(end - name));
		struct gm_mapping *mapping = NULL;

		memcpy(row, note + 16 + i * 24, sizeof(row));
		for (unsigned k = 0; k < segments && !mapping; k++)
			if (memory->mappings[k].start == row[0])
				mapping = &memory->mappings[k];
		if (!mapping) {
			mapping = add_mapping(memory);
			if (!mapping)
				return false;
			mapping->start = row[0];
			mapping->end = row[1];
		}
		if (!*mapping->path) {
			char *copy = strndup(name, length);

			if (!copy)
				return false;
			mapping->path = copy;
			mapping->offset = row[2] * unit;
			mapping->inode = 1;
		}
		name += length + 1;
	}
	return true;
}

static bool read_notes(struct gm_memory *memory, const Elf64_Phdr *segment)
{
	size_t bytes = segment->p_filesz < MOST_NOTES ? segment->p_filesz : MOST_NOTES, at = 0;
	unsigned char *notes = malloc(bytes ? bytes : 1);
	bool enough = notes != NULL;

	if (!notes || !core_bytes(memory->core, segment->p_offset, notes, bytes)) {
		free(notes);
		return enough;
	}
	while (enough && at + sizeof(Elf64_Nhdr) <= bytes) {
		Elf64_Nhdr head;
		size_t text, end;

		memcpy(&head, notes + at, sizeof(head));
		text = at + sizeof(head) + ((head.n_namesz + 3ull) & ~3ull);
		end = text + ((head.n_descsz + 3ull) & ~3ull);
		if (text > bytes || end > bytes)
			break;
		if (head.n_type == NT_FILE)
			enough = name_segments(memory, notes + text, head.n_descsz);
		if (head.n_type == NT_PRPSINFO && head.n_descsz >= sizeof(struct elf_prpsinfo)) {
			struct elf_prpsinfo info;

			memcpy(&info, notes + text, sizeof(info));
			memory->pid = info.pr_pid;
		}
		at = end;
	}
	free(notes);
	return enough;
}

/*
 * A core leaves out what was not written: the constants of libraries. They are in the library's
 * file, if that is still the one that was mapped: the core has the first page of each.
 */
static bool is_same_file(struct gm_memory *memory, const struct gm_mapping *first, int fd)
{
	unsigned char ours[PAGE], theirs[PAGE];

	return first->file_bytes >= PAGE &&
	       core_bytes(memory->core, first->file_at, ours, sizeof(ours)) &&
	       core_bytes(fd, 0, theirs, sizeof(theirs)) && memcmp(ours, theirs, PAGE) == 0;
}

static void open_files(struct gm_memory *memory)
{
	for (unsigned i = 0; i < memory->count; i++) {
		struct gm_mapping *first = &memory->mappings[i];
		int fd;

		if (!*first->path || first->offset || is_device(first->path))
			continue;
		fd = open(first->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0 && !is_same_file(memory, first, fd)) {
			close(fd);
			fd = -1;
		}
		for (unsigned k = i; fd >= 0 && k < memory->count &&
				     strcmp(memory->mappings[k].path, first->path) == 0;
		     k++) {
			memory->mappings[k].file = fd + 1;
			memory->mappings[k].readable = true;
		}
	}
}

static int by_start(const void *a, const void *b)
{
	const struct gm_mapping *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* False without a sentence if memory ran out. */
static bool read_core(struct gm_memory *memory, const char *path, char *error, size_t error_bytes)
{
	Elf64_Ehdr head;
	Elf64_Phdr segment;
	bool enough = true;

	if (!core_bytes(memory->core, 0, &head, sizeof(head)) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_type != ET_CORE || head.e_phentsize != sizeof(segment)) {
		snprintf(error, error_bytes, "%s is no core file of a 64-bit program", path);
		return false;
	}
	for (unsigned pass = 0; pass < 2 && enough; pass++) {
		for (unsigned i = 0; i < head.e_phnum && enough; i++) {
			if (!core_bytes(memory->core, head.e_phoff + i * sizeof(segment), &segment,
					sizeof(segment))) {
				snprintf(error, error_bytes, "%s ends early", path);
				return false;
			}
			if (pass == 0)
				enough = add_segment(memory, &segment);
			else if (segment.p_type == PT_NOTE)
				enough = read_notes(memory, &segment);
		}
	}
	if (memory->count)
		qsort(memory->mappings, memory->count, sizeof(*memory->mappings), by_start);
	open_files(memory);
	return enough;
}

struct gm_memory *gm_memory_of_core(const char *path, char *error, size_t error_bytes)
{
	struct gm_memory *memory = make();

	snprintf(error, error_bytes, "out of memory");
	if (!memory)
		return NULL;
	memory->core = open(path, O_RDONLY | O_CLOEXEC);
	if (memory->core < 0)
		snprintf(error, error_bytes, "%s cannot be read: %s", path, strerror(errno));
	else if (read_core(memory, path, error, error_bytes))
		return memory;
	gm_memory_close(memory);
	return NULL;
}
