/*
 * Copies and fills of the simulated driver. Device memory has no contents, so only ranges are
 * checked; between host addresses (managed ones included) bytes really move.
 */
#include "drv.h"

/* Host memory of the program, or managed memory: there is something to read and write. */
static bool has_bytes(const struct sim_mem *mem)
{
	return !mem || mem->kind == SIM_MEM_MANAGED || mem->kind == SIM_MEM_HOST ||
	       mem->kind == SIM_MEM_REGISTERED;
}

static bool inside(const struct sim_mem *mem, uint64_t addr, uint64_t size)
{
	/* neighbouring mappings are one range to a copy */
	while (mem && addr + size > mem->addr + mem->size) {
		uint64_t end = mem->addr + mem->size;

		if (mem->kind == SIM_MEM_REGISTERED)
			return true;
		if (mem->kind != SIM_MEM_MAPPED)
			return false;
		size -= end - addr;
		addr = end;
		mem = sim_mem_find(addr);
	}
	return mem != NULL;
}

static bool in_arena(uint64_t addr)
{
	return addr - sim.arena.base < sim.arena.size ||
	       (sim.low_arena.base && addr - sim.low_arena.base < sim.low_arena.size);
}

/* need: the address must be the device's. Any other address is taken for the program's own. */
static CUresult range(uint64_t addr, uint64_t size, bool need, struct sim_mem **mem)
{
	*mem = sim_mem_find(addr);
	if (*mem)
		return inside(*mem, addr, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	return need || in_arena(addr) || !addr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

enum { NEED_DST = 1, NEED_SRC = 2, ASYNC = 4 };

struct move {
	void *dst, *src;
	size_t size;
};

static void move_bytes(void *arg)
{
	struct move *move = arg;

	memmove(move->dst, move->src, move->size);
	free(move);
}

static CUresult copy(uint64_t dst, uint64_t src, size_t size, int how, CUstream handle)
{
	CUstream stream = sim_stream(handle);
	struct sim_mem *to, *from;
	struct move *move;
	CUresult rc;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	rc = sim_capture_check(stream);
	if (rc != CUDA_SUCCESS || !size)
		return rc;
	if ((rc = range(dst, size, how & NEED_DST, &to)) != CUDA_SUCCESS ||
	    (rc = range(src, size, how & NEED_SRC, &from)) != CUDA_SUCCESS)
		return rc;
	if (stream->capture)
		return sim_capture_node(stream, NULL, CU_GRAPH_NODE_TYPE_MEMCPY, NULL, 0);
	if (has_bytes(to) && has_bytes(from)) {
		move = malloc(sizeof(*move));
		*move = (struct move){(void *)(uintptr_t)dst, (void *)(uintptr_t)src, size};
		sim_stream_effect(stream, move_bytes, move);
	} else {
		sim_stream_effect(stream, NULL, NULL);
	}
	if (!(how & ASYNC))
		sim_stream_drain(stream);
	return CUDA_SUCCESS;
}

#define U(pointer) ((uint64_t)(uintptr_t)(pointer))

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	SIM_API(SIM_CURRENT);
	return copy(dst, src, size, 0, NULL);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	SIM_API(SIM_CURRENT);
	return copy(dst, src, size, ASYNC, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size)
{
	SIM_API(SIM_CURRENT);
	return copy(dst, U(src), size, NEED_DST, NULL);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size)
{
	SIM_API(SIM_CURRENT);
	return copy(U(dst), src, size, NEED_SRC, NULL);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	SIM_API(SIM_CURRENT);
	return copy(dst, src, size, NEED_DST | NEED_SRC, NULL);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	SIM_API(SIM_CURRENT);
	return copy(dst, U(src), size, NEED_DST | ASYNC, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	SIM_API(SIM_CURRENT);
	return copy(U(dst), src, size, NEED_SRC | ASYNC, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	SIM_API(SIM_CURRENT);
	return copy(dst, src, size, NEED_DST | NEED_SRC | ASYNC, stream);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
		      size_t size)
{
	SIM_API(SIM_CURRENT);
	(void)dst_ctx, (void)src_ctx;
	return copy(dst, src, size, NEED_DST | NEED_SRC, NULL);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
			   size_t size, CUstream stream)
{
	SIM_API(SIM_CURRENT);
	(void)dst_ctx, (void)src_ctx;
	return copy(dst, src, size, NEED_DST | NEED_SRC | ASYNC, stream);
}

/* --- two and three dimensions: rows that have bytes on both sides move one by one --- */

struct side {
	CUmemorytype type;
	uint64_t addr;
	CUarray array;
	size_t pitch, height, x, y, z;
};

static CUresult side_check(const struct side *s, size_t width, size_t height, size_t depth,
			   struct sim_mem **mem)
{
	size_t rows = s->height ? s->height : height;

	*mem = NULL;
	if (s->type == CU_MEMORYTYPE_ARRAY) {
		SIM_VALUE(SIM_GET(SIM_ARRAY, s->array));
		SIM_VALUE(s->x + width <= s->array->desc.Width * s->array->desc.NumChannels *
						  sim_format_bytes(s->array->desc.Format));
		return CUDA_SUCCESS;
	}
	SIM_VALUE(s->pitch >= width + s->x || height * depth == 1);
	return range(s->addr + (s->z * rows + s->y) * s->pitch + s->x,
		     ((depth - 1) * rows + height - 1) * s->pitch + width,
		     s->type == CU_MEMORYTYPE_DEVICE, mem);
}

static uint64_t row_of(const struct side *s, size_t height, size_t y, size_t z)
{
	size_t rows = s->height ? s->height : height;

	return s->addr + ((s->z + z) * rows + s->y + y) * s->pitch + s->x;
}

static CUresult copy_box(const struct side *dst, const struct side *src, size_t width,
			 size_t height, size_t depth, bool async, CUstream handle)
{
	CUstream stream = sim_stream(handle);
	struct sim_mem *to, *from;
	CUresult rc;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	rc = sim_capture_check(stream);
	if (rc != CUDA_SUCCESS || !width || !height || !depth)
		return rc;
	if ((rc = side_check(dst, width, height, depth, &to)) != CUDA_SUCCESS ||
	    (rc = side_check(src, width, height, depth, &from)) != CUDA_SUCCESS)
		return rc;
	if (stream->capture)
		return sim_capture_node(stream, NULL, CU_GRAPH_NODE_TYPE_MEMCPY, NULL, 0);
	for (size_t i = 0; i < height * depth; i++) {
		size_t y = i % height, z = i / height;
		uint64_t d = row_of(dst, height, y, z);
		uint64_t s = row_of(src, height, y, z);
		struct move *move;

		if (dst->array || src->array || !has_bytes(to) || !has_bytes(from))
			break;
		move = malloc(sizeof(*move));
		*move = (struct move){(void *)(uintptr_t)d, (void *)(uintptr_t)s, width};
		sim_stream_effect(stream, move_bytes, move);
	}
	if (!async)
		sim_stream_drain(stream);
	return CUDA_SUCCESS;
}

static uint64_t address(CUmemorytype type, const void *host, CUdeviceptr device)
{
	return type == CU_MEMORYTYPE_HOST ? U(host) : device;
}

#define SIDE(c, way, z_, height_)                                                                  \
	(struct side)                                                                              \
	{                                                                                          \
		.type = (c)->way##MemoryType,                                                      \
		.addr = address((c)->way##MemoryType, (c)->way##Host, (c)->way##Device),           \
		.array = (c)->way##MemoryType == CU_MEMORYTYPE_ARRAY ? (c)->way##Array : NULL,     \
		.pitch = (c)->way##Pitch, .height = (height_), .x = (c)->way##XInBytes,            \
		.y = (c)->way##Y, .z = (z_),                                                       \
	}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, bool async, CUstream stream)
{
	struct side dst, src;

	SIM_VALUE(c);
	dst = SIDE(c, dst, 0, 0);
	src = SIDE(c, src, 0, 0);
	return copy_box(&dst, &src, c->WidthInBytes, c->Height, 1, async, stream);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c, bool async, CUstream stream)
{
	struct side dst, src;

	SIM_VALUE(c);
	dst = SIDE(c, dst, c->dstZ, c->dstHeight);
	src = SIDE(c, src, c->srcZ, c->srcHeight);
	return copy_box(&dst, &src, c->WidthInBytes, c->Height, c->Depth, async, stream);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *c)
{
	SIM_API(SIM_CURRENT);
	return copy_2d(c, false, NULL);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c)
{
	SIM_API(SIM_CURRENT);
	return copy_2d(c, false, NULL);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
	SIM_API(SIM_CURRENT);
	return copy_2d(c, true, stream);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *c)
{
	SIM_API(SIM_CURRENT);
	return copy_3d(c, false, NULL);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream stream)
{
	SIM_API(SIM_CURRENT);
	return copy_3d(c, true, stream);
}

/* --- fills --- */

struct fill {
	unsigned char *at;
	unsigned value;
	unsigned element;
	size_t pitch, width, height;
};

static void fill_bytes(void *arg)
{
	struct fill *f = arg;

	for (size_t y = 0; y < f->height; y++)
		for (size_t x = 0; x < f->width; x++)
			memcpy(f->at + y * f->pitch + x * f->element, &f->value, f->element);
	free(f);
}

static CUresult fill(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element, size_t width,
		     size_t height, CUstream handle)
{
	CUstream stream = sim_stream(handle);
	uint64_t bytes = height ? (height - 1) * pitch + width * element : 0;
	struct sim_mem *mem;
	struct fill *f;
	CUresult rc;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	rc = sim_capture_check(stream);
	if (rc != CUDA_SUCCESS || !width || !height)
		return rc;
	SIM_VALUE(dst % element == 0);
	rc = range(dst, bytes, true, &mem);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (stream->capture)
		return sim_capture_node(stream, NULL, CU_GRAPH_NODE_TYPE_MEMSET, NULL, 0);
	if (mem->kind == SIM_MEM_MANAGED) /* the device does it, so the pages move there */
		sim_managed_touch(mem, dst, bytes, stream->head.ctx->dev);
	if (has_bytes(mem)) {
		f = malloc(sizeof(*f));
		*f = (struct fill){
			(unsigned char *)(uintptr_t)dst, value, element, pitch, width, height};
		sim_stream_effect(stream, fill_bytes, f);
	} else {
		sim_stream_effect(stream, NULL, NULL);
	}
	return CUDA_SUCCESS;
}

#define MEMSET(bits, type, element)                                                                \
	CUresult cuMemsetD##bits##_v2(CUdeviceptr dst, type value, size_t count)                   \
	{                                                                                          \
		SIM_API(SIM_CURRENT);                                                              \
		return fill(dst, 0, value, element, count, 1, NULL);                               \
	}                                                                                          \
	CUresult cuMemsetD##bits##Async(CUdeviceptr dst, type value, size_t count,                 \
					CUstream stream)                                           \
	{                                                                                          \
		SIM_API(SIM_CURRENT);                                                              \
		return fill(dst, 0, value, element, count, 1, stream);                             \
	}                                                                                          \
	CUresult cuMemsetD2D##bits##_v2(CUdeviceptr dst, size_t pitch, type value, size_t width,   \
					size_t height)                                             \
	{                                                                                          \
		SIM_API(SIM_CURRENT);                                                              \
		return fill(dst, pitch, value, element, width, height, NULL);                      \
	}                                                                                          \
	CUresult cuMemsetD2D##bits##Async(CUdeviceptr dst, size_t pitch, type value, size_t width, \
					  size_t height, CUstream stream)                          \
	{                                                                                          \
		SIM_API(SIM_CURRENT);                                                              \
		return fill(dst, pitch, value, element, width, height, stream);                    \
	}

MEMSET(8, unsigned char, 1)
MEMSET(16, unsigned short, 2)
MEMSET(32, unsigned int, 4)
