/*
 * Many starts and stops, or attaches and detaches, of one running process, by the functions that
 * gpumem-report calls: a tool of its own for each of them would take most of a test's time.
 *
 *   cycles start FILE NUMBER                        of the process that writes FILE
 *   cycles attach PID NUMBER SHIM SETTINGS [FILE]   of a process that SETTINGS have write FILE;
 *                                                   without FILE no call needs to be recorded
 *
 * With WITH_CUPTI set, CUPTI is to report too; with INTERRUPT set, waits may begin anew. `attach`
 * prints how long a thread was stopped in each cycle, in microseconds, as JSON.
 */
#include "attach/attach.h"
#include "attach/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_MS 60000

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	return 1;
}

static int start(const char *file, unsigned number)
{
	struct gm_control control;
	char error[1024];

	if (!gm_control_open(&control, file, 0, error, sizeof(error)))
		return complain("open", error);
	while (number--)
		if (gm_control_ask(&control, GM_WANT_RECORDING, WAIT_MS) != GM_CONTROL_DONE ||
		    gm_control_ask(&control, GM_WANT_SLEEP, WAIT_MS) != GM_CONTROL_DONE)
			return complain("start and stop", "the process did not do what was asked");
	gm_control_close(&control);
	return 0;
}

/* The file is there after the process's next call; the one of the period before has ended. */
static bool await_recording(const char *file, int pid)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct gm_control control;
	char error[1024];

	for (unsigned waited = 0; waited < WAIT_MS; waited++) {
		if (gm_control_open(&control, file, pid, error, sizeof(error))) {
			bool done = gm_control_await(&control, GM_RECORDS, 0) == GM_CONTROL_DONE;

			gm_control_close(&control);
			if (done)
				return true;
		}
		nanosleep(&pause, NULL);
	}
	return false;
}

#define MOST_DETACHES 3 /* CUPTI can be left at the third time at the latest (cupti/backend.c) */

/* A detach is refused while a call is under way, which a busy machine may hold up. */
static bool detach(const struct gm_attach_request *request, struct gm_attach_result *result)
{
	for (unsigned i = 0; i < MOST_DETACHES; i++)
		if (gm_detach(request, result) == GM_ATTACH_DONE)
			return true;
	return false;
}

static int attach(const struct gm_attach_request *request, const char *file, unsigned number)
{
	struct gm_attach_result result;

	for (unsigned i = 0; i < number; i++) {
		if (gm_attach(request, &result) != GM_ATTACH_DONE)
			return complain("attach", result.text);
		printf("%s%.1f", i ? ", " : "[", result.paused_us);
		if (file && !await_recording(file, request->pid))
			return complain(file, "nothing is recorded");
		if (!detach(request, &result))
			return complain("detach", result.text);
		printf(", %.1f", result.paused_us);
	}
	puts("]");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "start") == 0)
		return start(argv[2], (unsigned)atoi(argv[3]));
	if ((argc == 6 || argc == 7) && strcmp(argv[1], "attach") == 0) {
		const struct gm_attach_request request = {.pid = atoi(argv[2]),
							  .shim = argv[4],
							  .settings = argv[5],
							  .cupti = getenv("WITH_CUPTI") != NULL,
							  .interrupt = getenv("INTERRUPT") != NULL,
							  .wait_ms = WAIT_MS};

		return attach(&request, argv[6], (unsigned)atoi(argv[3]));
	}
	return 2;
}
