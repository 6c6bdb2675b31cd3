/*
 * When an allocation's context need not be asked for (src/track/contexts.c): while a primary one is
 * the only one that there is. One thread ends a context while another makes one, over and over; a
 * context that the file has no room for. Arguments: rounds, a directory.
 */
#include "drive.h"
#include "track/contexts.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRIMARY 0x1000u
#define OTHERS	0x2000u /* handles of the others begin there */
#define CAP	(1u << 20)

static unsigned long rounds, begun, done;

static void wait_for(unsigned long *word, unsigned long value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value)
		sched_yield();
}

static uint32_t make(uint64_t handle, bool primary)
{
	return gm_track_context_made(handle, 0, primary, false, GM_NO_BYTES, GM_NONE);
}

static void end(uint64_t handle)
{
	gm_track_context_gone(handle, GM_HOST, GM_IMPLICIT_CONTEXT_DESTROY, GM_NONE);
}

/* In each round it ends the context that was made in the one before. */
static void *end_them(void *unused)
{
	unsigned long i;

	for (i = 1; i <= rounds; i++) {
		wait_for(&begun, i);
		end(OTHERS + i - 1);
		__atomic_store_n(&done, i, __ATOMIC_RELEASE);
	}
	return unused;
}

/* After each round there are the primary one and the one that was just made. */
static int at_once(void)
{
	pthread_t ender;
	unsigned long i, wrong = 0;

	make(OTHERS, false);
	if (pthread_create(&ender, NULL, end_them, NULL))
		return 3;
	for (i = 1; i <= rounds; i++) {
		__atomic_store_n(&begun, i, __ATOMIC_RELEASE);
		make(OTHERS + i, false);
		wait_for(&done, i);
		wrong += gm_track_sole_context() != 0;
	}
	pthread_join(ender, NULL);
	end(OTHERS + rounds);
	if (wrong)
		printf("%lu of %lu rounds: one context of two passes for the only one\n", wrong,
		       rounds);
	return wrong ? 4 : 0;
}

/* The last one is there and in no table. */
static int without_room(void)
{
	uint64_t handle = OTHERS + rounds + 1;
	char text[2000] = "";

	memset(text, 'x', sizeof(text) - 1);
	while (gm_store_string(text, sizeof(text)) != GM_NONE)
		;
	for (; make(handle, false) != GM_NONE; handle++)
		end(handle);
	return gm_track_sole_context() ? 6 : 0;
}

int main(int argc, char **argv)
{
	uint32_t number;
	char path[4096];
	int error;

	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	snprintf(path, sizeof(path), "%s/contexts-%d.gmt", argc > 2 ? argv[2] : "/tmp", getpid());
	if (!drive_open(path, CAP))
		return 2;
	unlink(path);
	number = make(PRIMARY, true);
	error = at_once();
	if (error)
		return error;
	if (gm_track_sole_context() != number + 1)
		return 5; /* it is asked for without need */
	return without_room();
}
