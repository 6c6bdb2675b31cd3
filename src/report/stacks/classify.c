/*
 * Classification by the rules (rules.h), which have been matched with each frame once; a stack
 * takes the smallest rule number of its frames.
 */
#include "report/stacks/classify.h"
#include "report/doc/frames.h"
#include "report/stacks/labels.h"
#include "report/stacks/rules.h"
#include "account/kinds.h"
#include <stdlib.h>
#include <string.h>

/*
 * True for a thread that libtorch_python started: those of autograd's engine, whose symbols are not
 * to be had where the file is read on another machine (torch/csrc/autograd/python_engine.cpp,
 * PythonEngine::thread_init).
 */
static bool is_autograd_thread(const struct gm_stack *stack)
{
	for (unsigned i = stack ? stack->count : 0; i-- > 0;) {
		const char *name = gm_module_name(gm_stack_frame(stack, i));

		if (!name || strncmp(name, "libtorch_python", 15) == 0)
			return name != NULL;
		if (strncmp(name, "libc.so", 7) != 0 && strncmp(name, "libpthread", 10) != 0 &&
		    strncmp(name, "libstdc++", 9) != 0)
			return false;
	}
	return false;
}

const char *gm_phase_of(const struct gm_stack *stack)
{
	unsigned first = GM_NO_RULE;

	for (unsigned i = 0; stack && i < stack->count; i++)
		if (gm_stack_frame(stack, i)->phase_rule < first)
			first = gm_stack_frame(stack, i)->phase_rule;
	if (first == GM_NO_RULE && is_autograd_thread(stack))
		return "backward";
	return gm_rule_name(first);
}

static const char *category_of(const struct gm_stack *stack)
{
	unsigned first = GM_NO_RULE;

	for (unsigned i = 0; stack && i < stack->count; i++)
		if (gm_stack_frame(stack, i)->category_rule < first)
			first = gm_stack_frame(stack, i)->category_rule;
	return gm_rule_name(first);
}

static const struct gm_frame *asking_frame(const struct gm_stack *stack)
{
	for (unsigned i = 0; stack && i < stack->count; i++)
		if (!gm_stack_frame(stack, i)->plumbing)
			return gm_stack_frame(stack, i);
	return NULL;
}

/* "torch" for a path below site-packages or dist-packages, else NULL. */
static const char *package_of(struct gm_doc *doc, const char *path)
{
	const char *package = NULL;

	for (const char *at = path; (at = strstr(at, "-packages/")); at += 10)
		package = at + 10;
	return package ? gm_zone_strndup(&doc->zone, package, strcspn(package, "/")) : NULL;
}

/* The package of a Python file, else the script's own name. */
static const char *python_library(struct gm_doc *doc, const char *file)
{
	const char *package = file ? package_of(doc, file) : NULL, *slash;

	if (!file || package)
		return package;
	slash = strrchr(file, '/');
	return slash ? slash + 1 : file;
}

/* An extension module has many namesakes: its package says more ("cupy_backends"). */
static const char *native_library(struct gm_doc *doc, const struct gm_frame *frame)
{
	const char *name = gm_module_name(frame), *package;

	if (!strstr(name, ".cpython-") && !strstr(name, ".abi3."))
		return name;
	package = package_of(doc, frame->module);
	return package ? package : name;
}

/* Returns the library that asked: the innermost object or Python file that is no plumbing. */
static const char *library_of(struct gm_doc *doc, const struct gm_site *site)
{
	const struct gm_frame *frame = asking_frame(site->stack);
	struct gm_module_record module;
	const char *path, *slash;

	if (frame && frame->python)
		return python_library(doc, frame->file);
	if (frame && frame->module)
		return native_library(doc, frame);
	if (!gm_reader_get(doc->reader, GM_TABLE_MODULES, site->record.caller_module, &module,
			   sizeof(module)))
		return NULL;
	path = gm_reader_string(doc->reader, module.path_string);
	slash = path ? strrchr(path, '/') : NULL;
	return slash ? slash + 1 : path;
}

static void add_category(struct gm_doc *doc, const struct gm_site *site)
{
	const struct gm_site_figures *record = &site->record;
	struct gm_category *category = NULL;

	for (unsigned i = 0; i < doc->categories_count; i++)
		if (doc->categories[i].device == record->device &&
		    doc->categories[i].level == record->level &&
		    strcmp(doc->categories[i].category, site->category) == 0)
			category = &doc->categories[i];
	if (!category) {
		category = gm_zone_push(&doc->zone, &doc->categories, &doc->categories_count,
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
	const struct gm_site_figures *record = &site->record;
	struct gm_phase *phase = NULL;

	if (record->level != (doc->torch ? GM_LEVEL_TORCH : GM_LEVEL_DRIVER) ||
	    record->device == GM_HOST)
		return;
	for (unsigned i = 0; i < doc->phases_count; i++)
		if (doc->phases[i].device == record->device &&
		    strcmp(doc->phases[i].phase, site->phase) == 0)
			phase = &doc->phases[i];
	if (!phase) {
		phase = gm_zone_push(&doc->zone, &doc->phases, &doc->phases_count, sizeof(*phase));
		phase->phase = site->phase;
		phase->device = record->device;
	}
	phase->retained_bytes += record->live_bytes;
	if (record->level_max_bytes > phase->peak_bytes)
		phase->peak_bytes = record->level_max_bytes;
	if (phase->retained_bytes > phase->peak_bytes) /* by an update that a kill cut short */
		phase->peak_bytes = phase->retained_bytes;
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

static bool is_c10(const struct gm_frame *frame)
{
	const char *name = gm_module_name(frame);

	return name && strncmp(name, "libc10_cuda", 11) == 0;
}

/*
 * Finds out whether a caching framework is in the program, and whether it took this memory for its
 * cache.
 */
static void find_caches(struct gm_doc *doc, struct gm_site *site)
{
	const struct gm_stack *stack = site->stack;

	for (unsigned k = 0; stack && k < stack->count; k++) {
		const struct gm_frame *frame = gm_stack_frame(stack, k);

		site->caching = site->caching || frame->caching || frame->opaque;
		site->opaque = site->opaque || frame->opaque;
		site->from_c10 = site->from_c10 || is_c10(frame);
		doc->framework = doc->framework || frame->framework;
	}
	/* Without symbols: what a framework's own object asks for is for its pool. */
	if (stack && stack->count && gm_stack_frame(stack, 0)->framework &&
	    !gm_stack_frame(stack, 0)->function && !gm_stack_frame(stack, 0)->caching)
		site->caching = site->opaque = true;
	doc->framework = doc->framework || site->caching || site->record.level != GM_LEVEL_DRIVER;
}

void gm_classify(struct gm_doc *doc)
{
	doc->framework = doc->torch;
	for (unsigned i = 0; i < doc->sites_count; i++) {
		struct gm_site *site = &doc->sites[i];

		site->library = library_of(doc, site);
		site->category = category_of(site->stack);
		site->phase = gm_phase_of(site->stack);
		find_caches(doc, site);
		if (site->record.allocations == 0 ||
		    !gm_in_level(site->record.level, site->record.kind))
			continue;
		add_category(doc, site);
		add_phase(doc, site);
	}
	if (doc->categories_count)
		qsort(doc->categories, doc->categories_count, sizeof(*doc->categories),
		      compare_categories);
	gm_label_stacks(doc);
}
