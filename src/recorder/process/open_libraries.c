/*
 * The libraries that the recorder uses and does not link (open_libraries.h).
 */
#include "recorder/process/open_libraries.h"
#include "recorder/process/describe.h"
#include "recorder/query/nvml.h"
#include "recorder/query/query.h"
#include "recorder/state/fork_page.h"
#include "recorder/state/log.h"
#include "recorder/state/settings.h"
#include "stack/stack.h"
#include "store/descriptor.h"

static void log_line(const char *line)
{
	gm_log(GM_LOG_WARN, "%s", line);
}

void gm_open_libraries(void)
{
	struct gm_low_numbers numbers;

	gm_low_numbers_take(&numbers);
	gm_query_init();
	gm_nvml_open();
	gm_stack_ask_unwinder((enum gm_stack_unwinder)gm_settings.unwinder, log_line);
	gm_stack_init((enum gm_stack_mode)gm_settings.stacks, gm_settings.depth);
	gm_low_numbers_give_back(&numbers);
	gm_stack_cache(!gm_settings.no_stack_cache);
	if (gm_owns_file())
		gm_describe_stacks();
}
