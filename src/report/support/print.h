/*
 * Text for people, terminals and logs. Names come from the recorded program and its data: of
 * functions, files, modules, marks, pools, hosts. They may hold line feeds that would forge lines,
 * controls that a terminal obeys, marks that turn the direction of the text, and the prefixes by
 * which CI hosts know a command. The functions here make each string argument harmless on its way
 * into a text; what the format itself says is the report's own. JSON holds the names as they are.
 */
#ifndef GM_REPORT_SUPPORT_PRINT_H
#define GM_REPORT_SUPPORT_PRINT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Writes a name for one line of a text: controls (C0, DEL, C1), line and paragraph separators, and
 * marks of text direction are written as "\n", "\x1b" or "\u202e", bytes that are no UTF-8 as
 * "\x9b". A backslash is put into "##[" and the like ("##vso["), and before "::" where a word
 * begins, because CI hosts take such lines for commands. At most `bytes` bytes of `name` are read,
 * less a character that would be cut in two.
 */
void gm_print_name(FILE *file, const char *name, size_t bytes);

/* The whole name so written, in memory that the caller frees. */
char *gm_harmless(const char *name);

/*
 * Prints as vfprintf, with each %s and %.*s as gm_print_name writes it. Conversions: d i u o x X c
 * s p f e g and their sizes. Returns the bytes that were written.
 */
int gm_vprintf(FILE *file, const char *format, va_list args);
int gm_printf(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints in the same way into a buffer, cut at the end of a character. */
void gm_vsnprintf(char *text, size_t bytes, const char *format, va_list args);

#endif
