/*
 * Telling a code object from another that lies at the same address later: code objects die, and
 * their addresses are used again. Inline, for the walk over Python frames alone.
 */
#ifndef GM_STACK_PYTHON_IDENTITY_H
#define GM_STACK_PYTHON_IDENTITY_H

#include "stack/python_layout.h"

/*
 * The words that tell a code object from another that lies at the same address later. 3.12 on
 * number their code objects: [0] is that and the first line. Before, and should the numbers run
 * out, it is all that the object points at and what that says: the names by their hashes, the
 * file's also by its end, the line table by its size and four samples (the whole of a table up to
 * 32 bytes). A longer one that took another's place, with the same names and lines at the ends and
 * different lines between, would be taken for it. From 3.13 on each interpreter of a process
 * numbers its own: code of a subinterpreter at the address of one's that is gone, with the same
 * number, line and name, too.
 */
#define GM_PY_IDENTITY_WORDS 10

/*
 * The word that is compared with a number comes first: it shares a cache line with the frame that
 * it is of.
 */
struct gm_python_identity {
	bool numbered;
	uint32_t sample[3]; /* offsets of all but the first; not used with a number */
	uint64_t word[GM_PY_IDENTITY_WORDS];
	uint64_t mask; /* of the samples, for a table under eight bytes */
};

/* Copied, not dereferenced: a sample of a table of lines may lie at any address. */
static inline uint64_t gm_py_word(uintptr_t address)
{
	uint64_t word;

	__builtin_memcpy(&word, (const void *)address, sizeof(word));
	return word;
}

static inline uint32_t gm_py_u32(uintptr_t address)
{
	uint32_t word;

	__builtin_memcpy(&word, (const void *)address, sizeof(word));
	return word;
}

/* A code object's number and first line. */
static inline uint64_t gm_py_number(const struct gm_python_layout *l, uintptr_t code)
{
	return gm_py_u32(code + l->code_firstlineno) |
	       (l->code_version ? (uint64_t)gm_py_u32(code + l->code_version) << 32 : 0);
}

/*
 * A file's name: its hash is -1 until somebody asked for it, its length and its last eight
 * characters are always there. (Of a name that is not ASCII it is some eight bytes of the object.
 * One of a class of the program's own has its characters elsewhere.)
 */
static inline uint64_t gm_py_file(const struct gm_python_layout *l, uintptr_t file)
{
	uint64_t length = gm_py_word(file + GM_PY_TEXT_LENGTH), end = 0;
	bool compact = gm_python_text_state(l, gm_py_u32(file + GM_PY_TEXT_STATE)) >> 3 & 1;

	if (compact)
		end = gm_py_word(file + l->ascii_bytes + (length > 8 ? length - 8 : 0));
	if (length < 8)
		end &= (1ull << length * 8) - 1;
	return (gm_py_word(file + GM_PY_TEXT_HASH) ^ length) * 0x9e3779b97f4a7c15ull + end;
}

static inline void gm_python_identify(const struct gm_python_layout *l, uintptr_t code,
				      struct gm_python_identity *id)
{
	uintptr_t name = gm_py_word(code + l->code_name), lines = gm_py_word(code + l->code_lines);
	uintptr_t file = gm_py_word(code + l->code_filename), data = lines + GM_PY_BYTES_DATA;
	uint64_t bytes, last;

	*id = (struct gm_python_identity){.word = {gm_py_number(l, code), name, lines}};
	id->numbered = id->word[0] >> 32 != 0;
	if (id->numbered)
		return;
	bytes = gm_py_word(lines + GM_PY_SIZE);
	last = bytes > 8 ? bytes - 8 : 0;
	id->mask = bytes >= 8 ? UINT64_MAX : (1ull << bytes * 8) - 1;
	for (unsigned i = 0; i < 3; i++)
		id->sample[i] = (uint32_t)(i < 2 ? last / 3 * (i + 1) : last);
	id->word[3] = file;
	id->word[4] = gm_py_word(name + GM_PY_TEXT_HASH);
	id->word[5] = gm_py_file(l, file);
	id->word[6] = (gm_py_word(data) & id->mask) ^ bytes << 48;
	for (unsigned i = 0; i < 3; i++)
		id->word[7 + i] = gm_py_word(data + id->sample[i]) & id->mask;
}

/*
 * True if it is the identity of the code object. The texts that it points at are read once the
 * pointers were found to be the same, the samples once the table's size was.
 */
static inline bool gm_python_identity_is(const struct gm_python_identity *identity,
					 const struct gm_python_layout *l, uintptr_t code)
{
	const uint64_t *word = identity->word;
	uintptr_t name = word[1], lines = word[2], file = word[3], data = lines + GM_PY_BYTES_DATA;
	uint64_t differs, bytes;

	differs = (word[0] ^ gm_py_number(l, code)) | (name ^ gm_py_word(code + l->code_name));
	if (differs || identity->numbered)
		return !differs;
	if (lines != gm_py_word(code + l->code_lines))
		return false;
	bytes = gm_py_word(lines + GM_PY_SIZE);
	differs = (file ^ gm_py_word(code + l->code_filename)) |
		  (word[6] ^ bytes << 48 ^ (gm_py_word(data) & identity->mask));
	if (differs)
		return false;
	differs = (word[4] ^ gm_py_word(name + GM_PY_TEXT_HASH)) | (word[5] ^ gm_py_file(l, file)) |
		  (word[7] ^ (gm_py_word(data + identity->sample[0]) & identity->mask)) |
		  (word[8] ^ (gm_py_word(data + identity->sample[1]) & identity->mask)) |
		  (word[9] ^ (gm_py_word(data + identity->sample[2]) & identity->mask));
	return !differs;
}

#endif
