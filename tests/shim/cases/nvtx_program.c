/*
 * An NVTX client without NVIDIA's headers: it does what they do at the first call (open the library
 * that NVTX_INJECTION64_PATH names, hand it the tables of function pointers), then opens and closes
 * ranges in every way there is. Prints how many of them were named "step".
 */
#include "cuda_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

typedef void (*function)(void);

struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};

/* By NVTX's numbers; entry 0 is none. */
static function core[16], core2[16];
static function *core_table[17], *core2_table[17];

static int module_table(uint32_t module, function ***table, unsigned *size)
{
	*table = module == 1 ? core_table : module == 5 ? core2_table : NULL;
	*size = 16;
	return *table != NULL;
}

static struct {
	size_t bytes;
	int (*module_table)(uint32_t module, function ***table, unsigned *size);
} callbacks = {sizeof(callbacks), module_table};

static const void *export_table(uint32_t id)
{
	return id == 1 ? &callbacks : NULL;
}

static int inject(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*start)(const void *(*)(uint32_t)) = NULL;

	for (int i = 1; i < 16; i++) {
		core_table[i] = &core[i];
		core2_table[i] = &core2[i];
	}
	if (library)
		start = (int (*)(const void *(*)(uint32_t)))dlsym(library,
								  "InitializeInjectionNvtx2");
	return start ? start(export_table) : 0;
}

static struct attributes event(int32_t type, const void *message)
{
	return (struct attributes){.version = 2,
				   .size = sizeof(struct attributes),
				   .message_type = type,
				   .message = message};
}

static unsigned steps;

static void allocate(void)
{
	void *block;

	if (cudaMalloc(&block, 4096))
		exit(2);
}

static void *end_elsewhere(void *id)
{
	((void (*)(uint64_t))core[7])((uint64_t)(uintptr_t)id);
	return NULL;
}

static void push_and_pop(void)
{
	int (*push_ex)(const struct attributes *) = (int (*)(const struct attributes *))core[8];
	int (*push_a)(const char *) = (int (*)(const char *))core[9];
	int (*push_w)(const wchar_t *) = (int (*)(const wchar_t *))core[10];
	int (*pop)(void) = (int (*)(void))core[11];
	struct attributes named = event(1, "step"), wide = event(2, L"step");

	for (int i = 0; i < 3; i++, steps++) {
		push_a("step");
		push_a("forward");
		allocate();
		pop();
		push_a("steps");
		pop();
		pop();
	}
	push_w(L"step");
	push_w(L"ste");
	pop();
	pop();
	push_ex(&named);
	pop();
	push_ex(&wide);
	pop();
	steps += 3;
	for (int i = 0; i < 70; i++) /* deeper than is remembered */
		push_a(i == 5 ? "step" : "deep");
	for (int i = 0; i < 70; i++)
		pop();
	steps++;
	pop(); /* one too many */
}

static void start_and_end(void)
{
	uint64_t (*start_a)(const char *) = (uint64_t(*)(const char *))core[5];
	uint64_t (*start_w)(const wchar_t *) = (uint64_t(*)(const wchar_t *))core[6];
	void (*end)(uint64_t) = (void (*)(uint64_t))core[7];
	uint64_t first = start_a("step"), other = start_a("evaluation"), wide = start_w(L"step");
	pthread_t thread;

	end(other);
	end(wide);
	pthread_create(&thread, NULL, end_elsewhere, (void *)(uintptr_t)first);
	pthread_join(thread, NULL);
	steps += 2;
}

static void domains(void)
{
	void *(*create)(const char *) = (void *(*)(const char *))core2[12];
	void *(*reg)(void *, const char *) = (void *(*)(void *, const char *))core2[10];
	int (*push)(void *, const struct attributes *) =
		(int (*)(void *, const struct attributes *))core2[4];
	int (*pop)(void *) = (int (*)(void *))core2[5];
	uint64_t (*start)(void *, const struct attributes *) =
		(uint64_t(*)(void *, const struct attributes *))core2[2];
	void (*end)(void *, uint64_t) = (void (*)(void *, uint64_t))core2[3];
	void *a = create("a"), *b = create("b");
	struct attributes named = event(3, reg(a, "step")), other = event(3, reg(a, "data"));

	push(a, &named);
	push(b, &other);
	pop(a); /* the domains' ranges do not nest in each other */
	pop(b);
	push(b, &named);
	pop(b);
	end(a, start(a, &named));
	end(a, start(a, &other));
	steps += 3;
}

int main(void)
{
	int injected = inject();

	allocate();
	if (injected) {
		push_and_pop();
		start_and_end();
		domains();
	}
	printf("{\"injected\": %d, \"steps\": %u}\n", injected, steps);
	return 0;
}
