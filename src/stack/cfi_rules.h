/*
 * An object's unwind tables (.eh_frame, found through .eh_frame_hdr), read for one address: the
 * rules that lead from a frame to its caller's. Only what compilers emit at calls is understood;
 * anything else is "unknown" and left to a full unwinder. x86-64.
 */
#ifndef GM_STACK_CFI_RULES_H
#define GM_STACK_CFI_RULES_H

#include "stack/elf_symbols.h"

/* The rule that gives the caller's stack pointer (the CFA). */
enum gm_cfi_kind {
	GM_CFI_UNKNOWN,
	GM_CFI_SP,	/* stack pointer + cfa_offset */
	GM_CFI_BP,	/* rbp + cfa_offset */
	GM_CFI_BP_LOAD, /* the word at rbp + cfa_offset: functions that align their stack */
	GM_CFI_END,	/* the thread's first frame: no caller */
	GM_CFI_REGISTER /* the register cfa_register + cfa_offset: between two calls only */
};

/* The rule that gives the caller's rbp. */
enum gm_cfi_bp { GM_CFI_BP_SAME, GM_CFI_BP_AT_CFA, GM_CFI_BP_AT_BP };

struct gm_cfi_rule {
	uint8_t kind; /* enum gm_cfi_kind */
	uint8_t bp;   /* enum gm_cfi_bp */
	uint8_t cfa_register; /* DWARF's number, below 16; of GM_CFI_REGISTER */
	int32_t cfa_offset, bp_offset;
};

/* The row of a table that an address stands for. */
enum gm_cfi_at {
	GM_CFI_RETURN_ADDRESS, /* the call before it */
	GM_CFI_INSTRUCTION     /* itself: where a signal interrupted */
};

/*
 * The rule at an address inside `object`. GM_CFI_UNKNOWN where the tables are missing or beyond
 * this reader. The return address lies just below the CFA in all others.
 */
struct gm_cfi_rule gm_cfi_rule(const struct gm_object *object, uintptr_t pc, enum gm_cfi_at at);

/* The same by an entry of a table (an FDE) that the caller found and vouches for. */
struct gm_cfi_rule gm_cfi_rule_of_entry(const void *entry, uintptr_t pc, enum gm_cfi_at at);

#endif
