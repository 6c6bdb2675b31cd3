/*
 * Figures as people read them. Pure functions over the caller's buffers.
 */
#ifndef GM_REPORT_SUPPORT_FORMAT_H
#define GM_REPORT_SUPPORT_FORMAT_H

#include <stdint.h>

#define GM_FORMAT_BYTES 32

/* "s" unless the number is one. */
#define gm_s(number) ((number) == 1 ? "" : "s")

/* "512 B", "1.50 GiB"; "-" for GM_NO_BYTES. */
const char *gm_format_size(char text[GM_FORMAT_BYTES], uint64_t bytes);

/* Formats a computed figure of any size and sign: "-52.0 EiB". */
const char *gm_format_amount(char text[GM_FORMAT_BYTES], double bytes);

/* A computed figure as bytes: 0 if it is negative, GM_NO_BYTES if it does not fit. */
uint64_t gm_whole_bytes(double bytes);

/* "+1.50 GiB", "-3.00 KiB" */
const char *gm_format_change(char text[GM_FORMAT_BYTES], uint64_t before, uint64_t after);

/* "1,234,567" */
const char *gm_format_count(char text[GM_FORMAT_BYTES], uint64_t count);

/* "35 us", "1.2 ms", "3.25 s", "2 min 5 s"; "-" for NAN. */
const char *gm_format_time(char text[GM_FORMAT_BYTES], double seconds);

/* "12.5 %" of part in whole; "-" if the whole is 0 or not known. */
const char *gm_format_percent(char text[GM_FORMAT_BYTES], uint64_t part, uint64_t whole);

#endif
