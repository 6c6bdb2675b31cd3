/*
 * Reading the simulator's settings from the environment; see sim_env.h.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "sim_env.h"

/* A decimal number and optionally KiB to TiB or KB to TB; anything else gives `otherwise`. */
uint64_t sim_parse_size(const char *text, uint64_t otherwise)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = {{"", 1},	      {"B", 1},	       {"KiB", 0x1p10}, {"MiB", 0x1p20},
		     {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3},	{"MB", 1e6},
		     {"GB", 1e9},     {"TB", 1e12}};
	char *end;
	double number;

	if (!text || !*text)
		return otherwise;
	number = strtod(text, &end);
	if (end == text || number < 0)
		return otherwise;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcasecmp(end, units[i].name) == 0)
			return (uint64_t)(number * units[i].factor);
	return otherwise;
}

/* `SIZE` or `PID:SIZE`, several with commas; the first unnamed pid is 4194303, then downwards. */
uint64_t sim_parse_others(struct sim_other *list, size_t room, size_t *count)
{
	const char *env = getenv("GPUSIM_OTHERS");
	char text[1024] = "", *save = NULL;
	uint64_t sum = 0;
	size_t found = 0;

	if (env)
		strncpy(text, env, sizeof(text) - 1);
	for (char *part = strtok_r(text, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
		char *colon = strchr(part, ':');
		struct sim_other other = {4194303u - (unsigned)found, 0};

		if (colon)
			other.pid = (unsigned)strtoul(part, NULL, 10);
		other.bytes = sim_parse_size(colon ? colon + 1 : part, 0);
		if (!other.bytes)
			continue;
		if (found < room)
			list[found] = other;
		found++;
		sum += other.bytes;
	}
	if (count)
		*count = found < room ? found : room;
	return sum;
}
