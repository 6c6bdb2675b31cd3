/*
 * The variables of launchers, see launcher.h. One row for each; docs/jobs.md says which launcher
 * sets which.
 */
#include "recorder/state/launcher.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DIGITS 9 /* so that a number fits an int */

/*
 * In the order in which they are looked at. The launcher that starts a process last comes first
 * (torchrun under srun), and a row stands for its launcher only if the variable of the rank is set.
 */
static const struct launcher {
	const char *rank, *local_rank, *world_size;
} launchers[] = {
	/* torchrun, accelerate, DeepSpeed, Ray Train */
	{"RANK", "LOCAL_RANK", "WORLD_SIZE"},
	/* MPICH, Intel MPI, srun --mpi=pmi2 */
	{"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"},
	{"MVP_COMM_WORLD_RANK", "MVP_COMM_WORLD_LOCAL_RANK", "MVP_COMM_WORLD_SIZE"},
	{"PALS_RANKID", "PALS_LOCAL_RANKID", NULL},
	{"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE"},
	{"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
	{"PMIX_RANK", "PMIX_LOCAL_RANK", NULL},
	/* a Kubernetes job with completionMode: Indexed */
	{"JOB_COMPLETION_INDEX", NULL, NULL},
};

#define LAUNCHERS (sizeof(launchers) / sizeof(launchers[0]))

const char *const gm_launcher_variables[] = {
	/* the job, most telling first; the report takes the first one that is there
	   (report/load/launch.c) */
	"SLURM_JOB_ID",
	"TORCHELASTIC_RUN_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "PALS_APID", "RAY_JOB_ID",
	"JOB_NAME", "POD_NAME", "PMIX_NAMESPACE",
	/* the attempt at it, and the node */
	"SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT", "SLURM_NODEID", "GROUP_RANK",
	"JOB_COMPLETION_INDEX",
	/* the call of gpumem-report run that the process descends from */
	"_GPUMEMTRACE_RUN",
	/* the revision of the program */
	"GIT_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA", "BUILDKITE_COMMIT", "CIRCLE_SHA1",
	"BUILD_SOURCEVERSION", NULL};

/* The value of a variable; NULL if it is not set or is no number. */
static const char *number(const char *name)
{
	const char *value = name ? getenv(name) : NULL;
	size_t digits = value ? strspn(value, "0123456789") : 0;

	return digits && digits <= MOST_DIGITS && value[digits] == '\0' ? value : NULL;
}

static const struct launcher *find(void)
{
	for (size_t i = 0; i < LAUNCHERS; i++)
		if (number(launchers[i].rank))
			return &launchers[i];
	return NULL;
}

const char *gm_launcher_rank(void)
{
	const struct launcher *launcher = find();

	return launcher ? number(launcher->rank) : NULL;
}

/* The value that the rank's own launcher set; if it set none, the first launcher's that did. */
static int32_t value_of(const struct launcher *launcher, size_t member)
{
	const char *text = NULL;

	for (size_t i = 0; i <= LAUNCHERS && !text; i++) {
		const struct launcher *from = i ? &launchers[i - 1] : launcher;
		const char *name = NULL;

		if (from)
			memcpy(&name, (const char *)from + member, sizeof(name));
		text = number(name);
	}
	return text ? atoi(text) : -1;
}

void gm_launcher_describe(struct gm_header *header)
{
	const struct launcher *launcher = find();

	header->rank = launcher ? atoi(number(launcher->rank)) : -1;
	header->local_rank = value_of(launcher, offsetof(struct launcher, local_rank));
	header->world_size = value_of(launcher, offsetof(struct launcher, world_size));
}
