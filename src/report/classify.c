/*
 * Classification by the built-in rules table (rules.txt, compiled in). Frames are matched once
 * each; a stack then takes the smallest rule number of its frames.
 */
#include "report/classify.h"
#include "report/load.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RULES 1024
#define NO_RULE	  UINT16_MAX

static const char rules_text[] =
#include "rules.inc"
	;

enum verb { PLUMBING, CACHE, CATEGORY, PHASE };
enum field { MODULE, FUNCTION, SOURCE };

static struct {
	struct rule {
		enum verb verb;
		enum field field;
		const char *name, *pattern;
	} rule[MAX_RULES];
	unsigned count;
	char *text;
} rules;

static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \t");

	*line = word + strcspn(word, " \t");
	if (**line)
		*(*line)++ = '\0';
	return word;
}

/* One line of rules.txt. The table is part of the program, so it is known to be well-formed. */
static void parse_rule(char *line)
{
	struct rule *rule = &rules.rule[rules.count];
	char *verb = next_word(&line), *field;

	if (verb[0] == '\0' || verb[0] == '#' || rules.count == MAX_RULES)
		return;
	rule->verb = strcmp(verb, "category") == 0 ? CATEGORY
		     : strcmp(verb, "phase") == 0  ? PHASE
		     : strcmp(verb, "cache") == 0  ? CACHE
						   : PLUMBING;
	if (rule->verb == CATEGORY || rule->verb == PHASE) {
		char *name = next_word(&line);

		rule->name = name;
		for (; *name; name++)
			if (*name == '_')
				*name = ' ';
	}
	field = next_word(&line);
	rule->field = field[0] == 'm' ? MODULE : field[1] == 'u' ? FUNCTION : SOURCE;
	rule->pattern = line + strspn(line, " \t");
	rules.count++;
}

static void read_rules(void)
{
	char *line, *rest;

	if (rules.text)
		return;
	rules.text = rest = gm_realloc(NULL, sizeof(rules_text));
	memcpy(rules.text, rules_text, sizeof(rules_text));
	while ((line = strsep(&rest, "\n")))
		parse_rule(line);
}

const char *gm_module_name(const struct gm_frame *frame)
{
	const char *slash;

	if (!frame->module)
		return NULL;
	slash = strrchr(frame->module, '/');
	return slash ? slash + 1 : frame->module;
}

void gm_classify_frame(struct gm_frame *frame)
{
	const char *fields[] = {gm_module_name(frame), frame->function, frame->file};

	read_rules();
	frame->category_rule = frame->phase_rule = NO_RULE;
	for (unsigned i = 0; i < rules.count; i++) {
		const struct rule *rule = &rules.rule[i];
		const char *text = fields[rule->field];

		if (!text || (rule->verb == CATEGORY && frame->category_rule != NO_RULE) ||
		    (rule->verb == PHASE && frame->phase_rule != NO_RULE) ||
		    fnmatch(rule->pattern, text, FNM_NOESCAPE) != 0)
			continue;
		if (rule->verb == PLUMBING)
			frame->plumbing = true;
		else if (rule->verb == CACHE)
			frame->caching = true;
		else if (rule->verb == CATEGORY)
			frame->category_rule = (uint16_t)i;
		else
			frame->phase_rule = (uint16_t)i;
	}
}

static const char *rule_name(unsigned rule)
{
	return rule < rules.count ? rules.rule[rule].name : "other";
}

const char *gm_phase_of(const struct gm_stack *stack)
{
	unsigned first = NO_RULE;

	for (unsigned i = 0; stack && i < stack->count; i++)
		if (stack->frames[i].phase_rule < first)
			first = stack->frames[i].phase_rule;
	return rule_name(first);
}

static const char *category_of(const struct gm_stack *stack)
{
	unsigned first = NO_RULE;

	for (unsigned i = 0; stack && i < stack->count; i++)
		if (stack->frames[i].category_rule < first)
			first = stack->frames[i].category_rule;
	return rule_name(first);
}

const struct gm_frame *gm_stack_own_frame(const struct gm_stack *stack)
{
	for (unsigned i = 0; stack && i < stack->count; i++)
		if (!stack->frames[i].plumbing)
			return &stack->frames[i];
	return NULL;
}

/* "torch" for a file of an installed package, else the script's own name. */
static const char *python_library(struct gm_doc *doc, const char *file)
{
	const char *package = NULL, *slash;

	if (!file)
		return NULL;
	for (const char *at = file; (at = strstr(at, "-packages/")); at += 10)
		package = at + 10;
	if (package)
		return gm_arena_strndup(&doc->arena, package, strcspn(package, "/"));
	slash = strrchr(file, '/');
	return slash ? slash + 1 : file;
}

/* Who asked: the innermost object or Python file that is no plumbing. */
static const char *library_of(struct gm_doc *doc, const struct gm_site *site)
{
	const struct gm_frame *frame = gm_stack_own_frame(site->stack);
	struct gm_module_record module;
	const char *path, *slash;

	if (frame && frame->python)
		return python_library(doc, frame->file);
	if (frame && frame->module)
		return gm_module_name(frame);
	if (!gm_reader_get(doc->reader, GM_TABLE_MODULES, site->record.caller_module, &module,
			   sizeof(module)))
		return NULL;
	path = gm_reader_string(doc->reader, module.path_string);
	slash = path ? strrchr(path, '/') : NULL;
	return slash ? slash + 1 : path;
}

static void add_category(struct gm_doc *doc, const struct gm_site *site)
{
	const struct gm_site_record *record = &site->record;
	struct gm_category *category = NULL;

	for (unsigned i = 0; i < doc->categories_count; i++)
		if (doc->categories[i].device == record->device &&
		    doc->categories[i].level == record->level &&
		    strcmp(doc->categories[i].category, site->category) == 0)
			category = &doc->categories[i];
	if (!category) {
		category = gm_arena_push(&doc->arena, &doc->categories, &doc->categories_count,
					 sizeof(*category));
		category->category = site->category;
		category->device = record->device;
		category->level = record->level;
	}
	category->current_bytes += record->live_bytes;
	category->bytes_at_peak += record->bytes_at_peak;
}

/* Phases are of the level that the program works with: PyTorch's blocks, else the driver's. */
static void add_phase(struct gm_doc *doc, const struct gm_site *site)
{
	const struct gm_site_record *record = &site->record;
	struct gm_phase *phase = NULL;

	if (record->level != (doc->torch ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER) ||
	    record->device == GM_HOST)
		return;
	for (unsigned i = 0; i < doc->phases_count; i++)
		if (doc->phases[i].device == record->device &&
		    strcmp(doc->phases[i].phase, site->phase) == 0)
			phase = &doc->phases[i];
	if (!phase) {
		phase = gm_arena_push(&doc->arena, &doc->phases, &doc->phases_count,
				      sizeof(*phase));
		phase->phase = site->phase;
		phase->device = record->device;
	}
	phase->retained_bytes += record->live_bytes;
	if (record->level_max_bytes > phase->peak_bytes)
		phase->peak_bytes = record->level_max_bytes;
}

static int compare_categories(const void *a, const void *b)
{
	const struct gm_category *x = a, *y = b;

	if (x->device != y->device)
		return x->device - y->device;
	if (x->level != y->level)
		return (int)x->level - (int)y->level;
	if (x->bytes_at_peak != y->bytes_at_peak)
		return x->bytes_at_peak < y->bytes_at_peak ? 1 : -1;
	return strcmp(x->category, y->category);
}

void gm_classify(struct gm_doc *doc)
{
	read_rules();
	doc->framework = doc->torch;
	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct gm_site *site = &doc->sites[i];

		site->library = library_of(doc, site);
		site->category = category_of(site->stack);
		site->phase = gm_phase_of(site->stack);
		for (unsigned k = 0; site->stack && k < site->stack->count; k++)
			site->caching = site->caching || site->stack->frames[k].caching;
		doc->framework =
			doc->framework || site->caching || site->record.level != GM_LEVEL_DRIVER;
		if (site->record.allocations == 0 ||
		    !(gm_kind_owned(site->record.kind) || site->record.level != GM_LEVEL_DRIVER))
			continue;
		add_category(doc, site);
		add_phase(doc, site);
	}
	if (doc->categories_count)
		qsort(doc->categories, doc->categories_count, sizeof(*doc->categories),
		      compare_categories);
}
