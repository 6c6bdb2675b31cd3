/*
 * A loop that instructions.sh counts the instructions of: captures of a native stack of DEPTH
 * frames, of which the CHANGED innermost differ from one capture to the next.
 *
 *     instructions DEPTH CHANGED ROUNDS on|off
 *
 * Two call sites, or two chains of calls with frames of different sizes, are taken in turn. With
 * CHANGED negative, the frames lie elsewhere each time, 900 places at random, so that hardly any
 * two captures follow each other twice. The last word is GPUMEMTRACE_STACK_CACHE's.
 */
#include "stack/stack.h"
#include "store/writer.h"
#include "store_double.h"

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE  __attribute__((noinline))
#define BARRIER() __asm__ volatile("" ::: "memory")

static struct {
	unsigned changed, rounds, dice;
	bool at_random;
	uint32_t stack;
} shape;

/* What a wrapper of an allocating call does. */
static NOINLINE void capture(void)
{
	const struct gm_entry entry = GM_ENTRY_HERE();

	shape.stack = gm_stack_take(&entry, 0, NULL);
	BARRIER();
}

static NOINLINE void chain_a(unsigned frames)
{
	if (frames)
		chain_a(frames - 1);
	else
		capture();
	BARRIER();
}

static NOINLINE void chain_b(unsigned frames)
{
	volatile char room[48];

	room[0] = 0;
	if (frames)
		chain_b(frames - 1 + (unsigned)room[0]);
	else
		capture();
	BARRIER();
}

static NOINLINE void elsewhere(void)
{
	volatile char *room;

	shape.dice = shape.dice * 1664525 + 1013904223;
	room = alloca(16 + (shape.dice >> 16) % 900 * 16);
	room[0] = 0;
	if (shape.changed < 2)
		capture();
	else
		chain_a(shape.changed - 2);
	BARRIER();
}

static NOINLINE void loop(void)
{
	for (unsigned i = 0; i < shape.rounds; i++) {
		if (shape.at_random) {
			elsewhere();
		} else if (shape.changed < 2) {
			if (shape.changed && i & 1)
				capture();
			else
				capture();
		} else if (i & 1) {
			chain_a(shape.changed - 2);
		} else {
			chain_b(shape.changed - 2);
		}
		BARRIER();
	}
}

static NOINLINE void descend(unsigned frames)
{
	if (frames)
		descend(frames - 1);
	else
		loop();
	BARRIER();
}

/* Of the stack that was taken last. */
static unsigned frames_of_last(void)
{
	const struct gm_stack_record *record = gm_store_record(GM_TABLE_STACKS, shape.stack);

	return record ? record->frames : 0;
}

/* Frames under main, which libc's start adds to. */
static unsigned outer_frames(void)
{
	unsigned rounds = shape.rounds, changed = shape.changed;

	shape.rounds = 1;
	shape.changed = 0;
	loop();
	shape.rounds = rounds;
	shape.changed = changed;
	return frames_of_last() - 1;
}

int main(int argc, char **argv)
{
	int changed = argc == 5 ? atoi(argv[2]) : 0;
	unsigned depth, outer;

	if (argc != 5) {
		fprintf(stderr, "usage: %s DEPTH CHANGED ROUNDS on|off\n", argv[0]);
		return 2;
	}
	store_double_reset();
	gm_stack_init(GM_STACKS_NATIVE, 256);
	gm_stack_cache(strcmp(argv[4], "off") != 0);
	depth = (unsigned)atoi(argv[1]);
	shape.changed = (unsigned)abs(changed);
	shape.at_random = changed < 0;
	shape.rounds = (unsigned)atoi(argv[3]);
	outer = outer_frames() + (shape.changed ? shape.changed : 1) + 1;
	descend(depth > outer ? depth - outer : 0);
	printf("%u\n", frames_of_last());
	return 0;
}
