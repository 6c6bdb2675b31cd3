/*
 * CUPTI's callback id of each driver row, by the headers of this build (0 where they have none).
 * cbid_names.h is generated at configuration: for each enumerator of cupti_driver_cbid.h a line
 * "#define GM_CBID_NAME , CUPTI_DRIVER_TRACE_CBID_NAME".
 */
#include "cupti/ids.h"
#include "api/api.h"
#include "cbid_names.h"

#include <cupti_driver_cbid.h>

/*
 * The second argument. GM_CBID_NAME, where it is defined, brings a comma and the id in front of the
 * 0.
 */
#define SECOND_(first, second, ...) second
#define SECOND(...)		    SECOND_(__VA_ARGS__)

const unsigned gm_cupti_functions = GM_FUNCTIONS;

const uint16_t gm_cupti_ids[GM_FUNCTIONS] = {
#define GM_RUNTIME(...)
#define GM_DRIVER(name, ...) [GM_FN_##name] = SECOND(GM_CBID_##name, 0, ),
#include "api/cuda_api.def"
};
