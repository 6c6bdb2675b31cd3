/*
 * From CUPTI's parameter structures to struct gm_call, generated from the table.
 */
#ifndef GM_CUPTI_DECODE_H
#define GM_CUPTI_DECODE_H

struct gm_call;

/* Fills `call` from the structure that CUPTI passes for a driver row. */
void gm_cupti_decode(unsigned function, const void *params, struct gm_call *call);

#endif
