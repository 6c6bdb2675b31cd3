/*
 * Loaded objects and their dynamic symbols, read from memory with dl_iterate_phdr and the objects'
 * own hash tables. What dlsym, dladdr and dlopen(RTLD_NOLOAD) would tell, without their locks:
 * those wait for any thread that runs a constructor inside dlopen. Calls dl_iterate_phdr and string
 * functions only.
 */
#ifndef GM_STACK_ELF_SYMBOLS_H
#define GM_STACK_ELF_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strings and tables point into the object itself: valid while it stays loaded. */
struct gm_object {
	uintptr_t base;		   /* load bias: address - base = address in the file */
	uintptr_t start, end;	   /* addresses its segments cover */
	const char *path;	   /* as the loader knows it; "" for the program */
	const ElfW(Dyn) * dynamic; /* NULL: a static program */
	const ElfW(Phdr) * phdr;
	unsigned phdrs;
	unsigned long long adds, subs; /* objects loaded and unloaded so far in this process */
};

/*
 * Calls `found` for each loaded object in load order (the program first) until it returns non-zero,
 * and returns that value. Takes the loader's list lock, which no constructor runs under; `found`
 * must not load or unload anything. In the child of a raw clone it takes no lock, and does not find
 * what dlmopen loaded.
 */
int gm_objects_each(int (*found)(const struct gm_object *, void *), void *data);

/*
 * The number of linker namespaces, other than the shim's own, that have an object for which
 * `wanted` is true of its path: what dlmopen loads is in no list of gm_objects_each. 0 where the
 * loader does not list them (glibc before 2.35). Takes no lock: of a namespace that another thread
 * loads into or unloads it may miss a part.
 */
unsigned gm_objects_elsewhere(bool (*wanted)(const char *path));

/*
 * `lockable` is a word that the kernel zeroes in the child of a fork, however it was made. Called
 * once.
 */
void gm_objects_init(uint32_t *lockable);

/*
 * Around calls of unwinders of other libraries, which go through the loader's list themselves: a
 * fork waits for these too. Where this returns false they would wait for ever and must not be
 * called, nor gm_objects_leave.
 */
bool gm_objects_enter(void);
void gm_objects_leave(void);

/*
 * Around a fork: lets other threads come out of gm_objects_each and keeps them out (for a bounded
 * time), since the loader's list lock stays held for ever in the child of a fork made under it.
 */
void gm_objects_pause(void);
void gm_objects_go_on(void);	/* in the parent */
void gm_objects_in_child(void);

/* The object that covers `pc`. */
bool gm_object_at(uintptr_t pc, struct gm_object *out);

/* The object whose dynamic section is `dynamic` (link_map's l_ld). */
bool gm_object_of_dynamic(const void *dynamic, struct gm_object *out);

/*
 * Address of a symbol the object defines, or NULL. `version` NULL takes the default version, else
 * any. An indirect function is resolved by calling its resolver. Thread-local symbols are not
 * found.
 */
void *gm_object_symbol(const struct gm_object *object, const char *name, const char *version);

/*
 * The same at default versions for several names, those whose address is not known yet. Returns how
 * many are still missing (all where the object has no symbols).
 */
unsigned gm_object_symbols(const struct gm_object *object, const char *const *names,
			   void **addresses, unsigned count);

/* The addresses of a function that the object defines; `end` is the first one after it. */
bool gm_object_function(const struct gm_object *object, const char *name, uintptr_t *start,
			uintptr_t *end);

/* The first loaded object's definition of `name` at any version, or NULL; `out` may be NULL. */
void *gm_objects_symbol(const char *name, struct gm_object *out);

/* DT_SONAME, or NULL. */
const char *gm_object_soname(const struct gm_object *object);

/* The last part of the path; the soname, else "", where the loader has no path. */
const char *gm_object_basename(const struct gm_object *object);

/* DT_NEEDED number `index`, or NULL past the last. */
const char *gm_object_needed(const struct gm_object *object, unsigned index);

/*
 * The version that the object's reference to `name` (a symbol it does not define) is bound to, such
 * as "libcudart.so.12", and in `*file` (may be NULL) the library it was linked against. NULL when
 * it has no such reference or the reference has no version.
 */
const char *gm_object_needed_version(const struct gm_object *object, const char *name,
				     const char **file);

/* The object's build id in its PT_NOTE segments: its bytes and length, NULL if it has none. */
const unsigned char *gm_object_build_id(const struct gm_object *object, unsigned *bytes);

#endif
