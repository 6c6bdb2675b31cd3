/*
 * More than there can be: what was asked for is told as the most that a document holds, not as what
 * is left of a product that is larger, nor as unknown.
 */
#include "family.h"

#define MOST (~0ull >> 1)

int main(void)
{
	size_t pitch;
	void *p;

	FAILS(cudaMallocPitch(&p, &pitch, 1ull << 40, 1ull << 30), 2);
	FAILS(cudaMalloc(&p, ~(size_t)0), 2);
	expect("ooms.0.requested_bytes", MOST);
	expect("ooms.1.requested_bytes", MOST);
	expect("totals.0.current_bytes", 0);
	return 0;
}
