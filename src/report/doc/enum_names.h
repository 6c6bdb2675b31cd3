/*
 * The names by which reports call kinds, levels and the like (contract.md, section 4). All are in
 * static storage.
 */
#ifndef GM_REPORT_DOC_ENUM_NAMES_H
#define GM_REPORT_DOC_ENUM_NAMES_H

#include "report/doc/doc.h"

/* "?" for numbers out of range. */
const char *gm_kind_name(unsigned kind);
const char *gm_level_name(unsigned level);

/* The level as people read it: "driver", "PyTorch", "custom". */
const char *gm_level_title(unsigned level);
const char *gm_verdict_name(enum gm_verdict verdict);
const char *gm_severity_name(enum gm_severity severity);

/* Names of a timeline's series and its level; "?" for numbers out of range. */
const char *gm_series_name(unsigned series);
const char *gm_series_level(unsigned series);

/* The origin of a range: "nvtx", "header", "marks", "annotation"; "?" for numbers out of range. */
const char *gm_range_source_name(unsigned source);

/* The number of a kind's or level's name, -1 if there is none. */
int gm_kind_number(const char *name);
int gm_level_number(const char *name);

#endif
