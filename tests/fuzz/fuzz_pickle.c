/*
 * libFuzzer on the import of PyTorch's snapshots: bytes to values, to a snapshot, replayed, to an
 * image that the reader of output files takes. What comes of it must be consistent: a read sentence
 * or a file whose live memory is what its sites hold.
 */
#include "report/import/import.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Live bytes of the sites of a level are those of the level, or the books are wrong. */
static void check(const struct gm_reader *reader)
{
	uint64_t sites = 0, levels = 0;
	struct gm_site_record site;
	struct gm_level_record level;

	for (uint32_t i = 0; i < gm_reader_count(reader, GM_TABLE_SITES); i++)
		if (gm_reader_get(reader, GM_TABLE_SITES, i, &site, sizeof(site)))
			sites += site.live_bytes;
	for (uint32_t i = 0; i < gm_reader_count(reader, GM_TABLE_LEVELS); i++)
		if (gm_reader_get(reader, GM_TABLE_LEVELS, i, &level, sizeof(level)))
			levels += level.current_bytes;
	if (sites != levels || !gm_reader_complete(reader))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct gm_zone zone = {0};
	struct gm_imported *devices;
	unsigned count;
	char error[512] = "";
	struct gm_reader *reader = gm_import_bytes(&zone, "input", bytes, size, &devices, &count,
						   error, sizeof(error));

	if (reader)
		check(reader);
	else if (!*error)
		abort();
	gm_reader_close(reader);
	gm_zone_free(&zone);
	return 0;
}
