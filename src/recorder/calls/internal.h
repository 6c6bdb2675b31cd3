/*
 * The handlers that roles.c puts into its table, but those of role_alloc.h. Private to roles.c and
 * role_*.c.
 *
 * A handler is called inside the tracker (thread.h), before or after the real call. gm_call_enter
 * and gm_call_leave keep errno for it.
 */
#ifndef GM_RECORDER_INTERNAL_H
#define GM_RECORDER_INTERNAL_H

struct gm_call;
struct gm_row;

void gm_end_register(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_export(struct gm_call *call, const struct gm_row *row, int result);

void gm_end_vmm_reserve(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_vmm_address_free(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_vmm_map(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_vmm_unmap(struct gm_call *call, const struct gm_row *row);
void gm_end_vmm_unmap(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_vmm_map_array(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_vmm_retain(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_vmm_release(struct gm_call *call, const struct gm_row *row);
void gm_end_vmm_release(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_multicast_bind(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_multicast_unbind(struct gm_call *call, const struct gm_row *row, int result);

void gm_begin_context(struct gm_call *call, const struct gm_row *row);
void gm_end_context(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_release_context(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_destroy_context(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_green(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_destroy_green(struct gm_call *call, const struct gm_row *row);
void gm_end_destroy_green(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_reset(struct gm_call *call, const struct gm_row *row);
void gm_end_reset(struct gm_call *call, const struct gm_row *row, int result);

void gm_end_pool_create(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_pool_import(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_pool_destroy(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_pool_trim(struct gm_call *call, const struct gm_row *row);
void gm_end_pool_trim(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_pool_set(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_sync(struct gm_call *call, const struct gm_row *row, int result);

void gm_end_capture_begin(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_capture_end(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_graph_node(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_graph_instantiate(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_graph_upload(struct gm_call *call, const struct gm_row *row, int result);
void gm_end_graph_launch(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_graph_destroy(struct gm_call *call, const struct gm_row *row);
void gm_end_graph_exec_destroy(struct gm_call *call, const struct gm_row *row, int result);
void gm_begin_graph_trim(struct gm_call *call, const struct gm_row *row);
void gm_end_graph_trim(struct gm_call *call, const struct gm_row *row, int result);

#endif
