/*
 * Reading rules and matching them, see rules.h. The built-in table is parsed by the same code as a
 * user's file; a line that is no rule is an error there and cannot be here.
 */
#include "report/stacks/rules.h"
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RULES  4096
#define MAX_NAME   60
#define MOST_BYTES (1u << 20) /* of a user's file */

static const char built_in[] =
#include "rules.inc"
	;

enum field { MODULE, PATH, FUNCTION, SOURCE, FIELDS };

static const char *const field_names[FIELDS] = {"module", "path", "function", "file"};

/* The verbs, in the order of enum gm_rule_verb; `named` ones give a name. */
static const struct {
	const char *word;
	bool named;
} verbs[] = {
	{"plumbing", false}, {"installed", false}, {"toolkit", false}, {"framework", false},
	{"cache", false},    {"opaque", false},	   {"category", true}, {"phase", true},
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

struct rule {
	enum gm_rule_verb verb;
	enum field field;
	const char *name, *pattern;
};

static struct {
	struct gm_zone texts; /* that the rules point into */
	struct rule rule[MAX_RULES];
	unsigned count;
	bool read;
} rules;

static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \t");

	*line = word + strcspn(word, " \t");
	if (**line)
		*(*line)++ = '\0';
	return word;
}

/* Parses one line in place. NULL if it is a rule or says nothing, else what is wrong with it. */
static const char *parse_rule(char *line, struct rule *rule, bool *is_rule)
{
	char *verb = next_word(&line), *field, *end;
	unsigned v = 0, f = 0;

	*is_rule = false;
	if (verb[0] == '\0' || verb[0] == '#')
		return NULL;
	while (v < VERBS && strcmp(verb, verbs[v].word) != 0)
		v++;
	if (v == VERBS)
		return "it does not begin with plumbing, installed, toolkit, framework, cache, "
		       "opaque, category or phase";
	rule->verb = (enum gm_rule_verb)v;
	rule->name = NULL;
	if (verbs[v].named) {
		char *name = next_word(&line);

		if (!*name || strlen(name) > MAX_NAME)
			return "it gives no name, or one that is too long";
		rule->name = name;
		for (; *name; name++)
			if (*name == '_')
				*name = ' ';
	}
	field = next_word(&line);
	while (f < FIELDS && strcmp(field, field_names[f]) != 0)
		f++;
	if (f == FIELDS)
		return "what is to be matched is not module, path, function or file";
	rule->field = (enum field)f;
	rule->pattern = line + strspn(line, " \t");
	for (end = line + strlen(line); end > rule->pattern && strchr(" \t\r", end[-1]); end--)
		end[-1] = '\0';
	if (!*rule->pattern)
		return "the pattern is missing";
	*is_rule = true;
	return NULL;
}

/* Parses a text in place; what is wrong with line *number, or NULL. */
static const char *parse(char *text, struct rule *list, unsigned most, unsigned *count,
			 unsigned *number)
{
	const char *wrong;
	struct rule rule;
	bool is_rule;
	char *line;

	*count = *number = 0;
	while ((line = strsep(&text, "\n"))) {
		(*number)++;
		wrong = parse_rule(line, &rule, &is_rule);
		if (wrong)
			return wrong;
		if (is_rule && *count == most)
			return "it is one rule too many";
		if (is_rule)
			list[(*count)++] = rule;
	}
	return NULL;
}

static void read_built_in(void)
{
	unsigned line;
	char *text;

	if (rules.read)
		return;
	rules.read = true;
	text = gm_zone_strdup(&rules.texts, built_in);
	parse(text, rules.rule, MAX_RULES, &rules.count, &line);
}

static char *read_text(const char *path, char *error, size_t error_bytes)
{
	FILE *file = fopen(path, "re");
	char *bytes = NULL, *text = NULL;
	size_t length = 0;

	if (file) {
		bytes = gm_realloc(NULL, MOST_BYTES);
		errno = 0;
		length = fread(bytes, 1, MOST_BYTES, file);
	}
	if (!file || ferror(file))
		snprintf(error, error_bytes, "%s cannot be read: %s", path, strerror(errno));
	else
		text = gm_zone_strndup(&rules.texts, bytes, length);
	free(bytes);
	if (file)
		fclose(file);
	return text;
}

bool gm_rules_extend(const char *path, char *error, size_t error_bytes)
{
	struct rule *list;
	unsigned count, line;
	const char *wrong;
	char *text;

	read_built_in();
	text = read_text(path, error, error_bytes);
	if (!text)
		return false;
	list = gm_realloc(NULL, MAX_RULES * sizeof(*list));
	wrong = parse(text, list, MAX_RULES - rules.count, &count, &line);
	if (wrong) {
		snprintf(error, error_bytes, "%s:%u is no rule: %s", path, line, wrong);
	} else {
		memmove(rules.rule + count, rules.rule, rules.count * sizeof(*list));
		memcpy(rules.rule, list, count * sizeof(*list));
		rules.count += count;
	}
	free(list);
	return !wrong;
}

void gm_rules_forget(void)
{
	gm_zone_free(&rules.texts);
	memset(&rules, 0, sizeof(rules));
}

static void apply(struct gm_frame *frame, unsigned number)
{
	switch (rules.rule[number].verb) {
	case GM_RULE_PLUMBING:
		frame->plumbing = true;
		break;
	case GM_RULE_INSTALLED:
		frame->installed = true;
		break;
	case GM_RULE_TOOLKIT:
		frame->toolkit = true;
		break;
	case GM_RULE_FRAMEWORK:
		frame->framework = true;
		break;
	case GM_RULE_CACHE:
		frame->caching = true;
		break;
	case GM_RULE_OPAQUE:
		frame->opaque = true;
		break;
	case GM_RULE_CATEGORY:
		frame->category_rule = (uint16_t)number;
		break;
	case GM_RULE_PHASE:
		frame->phase_rule = (uint16_t)number;
		break;
	}
}

void gm_rules_apply(struct gm_frame *frame)
{
	const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;
	const char *fields[FIELDS] = {slash ? slash + 1 : frame->module, frame->module,
				      frame->function, frame->file};

	read_built_in();
	frame->category_rule = frame->phase_rule = GM_NO_RULE;
	for (unsigned i = 0; i < rules.count; i++) {
		const struct rule *rule = &rules.rule[i];
		const char *text = fields[rule->field];

		/* The first category and the first phase count. */
		if (!text ||
		    (rule->verb == GM_RULE_CATEGORY && frame->category_rule != GM_NO_RULE) ||
		    (rule->verb == GM_RULE_PHASE && frame->phase_rule != GM_NO_RULE))
			continue;
		if (fnmatch(rule->pattern, text, FNM_NOESCAPE) == 0)
			apply(frame, i);
	}
}

const char *gm_rule_name(unsigned rule)
{
	return rule < rules.count && rules.rule[rule].name ? rules.rule[rule].name : "other";
}
