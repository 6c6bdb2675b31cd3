/* The report's verdict on a trace (trace.h). */
#ifndef TESTS_GROWTH_JUDGED_H
#define TESTS_GROWTH_JUDGED_H

#include "report/doc/doc.h"
#include "trace.h"

/* The verdict of a site were the run to end now; trace_why has the reason given for the last one.
 */
enum gm_verdict trace_verdict(unsigned site);
const char *trace_why(void);

#endif
