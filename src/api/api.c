/*
 * The rows of cuda_api.def as data, and the sizes of arrays. Pure: calls nothing.
 */
#include "api/api.h"

#define ALL_MAJORS 7

#define PER_THREAD(fn) (__builtin_memcmp(&#fn[sizeof(#fn) - 6], "_ptsz", 5) == 0)
#define SPACE(kind)                                                                               \
	((kind) == GM_KIND_ARRAY	? GM_SPACE_ARRAY :                                        \
	 (kind) == GM_KIND_REGISTERED	? GM_SPACE_REGISTERED :                                   \
					  GM_SPACE_POINTER)
#define ROW(fn, layer, role, kind, majors)                                                        \
	{#fn, GM_LAYER_##layer, GM_ROLE_##role, GM_KIND_##kind, sizeof(#fn) - 1, majors,          \
	 SPACE(GM_KIND_##kind), PER_THREAD(fn)}

const struct gm_row gm_rows[GM_FUNCTIONS] = {
#define GM_RUNTIME(fn, params, role, kind, ...)                                                    \
	[GM_FN_##fn] = ROW(fn, RUNTIME, role, kind, ALL_MAJORS),
#define GM_RUNTIME_UNTIL12(fn, params, role, kind, ...)                                           \
	[GM_FN_##fn##_until12] = ROW(fn, RUNTIME, role, kind, 3),
#define GM_RUNTIME_FROM13(fn, params, role, kind, ...)                                             \
	[GM_FN_##fn] = ROW(fn, RUNTIME, role, kind, 4),
#define GM_DRIVER(fn, params, role, kind, ...) [GM_FN_##fn] = ROW(fn, DRIVER, role, kind, 0),
#define GM_ROUTE(layer, fn, params) [GM_FN_##fn] = ROW(fn, layer, ROUTE, NONE, ALL_MAJORS),
#include "api/cuda_api.def"
};

static uint64_t texels(size_t width, size_t height, size_t depth, unsigned int levels)
{
	uint64_t sum = 0;
	unsigned int level;

	for (level = 0; level < levels && level < 32; level++) {
		uint64_t w = width >> level, h = height >> level, d = depth >> level;

		sum += (w ? w : 1) * (h ? h : 1) * (d ? d : 1);
	}
	return sum;
}

uint64_t gm_runtime_array_bytes(const struct cudaChannelFormatDesc *desc, size_t width,
				size_t height, size_t depth, unsigned int levels)
{
	if (!desc)
		return 0;
	return texels(width, height, depth, levels) *
	       (uint64_t)((desc->x + desc->y + desc->z + desc->w) / 8);
}

/*
 * Bits of a channel by CUarray_format; formats that pack texels are counted as CUDA documents them.
 */
static unsigned int channel_bits(unsigned int format)
{
	switch (format) {
	case 0x01: /* UNSIGNED_INT8 */
	case 0x08: /* SIGNED_INT8 */
	case 0xc0: /* UNORM_INT8X1 to X4, SNORM_INT8X1 to X4 */
	case 0xc1:
	case 0xc2:
	case 0xc6:
	case 0xc7:
	case 0xc8:
		return 8;
	case 0x02: /* UNSIGNED_INT16 */
	case 0x09: /* SIGNED_INT16 */
	case 0x10: /* HALF */
	case 0xc3: /* UNORM_INT16X1 to X4 */
	case 0xc4:
	case 0xc5:
	case 0xc9: /* SNORM_INT16X1 to X4 */
	case 0xca:
	case 0xcb:
		return 16;
	case 0x03: /* UNSIGNED_INT32 */
	case 0x0a: /* SIGNED_INT32 */
	case 0x20: /* FLOAT */
		return 32;
	case 0xb0: /* NV12: 8 bits of luma and 4 of chroma a texel */
		return 12;
	case 0x91: /* BC1 and BC4: 4 bits a texel, by blocks */
	case 0x92:
	case 0x97:
	case 0x98:
		return 4;
	default: /* BC2, BC3, BC5 to BC7: 8 bits a texel */
		return 8;
	}
}

uint64_t gm_driver_array_bytes(unsigned int format, unsigned int channels, size_t width,
			       size_t height, size_t depth, unsigned int levels)
{
	unsigned int bits = channel_bits(format);

	if (format >= 0x91 && format <= 0x9f) /* block compressed: the format says it all */
		channels = 1;
	if (format == 0xb0)
		channels = 1;
	return (texels(width, height, depth, levels) * bits * (channels ? channels : 1) + 7) / 8;
}
