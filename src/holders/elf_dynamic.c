/*
 * Reading .dynsym of a mapped file (elf_dynamic.h). Every offset is checked against the file's
 * size.
 */
#include "holders/elf_dynamic.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
	const unsigned char *bytes;
	size_t size;
};

/* A file of another mount namespace is reached through the process's root, a deleted one by its
 * map. */
static int open_mapped(const struct gm_memory *memory, const struct gm_mapping *mapping)
{
	char path[4096 + 64];
	int pid = gm_memory_pid(memory), fd = -1;
	struct stat st;

	if (!gm_memory_is_core(memory)) {
		snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid,
			 (unsigned long long)mapping->start, (unsigned long long)mapping->end);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			snprintf(path, sizeof(path), "/proc/%d/root%s", pid, mapping->path);
			fd = open(path, O_RDONLY | O_CLOEXEC);
		}
	}
	if (fd < 0)
		fd = open(mapping->path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !gm_memory_is_core(memory) &&
	    (fstat(fd, &st) != 0 || st.st_ino != mapping->inode)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool inside(const struct file *file, uint64_t at, uint64_t bytes)
{
	return at <= file->size && bytes <= file->size - at;
}

/*
 * Finds the address of the file's first byte in the process, less the address that the file has for
 * it.
 */
static bool find_bias(const struct file *file, const Elf64_Ehdr *head, uint64_t start,
		      uint64_t *bias)
{
	for (unsigned i = 0; i < head->e_phnum; i++) {
		uint64_t at = head->e_phoff + i * sizeof(Elf64_Phdr);
		Elf64_Phdr segment;

		if (!inside(file, at, sizeof(segment)))
			return false;
		memcpy(&segment, file->bytes + at, sizeof(segment));
		if (segment.p_type == PT_LOAD && segment.p_offset < 4096) {
			*bias = start - (segment.p_vaddr - segment.p_offset);
			return true;
		}
	}
	return false;
}

/* The header of a 64-bit object, and what is added to its addresses; false if it is none. */
static bool read_head(const struct file *file, uint64_t start, Elf64_Ehdr *head, uint64_t *bias)
{
	if (!inside(file, 0, sizeof(*head)))
		return false;
	memcpy(head, file->bytes, sizeof(*head));
	return !memcmp(head->e_ident, ELFMAG, SELFMAG) && head->e_ident[EI_CLASS] == ELFCLASS64 &&
	       find_bias(file, head, start, bias);
}

static unsigned look_up(const struct file *file, const Elf64_Shdr *symbols, const Elf64_Shdr *texts,
			uint64_t bias, struct gm_exported *names, unsigned count)
{
	unsigned found = 0;

	for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size; at += sizeof(Elf64_Sym)) {
		const char *text;
		Elf64_Sym symbol;

		memcpy(&symbol, file->bytes + symbols->sh_offset + at, sizeof(symbol));
		if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= texts->sh_size)
			continue;
		text = (const char *)file->bytes + texts->sh_offset + symbol.st_name;
		if (text[0] != 'P' && text[0] != '_')
			continue;
		for (unsigned i = 0; i < count; i++) {
			if (names[i].address ||
			    strncmp(text, names[i].name, texts->sh_size - symbol.st_name) != 0)
				continue;
			names[i].address = bias + symbol.st_value;
			found++;
		}
	}
	return found;
}

static unsigned search(const struct file *file, uint64_t start, struct gm_exported *names,
		       unsigned count)
{
	uint64_t bias = 0;
	Elf64_Ehdr head;

	if (!read_head(file, start, &head, &bias))
		return 0;
	for (unsigned i = 0; i < head.e_shnum; i++) {
		uint64_t at = head.e_shoff + i * sizeof(Elf64_Shdr), link;
		Elf64_Shdr symbols, texts;

		if (!inside(file, at, sizeof(symbols)))
			return 0;
		memcpy(&symbols, file->bytes + at, sizeof(symbols));
		link = head.e_shoff + symbols.sh_link * sizeof(Elf64_Shdr);
		if (symbols.sh_type != SHT_DYNSYM || !inside(file, link, sizeof(texts)))
			continue;
		memcpy(&texts, file->bytes + link, sizeof(texts));
		if (inside(file, symbols.sh_offset, symbols.sh_size) &&
		    inside(file, texts.sh_offset, texts.sh_size))
			return look_up(file, &symbols, &texts, bias, names, count);
	}
	return 0;
}

/* The whole file; false if it cannot be mapped. The caller unmaps it. */
static bool map_file(const struct gm_memory *memory, const struct gm_mapping *mapping,
		     struct file *file)
{
	int fd = open_mapped(memory, mapping);
	struct stat st;
	void *bytes = MAP_FAILED;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return false;
	*file = (struct file){bytes, (size_t)st.st_size};
	return true;
}

unsigned gm_exported_symbols(const struct gm_memory *memory, const struct gm_mapping *mapping,
			     struct gm_exported *names, unsigned count)
{
	unsigned found;
	struct file file;

	for (unsigned i = 0; i < count; i++)
		names[i].address = 0;
	if (!map_file(memory, mapping, &file))
		return 0;
	found = search(&file, mapping->start, names, count);
	munmap((void *)file.bytes, file.size);
	return found;
}

/* The section of a type and the texts of its symbols; false if the file has none. */
static bool find_section(const struct file *file, const Elf64_Ehdr *head, uint32_t type,
			 Elf64_Shdr *symbols, Elf64_Shdr *texts)
{
	for (unsigned i = 0; i < head->e_shnum; i++) {
		uint64_t at = head->e_shoff + i * sizeof(Elf64_Shdr), link;

		if (!inside(file, at, sizeof(*symbols)))
			return false;
		memcpy(symbols, file->bytes + at, sizeof(*symbols));
		link = head->e_shoff + symbols->sh_link * sizeof(Elf64_Shdr);
		if (symbols->sh_type != type || !inside(file, link, sizeof(*texts)))
			continue;
		memcpy(texts, file->bytes + link, sizeof(*texts));
		return inside(file, symbols->sh_offset, symbols->sh_size) &&
		       inside(file, texts->sh_offset, texts->sh_size);
	}
	return false;
}

static bool variable_in(const struct file *file, uint64_t start, uint64_t address, char *name,
			size_t name_bytes, uint64_t *into)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
	uint64_t bias = 0;
	Elf64_Ehdr head;

	if (!read_head(file, start, &head, &bias))
		return false;
	for (unsigned k = 0; k < 2; k++) {
		Elf64_Shdr symbols, texts;

		if (!find_section(file, &head, types[k], &symbols, &texts))
			continue;
		for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size;
		     at += sizeof(Elf64_Sym)) {
			Elf64_Sym symbol;

			memcpy(&symbol, file->bytes + symbols.sh_offset + at, sizeof(symbol));
			if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT ||
			    symbol.st_name >= texts.sh_size ||
			    address - bias - symbol.st_value >= symbol.st_size)
				continue;
			snprintf(name, name_bytes, "%.*s", (int)(texts.sh_size - symbol.st_name),
				 (const char *)file->bytes + texts.sh_offset + symbol.st_name);
			*into = address - bias - symbol.st_value;
			return true;
		}
	}
	return false;
}

/* Maps the file of that path; `start` is where its beginning is in the process. */
static bool map_path(const struct gm_memory *memory, const char *path, struct file *file,
		     uint64_t *start)
{
	unsigned count;
	const struct gm_mapping *mappings = gm_memory_mappings(memory, &count);

	for (unsigned i = 0; i < count; i++) {
		if (mappings[i].offset || strcmp(mappings[i].path, path) != 0)
			continue;
		*start = mappings[i].start;
		return map_file(memory, &mappings[i], file);
	}
	return false;
}

bool gm_variable_at(const struct gm_memory *memory, const char *path, uint64_t address, char *name,
		    size_t name_bytes, uint64_t *into)
{
	struct file file;
	uint64_t start;
	bool found;

	name[0] = '\0';
	*into = 0;
	if (!map_path(memory, path, &file, &start))
		return false;
	found = variable_in(&file, start, address, name, name_bytes, into);
	munmap((void *)file.bytes, file.size);
	return found;
}

static uint64_t end_of(const struct file *file, uint64_t start)
{
	uint64_t bias = 0, end = 0;
	Elf64_Phdr segment;
	Elf64_Ehdr head;

	if (!read_head(file, start, &head, &bias))
		return 0;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		uint64_t at = head.e_phoff + i * sizeof(segment);

		if (!inside(file, at, sizeof(segment)))
			return 0;
		memcpy(&segment, file->bytes + at, sizeof(segment));
		if (segment.p_type == PT_LOAD && bias + segment.p_vaddr + segment.p_memsz > end)
			end = bias + segment.p_vaddr + segment.p_memsz;
	}
	return end;
}

uint64_t gm_object_end(const struct gm_memory *memory, const char *path)
{
	struct file file;
	uint64_t start, end;

	if (!map_path(memory, path, &file, &start))
		return 0;
	end = end_of(&file, start);
	munmap((void *)file.bytes, file.size);
	return end;
}
