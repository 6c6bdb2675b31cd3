/*
 * An output file is mostly empty, and bytes changed anywhere seldom meet a number. For the
 * harnesses of such files: of four mutations three change a few words that are not zero, to numbers
 * that are wrong by much, by little, or by a bit.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most); /* libFuzzer's own */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed);

#define HEADER 2048u /* every fourth word is one of the file's header */

/* xorshift */
static uint32_t draw(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (uint32_t)(*random >> 16);
}

/* The next word from somewhere on that is not zero, or one near its record's end. */
static size_t place_of_word(const uint8_t *data, size_t bytes, uint64_t *random)
{
	static const uint8_t zero[4];
	size_t at = draw(random) % (draw(random) % 4 ? bytes : HEADER) & ~(size_t)3;

	while (at + 4 <= bytes && memcmp(data + at, zero, 4) == 0)
		at += 4;
	if (draw(random) % 4 == 0)
		at += draw(random) % 8 * 4;
	return at + 4 <= bytes ? at : 0;
}

static void change_word(uint8_t *data, size_t at, uint64_t *random)
{
	uint32_t word, drawn = draw(random);

	memcpy(&word, data + at, sizeof(word));
	switch (draw(random) % 6) {
	case 0:
		word = drawn % 3 ? drawn % 3 == 1 ? UINT32_MAX : INT32_MAX : 0;
		break;
	case 1:
		word = drawn;
		break;
	case 2:
		word = drawn % 300;
		break;
	case 3:
		word += drawn % 2 ? 1 : UINT32_MAX;
		break;
	default:
		word ^= 1u << drawn % 32;
	}
	memcpy(data + at, &word, sizeof(word));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed)
{
	uint64_t random = (seed + 1ull) * 0x9e3779b97f4a7c15ull;

	if (bytes < 2 * HEADER || draw(&random) % 4 == 0)
		return LLVMFuzzerMutate(data, bytes, most);
	for (unsigned left = 1 + draw(&random) % 8; left; left--)
		change_word(data, place_of_word(data, bytes, &random), &random);
	return bytes;
}
