/*
 * The files of a module by size and time, see symbol_source.h. The separate file is looked for in a
 * session of its own: libdwfl takes what it finds as found for good, though nothing may need it.
 * Calls libdwfl, libelf and libc.
 */
#include "report/symbols/symbol_source.h"
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *debug_path; /* libdwfl's default search path */

static int find_debug_file(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			   const char *file_name, const char *link, GElf_Word link_crc,
			   char **debug_name)
{
	const struct gm_symbol_source *source = *userdata; /* NULL: not attached */

	if (source && source->no_debug_file)
		return -1;
	return dwfl_standard_find_debuginfo(module, userdata, name, base, file_name, link, link_crc,
					    debug_name);
}

const Dwfl_Callbacks gm_symbol_callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_debug_file,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debug_path,
};

void gm_symbol_source_attach(struct gm_symbol_source *source, Dwfl_Module *module)
{
	void **userdata;

	dwfl_module_info(module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	*userdata = source;
}

static bool has_debug_information(Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;

		if (name && header.sh_type != SHT_NOBITS &&
		    (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0))
			return true;
	}
	return false;
}

/* The status of the separate file that libdwfl would use; false if it would use none. */
static bool stat_debug_file(Dwfl_Module *module, struct stat *status)
{
	const char *file, *name, *link;
	char *debug_name = NULL;
	void **userdata;
	GElf_Addr bias, start;
	GElf_Word crc = 0;
	Elf *elf = dwfl_module_getelf(module, &bias);
	bool found;
	int fd;

	name = dwfl_module_info(module, &userdata, &start, NULL, NULL, NULL, &file, NULL);
	link = elf ? dwelf_elf_gnu_debuglink(elf, &crc) : NULL;
	fd = find_debug_file(module, userdata, name, start, file, link, crc, &debug_name);
	found = fd >= 0 && fstat(fd, status) == 0;
	if (fd >= 0)
		close(fd);
	free(debug_name);
	return found;
}

static const char *file_text(struct gm_zone *zone, const struct stat *status)
{
	return gm_zone_printf(zone, "%lld bytes of %lld.%09ld", (long long)status->st_size,
			      (long long)status->st_mtim.tv_sec, status->st_mtim.tv_nsec);
}

static const char *debug_file_text(struct gm_zone *zone, struct gm_symbol_source *source,
				   Dwfl_Module *module)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);
	struct stat status;

	if (elf && has_debug_information(elf))
		return "not needed";
	source->no_debug_file = !stat_debug_file(module, &status);
	return source->no_debug_file ? "none" : file_text(zone, &status);
}

void gm_symbol_source_describe(struct gm_zone *zone, struct gm_symbol_source *source,
			       const char *path, int fd)
{
	Dwfl *session = dwfl_begin(&gm_symbol_callbacks);
	Dwfl_Module *module;
	struct stat status;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	source->text = NULL;
	if (!session || own < 0 || fstat(own, &status) != 0) {
		close(own);
		dwfl_end(session);
		return;
	}
	dwfl_report_begin(session);
	module = dwfl_report_elf(session, path, path, own, 0, true);
	dwfl_report_end(session, NULL, NULL);
	if (module)
		source->text =
			gm_zone_printf(zone, "gpumem-report %s, elfutils %s: %s, debug file %s",
				       GM_VERSION, dwfl_version(NULL), file_text(zone, &status),
				       debug_file_text(zone, source, module));
	else
		close(own);
	dwfl_end(session);
}
