/*
 * Walking the calling thread's Python frames (python.h). The owner of the frames is inside our
 * call, so its chain stands still, whoever holds the GIL. Nothing is believed before it was
 * checked: the first chain met is read with gm_safe_read and every object's type compared; only
 * then are frames read directly.
 */
#include "stack/python.h"

#include "stack/elf_symbols.h"
#include "stack/intern.h"
#include "stack/modules.h"
#include "stack/python_identity.h"
#include "stack/python_layout.h"
#include "stack/python_text.h"
#include "stack/safe_read.h"
#include "stack/thread_stack.h"
#include "store/hot.h"
#include "store/writer.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWNED_BY_GENERATOR   1u
#define OWNED_BY_INTERPRETER 3u	    /* and above: no Python frame (3.12 on) */
#define MOST_SKIPPED	     10000u /* frames that are no Python frames, in one walk */
#define HINT_FRAMES	     6u	    /* of gm_python_hint */
#define MOST_NAME_BYTES	     1024u
#define MOST_BASES	     100u /* of a type, one above the other */
#define RECENT		     2048u

typedef void *thread_state_fn(void);
typedef int finalizing_fn(void);

/* The interpreter of this process. The fields that every walk needs come first. */
struct interpreter {
	thread_state_fn *thread_state; /* PyGILState_GetThisThreadState */
	finalizing_fn *finalizing;     /* _Py_IsFinalizing, Py_IsFinalizing from 3.13 */
	uintptr_t code_type;
	struct gm_python_layout layout;
	uintptr_t text_type, bytes_type;
	uintptr_t start, end; /* the object it is in */
	uintptr_t runtime;    /* _PyRuntime; 0: not known */
	unsigned micro;
};

enum readiness { ABSENT, REFUSED, UNCHECKED, READY };

/* The text of a frame; an entry never changes once it is in the map. */
struct known_frame {
	uint64_t code, position; /* as they stand in the frame */
	uint32_t frame;		 /* in GM_TABLE_FRAMES */
	bool early;		 /* no Python frame yet unless a generator's: see read_frame */
	struct gm_python_identity identity;
};

static struct {
	uint32_t readiness;		/* enum readiness; written last, with release */
	struct interpreter interpreter; /* changes only while readiness is ABSENT */
} cpython __attribute__((aligned(64)));

_Static_assert(offsetof(typeof(cpython), interpreter.layout.ascii_bytes) <= 64, "one line");

GM_HOT_STACK bool gm_python_present;

static void set_readiness(enum readiness readiness)
{
	__atomic_store_n(&cpython.readiness, readiness, __ATOMIC_RELEASE);
	__atomic_store_n(&gm_python_present, readiness != ABSENT, __ATOMIC_RELEASE);
}

/* The interpreter whose collector was looked at last (atomic); bit 0: its state can be read. */
static uintptr_t checked_collector;

static struct {
	struct gm_map frames; /* hash → struct known_frame; the stack lock guards writing */
	const struct known_frame *recent[RECENT]; /* by hash of code and position alone */
	char status[160];
	char name[MOST_NAME_BYTES], file[PATH_MAX]; /* room for texts, under the stack lock */
} python;

/* One frame, as far as the chain tells. */
struct frame {
	uintptr_t code;
	int position;	/* bytes into the instructions; -1: not begun */
	bool is_python; /* false: the interpreter's own helper frame, or one not begun */
	bool early;	/* before its first traceable instruction */
};

static inline uint64_t word_at(uintptr_t address)
{
	return *(const uint64_t *)address;
}

static inline int int_at(uintptr_t address)
{
	return *(const int *)address;
}

const char *gm_python_status(void)
{
	return python.status;
}

GM_HOT_CODE void gm_python_interpreter(uintptr_t *start, uintptr_t *bytes)
{
	*start = cpython.interpreter.start;
	*bytes = cpython.interpreter.end - cpython.interpreter.start;
}

/* ---- finding the interpreter ---- */

/* "3.8.18 (default, …" → 8 and 18. False for anything but Python 3. */
static bool read_version(const struct gm_object *object, unsigned *minor, unsigned *micro)
{
	const unsigned long *number = gm_object_symbol(object, "Py_Version", NULL); /* from 3.11 */
	const char *(*text)(void);
	unsigned major;

	if (number) {
		*minor = *number >> 16 & 0xff;
		*micro = *number >> 8 & 0xff;
		return *number >> 24 == 3;
	}
	text = gm_object_symbol(object, "Py_GetVersion", NULL);
	return text && sscanf(text(), "%u.%u.%u", &major, minor, micro) == 3 && major == 3;
}

/* Fills in the layout; NULL or the reason why there is none. */
static const char *find_layout(const struct gm_object *object, unsigned minor,
			       struct interpreter *found)
{
	const void *runtime = gm_object_symbol(object, "_PyRuntime", NULL);
	const struct gm_python_layout *layout = gm_python_layout(minor);

	found->runtime = (uintptr_t)runtime;

	if (minor < 8)
		return "frames are read from 3.8 on";
	if (minor >= 13)
		return runtime ? gm_python_published_layout(runtime, minor, &found->layout)
			       : "it does not publish its structures";
	if (!layout)
		return "its structures are not known";
	found->layout = *layout;
	return NULL;
}

/* Reads what an object that has PyGILState_GetThisThreadState says of itself. */
static enum readiness examine(const struct gm_object *object, struct interpreter *found,
			      char *status, size_t room)
{
	const char *reason = NULL;
	unsigned minor, micro;

	found->start = object->start;
	found->end = object->end;
	found->code_type = (uintptr_t)gm_object_symbol(object, "PyCode_Type", NULL);
	found->text_type = (uintptr_t)gm_object_symbol(object, "PyUnicode_Type", NULL);
	found->bytes_type = (uintptr_t)gm_object_symbol(object, "PyBytes_Type", NULL);
	found->finalizing = gm_object_symbol(object, "_Py_IsFinalizing", NULL);
	if (!found->finalizing)
		found->finalizing = gm_object_symbol(object, "Py_IsFinalizing", NULL);
	if (!read_version(object, &minor, &micro)) {
		snprintf(status, room,
			 "Python frames are not read: the interpreter's version "
			 "could not be told");
		return REFUSED;
	}
	found->micro = micro;
	if (!found->code_type || !found->text_type || !found->bytes_type)
		reason = "it does not export its types";
	else
		reason = find_layout(object, minor, found);
	if (reason) {
		snprintf(status, room, "Python frames of CPython 3.%u.%u are not read: %s", minor,
			 micro, reason);
		return REFUSED;
	}
	snprintf(status, room, "3.%u.%u", minor, micro);
	return UNCHECKED;
}

void gm_python_find(void)
{
	struct interpreter found = {0};
	enum readiness readiness = ABSENT;
	char status[sizeof(python.status)] = "";
	struct gm_object object;

	found.thread_state = gm_objects_symbol("PyGILState_GetThisThreadState", &object);
	if (found.thread_state == cpython.interpreter.thread_state &&
	    (!found.thread_state ||
	     __atomic_load_n(&cpython.readiness, __ATOMIC_ACQUIRE) != ABSENT))
		return;
	if (found.thread_state)
		readiness = examine(&object, &found, status, sizeof(status));
	if (!gm_intern_enter())
		return;
	set_readiness(ABSENT);
	gm_intern_forget_results(); /* they take the interpreter to be where it was */
	__atomic_store_n(&checked_collector, 0, __ATOMIC_RELAXED);
	cpython.interpreter = found;
	memcpy(python.status, status, sizeof(status));
	gm_modules_set_interpreter(found.start, found.end);
	set_readiness(readiness);
	gm_intern_leave();
}

/* Without the stack lock: in the child of a fork a thread that is not there may have it. */
void gm_python_unloaded(void)
{
	thread_state_fn *known = cpython.interpreter.thread_state;

	if (known && gm_objects_symbol("PyGILState_GetThisThreadState", NULL) != (void *)known)
		set_readiness(ABSENT);
}

/* ---- the chain ---- */

/* Reads a frame of 3.8 to 3.10 (a PyFrameObject) or later (a _PyInterpreterFrame). */
static inline struct frame read_frame(const struct interpreter *in, uintptr_t at)
{
	const struct gm_python_layout *l = &in->layout;
	struct frame frame = {0};
	unsigned owner;

	frame.code = word_at(at + l->frame_code) & ~7ul; /* 3.14: a reference with tag bits */
	if (!l->code_code) {
		int last = int_at(at + l->frame_position);

		frame.position = last < 0 ? -1 : l->minor == 10 ? last * 2 : last;
		frame.is_python = frame.code && word_at(frame.code + GM_PY_TYPE) == in->code_type;
		return frame;
	}
	owner = *(const uint8_t *)(at + l->frame_owner);
	if (owner >= OWNED_BY_INTERPRETER || !frame.code ||
	    word_at(frame.code + GM_PY_TYPE) != in->code_type)
		return frame;
	frame.position = (int)(word_at(at + l->frame_position) - (frame.code + l->code_code));
	/* one that has not reached its first traceable instruction is not in tracebacks either */
	frame.early = frame.position < int_at(frame.code + l->code_firsttraceable) * 2;
	frame.is_python = owner == OWNED_BY_GENERATOR || !frame.early;
	return frame;
}

static uintptr_t first_frame(const struct interpreter *in, uintptr_t state)
{
	uintptr_t at = word_at(state + in->layout.tstate_frame);

	return at && in->layout.has_cframe ? word_at(at + in->layout.cframe_frame) : at;
}

/* ---- the check made before the first direct read ---- */

static bool safe_word(uintptr_t address, uint64_t *word)
{
	return !(address & 7) && address && gm_safe_read(word, address, sizeof(*word));
}

/* Of the type, or of a class derived from it: names may be the program's own kind of text. */
static bool has_type(uintptr_t object, uintptr_t type)
{
	uint64_t found;
	bool known = safe_word(object + GM_PY_TYPE, &found);

	for (unsigned i = 0; known && found != type && i < MOST_BASES; i++)
		known = safe_word(found + GM_PY_TYPE_BASE, &found);
	return known && found == type;
}

static bool member_has_type(uintptr_t object, unsigned offset, uintptr_t type)
{
	uint64_t member;

	return safe_word(object + offset, &member) && has_type(member, type);
}

static bool code_checks(const struct interpreter *in, uintptr_t code)
{
	const struct gm_python_layout *l = &in->layout;
	char instructions[256];

	return has_type(code, in->code_type) &&
	       member_has_type(code, l->code_name, in->text_type) &&
	       member_has_type(code, l->code_filename, in->text_type) &&
	       member_has_type(code, l->code_lines, in->bytes_type) &&
	       (!l->code_qualname || member_has_type(code, l->code_qualname, in->text_type)) &&
	       gm_safe_read(instructions, code, l->code_code ? l->code_code + 2u : 64u);
}

/*
 * True if the chain of the thread state can be followed with this layout to its end, and `*frames`
 * Python frames were on it. A frame is known to be no Python frame only by its owner, so anything
 * else with a code that is none fails; None stands for the code in 3.13's helper frames.
 */
static bool chain_checks(const struct interpreter *in, uintptr_t state, unsigned *frames)
{
	const struct gm_python_layout *l = &in->layout;
	uint64_t at, code;
	uint8_t owner = 0;

	*frames = 0;
	if (!safe_word(state + l->tstate_frame, &at))
		return false;
	if (at && l->has_cframe && !safe_word(at + l->cframe_frame, &at))
		return false;
	for (unsigned steps = 0; at && steps < 200; steps++) {
		if (!safe_word(at + l->frame_code, &code))
			return false;
		if (l->frame_owner && !gm_safe_read(&owner, at + l->frame_owner, 1))
			return false;
		if (owner > 4)
			return false;
		if (owner < OWNED_BY_INTERPRETER) {
			if (!code_checks(in, code & ~7ull))
				return false;
			++*frames;
		}
		if (!safe_word(at + l->frame_back, &at))
			return false;
	}
	return true;
}

/* Decides on first sight of a thread with frames whether they are to be read. */
static bool check_interpreter(uintptr_t state)
{
	struct interpreter *in = &cpython.interpreter;
	unsigned frames;
	bool checks = chain_checks(in, state, &frames);

	if (checks && !frames)
		return false; /* nothing learnt yet */
	if (!gm_intern_enter())
		return false;
	if (cpython.readiness == UNCHECKED && !checks)
		snprintf(python.status, sizeof(python.status),
			 "Python frames of CPython 3.%u.%u are not read: its structures are not "
			 "as expected",
			 in->layout.minor, in->micro);
	if (cpython.readiness == UNCHECKED)
		set_readiness(checks ? READY : REFUSED);
	gm_intern_leave();
	return checks;
}

/* ---- frames to numbers ---- */

static uint32_t intern_text(uintptr_t text, char *room, size_t bytes)
{
	const struct interpreter *in = &cpython.interpreter;

	if (!text ||
	    (word_at(text + GM_PY_TYPE) != in->text_type && !has_type(text, in->text_type)))
		return GM_NONE;
	bytes = gm_python_text(&in->layout, (const void *)text, room, bytes);
	return gm_intern_string(room, bytes);
}

/* Reads and records what a frame says. Stack lock held. */
static uint32_t record_frame(const struct frame *frame)
{
	const struct gm_python_layout *l = &cpython.interpreter.layout;
	uintptr_t lines = word_at(frame->code + l->code_lines);
	unsigned name = l->code_qualname ? l->code_qualname : l->code_name;
	struct gm_frame_record record;

	memset(&record, 0, sizeof(record));
	record.kind = GM_FRAME_PYTHON;
	record.python.function_string =
		intern_text(word_at(frame->code + name), python.name, sizeof(python.name));
	record.python.file_string = intern_text(word_at(frame->code + l->code_filename),
						python.file, sizeof(python.file));
	record.python.line = gm_python_line(
		l->lines, (const uint8_t *)(lines + GM_PY_BYTES_DATA), word_at(lines + GM_PY_SIZE),
		int_at(frame->code + l->code_firstlineno), frame->position);
	return gm_intern_frame(&record);
}

/* The words of a frame that tell one place in one code object from another. */
struct place {
	uint64_t code, position;
};

static inline struct place place_of(const struct gm_python_layout *l, uintptr_t at)
{
	return (struct place){word_at(at + l->frame_code),
			      l->code_code ? word_at(at + l->frame_position)
					   : (uint32_t)int_at(at + l->frame_position)};
}

static inline bool is_known(const struct known_frame *known, struct place place)
{
	return known->code == place.code && known->position == place.position &&
	       gm_python_identity_is(&known->identity, &cpython.interpreter.layout,
				     place.code & ~7ul);
}

static const struct known_frame *find_known(struct place place, uint64_t hash)
{
	struct gm_map_cursor cursor = gm_map_find(&python.frames, hash);
	uint64_t value;

	while ((value = gm_map_next(&cursor))) {
		const struct known_frame *known = (const void *)(uintptr_t)value;

		if (is_known(known, place))
			return known;
	}
	return NULL;
}

/* Records a frame not seen before; `*known` stays NULL where it cannot be remembered. */
static uint32_t number_new(const struct frame *frame, struct place place,
			   const struct gm_python_identity *id, uint64_t hash,
			   const struct known_frame **known)
{
	struct gm_arena *arena = gm_intern_arena();
	struct known_frame *added;
	uint32_t number;

	if (!gm_file || !gm_intern_enter())
		return GM_NONE;
	*known = find_known(place, hash);
	number = *known ? (*known)->frame : record_frame(frame);
	if (!*known && number != GM_NONE && gm_intern_may_cache() &&
	    (added = gm_arena_alloc(arena, sizeof(*added)))) {
		*added =
			(struct known_frame){place.code, place.position, number, frame->early, *id};
		if (gm_map_add(&python.frames, arena, hash, (uintptr_t)added))
			*known = added;
	}
	gm_intern_leave();
	return number;
}

static inline const struct known_frame **recent_at(struct place place)
{
	uint64_t mixed = (place.position ^ place.code << 20) * 0x9e3779b97f4a7c15ull;

	return &python.recent[mixed >> 53];
}

/* The number of a frame, GM_NONE if it cannot be recorded. */
static __attribute__((noinline)) uint32_t number_frame(const struct frame *frame,
						       struct place place)
{
	const struct known_frame *known;
	struct gm_python_identity id;
	uint32_t number;
	uint64_t hash;

	gm_python_identify(&cpython.interpreter.layout, frame->code, &id);
	hash = gm_hash(&id, sizeof(id), gm_hash_numbers(place.code, place.position, 4));
	known = find_known(place, hash);
	number = known ? known->frame : number_new(frame, place, &id, hash, &known);
	if (known)
		__atomic_store_n(recent_at(place), known, __ATOMIC_RELEASE);
	return number;
}

/*
 * The number of a frame that was met lately, GM_NONE if it was not. That the frame is a Python
 * frame (see read_frame) follows from its owner, from its code being one, and from what is known of
 * that code at that position.
 */
static inline uint32_t number_recent(const struct interpreter *in, uintptr_t at, struct place place)
{
	const struct known_frame *known = __atomic_load_n(recent_at(place), __ATOMIC_ACQUIRE);
	const struct gm_python_layout *l = &in->layout;

	if (!known || known->early || known->code != place.code ||
	    known->position != place.position)
		return GM_NONE;
	if (l->code_code && *(const uint8_t *)(at + l->frame_owner) >= OWNED_BY_INTERPRETER)
		return GM_NONE;
	if (word_at((place.code & ~7ul) + GM_PY_TYPE) != in->code_type ||
	    !gm_python_identity_is(&known->identity, l, place.code & ~7ul))
		return GM_NONE;
	return known->frame;
}

/* The state of a thread whose frames were not read yet; 0 if they are not to be read. */
static __attribute__((noinline, cold)) uintptr_t checked_state(uintptr_t state, uint16_t *flags)
{
	if (__atomic_load_n(&cpython.readiness, __ATOMIC_ACQUIRE) == UNCHECKED &&
	    check_interpreter(state))
		return state;
	if (__atomic_load_n(&cpython.readiness, __ATOMIC_ACQUIRE) == REFUSED)
		*flags |= GM_STACK_PYTHON_UNREADABLE;
	return 0;
}

/*
 * While the interpreter ends, other threads' states are freed under them: only the thread that ends
 * it, usually the first, is still sure of its own.
 */
static inline bool is_sure_of_state(const struct interpreter *in)
{
	return gm_thread_pointer() == gm_first_thread || !in->finalizing || !in->finalizing() ||
	       syscall(SYS_gettid) == getpid();
}

/* The thread's state if its frames are to be read. */
static inline uintptr_t readable_state(const struct interpreter *in, uint16_t *flags)
{
	uint32_t readiness = __atomic_load_n(&cpython.readiness, __ATOMIC_ACQUIRE);
	uintptr_t state;

	if (readiness == ABSENT || !is_sure_of_state(in))
		return 0;
	state = (uintptr_t)in->thread_state();
	return !state || readiness == READY ? state : checked_state(state, flags);
}

/* The number of the Python frame `at`, GM_NONE if it cannot be recorded; false for other frames. */
static inline bool read_number(const struct interpreter *in, uintptr_t at, uint32_t *number)
{
	struct place place = place_of(&in->layout, at);
	struct frame frame;

	*number = number_recent(in, at, place);
	if (*number != GM_NONE)
		return true;
	frame = read_frame(in, at);
	if (frame.is_python)
		*number = number_frame(&frame, place);
	return frame.is_python;
}

unsigned gm_python_walk(uint32_t *frames, unsigned max, uint16_t *flags)
{
	const struct interpreter *in = &cpython.interpreter;
	uintptr_t state = readable_state(in, flags), at;
	unsigned count = 0, skipped = 0;
	uint32_t number;

	if (!state)
		return 0;
	for (at = first_frame(in, state); at && skipped < MOST_SKIPPED;
	     at = word_at(at + in->layout.frame_back)) {
		if (count == max ? !read_frame(in, at).is_python : !read_number(in, at, &number)) {
			skipped++;
			continue;
		}
		if (count < max && number == GM_NONE)
			gm_intern_count_lost();
		if (count == max || number == GM_NONE) {
			*flags |= GM_STACK_PYTHON_TRUNCATED;
			break;
		}
		frames[count++] = number;
	}
	return count;
}

/* ---- the same frames again ---- */

bool gm_python_has_places(void)
{
	return cpython.interpreter.layout.code_version != 0;
}

bool gm_python_places(struct gm_python_place *place, const uint32_t *frames, unsigned count)
{
	const struct interpreter *in = &cpython.interpreter;
	const struct gm_python_layout *l = &in->layout;
	uint16_t flags = 0;
	uintptr_t state = readable_state(in, &flags), at;
	unsigned found = 0, skipped = 0;
	uint32_t number;

	if (!state || !l->code_version)
		return false;
	for (at = first_frame(in, state); at; at = word_at(at + l->frame_back)) {
		struct place here = place_of(l, at);

		if (!read_number(in, at, &number)) {
			if (++skipped == MOST_SKIPPED)
				return false;
			continue;
		}
		if (found == count || number != frames[found] || read_frame(in, at).early)
			return false;
		place[found] = (struct gm_python_place){
			here.code, here.position, gm_py_u32((here.code & ~7ul) + l->code_version),
			gm_py_u32((here.code & ~7ul) + l->code_firstlineno)};
		if (!place[found++].version)
			return false;
	}
	return found == count;
}

/* A frame of the interpreter's own, in versions that number their code. */
static inline bool is_helper(const struct gm_python_layout *l, uintptr_t at)
{
	return l->code_version && *(const uint8_t *)(at + l->frame_owner) >= OWNED_BY_INTERPRETER;
}

/* Of a frame that has the place's code: whether it is that code, and the place in it. */
static inline bool is_place(const struct gm_python_layout *l, uintptr_t at,
			    const struct gm_python_place *place)
{
	uintptr_t code = place->code & ~7ul;

	return word_at(at + l->frame_position) == place->position &&
	       gm_py_u32(code + l->code_version) == place->version &&
	       gm_py_u32(code + l->code_firstlineno) == place->line;
}

/*
 * A frame that is not the interpreter's own runs a code object, and holds it: what lies at the
 * address of its code is one, and its number says which. At a place where a frame was a Python
 * frame before, it is one again. The interpreter's own have None for their code, or (3.12) code
 * with a number that no other has and that no place is of: what has the code of a place is a Python
 * frame.
 */
GM_HOT_CODE bool gm_python_same(const struct gm_python_place *place, unsigned count)
{
	const struct interpreter *in = &cpython.interpreter;
	const struct gm_python_layout *l = &in->layout;
	const struct gm_python_place *end = count ? place + count : place;
	uint16_t flags = 0;
	uintptr_t state = readable_state(in, &flags), at;
	unsigned skipped = 0;

	if (!state)
		return !count && !flags;
	for (at = first_frame(in, state); at; at = word_at(at + l->frame_back)) {
		if (place != end && word_at(at + l->frame_code) == place->code) {
			if (!is_place(l, at, place))
				return false;
			place++;
		} else if (!is_helper(l, at) || ++skipped == MOST_SKIPPED) {
			return false;
		}
	}
	return place == end;
}

uint64_t gm_python_hint(void)
{
	const struct interpreter *in = &cpython.interpreter;
	uint16_t flags = 0;
	uintptr_t state = readable_state(in, &flags), at;
	unsigned left = HINT_FRAMES;
	uint64_t hash = 0;

	if (!state)
		return 0;
	for (at = first_frame(in, state); at && left--; at = word_at(at + in->layout.frame_back))
		hash = gm_hash_numbers(hash, place_of(&in->layout, at).position, left);
	return hash;
}

/* ---- the collector ---- */

/*
 * True if the state of an interpreter's collector is as expected: from 3.8 to 3.13 it has a
 * pointer into itself. 3.13 and later publish its offset.
 */
static bool collector_checks(const struct interpreter *in, uintptr_t collecting)
{
	uint64_t generation0;
	uint32_t value;

	if (!gm_safe_read(&value, collecting, sizeof(value)) || value > 1)
		return false;
	return in->layout.minor > 13 ||
	       (safe_word(collecting - GM_PY_GC_GENERATION0, &generation0) &&
		generation0 == collecting - GM_PY_GC_GENERATIONS);
}

static __attribute__((noinline, cold)) bool check_collector(const struct interpreter *in,
							    uintptr_t interp)
{
	bool checks = interp && collector_checks(in, interp + in->layout.gc_collecting);

	__atomic_store_n(&checked_collector, interp | checks, __ATOMIC_RELAXED);
	return checks;
}

/* The address of the state of the thread's collector, 0 if it is not to be read. */
static inline uintptr_t collector_of_thread(void)
{
	const struct interpreter *in = &cpython.interpreter;
	const struct gm_python_layout *l = &in->layout;
	uintptr_t state, interp, checked;

	if (__atomic_load_n(&cpython.readiness, __ATOMIC_ACQUIRE) != READY || !l->gc_collecting ||
	    !is_sure_of_state(in))
		return 0;
	state = (uintptr_t)in->thread_state();
	if (!state)
		return 0;
	interp = l->minor == 8 ? in->runtime : word_at(state + l->tstate_interp);
	checked = __atomic_load_n(&checked_collector, __ATOMIC_RELAXED);
	if ((checked & ~1ul) == interp ? !(checked & 1) : !check_collector(in, interp))
		return 0;
	return interp + l->gc_collecting;
}

bool gm_python_collecting(void)
{
	uintptr_t collecting = collector_of_thread();

	return collecting && int_at(collecting) == 1;
}

bool gm_python_collector_off(void)
{
	uintptr_t collecting = collector_of_thread();

	return collecting && cpython.interpreter.layout.minor <= 13 &&
	       !int_at(collecting - GM_PY_GC_ENABLED);
}

bool gm_python_ending(void)
{
	const struct interpreter *in = &cpython.interpreter;

	return __atomic_load_n(&cpython.readiness, __ATOMIC_ACQUIRE) == READY && in->finalizing &&
	       in->finalizing();
}

void gm_python_reset(void)
{
	memset(&python.frames, 0, sizeof(python.frames));
	memset(python.recent, 0, sizeof(python.recent));
}
