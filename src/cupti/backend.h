/*
 * The CUPTI backend: the driver's calls told by NVIDIA's callback API instead of by our wrappers,
 * which then only forward. Whoever tells of a call, it goes the same way from there: gm_call_enter
 * and gm_call_end (interpose/preload.h), roles, tracker. gm_settings.backend says who does; it goes
 * back to GM_BACKEND_PRELOAD when CUPTI cannot be used.
 */
#ifndef GM_CUPTI_BACKEND_H
#define GM_CUPTI_BACKEND_H

/*
 * Finds libcupti, becomes its subscriber and has the table's functions told; says in a sentence
 * what came of it. Called once, when libcuda was found and before any of its calls was made,
 * outside of any allocator's lock: libraries are loaded here. No-op unless gm_settings.backend is
 * GM_BACKEND_CUPTI.
 */
void gm_cupti_start(void);

#endif
