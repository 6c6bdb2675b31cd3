/*
 * Names of the enumerations of the format and of the document, see enum_names.h.
 */
#include "report/doc/enum_names.h"
#include "account/kinds.h"
#include <string.h>

static const char *const kind_names[GM_KINDS] = {
#define GM_KIND_ROW(kind, name, ...) [GM_KIND_##kind] = name,
	GM_KIND_TABLE(GM_KIND_ROW)
#undef GM_KIND_ROW
};
static const char *const level_names[GM_LEVELS] = {"driver", "torch", "custom"};
static const char *const verdict_names[] = {"released", "cached", "held", "grow"};
static const char *const severity_names[] = {"note", "warning", "error"};

static const struct {
	const char *name, *level;
} series_names[GM_SERIES_COUNT] = {
	{"tracked", "driver"},	     {"torch_allocated", "torch"}, {"torch_reserved", "torch"},
	{"pool_reserved", "driver"}, {"pinned", "driver"},	   {"driver_used", "driver"},
	{"custom", "custom"},
};

const char *gm_series_name(unsigned series)
{
	return series < GM_SERIES_COUNT ? series_names[series].name : "?";
}

const char *gm_series_level(unsigned series)
{
	return series < GM_SERIES_COUNT ? series_names[series].level : "?";
}

const char *gm_kind_name(unsigned kind)
{
	return kind < GM_KINDS ? kind_names[kind] : "?";
}

const char *gm_level_title(unsigned level)
{
	return level == GM_LEVEL_TORCH ? "PyTorch" : gm_level_name(level);
}

const char *gm_level_name(unsigned level)
{
	return level < GM_LEVELS ? level_names[level] : "?";
}

const char *gm_verdict_name(enum gm_verdict verdict)
{
	return verdict_names[verdict];
}

const char *gm_severity_name(enum gm_severity severity)
{
	return severity_names[severity];
}

const char *gm_range_source_name(unsigned source)
{
	static const char *const names[] = {[GM_RANGE_NVTX] = "nvtx",
					    [GM_RANGE_PROGRAM] = "header",
					    [GM_RANGE_MARKS] = "marks",
					    [GM_RANGE_ANNOTATION] = "annotation"};

	return source < sizeof(names) / sizeof(names[0]) ? names[source] : "?";
}

static int number_of(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

int gm_kind_number(const char *name)
{
	return number_of(kind_names, GM_KINDS, name);
}

int gm_level_number(const char *name)
{
	return number_of(level_names, GM_LEVELS, name);
}
