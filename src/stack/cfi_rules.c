/*
 * Reading unwind tables (cfi_rules.h): DWARF call frame information as in the x86-64 psABI and the
 * LSB's description of .eh_frame. Calls nothing. Every read stays inside the entry that it belongs
 * to, and entries that an object's own index leads to lie inside the object's segments.
 */
#include "stack/cfi_rules.h"

#include <string.h>

enum { REG_BP = 6, REG_SP = 7, REG_RA = 16 };
enum { MOST_SAVED_STATES = 8 };

/* DW_CFA_… */
enum {
	CFA_ADVANCE = 0x40, /* upper two bits, operand in the lower six */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_GNU_ARGS_SIZE = 0x2e
};

/* DW_OP_… */
enum {
	OP_DEREF = 0x06,
	OP_AND = 0x1a,
	OP_PLUS = 0x22,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_BREG6 = 0x76,
	OP_BREG7 = 0x77,
	OP_BREG16 = 0x80
};

/* Bytes being read; a read past the end gives zeros and sets `bad`. */
struct reader {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t read_fixed(struct reader *r, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(r->end - r->at) < bytes) {
		r->bad = true;
		r->at = r->end;
		return 0;
	}
	memcpy(&value, r->at, bytes); /* little-endian */
	r->at += bytes;
	return value;
}

static uint64_t read_uleb(struct reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = (uint8_t)read_fixed(r, 1);

		if (shift < 64)
			value |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128))
			return value;
	}
}

static int64_t read_sleb(struct reader *r)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)read_fixed(r, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	if (shift < 64 && byte & 64)
		value |= ~0ull << shift;
	return (int64_t)value;
}

/* A pointer in one of DW_EH_PE_…'s encodings; relative ones to where they stand or to `data`. */
static uint64_t read_encoded(struct reader *r, unsigned encoding, uintptr_t data)
{
	uintptr_t here = (uintptr_t)r->at;
	uint64_t value;

	switch (encoding & 15) {
	case 0:
	case 4:
	case 12:
		value = read_fixed(r, 8);
		break;
	case 1:
		value = read_uleb(r);
		break;
	case 2:
		value = read_fixed(r, 2);
		break;
	case 3:
		value = read_fixed(r, 4);
		break;
	case 9:
		value = (uint64_t)read_sleb(r);
		break;
	case 10:
		value = (uint64_t)(int16_t)read_fixed(r, 2);
		break;
	case 11:
		value = (uint64_t)(int32_t)read_fixed(r, 4);
		break;
	default:
		r->bad = true;
		return 0;
	}
	switch (encoding & 0x70) {
	case 0x00:
		return value;
	case 0x10:
		return value + here;
	case 0x30:
		return value + data;
	default:
		r->bad = true;
		return 0;
	}
}

/* One entry of .eh_frame without its length: false for the terminator and 64-bit ones. */
static bool open_entry(const uint8_t *entry, struct reader *r)
{
	uint32_t length;

	memcpy(&length, entry, sizeof(length));
	*r = (struct reader){entry + 4, entry + 4 + length, false};
	return length && length != UINT32_MAX;
}

/* A common information entry. */
struct cie {
	uint64_t code_align;
	int64_t data_align;
	unsigned pointer_encoding;
	bool has_augmentation, signal_frame;
	struct reader initial; /* its instructions */
};

static bool read_augmentation(struct reader *r, const char *letters, struct cie *cie)
{
	const uint8_t *end;
	uint64_t bytes;

	if (*letters != 'z')
		return !*letters;
	cie->has_augmentation = true;
	bytes = read_uleb(r);
	if (bytes > (size_t)(r->end - r->at))
		return false;
	end = r->at + bytes;
	while (*++letters) {
		if (*letters == 'R')
			cie->pointer_encoding = (unsigned)read_fixed(r, 1);
		else if (*letters == 'L')
			read_fixed(r, 1);
		else if (*letters == 'P')
			read_encoded(r, (unsigned)read_fixed(r, 1) & 0x1f, 0);
		else if (*letters == 'S')
			cie->signal_frame = true;
		else if (*letters != 'B')
			break;
	}
	r->at = end;
	return true;
}

static bool read_cie(const uint8_t *entry, struct cie *cie)
{
	const char *letters;
	struct reader r;
	uint64_t version, ra;

	memset(cie, 0, sizeof(*cie));
	if (!open_entry(entry, &r) || read_fixed(&r, 4) != 0)
		return false;
	version = read_fixed(&r, 1);
	letters = (const char *)r.at;
	while (read_fixed(&r, 1))
		;
	cie->code_align = read_uleb(&r);
	cie->data_align = read_sleb(&r);
	ra = version == 1 ? read_fixed(&r, 1) : read_uleb(&r);
	if (r.bad || ra != REG_RA || (version != 1 && version != 3) ||
	    !read_augmentation(&r, letters, cie))
		return false;
	cie->initial = r;
	return !r.bad;
}

/* True if the object has these bytes loaded. */
static bool contains(const struct gm_object *object, uintptr_t at, uint64_t bytes)
{
	for (unsigned i = 0; i < object->phdrs; i++) {
		const ElfW(Phdr) *segment = &object->phdr[i];
		uintptr_t start = object->base + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && at >= start && at - start < segment->p_memsz)
			return bytes <= segment->p_memsz - (at - start);
	}
	return false;
}

static bool contains_entry(const struct gm_object *object, const uint8_t *entry)
{
	uint32_t length;

	if (!contains(object, (uintptr_t)entry, sizeof(length)))
		return false;
	memcpy(&length, entry, sizeof(length));
	return contains(object, (uintptr_t)entry, sizeof(length) + (uint64_t)length);
}

/* Binary search in .eh_frame_hdr for the entry whose function may cover the address. */
static const uint8_t *find_fde(const struct gm_object *object, uintptr_t pc)
{
	const int32_t *table;
	const uint8_t *header = NULL;
	uint64_t count, low = 0, high;
	struct reader r;

	for (unsigned i = 0; i < object->phdrs; i++)
		if (object->phdr[i].p_type == PT_GNU_EH_FRAME) {
			header = (const uint8_t *)object->base + object->phdr[i].p_vaddr;
			r = (struct reader){header, header + object->phdr[i].p_memsz, false};
		}
	if (!header || !contains(object, (uintptr_t)header, (uint64_t)(r.end - header)) ||
	    r.end - header < 4)
		return NULL;
	/* version 1, table of signed 4-byte offsets from the header: what every linker writes */
	if (header[0] != 1 || header[2] == 0xff || header[3] != 0x3b)
		return NULL;
	r.at += 4;
	read_encoded(&r, header[1], (uintptr_t)header);
	count = read_encoded(&r, header[2], (uintptr_t)header);
	if (r.bad || !count || count > (size_t)(r.end - r.at) / 8)
		return NULL;
	table = (const int32_t *)r.at;
	if ((uintptr_t)header + (intptr_t)table[0] > pc)
		return NULL;
	for (high = count; high - low > 1;) {
		uint64_t middle = (low + high) / 2;

		if ((uintptr_t)header + (intptr_t)table[2 * middle] <= pc)
			low = middle;
		else
			high = middle;
	}
	return header + table[2 * low + 1];
}

/* A row of the table: what holds from one address to the next. */
struct row {
	uint64_t cfa_register;
	int64_t cfa_offset;
	bool cfa_loaded; /* the CFA is the word at register + offset */
	bool unknown;	 /* something that this reader cannot express */
	bool ra_undefined;
	uint8_t bp; /* enum gm_cfi_bp */
	int64_t bp_offset;
};

/* The two expressions that compilers emit for functions that align their stack. */
static bool is_bp_plus(const uint8_t *at, uint64_t bytes, bool load, int64_t *offset)
{
	struct reader r = {at, at + bytes, false};

	if (read_fixed(&r, 1) != OP_BREG6)
		return false;
	*offset = read_sleb(&r);
	if (load && read_fixed(&r, 1) != OP_DEREF)
		return false;
	return !r.bad && r.at == r.end;
}

/*
 * The expression that linkers emit for the procedure linkage table, whose stubs push a word before
 * their instruction `number`: rsp + offset + ((rip & 15) >= number) << 3.
 */
static bool is_plt(const uint8_t *at, uint64_t bytes, uintptr_t pc, int64_t *offset)
{
	struct reader r = {at, at + bytes, false};
	uint64_t ops[2], number;

	ops[0] = read_fixed(&r, 1);
	*offset = read_sleb(&r);
	ops[1] = read_fixed(&r, 1);
	if (ops[0] != OP_BREG7 || ops[1] != OP_BREG16 || read_sleb(&r) != 0 ||
	    read_fixed(&r, 2) != (OP_LIT0 + 15u) + (OP_AND << 8))
		return false;
	number = read_fixed(&r, 1) - OP_LIT0;
	if (read_fixed(&r, 4) != OP_GE + ((OP_LIT0 + 3u) << 8) + (OP_SHL << 16) + (OP_PLUS << 24))
		return false;
	*offset += (pc & 15) >= number ? 8 : 0;
	return !r.bad && r.at == r.end && number < 16;
}

static void set_saved(struct row *row, uint64_t reg, int64_t offset)
{
	if (reg == REG_BP) {
		row->bp = GM_CFI_BP_AT_CFA;
		row->bp_offset = offset;
	} else if (reg == REG_RA && offset != -8) {
		row->unknown = true;
	}
}

static void set_expression(struct row *row, uint64_t reg, const uint8_t *at, uint64_t bytes)
{
	if (reg == REG_BP && is_bp_plus(at, bytes, false, &row->bp_offset))
		row->bp = GM_CFI_BP_AT_BP;
	else if (reg == REG_BP || reg == REG_RA || reg == REG_SP)
		row->unknown = true;
}

static void restore(struct row *row, const struct row *initial, uint64_t reg)
{
	if (reg == REG_BP) {
		row->bp = initial->bp;
		row->bp_offset = initial->bp_offset;
	} else if (reg == REG_RA) {
		row->ra_undefined = initial->ra_undefined;
	}
}

/* A register that is somewhere this reader cannot follow, or nowhere. */
static void set_lost(struct row *row, uint64_t reg, bool undefined)
{
	if (reg == REG_RA && undefined)
		row->ra_undefined = true;
	else if (reg == REG_RA || reg == REG_SP || (reg == REG_BP && !undefined))
		row->unknown = true;
}

static void set_cfa(struct row *row, uint64_t reg, int64_t offset)
{
	row->cfa_register = reg;
	row->cfa_offset = offset;
	row->cfa_loaded = false;
}

/* The operand of an advance, in bytes. */
static uint64_t read_advance(struct reader *r, unsigned op, const struct cie *cie)
{
	if (op >= CFA_ADVANCE && op < CFA_OFFSET)
		return (op & 63) * cie->code_align;
	return read_fixed(r, op == CFA_ADVANCE1 ? 1 : op == CFA_ADVANCE2 ? 2 : 4) * cie->code_align;
}

static void run_expression(struct reader *r, unsigned op, struct row *row, uintptr_t pc)
{
	uint64_t reg = op == CFA_DEF_CFA_EXPRESSION ? 0 : read_uleb(r), bytes = read_uleb(r);

	if (bytes > (size_t)(r->end - r->at)) {
		r->bad = true;
		return;
	}
	if (op == CFA_DEF_CFA_EXPRESSION) {
		row->cfa_loaded = is_bp_plus(r->at, bytes, true, &row->cfa_offset);
		row->cfa_register = row->cfa_loaded ? REG_BP : REG_SP;
		if (!row->cfa_loaded && !is_plt(r->at, bytes, pc, &row->cfa_offset))
			row->cfa_register = UINT64_MAX;
	} else if (op == CFA_EXPRESSION) {
		set_expression(row, reg, r->at, bytes);
	} else {
		set_lost(row, reg, false);
	}
	r->at += bytes;
}

/* One instruction that changes the row and neither moves on nor saves it. */
static void run_one(struct reader *r, unsigned op, const struct cie *cie, struct row *row,
		    const struct row *initial, uintptr_t pc)
{
	uint64_t reg;

	switch (op) {
	case CFA_NOP:
		break;
	case CFA_OFFSET_EXTENDED:
		reg = read_uleb(r);
		set_saved(row, reg, (int64_t)read_uleb(r) * cie->data_align);
		break;
	case CFA_OFFSET_EXTENDED_SF:
		reg = read_uleb(r);
		set_saved(row, reg, read_sleb(r) * cie->data_align);
		break;
	case CFA_RESTORE_EXTENDED:
		restore(row, initial, read_uleb(r));
		break;
	case CFA_UNDEFINED:
		set_lost(row, read_uleb(r), true);
		break;
	case CFA_SAME_VALUE:
		reg = read_uleb(r);
		if (reg == REG_BP)
			row->bp = GM_CFI_BP_SAME;
		break;
	case CFA_REGISTER:
		reg = read_uleb(r);
		read_uleb(r);
		set_lost(row, reg, false);
		break;
	case CFA_DEF_CFA:
		reg = read_uleb(r);
		set_cfa(row, reg, (int64_t)read_uleb(r));
		break;
	case CFA_DEF_CFA_SF:
		reg = read_uleb(r);
		set_cfa(row, reg, read_sleb(r) * cie->data_align);
		break;
	case CFA_DEF_CFA_REGISTER:
		set_cfa(row, read_uleb(r), row->cfa_offset);
		break;
	case CFA_DEF_CFA_OFFSET:
		row->cfa_offset = (int64_t)read_uleb(r);
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		row->cfa_offset = read_sleb(r) * cie->data_align;
		break;
	case CFA_DEF_CFA_EXPRESSION:
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		run_expression(r, op, row, pc);
		break;
	case CFA_VAL_OFFSET:
	case CFA_VAL_OFFSET_SF:
		set_lost(row, read_uleb(r), false);
		read_uleb(r);
		break;
	case CFA_GNU_ARGS_SIZE:
		read_uleb(r);
		break;
	default:
		r->bad = true;
	}
}

/*
 * Runs instructions until one moves past `target` from `location`. False if they are not
 * understood.
 */
static bool run(struct reader *r, const struct cie *cie, struct row *row, const struct row *initial,
		uint64_t location, uint64_t target)
{
	struct row saved[MOST_SAVED_STATES];
	unsigned saves = 0;

	while (r->at < r->end && !r->bad) {
		unsigned op = (unsigned)read_fixed(r, 1);

		if (op >= CFA_RESTORE) {
			restore(row, initial, op & 63);
		} else if (op >= CFA_OFFSET) {
			set_saved(row, op & 63, (int64_t)read_uleb(r) * cie->data_align);
		} else if (op >= CFA_ADVANCE || (op >= CFA_SET_LOC && op <= CFA_ADVANCE4)) {
			location = op == CFA_SET_LOC ? read_encoded(r, cie->pointer_encoding, 0)
						     : location + read_advance(r, op, cie);
			if (location > target)
				break;
		} else if (op == CFA_REMEMBER) {
			if (saves == MOST_SAVED_STATES)
				return false;
			saved[saves++] = *row;
		} else if (op == CFA_RESTORE_STATE) {
			if (!saves)
				return false;
			*row = saved[--saves];
		} else {
			run_one(r, op, cie, row, initial, target);
		}
	}
	return !r->bad;
}

static struct gm_cfi_rule rule_of(const struct row *row)
{
	struct gm_cfi_rule rule = {.kind = GM_CFI_UNKNOWN};

	if (row->ra_undefined) {
		rule.kind = GM_CFI_END;
		return rule;
	}
	if (row->unknown || row->cfa_offset != (int32_t)row->cfa_offset ||
	    row->bp_offset != (int32_t)row->bp_offset)
		return rule;
	rule.bp = row->bp;
	rule.cfa_offset = (int32_t)row->cfa_offset;
	rule.bp_offset = (int32_t)row->bp_offset;
	if (row->cfa_register == REG_BP) {
		rule.kind = row->cfa_loaded ? GM_CFI_BP_LOAD : GM_CFI_BP;
	} else if (row->cfa_register == REG_SP) {
		rule.kind = GM_CFI_SP;
	} else if (row->cfa_register < REG_RA) {
		rule.kind = GM_CFI_REGISTER;
		rule.cfa_register = (uint8_t)row->cfa_register;
	}
	return rule;
}

/* By an entry that was read so far that `r` stands behind the pointer to its CIE. */
static struct gm_cfi_rule rule_of_entry(struct reader r, const struct cie *cie, uintptr_t target)
{
	const struct gm_cfi_rule unknown = {.kind = GM_CFI_UNKNOWN};
	struct row row = {0}, initial;
	struct reader instructions = cie->initial;
	uint64_t start, length;

	if (cie->signal_frame)
		return unknown;
	start = read_encoded(&r, cie->pointer_encoding, 0);
	length = read_encoded(&r, cie->pointer_encoding & 15, 0);
	if (r.bad || target < start || target - start >= length)
		return unknown;
	if (cie->has_augmentation) {
		uint64_t bytes = read_uleb(&r);

		if (bytes > (size_t)(r.end - r.at))
			return unknown;
		r.at += bytes;
	}
	if (!run(&instructions, cie, &row, &row, 0, UINT64_MAX))
		return unknown;
	initial = row;
	if (!run(&r, cie, &row, &initial, start, target))
		return unknown;
	return rule_of(&row);
}

static uintptr_t target_of(uintptr_t pc, enum gm_cfi_at at)
{
	return at == GM_CFI_RETURN_ADDRESS ? pc - 1 : pc;
}

/* The CIE that an entry points at; `r` comes to stand behind that pointer. NULL for no entry. */
static const uint8_t *cie_of(const uint8_t *entry, struct reader *r)
{
	uintptr_t here;

	if (!open_entry(entry, r))
		return NULL;
	here = (uintptr_t)r->at;
	return (const uint8_t *)(here - read_fixed(r, 4));
}

struct gm_cfi_rule gm_cfi_rule_of_entry(const void *entry, uintptr_t pc, enum gm_cfi_at at)
{
	const struct gm_cfi_rule unknown = {.kind = GM_CFI_UNKNOWN};
	struct reader r;
	const uint8_t *first = cie_of(entry, &r);
	struct cie cie;

	return first && read_cie(first, &cie) ? rule_of_entry(r, &cie, target_of(pc, at)) : unknown;
}

struct gm_cfi_rule gm_cfi_rule(const struct gm_object *object, uintptr_t pc, enum gm_cfi_at at)
{
	const struct gm_cfi_rule unknown = {.kind = GM_CFI_UNKNOWN};
	const uint8_t *entry = find_fde(object, target_of(pc, at)), *first;
	struct reader r;

	if (!entry || !contains_entry(object, entry))
		return unknown;
	first = cie_of(entry, &r);
	if (!first || !contains_entry(object, first))
		return unknown;
	return gm_cfi_rule_of_entry(entry, pc, at);
}
