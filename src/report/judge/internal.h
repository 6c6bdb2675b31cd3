/*
 * The judges, and what they share about out-of-memory events.
 */
#ifndef GM_REPORT_JUDGE_INTERNAL_H
#define GM_REPORT_JUDGE_INTERNAL_H

#include "report/judge/judged_windows.h"

/*
 * Growth of several sites together, in the windows in which they were judged alone: see callers.c.
 * After the sites have their own verdicts.
 */
void gm_judge_callers(struct gm_doc *doc, const struct gm_judged_windows *judged, unsigned warmup);

/*
 * True if the history shows one buffer of these sites that lives while other memory comes and goes,
 * and whose every free is followed by the allocation of its successor: see buffers.c.
 */
bool gm_replaced_at_once(struct gm_doc *doc, const uint32_t *sites, unsigned count);

/*
 * True if the history has all frees of the site, and from the first of them on the site never held
 * more than it did then, though it went on to allocate: a store that was filled, late perhaps.
 */
bool gm_replaces_since_full(struct gm_doc *doc, const struct gm_site *site);

/*
 * True if most of what the site allocated was freed before the end of the work: its memory is no
 * pool's, which keeps what it has. XLA's and CuPy's allocators take each array by itself if they
 * are told to.
 */
bool gm_gives_back(const struct gm_site *site);

/* Drops findings that another one contradicts: see contradictions.c. After all judges. */
void gm_remove_contradictions(struct gm_doc *doc);

/* The judges; each is a row of the table in judge.c. */
void gm_judge_leaks(struct gm_doc *doc);
void gm_judge_ooms(struct gm_doc *doc);
void gm_judge_holes(struct gm_doc *doc);
void gm_judge_pressure(struct gm_doc *doc);
void gm_judge_usage(struct gm_doc *doc);
void gm_judge_pools(struct gm_doc *doc);
void gm_judge_devices(struct gm_doc *doc);
void gm_judge_costs(struct gm_doc *doc);
void gm_judge_coverage(struct gm_doc *doc);
void gm_judge_errors(struct gm_doc *doc);
void gm_judge_nccl(struct gm_doc *doc);
void gm_judge_garbage(struct gm_doc *doc);

/*
 * Fills what follows from the records: totals by category, the library that asked, other processes,
 * what changed since the last mark. Leaves out of `top` what PyTorch divides into blocks, which are
 * there themselves.
 */
void gm_oom_facts(struct gm_doc *doc, struct gm_oom *oom);

/* The driver's free bytes, or an estimate where it could not be asked. */
uint64_t gm_oom_free_bytes(const struct gm_doc *doc, const struct gm_oom_record *record);

/* The limit that the Multi-Process Service was given for a device; GM_NO_BYTES: none. */
#define GM_MPS_LIMIT "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
uint64_t gm_oom_mps_limit(struct gm_doc *doc, int device);

/* True for the functions of the driver that make a context; `api` may be NULL. */
bool gm_makes_context(const char *api);

/* Returns the bytes that `whole` holds beyond `part`; 0 if one of them is not known. */
uint64_t gm_oom_idle(uint64_t whole, uint64_t part);

/*
 * Returns the bytes that PyTorch keeps idle and can hand out to any request: private pools' are
 * left out.
 */
uint64_t gm_oom_common_idle(const struct gm_oom_record *record);

/* The growing site that held most at the event, and what it held, if that was a fair part of all;
 * GM_NO_SITE. */
uint32_t gm_oom_leak(const struct gm_doc *doc, const struct gm_oom *oom, uint64_t *bytes);

/* "2.00 GiB (pid 4711 with 2.00 GiB, ...)" */
const char *gm_oom_others(struct gm_doc *doc, const struct gm_oom *oom);

/* Gives the event its advice, by verdict, phase and figures. */
void gm_oom_advise(struct gm_doc *doc, struct gm_oom *oom);

#endif
