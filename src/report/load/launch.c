/*
 * The job a process belongs to, from the variables of its launcher that the shim kept
 * (recorder/state/launcher.c). Reads the header's strings.
 */
#include "report/load/internal.h"
#include <stdlib.h>
#include <string.h>

/* The first of the variables that says something; NULL. "none" is torchrun's way to say nothing. */
static const char *first_of(struct gm_doc *doc, const char *text, const char *const *names)
{
	for (; *names; names++) {
		const char *value = gm_doc_variable(doc, text, *names);

		if (value && *value && strcmp(value, "none") != 0)
			return value;
	}
	return NULL;
}

/*
 * The pods of a Kubernetes job with completionMode: Indexed are called JOB-INDEX, which is all that
 * they are told of the job.
 */
static const char *indexed_job(struct gm_doc *doc, const char *text)
{
	const char *index = gm_doc_variable(doc, text, "JOB_COMPLETION_INDEX");
	size_t host = doc->host ? strlen(doc->host) : 0, tail = index ? strlen(index) : 0;

	if (!tail || host < tail + 2 || doc->host[host - tail - 1] != '-' ||
	    strcmp(doc->host + host - tail, index) != 0)
		return NULL;
	return gm_zone_strndup(&doc->zone, doc->host, host - tail - 1);
}

void gm_load_launch(struct gm_doc *doc)
{
	static const char *const jobs[] = {
		"SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "PBS_JOBID", "LSB_JOBID",      "FLUX_JOB_ID",
		"PALS_APID",	"RAY_JOB_ID",	       "JOB_NAME",  "PMIX_NAMESPACE", NULL};
	static const char *const attempts[] = {"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT",
					       NULL};
	static const char *const revisions[] = {"GIT_COMMIT",
						"GITHUB_SHA",
						"CI_COMMIT_SHA",
						"BUILDKITE_COMMIT",
						"CIRCLE_SHA1",
						"BUILD_SOURCEVERSION",
						NULL};
	const char *text = gm_reader_string(doc->reader, doc->header->job_string);
	const char *pod[] = {"POD_NAME", NULL};

	doc->job = first_of(doc, text, jobs);
	if (!doc->job)
		doc->job = indexed_job(doc, text);
	if (!doc->job)
		doc->job = first_of(doc, text, pod);
	doc->attempt = first_of(doc, text, attempts);
	doc->revision = first_of(doc, text, revisions);
}
