/*
 * Captures of streams into graphs, and the memory that PyTorch takes for them: its private pools.
 *
 * PyTorch gives each capture a private pool, or one that captures share, and takes segments for it
 * by cudaMalloc (or by mappings, with expandable segments) while the stream is captured, on the
 * thread that captures or on one of autograd's. A capture forbids cudaMalloc in the threads that it
 * is judged by, so PyTorch allows itself what it forbids for the time of the call
 * (cudaThreadExchangeStreamCaptureMode). So a segment is a private pool's if it is taken during a
 * capture by its own thread, by a thread that has allowed itself that, or by any thread while the
 * capture's mode is global. Captures share a pool if one hands out a block in another's segment.
 */
#ifndef GM_TRACK_CAPTURE_POOLS_H
#define GM_TRACK_CAPTURE_POOLS_H

#include "track/event.h"

/* A capture of the event's stream began, by its stack, with the device current. */
void gm_track_capture_begin(const struct gm_event *event, bool global);

/* It ended. `graph`: what it became; 0: it is invalid. */
void gm_track_capture_end(uint64_t stream, uint64_t graph);

void gm_track_capture_graph_destroyed(uint64_t graph);

/* ---- for track/, under the lock ---- */

void gm_capture_pools_reset(void);

/* PyTorch took driver memory, a segment or what lies behind one: sets `capture` of its record. */
void gm_capture_take(struct gm_alloc_record *record);

/* Memory whose record has `capture` is given back. */
void gm_capture_give(const struct gm_alloc_record *record);

/* PyTorch handed out a block while there are captures (gm_track.captures). */
void gm_capture_block(uint64_t address);

/* Returns the index of the capture that a graph came of, GM_NONE. */
uint32_t gm_capture_of_graph(uint64_t graph);

/* An executable of a capture's graph was made (1) or destroyed (-1), and took so many bytes. */
void gm_capture_executable(uint32_t capture, int object, uint64_t nodes, int64_t bytes);

#endif
