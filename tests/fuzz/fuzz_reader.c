/*
 * Any bytes as an output file: everything the reader gives out is looked at.
 */
#include "harness.h"
#include "account/site_windows.h"
#include "store/reader.h"

#include <string.h>

static void look_at_tables(const struct gm_reader *reader)
{
	char record[1024];
	unsigned table;
	uint32_t i, count;

	for (table = 0; table < GM_TABLES_NOW; table++) {
		count = gm_reader_count(reader, (enum gm_table_id)table);
		if (table == GM_TABLE_STRINGS) {
			for (i = 0; i < count && i < 4096; i++) {
				const char *text = gm_reader_string(reader, i);

				if (text && strlen(text) > 1 << 20)
					abort();
			}
			continue;
		}
		for (i = 0; i < count && i < 4096; i++)
			gm_reader_get(reader, (enum gm_table_id)table, i, record, sizeof(record));
		gm_reader_get(reader, (enum gm_table_id)table, count, record, sizeof(record));
		gm_reader_get(reader, (enum gm_table_id)table, UINT32_MAX, record, sizeof(record));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct gm_site_record site;
	struct gm_reader *reader;
	char path[64], error[256];
	uint32_t i;
	int fd;

	harness_file(data, bytes, &fd, path);
	reader = gm_reader_open(path, error, sizeof(error));
	if (reader) {
		look_at_tables(reader);
		for (i = 0; i < gm_reader_count(reader, GM_TABLE_SITES) && i < 4096; i++)
			if (gm_reader_get(reader, GM_TABLE_SITES, i, &site, sizeof(site)))
				gm_site_complete_windows(&site, gm_reader_header(reader));
		for (i = 0; i < gm_reader_warnings(reader); i++)
			if (!gm_reader_warning(reader, i))
				abort();
		gm_reader_close(reader);
	}
	close(fd);
	return 0;
}
