/*
 * Writing Python pickles (pickle_writer.h). Opcodes are those of CPython's Lib/pickletools.py.
 */
#include "report/render/export/pickle_writer.h"
#include "report/support/memory.h"
#include <stdlib.h>
#include <string.h>

static void put_little(struct gm_pickle *pickle, uint64_t number, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		putc((int)(number >> (8 * i) & 0xff), pickle->file);
}

void gm_pickle_begin(struct gm_pickle *pickle, FILE *file)
{
	*pickle = (struct gm_pickle){.file = file};
	fputs("\x80\x02", file); /* PROTO 2 */
}

void gm_pickle_end(struct gm_pickle *pickle)
{
	putc('.', pickle->file);
	gm_numbering_free(&pickle->texts);
	free(pickle->memo_of_text);
}

void gm_pickle_dict(struct gm_pickle *pickle)
{
	fputs("}(", pickle->file); /* EMPTY_DICT, MARK */
}

void gm_pickle_dict_end(struct gm_pickle *pickle)
{
	putc('u', pickle->file); /* SETITEMS */
}

void gm_pickle_list(struct gm_pickle *pickle)
{
	fputs("](", pickle->file); /* EMPTY_LIST, MARK */
}

void gm_pickle_list_end(struct gm_pickle *pickle)
{
	putc('e', pickle->file); /* APPENDS */
}

uint32_t gm_pickle_remember(struct gm_pickle *pickle)
{
	putc('r', pickle->file); /* LONG_BINPUT */
	put_little(pickle, pickle->memo, 4);
	return pickle->memo++;
}

void gm_pickle_again(struct gm_pickle *pickle, uint32_t memo)
{
	putc(memo < 256 ? 'h' : 'j', pickle->file); /* BINGET, LONG_BINGET */
	put_little(pickle, memo, memo < 256 ? 1 : 4);
}

void gm_pickle_text(struct gm_pickle *pickle, const char *text)
{
	size_t bytes = strlen(text);
	bool added;
	unsigned number = gm_number_of(&pickle->texts, text, bytes, &added);

	if (!added) {
		gm_pickle_again(pickle, pickle->memo_of_text[number]);
		return;
	}
	if ((number & (number - 1)) == 0) /* powers of two are where it is full */
		pickle->memo_of_text = gm_realloc(
			pickle->memo_of_text, (number ? 2 * (size_t)number : 1) * sizeof(uint32_t));
	putc('X', pickle->file); /* BINUNICODE */
	put_little(pickle, bytes, 4);
	fwrite(text, 1, bytes, pickle->file);
	pickle->memo_of_text[number] = gm_pickle_remember(pickle);
}

void gm_pickle_signed(struct gm_pickle *pickle, int64_t number)
{
	unsigned bytes = 1;

	if (number >= 0 && number < 256) {
		putc('K', pickle->file); /* BININT1 */
		put_little(pickle, (uint64_t)number, 1);
		return;
	}
	if (number >= INT32_MIN && number <= INT32_MAX) {
		putc('J', pickle->file); /* BININT */
		put_little(pickle, (uint64_t)number, 4);
		return;
	}
	while (bytes < 8 && (number >> (8 * bytes - 1)) != 0 && (number >> (8 * bytes - 1)) != -1)
		bytes++;
	fprintf(pickle->file, "\x8a%c", bytes); /* LONG1: two's complement */
	put_little(pickle, (uint64_t)number, bytes);
}

void gm_pickle_unsigned(struct gm_pickle *pickle, uint64_t number)
{
	if (number <= INT64_MAX) {
		gm_pickle_signed(pickle, (int64_t)number);
		return;
	}
	fputs("\x8a\x09", pickle->file); /* LONG1 of nine bytes: the sign is the ninth's */
	put_little(pickle, number, 8);
	putc(0, pickle->file);
}

void gm_pickle_bool(struct gm_pickle *pickle, bool value)
{
	putc(value ? 0x88 : 0x89, pickle->file); /* NEWTRUE, NEWFALSE */
}

void gm_pickle_pair(struct gm_pickle *pickle, int64_t a, int64_t b)
{
	gm_pickle_signed(pickle, a);
	gm_pickle_signed(pickle, b);
	putc(0x86, pickle->file); /* TUPLE2 */
}
