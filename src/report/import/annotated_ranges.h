/*
 * The annotations of a snapshot (torch.profiler.record_function, and what PyTorch itself records in
 * that way, like "Optimizer.step#Adam.step") as named ranges of the image.
 */
#ifndef GM_REPORT_IMPORT_ANNOTATED_RANGES_H
#define GM_REPORT_IMPORT_ANNOTATED_RANGES_H

#include "report/import/snapshot.h"

/*
 * Adds a range for each name, measured by the image's events, which are complete and in order of
 * time: the bytes that PyTorch's blocks of the annotation's device take. Sets `range` of the live
 * blocks that were allocated in one. A snapshot does not say which thread an annotation is of: they
 * are nested by time. Those of devices where `replayed` is false are left out.
 */
void gm_import_annotations(const struct gm_snapshot *snapshot, const bool *replayed,
			   uint64_t base_us);

#endif
