/*
 * When a copy of the process is refused (copy_refusal.h).
 */
#include "recorder/process/copy_refusal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define MOST_RESIDENT (64ull << 30)
#define SPARE_BYTES   (300ull << 20) /* for the tool that reads the copy */

/*
 * Before 5.12 a fork could leave pages that a device uses to the child alone, so that the program
 * and the device no longer saw the same memory.
 */
static bool is_old_kernel(const char *release)
{
	unsigned long major, minor = 0;
	char *end;

	if (!release)
		return true;
	major = strtoul(release, &end, 10);
	if (*end == '.')
		minor = strtoul(end + 1, NULL, 10);
	return major < 5 || (major == 5 && minor < 12);
}

/*
 * A copy costs the pages that the program writes while it lives, here taken to be at most an eighth
 * of what is resident.
 */
const char *gm_copy_refusal(const struct gm_copy_surroundings *now)
{
	uint64_t free_bytes = now->available_bytes;

	if (is_old_kernel(now->release))
		return "the kernel is older than 5.12, where a copy can break pinned memory";
	if (now->resident_bytes == UINT64_MAX)
		return "its size cannot be read";
	if (now->resident_bytes > MOST_RESIDENT)
		return "it has more than 64 GiB resident";
	if (now->overcommit == 2)
		return "the system does not overcommit memory (vm.overcommit_memory is 2)";
	if (now->group_bytes < free_bytes)
		free_bytes = now->group_bytes;
	return free_bytes < now->resident_bytes / 8 + SPARE_BYTES
		       ? "too little memory is free for one"
		       : NULL;
}
