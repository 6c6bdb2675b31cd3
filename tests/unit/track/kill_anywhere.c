/*
 * A program that records is killed after each of its instructions, one after the other: its file is
 * read as it is then, and what it says of PyTorch's blocks and of driver memory must be what lives
 * by it. (The file is the program's memory: what is in it after an instruction is what a kill would
 * leave.) Arguments: the program, the file, how many instructions to go on between two looks.
 */
#include "report/doc/doc.h"
#include "report/doc/options.h"
#include "report/open/open.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77

static const struct gm_options options = {
	.device = -1, .kind = -1, .level = -1, .warmup = 2, .top = 20};

struct lives {
	uint64_t bytes, count;
};

static struct lives live(const struct gm_doc *doc, unsigned level)
{
	struct lives lives = {0, 0};

	for (unsigned i = 0; i < doc->blocks_count; i++)
		if (gm_doc_block(doc, i).level == level) {
			lives.bytes += doc->blocks[i].bytes;
			lives.count++;
		}
	return lives;
}

static bool level_is_right(const struct gm_doc *doc, unsigned number)
{
	const struct gm_level_record *level = gm_doc_level(doc, 0, number);
	struct lives lives = live(doc, number);

	return level && level->current_bytes == lives.bytes &&
	       level->current_count == lives.count &&
	       level->allocations - level->frees == lives.count &&
	       level->allocated_bytes - level->freed_bytes == lives.bytes &&
	       level->peak_bytes >= lives.bytes;
}

static bool torch_is_right(const struct gm_doc *doc)
{
	const struct gm_torch_record *torch = doc->torches;
	struct lives lives = live(doc, GM_LEVEL_TORCH);

	return doc->torches_count == 1 && torch->allocated_bytes == lives.bytes &&
	       torch->allocations - torch->frees == lives.count &&
	       torch->allocated_total_bytes - torch->freed_total_bytes == lives.bytes &&
	       torch->allocated_peak_bytes >= lives.bytes;
}

static bool series_is_right(const struct gm_doc *doc)
{
	uint64_t bytes = live(doc, GM_LEVEL_TORCH).bytes;

	for (unsigned i = 0; i < doc->timeline_count; i++) {
		const struct gm_timeline_record *line = &doc->timeline[i];
		uint32_t last = line->points - 1;

		if (line->series == GM_SERIES_TORCH_ALLOCATED)
			return line->last_bytes[last] == bytes && line->min_bytes[last] <= bytes &&
			       line->max_bytes[last] >= bytes;
	}
	return false;
}

static bool sites_are_right(const struct gm_doc *doc)
{
	struct lives torch = live(doc, GM_LEVEL_TORCH), driver = live(doc, GM_LEVEL_DRIVER);
	uint64_t bytes = 0, count = 0;

	for (unsigned i = 0; i < doc->sites_count; i++) {
		bytes += doc->sites[i].record.live_bytes;
		count += doc->sites[i].record.live_count;
	}
	return bytes == torch.bytes + driver.bytes && count == torch.count + driver.count;
}

/* What is wrong in the file, NULL: nothing. */
static const char *wrong(const char *path, char *error, size_t error_bytes)
{
	struct gm_doc *doc = gm_doc_open(path, &options, error, error_bytes);
	const char *what = NULL;

	if (!doc)
		return error;
	if (!level_is_right(doc, GM_LEVEL_TORCH))
		what = "the level of blocks";
	else if (!level_is_right(doc, GM_LEVEL_DRIVER))
		what = "the level of driver memory";
	else if (!torch_is_right(doc))
		what = "PyTorch's record";
	else if (!series_is_right(doc))
		what = "the series of blocks";
	else if (!sites_are_right(doc))
		what = "the sites";
	gm_doc_close(doc);
	return what;
}

/* On to the next stop: false where the program ended. */
static bool went_on(pid_t pid, int how, int *status)
{
	return ptrace(how, pid, NULL, NULL) == 0 && waitpid(pid, status, 0) == pid &&
	       WIFSTOPPED(*status);
}

static int go_through(pid_t pid, const char *path, unsigned stride)
{
	unsigned long step = 0;
	char error[256] = "";
	int status;

	while (went_on(pid, PTRACE_SINGLESTEP, &status) && WSTOPSIG(status) == SIGTRAP) {
		const char *what = step++ % stride ? NULL : wrong(path, error, sizeof(error));

		if (what) {
			fprintf(stderr, "after %lu instructions: %s\n", step, what);
			return 1;
		}
	}
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP) {
		fprintf(stderr, "the program ended early: status %x\n", (unsigned)status);
		return 1;
	}
	fprintf(stderr, "%lu instructions\n", step);
	return step < 1000;
}

int main(int argc, char **argv)
{
	int status, result;
	pid_t pid;

	if (argc < 4)
		return 2;
	pid = fork();
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(SKIPPED);
		execl(argv[1], argv[1], argv[2], (char *)NULL);
		_exit(2);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 2;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (!went_on(pid, PTRACE_CONT, &status) || WSTOPSIG(status) != SIGSTOP)
		return 2;
	result = go_through(pid, argv[2], (unsigned)atoi(argv[3]));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	unlink(argv[2]);
	return result;
}
