/*
 * Advice about settings of PyTorch's allocator: what replaying the run's own history says of them,
 * and without a history how to record one.
 */
#ifndef GM_REPORT_JUDGE_SETTING_ADVICE_H
#define GM_REPORT_JUDGE_SETTING_ADVICE_H

#include "report/doc/doc.h"

/*
 * Adds sentences to the advice of something on a device (gm_advise): a setting is recommended only
 * if the run's history replayed under it reserves less or, with `refused`, has no request refused.
 * False, with nothing added, if there is no history that can be replayed. The history is replayed
 * once for a document.
 */
bool gm_advise_settings(struct gm_doc *doc, const char ***advice, unsigned *count, int device,
			bool refused);

/* Advises how to find out whether a setting that was recommended without a history helps. */
void gm_advise_history(struct gm_doc *doc, const char ***advice, unsigned *count);

#endif
