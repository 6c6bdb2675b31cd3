/*
 * CUPTI's callback ids of the table's functions, by the headers of this build.
 */
#ifndef GM_CUPTI_IDS_H
#define GM_CUPTI_IDS_H

#include <stdint.h>

/*
 * Number of rows of the table (enum gm_function), and CUPTI's callback id of each by the headers,
 * 0: none.
 */
extern const unsigned gm_cupti_functions;
extern const uint16_t gm_cupti_ids[];

#endif
