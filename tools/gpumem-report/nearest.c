/*
 * The nearest of several names, see nearest.h: the distance of Damerau and Levenshtein in which no
 * letter is moved twice (optimal string alignment).
 */
#include "nearest.h"
#include <string.h>

#define MOST_LETTERS 40

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned distance(const char *a, const char *b)
{
	unsigned rows[MOST_LETTERS + 1][MOST_LETTERS + 1];
	size_t m = strlen(a), n = strlen(b);

	if (m > MOST_LETTERS || n > MOST_LETTERS)
		return MOST_LETTERS;
	for (size_t i = 0; i <= m; i++)
		rows[i][0] = (unsigned)i;
	for (size_t k = 0; k <= n; k++)
		rows[0][k] = (unsigned)k;
	for (size_t i = 1; i <= m; i++)
		for (size_t k = 1; k <= n; k++) {
			rows[i][k] = least(rows[i - 1][k - 1] + (a[i - 1] != b[k - 1]),
					   least(rows[i - 1][k], rows[i][k - 1]) + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				rows[i][k] = least(rows[i][k], rows[i - 2][k - 2] + 1);
		}
	return rows[m][n];
}

void gm_nearest_try(struct gm_nearest *nearest, const char *name)
{
	size_t length = strlen(nearest->word);
	unsigned found = distance(nearest->word, name), most = (unsigned)(length + 2) / 3;

	if (length > 2 && strncmp(name, nearest->word, length) == 0)
		found = 1;
	if (found > most || (nearest->name && found >= nearest->distance))
		return;
	nearest->name = name;
	nearest->distance = found;
}
