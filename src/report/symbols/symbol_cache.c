/*
 * Files of symbol_cache.h: BUILD-ID.symbols.
 */
#include "report/symbols/symbol_cache.h"
#include "report/support/user_cache.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES (2 * 64 + sizeof(GM_SYMBOL_CACHE_SUFFIX))
_Static_assert(NAME_BYTES <= GM_USER_CACHE_NAME_BYTES, "the cache takes the names");

static bool name_of(const unsigned char *build_id, unsigned bytes, char name[NAME_BYTES])
{
	if (bytes < 2 || bytes > 64)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		sprintf(name + 2 * i, "%02x", build_id[i]);
	strcpy(name + 2 * bytes, GM_SYMBOL_CACHE_SUFFIX);
	return true;
}

void gm_symbol_cache_read(struct gm_zone *zone, int directory, const unsigned char *build_id,
			  unsigned build_id_bytes, const char *source,
			  struct gm_symbol_answers *answers)
{
	char name[NAME_BYTES];
	unsigned char *data;
	size_t bytes;

	memset(answers, 0, sizeof(*answers));
	if (!name_of(build_id, build_id_bytes, name))
		return;
	data = gm_user_cache_read(zone, directory, name, GM_SYMBOL_CACHE_FILE_BYTES, &bytes);
	if (data)
		gm_symbol_answers_decode(zone, data, bytes, source, answers);
}

void gm_symbol_cache_write(int directory, const unsigned char *build_id, unsigned build_id_bytes,
			   const char *source, const struct gm_symbol_answers *answers)
{
	char name[NAME_BYTES];
	unsigned char *data;
	size_t bytes;

	if (!answers->added_count || !name_of(build_id, build_id_bytes, name))
		return;
	data = gm_symbol_answers_encode(answers, source, &bytes);
	if (bytes <= GM_SYMBOL_CACHE_FILE_BYTES)
		gm_user_cache_write(directory, name, data, bytes);
	free(data);
}
