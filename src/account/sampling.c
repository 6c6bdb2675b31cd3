/*
 * Sampling by bytes.
 */
#include "account/sampling.h"

#include <string.h>

#define LN_2	  0.69314718055994530942
#define MOST_CODE INT8_MAX
#define ROUNDING  1.01 /* see gm_sample_error */

/* SplitMix64. */
uint64_t gm_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* A number between 0 and 1, neither of which it is. */
static double uniform(uint64_t *state)
{
	return ((double)(gm_random(state) >> 11) + 0.5) / (double)(1ull << 53);
}

/* The natural logarithm of a positive normal number. */
static double logarithm(double x)
{
	uint64_t bits;
	double s, square, power, sum = 0;
	int exponent, i;

	memcpy(&bits, &x, sizeof(bits));
	exponent = (int)(bits >> 52) - 1023;
	bits = (bits & ((1ull << 52) - 1)) | 1023ull << 52;
	memcpy(&x, &bits, sizeof(x));
	if (x > 1.5) { /* so that s is small */
		x /= 2;
		exponent++;
	}
	s = (x - 1) / (x + 1); /* log x = 2 (s + s^3 / 3 + s^5 / 5 + ...), |s| <= 1/5 */
	square = s * s;
	power = s;
	for (i = 1; i < 24; i += 2, power *= square)
		sum += power / i;
	return 2 * sum + exponent * LN_2;
}

/* 1 - exp(-x) for x > 0. */
static double one_less_exp(double x)
{
	double sum = 1, reduced = x;
	int halvings = 0, i;

	if (x > 40)
		return 1;
	for (; reduced > 0.5; reduced /= 2)
		halvings++;
	/* 1 - exp(-y) = y (1 - y/2 (1 - y/3 (1 - ...))), which loses no digits where y is small. */
	for (i = 16; i > 1; i--)
		sum = 1 - reduced / i * sum;
	sum *= reduced;
	/* 1 - exp(-2y) = (1 - exp(-y)) (2 - (1 - exp(-y))) */
	for (; halvings; halvings--)
		sum *= 2 - sum;
	return sum;
}

int64_t gm_sample_distance(uint64_t mean_bytes, uint64_t *state)
{
	return (int64_t)(-logarithm(uniform(state)) * (double)mean_bytes) + 1;
}

double gm_sample_weight(uint64_t bytes, uint64_t mean_bytes)
{
	return 1 / one_less_exp((double)bytes / (double)mean_bytes);
}

int32_t gm_sample_extra(uint64_t bytes, uint64_t mean_bytes, uint64_t *state)
{
	double extra = gm_sample_weight(bytes, mean_bytes) - 1, below, above;
	int low = 0, high = MOST_CODE;

	while (low + 1 < high) {
		int middle = (low + high) / 2;

		if ((double)gm_sample_number(middle) <= extra)
			low = middle;
		else
			high = middle;
	}
	below = (double)gm_sample_number(low);
	above = (double)gm_sample_number(high);
	return uniform(state) * (above - below) < extra - below ? high : low;
}

static double square_root(double x)
{
	double root = x > 1 ? x : 1;
	int i;

	for (i = 0; i < 64; i++)
		root = (root + x / root) / 2;
	return root;
}

uint64_t gm_sample_error(uint64_t estimate_bytes, uint64_t least_bytes, uint64_t mean_bytes)
{
	double least = (double)(least_bytes ? least_bytes : 1);

	return (uint64_t)(ROUNDING * square_root((double)estimate_bytes * least *
						 (gm_sample_weight((uint64_t)least, mean_bytes) -
						  1)) +
			  0.5);
}
