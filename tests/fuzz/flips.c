/*
 * The reader's harness without libFuzzer: a real file cut at every page and around the header's and
 * the directory's edges, three bits of every byte of its header flipped, one of the directory's,
 * and one bit in so many bytes of the rest. Argument: the file.
 */
#include "harness.h"
#include "store/layout.h"

#include <string.h>

#define STRIDE 997 /* bytes between flips in the chunks */

int main(int argc, char **argv)
{
	FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
	size_t bytes, i, front = GM_HEADER_BYTES + 1024;
	unsigned long inputs = 0;
	static uint8_t data[8 << 20];
	unsigned bit;

	if (!file)
		return 2;
	bytes = fread(data, 1, sizeof(data), file);
	fclose(file);
	if (bytes < front)
		return 3;
	for (i = 0; i <= bytes; i += i < front ? 61 : 4096, inputs++)
		LLVMFuzzerTestOneInput(data, i);
	for (i = 0; i < sizeof(struct gm_header); i++)
		for (bit = 0; bit < 8; bit += 3, inputs++) {
			data[i] ^= (uint8_t)(1u << bit);
			LLVMFuzzerTestOneInput(data, bytes);
			data[i] ^= (uint8_t)(1u << bit);
		}
	for (i = GM_HEADER_BYTES; i < bytes; i += i < front ? 1 : STRIDE, inputs++) {
		data[i] ^= 0x80;
		LLVMFuzzerTestOneInput(data, bytes);
		data[i] ^= 0x80;
	}
	printf("%lu damaged files\n", inputs);
	return 0;
}
