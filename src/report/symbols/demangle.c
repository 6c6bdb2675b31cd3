/*
 * Names of C++ and of Rust, both manglings, by libiberty where the build found it. Without it C++
 * names are those of the C++ runtime's own demangler, opened when the first mangled name is met; a
 * legacy Rust name loses its hash then, and a v0 name stays as it is.
 */
#include "report/symbols/demangle.h"
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#ifdef GM_HAVE_LIBIBERTY
#include <libiberty/demangle.h>
#endif

#define MOST_TEXT	65536 /* bytes of a name */
#define MOST_S		1
#define MOST_TIMEOUTS	3 /* later names stay as they are */
#define MOST_REFERENCES 24

#define HASH "::h0123456789abcdef" /* the end of a legacy Rust name, for its length */

/* "core::f::h0123456789abcdef", as a C++ demangler leaves a legacy Rust name. */
static bool has_rust_hash(const char *text)
{
	size_t length = strlen(text), hash = strlen(HASH);

	return length > hash && strncmp(text + length - hash, "::h", 3) == 0 &&
	       strspn(text + length - 16, "0123456789abcdef") == 16;
}

#ifdef GM_HAVE_LIBIBERTY

/*
 * A mangled name of some hundred bytes can stand for gigabytes of text, and take minutes without
 * any. libiberty's demanglers hand out the text in pieces and keep nothing but what is on the
 * stack, so that they can be left at any point: after MOST_TEXT bytes, and after MOST_S of
 * processor time.
 */
static struct {
	sigjmp_buf out;
	char text[MOST_TEXT + 1];
	size_t used;
	unsigned timeouts;
} bounded;

static void take_piece(const char *piece, size_t bytes, void *unused)
{
	(void)unused;
	if (bytes > MOST_TEXT - bounded.used)
		siglongjmp(bounded.out, 1);
	memcpy(bounded.text + bounded.used, piece, bytes);
	bounded.used += bytes;
}

static void out_of_time(int number)
{
	(void)number;
	bounded.timeouts++;
	siglongjmp(bounded.out, 1);
}

static void set_timer(time_t seconds)
{
	struct itimerval timer = {.it_value = {.tv_sec = seconds}};

	setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

typedef int callback_demangler(const char *name, int options, demangle_callbackref piece,
			       void *data);

/* The text in storage that the next call uses again; NULL if there is none, or it is too long. */
static char *demangle_bounded(callback_demangler *demangle, const char *name, int options)
{
	struct sigaction action = {.sa_handler = out_of_time}, before;
	volatile int fine = 0;

	if (bounded.timeouts >= MOST_TIMEOUTS)
		return NULL;
	bounded.used = 0;
	sigaction(SIGVTALRM, &action, &before);
	if (sigsetjmp(bounded.out, 1) == 0) {
		set_timer(MOST_S);
		fine = demangle(name, options, take_piece, NULL);
	}
	set_timer(0);
	sigaction(SIGVTALRM, &before, NULL);
	bounded.text[bounded.used] = '\0';
	return fine ? bounded.text : NULL;
}

static char *demangle_rust(const char *name)
{
	return demangle_bounded(rust_demangle_callback, name, DMGL_PARAMS);
}

static char *demangle_cxx(const char *name)
{
	return demangle_bounded(cplus_demangle_v3_callback, name, DMGL_PARAMS | DMGL_ANSI);
}

#else

typedef char *demangler(const char *name, char *buffer, size_t *bytes, int *status);

static demangler *find_demangler(void)
{
	static demangler *found;
	static bool looked;
	void *library;

	if (looked)
		return found;
	looked = true;
	library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		library = dlopen("libc++abi.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library)
		found = (demangler *)dlsym(library, "__cxa_demangle");
	return found;
}

/*
 * Each reference to an earlier part can double the text, and this demangler cannot be left: a name
 * with many references stays as it is.
 */
static bool may_explode(const char *name)
{
	unsigned references = 0;

	for (; (name = strpbrk(name, "ST")) != NULL; name++)
		references += name[1] == '_' || (name[1] >= '0' && name[1] <= '9') ||
			      (name[1] >= 'A' && name[1] <= 'Z');
	return references > MOST_REFERENCES;
}

static char *demangle_rust(const char *name)
{
	(void)name;
	return NULL;
}

/* In storage that the next call frees. */
static char *demangle_cxx(const char *name)
{
	static char *last;
	demangler *demangle = find_demangler();
	int status = -1;

	free(last);
	last = demangle && !may_explode(name) ? demangle(name, NULL, NULL, &status) : NULL;
	return status == 0 ? last : NULL;
}

#endif

const char *gm_demangle(struct gm_zone *zone, const char *name)
{
	char *text;

	if (!name || (strncmp(name, "_Z", 2) != 0 && strncmp(name, "_R", 2) != 0))
		return name;
	text = demangle_rust(name);
	if (!text && name[1] == 'Z') {
		text = demangle_cxx(name);
		if (text && has_rust_hash(text))
			text[strlen(text) - strlen(HASH)] = '\0';
	}
	return text ? gm_zone_strdup(zone, text) : name;
}
