/*
 * Telling a code object from another that lies at the same address later: code objects die, and
 * their addresses are used again. Inline, for the walk over Python frames alone.
 */
#ifndef GM_STACK_PYTHON_IDENTITY_H
#define GM_STACK_PYTHON_IDENTITY_H

#include "stack/python_layout.h"

/*
 * What tells a code object from another that lies at the same address later. 3.12 on number their
 * code objects: [0] is that and the first line. Before, and should the numbers run out, it is all
 * that the object points at and what that says: the names by their hashes, the line table by its
 * size and four samples (the whole of a table up to 32 bytes). A longer one that took another's
 * place, with the same names and lines at the ends and different lines between, would be taken for
 * it.
 */
#define GM_PY_IDENTITY_WORDS 10

struct gm_python_identity {
	uint64_t word[GM_PY_IDENTITY_WORDS];
};

static inline uint64_t gm_py_word(uintptr_t address)
{
	return *(const uint64_t *)address;
}

static inline uint32_t gm_py_u32(uintptr_t address)
{
	return *(const uint32_t *)address;
}

/* Eight bytes of a table of lines from `at` on, fewer if it is shorter. */
static inline uint64_t gm_py_sample(uintptr_t lines, uint64_t bytes, uint64_t at)
{
	uint64_t word = gm_py_word(lines + GM_PY_BYTES_DATA + at);

	return bytes >= 8 ? word : word & ((1ull << bytes * 8) - 1);
}

/* The words that a numbered code object's identity ends before. */
static inline unsigned gm_py_identity_words(const struct gm_python_layout *l, uintptr_t code)
{
	return l->code_version && gm_py_u32(code + l->code_version) ? 3 : GM_PY_IDENTITY_WORDS;
}

/* Word `i` of the identity of a code object. */
static inline __attribute__((always_inline)) uint64_t
gm_py_identity_word(const struct gm_python_layout *l, uintptr_t code, unsigned i)
{
	uintptr_t name = gm_py_word(code + l->code_name), lines = gm_py_word(code + l->code_lines);
	uintptr_t file = gm_py_word(code + l->code_filename);
	uint64_t bytes, last;

	switch (i) {
	case 0:
		return gm_py_u32(code + l->code_firstlineno) |
		       (l->code_version ? (uint64_t)gm_py_u32(code + l->code_version) << 32 : 0);
	case 1:
		return name;
	case 2:
		return lines;
	case 3:
		return file;
	case 4:
		return gm_py_word(name + GM_PY_TEXT_HASH);
	case 5:
		return gm_py_word(file + GM_PY_TEXT_HASH) ^ gm_py_word(file + GM_PY_TEXT_LENGTH);
	}
	bytes = gm_py_word(lines + GM_PY_SIZE);
	last = bytes > 8 ? bytes - 8 : 0;
	switch (i) {
	case 6:
		return gm_py_sample(lines, bytes, 0) ^ bytes << 48;
	case 7:
		return gm_py_sample(lines, bytes, last / 3);
	case 8:
		return gm_py_sample(lines, bytes, last / 3 * 2);
	default:
		return gm_py_sample(lines, bytes, last);
	}
}

static inline void gm_python_identify(const struct gm_python_layout *l, uintptr_t code,
				      struct gm_python_identity *id)
{
	unsigned words = gm_py_identity_words(l, code);

	*id = (struct gm_python_identity){{0}};
	for (unsigned i = 0; i < words; i++)
		id->word[i] = gm_py_identity_word(l, code, i);
}

/* Compares word by word out of registers: a copy in memory to compare with would cost more. */
static inline bool gm_python_identity_is(const struct gm_python_identity *identity,
					 const struct gm_python_layout *l, uintptr_t code)
{
	const uint64_t *word = identity->word;
	uint64_t differs;

	differs = (word[0] ^ gm_py_identity_word(l, code, 0)) |
		  (word[1] ^ gm_py_identity_word(l, code, 1)) |
		  (word[2] ^ gm_py_identity_word(l, code, 2));
	if (differs || gm_py_identity_words(l, code) == 3)
		return !differs;
	differs = (word[3] ^ gm_py_identity_word(l, code, 3)) |
		  (word[4] ^ gm_py_identity_word(l, code, 4)) |
		  (word[5] ^ gm_py_identity_word(l, code, 5)) |
		  (word[6] ^ gm_py_identity_word(l, code, 6)) |
		  (word[7] ^ gm_py_identity_word(l, code, 7)) |
		  (word[8] ^ gm_py_identity_word(l, code, 8)) |
		  (word[9] ^ gm_py_identity_word(l, code, 9));
	return !differs;
}

#endif
