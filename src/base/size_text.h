/*
 * Sizes as people write them (contract.md, section 2). The shim and the tool share this parser;
 * python/gpumemtrace/_size.py follows the same rule, and tests/unit/sizes/sizes.tsv holds all
 * three to it.
 */
#ifndef GM_BASE_SIZE_TEXT_H
#define GM_BASE_SIZE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Reads "10", "1.5GiB", "64mib", "2G" or " 1e8 ": a decimal number, with a fraction or an exponent
 * if need be, and a unit in either case. K, KiB and so on up to P are powers of 1024; KB, MB and so
 * on are powers of 1000. White space may surround the number and the unit. A fraction of a byte is
 * dropped.
 *
 * Returns false, and leaves *bytes as it was, if the text is no size or if the size does not lie
 * below UINT64_MAX, which stands for an unknown size elsewhere. Pure, whatever the locale; calls
 * nothing, so that it may be called in any context.
 */
bool gm_parse_size(const char *text, uint64_t *bytes);

#endif
