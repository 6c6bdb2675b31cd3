/*
 * Links a library that allocates in its constructor. Prints its books.
 */
#include <stdio.h>

void *early_memory(void);

int main(void)
{
	printf("{\"allocations\": 1, \"frees\": 1}\n");
	return early_memory() == NULL;
}
