/*
 * Names from data: of marks, of a module (arguments: the plug-in, and a name for the process), and
 * of functions, in the plug-in, by their symbols.
 */
#ifdef PLUGIN
#include "cuda_calls.h"

#define NAMED(function, symbol)                                                                    \
	__attribute__((noinline, visibility("default"))) int function(void) __asm__("\"" symbol    \
										    "\"");         \
	__attribute__((noinline, visibility("default"))) int function(void)                        \
	{                                                                                          \
		void *memory;                                                                      \
		int error = cudaMalloc(&memory, 1 << 20);                                          \
                                                                                                   \
		__asm__ volatile("" ::: "memory");                                                 \
		return error;                                                                      \
	}

NAMED(formula, "=HYPERLINK(1)")
NAMED(command, "::error file=app.py::forged")
NAMED(legacy, "##vso[task.complete]")
NAMED(escape, "red\033[31m")
NAMED(direction, "a\342\200\256b")
NAMED(c1, "c\302\233m")
#ifdef LONG_NAME /* each part has two of the part before: some 2^24 names in its text */
NAMED(explosive, LONG_NAME)
#else
static int explosive(void)
{
	return 0;
}
#endif

int plugin_run(void);
__attribute__((visibility("default"))) int plugin_run(void)
{
	return formula() || command() || legacy() || escape() || direction() || c1() || explosive();
}
#else
#include "gpumemtrace.h"

#include <dlfcn.h>
#include <stddef.h>

static const char *const names[] = {
	"step\n::error file=app.py,line=1::forged", "step\r::warning::forged",
	"step\nNext: forged", "::error::forged", " \t::error::forged", "##[error]forged",
	"\033]0;title\007", "\302\205next line", "\342\200\250separator", "\342\200\217right",
	"\342\201\247isolate", "\357\273\277mark", "=1+1", "@SUM(1)", "-1", "+1", "\177",
	"tab\tand backslash \\n", "plain ä € 漢 🚀",
};

int main(int argc, char **argv)
{
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*run)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_run") : NULL;
	size_t i;

	if (!run)
		return 2;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (run())
			return 3;
		gpumemtrace_mark(names[i]);
	}
	return 0;
}
#endif
