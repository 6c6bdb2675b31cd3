/*
 * The entries that made a check fail, one for each place: the rows of SARIF, of GitHub's
 * annotations and of GitLab's code quality.
 */
#ifndef GM_REPORT_RENDER_CHECK_RESULTS_H
#define GM_REPORT_RENDER_CHECK_RESULTS_H

#include "report/job/job.h"

/* A gate as code scanning wants it described: an identifier, a name, and sentences. */
struct gm_rule {
	const char *gate, *name, *text, *full, *help;
};

extern const struct gm_rule gm_rules[];
extern const unsigned gm_rules_count;

struct gm_result {
	const struct gm_doc *doc; /* NULL where there is no file */
	const struct gm_gate *gate;
	const struct gm_rule *rule;
	const struct gm_stack *stack; /* NULL where it is about the run as a whole */
	const struct gm_frame *place; /* the line that a person can act on; NULL */
	const char *message;	      /* with value and limit; lives during the call */
	const char *id;		      /* of the site; NULL */
};

/* Calls `each` for what failed and for what was not measured, in the order of files and gates. */
void gm_each_result(const struct gm_job *job,
		    void (*each)(void *context, const struct gm_result *result), void *context);

/*
 * A path as readers of a repository want it: relative to the checkout that the CI system names
 * (GITHUB_WORKSPACE, CI_PROJECT_DIR), else to the run's directory; whole where it is below neither.
 */
const char *gm_repository_path(const struct gm_doc *doc, const char *path);

/* Returns the part of `path` below `folder`; NULL if the path is not below it. */
const char *gm_path_below(const char *path, const char *folder);

#endif
