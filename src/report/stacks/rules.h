/*
 * The rules over frames: the built-in table (rules.txt, compiled in) and those of --rules, which go
 * before it. Read once in a run, before the first document is opened.
 */
#ifndef GM_REPORT_STACKS_RULES_H
#define GM_REPORT_STACKS_RULES_H

#include "report/doc/doc.h"

enum gm_rule_verb {
	GM_RULE_PLUMBING,
	GM_RULE_INSTALLED,
	GM_RULE_TOOLKIT,
	GM_RULE_FRAMEWORK,
	GM_RULE_CACHE,
	GM_RULE_OPAQUE,
	GM_RULE_CATEGORY,
	GM_RULE_PHASE
};

#define GM_NO_RULE UINT16_MAX

/*
 * Reads a file of rules (docs/rules.md). Returns false with a sentence in `error` that names the
 * file and, of a line that is no rule, the line; then none of its rules count. Later files go
 * before earlier ones.
 */
bool gm_rules_extend(const char *path, char *error, size_t error_bytes);

/* Frees all rules, those of documents that are still open too: the next use begins with the
 * built-in ones. */
void gm_rules_forget(void);

/* Fills what rules say of a frame: plumbing and the like, category_rule and phase_rule. */
void gm_rules_apply(struct gm_frame *frame);

/* The name that a category or phase rule gives; "other" for GM_NO_RULE. Static storage. */
const char *gm_rule_name(unsigned rule);

#endif
