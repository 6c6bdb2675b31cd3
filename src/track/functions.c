/*
 * The CUDA functions that appear in the file.
 */
#include "track/functions.h"
#include "store/lock.h"
#include "store/writer.h"

#include <string.h>

#define MOST_NAME_BYTES 128

uint32_t gm_function_indices[GM_MOST_FUNCTIONS];
static struct gm_lock lock; /* guards the table of functions */

void gm_functions_reset(void)
{
	memset(gm_function_indices, 0, sizeof(gm_function_indices));
	gm_lock_reset(&lock);
}

/* Returns the index of the new record plus 1, 0 if the file is full. */
static uint32_t append(const char *name, unsigned layer)
{
	uint32_t index;
	struct gm_function_record *record = gm_store_append(GM_TABLE_FUNCTIONS, 1, &index);

	if (!record)
		return 0;
	record->name_string = gm_store_string(name, MOST_NAME_BYTES);
	record->layer = layer;
	gm_store_publish(GM_TABLE_FUNCTIONS);
	return index + 1;
}

GM_COLD uint32_t gm_track_function(unsigned id, const char *name, unsigned layer)
{
	uint32_t index;

	if (!gm_file)
		return GM_NONE;
	gm_lock_acquire(&lock);
	index = gm_function_indices[id]; /* another thread may have added it */
	if (!index) {
		index = append(name, layer);
		__atomic_store_n(&gm_function_indices[id], index, __ATOMIC_RELEASE);
	}
	gm_lock_release(&lock);
	return index ? index - 1 : GM_NONE;
}
