/*
 * The document in memory: what contract.md, section 4, calls by the same names, loaded from one
 * file (load/) and then filled by stacks/, holes/, history/ and judge/; renderers read it and
 * nothing else. Everything in it lives in its zone. Figures that are not known are GM_NO_BYTES,
 * times that are not known NAN.
 */
#ifndef GM_REPORT_DOC_DOC_H
#define GM_REPORT_DOC_DOC_H

#include "account/counters.h"
#include "account/hole_walk.h"
#include "report/doc/options.h"
#include "report/support/memory.h"
#include "store/reader.h"

#define GM_NO_SITE	  UINT32_MAX
#define GM_PINNERS	  20 /* sites listed as pinning holes */
#define GM_WARMUP_WINDOWS 2  /* contract.md: --warmup */

/* Facts about a frame that is part of many stacks, found out once. */
struct gm_frame_memo {
	void *rendered;		       /* a renderer's form of it, see gm_doc.release */
	const char *label;	       /* it in a few words, for stacks that it names */
	const char *called, *from;     /* the label it was added to last, as caller; the two */
	unsigned number;	       /* in a list that a renderer made, from 1 */
	uint64_t matched[2];	       /* suppressions of the user and ours: suppress.c */
	bool asked[2];
};

struct gm_frame {
	bool python, inlined;
	bool plumbing; /* allocator layers, CUDA and interpreters: not what a person looks for */
	bool installed; /* of a package, the standard library or the system, not of the user */
	bool toolkit;	/* of a CUDA library: cuBLAS, NCCL and the like */
	bool framework; /* its presence means a program with a caching framework */
	bool caching;	/* of a framework's caching allocator */
	bool opaque;	/* of a cache that does not tell how it is used inside */
	uint16_t category_rule, phase_rule; /* first rules that match, UINT16_MAX none */
	const char *function;		    /* demangled; NULL if not known */
	const char *file;		    /* NULL if not known */
	const char *module; /* path; NULL for Python frames and addresses outside any module */
	uint32_t line;	    /* 0 if not known */
	uint64_t offset;    /* in the module, of native frames */
	struct gm_frame_memo *memo; /* NULL of a frame that no document has */
};

/* Innermost first. */
#define GM_STACK_NO_ROOM (1u << 31) /* not a stack: those of many places, which found no room */

struct gm_stack {
	uint32_t *frames; /* numbers for gm_stack_frame; NULL until first asked for */
	const struct gm_frame_list *lists; /* doc->frames */
	unsigned count;
	unsigned flags;	   /* GM_STACK_... of layout.h, and GM_STACK_NO_ROOM */
	const char *label; /* of stacks of sites, see labels.h */
};

/*
 * The frames that one record of GM_TABLE_FRAMES became: more than one where functions are inlined.
 */
struct gm_frame_list {
	struct gm_frame *frames;
	unsigned count;
};

#define GM_INLINED_BITS 5 /* one address becomes at most 32 frames */

/* Returns the number that a stack has of a frame of a list. */
static inline uint32_t gm_frame_number(uint32_t list, unsigned frame)
{
	return list << GM_INLINED_BITS | frame;
}

static inline struct gm_frame *gm_stack_frame(const struct gm_stack *stack, unsigned index)
{
	uint32_t number = stack->frames[index];

	return &stack->lists[number >> GM_INLINED_BITS]
			.frames[number & ((1u << GM_INLINED_BITS) - 1)];
}

enum gm_verdict { GM_RELEASED, GM_CACHED, GM_HELD, GM_GROW };

struct gm_site {
	struct gm_site_figures record; /* the file's */
	/* Its windows, brought up to date, as far as its bytes changed in them: gm_site_window. */
	struct gm_window *windows;
	uint16_t changed;	      /* a bit for each window: `windows` has it */
	const char *id;		      /* stable from run to run: a hash over what the stack reads */
	const struct gm_stack *stack;
	const char *function; /* of CUDA or the hook that allocated first; NULL */
	const char *library, *category, *phase;
	const char *suppressed; /* the pattern, NULL */
	enum gm_verdict verdict;
	const char *why;		 /* the reason for the verdict, half a sentence */
	uint64_t exit_bytes, exit_count; /* leaked at exit, by its definition */
	uint64_t since_bytes, since_count; /* live, of --since and --until */
	uint64_t physical_bytes;	 /* of its live allocations */
	uint64_t work_bytes, work_count; /* live at the end of the work */
	bool from_c10;	     /* a frame of its stack is of libc10_cuda */
	bool torch_segments; /* driver memory that PyTorch's allocator divides into blocks */
	bool divided;	     /* the same, or by a pool that reports its blocks */
	bool caching;	     /* its stack passes through a caching framework's allocator */
	bool opaque;	     /* the same, and what is used inside cannot be told */
	bool one_pass;	     /* its phase is a pass that did not recur while its survivors came */
	bool hidden;	     /* left out by --device, --kind or --level */
	uint64_t place; /* a hash like `id` that leaves out the device: equal between ranks */
	uint64_t key;	/* the hash that `id` is made of */
	uint32_t merged;  /* the site that this one is part of: itself, mostly */
	uint32_t records; /* of the file's sites that it is made of */
};

/*
 * Returns one of the site's windows up to its `window_current`, after which they stay as it ends.
 */
static inline struct gm_window gm_site_window(const struct gm_site *site, unsigned window)
{
	unsigned changed = site->changed & ((2u << window) - 1);
	const struct gm_window *last;

	if (!changed)
		return (struct gm_window){0};
	last = &site->windows[__builtin_popcount(changed) - 1];
	return changed >> window
		       ? *last
		       : (struct gm_window){last->last_bytes, last->last_bytes, last->last_bytes};
}

/* Returns whether a site is of many places whose stacks did not fit into the file. */
static inline bool gm_site_is_overflow(const struct gm_site *site)
{
	return site->stack && site->stack->flags & GM_STACK_NO_ROOM;
}

/*
 * A live allocation, in half the bytes of its record: of the other members of the record most
 * allocations have what others have, too. Lists are sorted by device and key.
 */
struct gm_block {
	uint64_t key, bytes, physical_bytes, serial, time_ns;
	uint32_t site;
	uint32_t common; /* in doc->commons: a record with those other members, the rest zero */
};

#define GM_COMMON_SLOTS 1024u /* of doc->latest_commons */

/*
 * The captures of streams into graphs that share a private pool of PyTorch's, or those of one line
 * that have none. Memory that graphs share counts once.
 */
struct gm_graph_pool {
	uint32_t root; /* the first of its captures; GM_NONE: they took no memory */
	uint32_t stack; /* of that one's beginning, GM_NONE */
	int device;
	uint32_t *list; /* of doc->captures */
	unsigned list_count;
	uint64_t captures, graphs, live_graphs; /* graphs: executables made, and those there are */
	uint64_t nodes, executable_bytes;
	uint64_t taken_bytes; /* from the device, over the run */
	uint64_t segments, reserved_bytes, used_bytes;
	uint64_t next_bytes; /* of one more capture; GM_NO_BYTES: too few to tell */
};

/* A level of a device at one moment. */
struct gm_fragmentation {
	int device;
	const char *level; /* torch, pool, slab, custom */
	uint64_t time_ns;  /* the moment; GM_NO_BYTES: now */
	uint64_t reserved_bytes, used_bytes, largest_free_bytes;
	uint64_t releasable_bytes; /* free in segments without a block */
	uint64_t split_bytes;	   /* free in segments with blocks, expandable ones left out */
	unsigned segments;
	struct gm_pinner *pinners;
	unsigned pinners_count;
	const struct gm_fragmentation *peak; /* when most of it was used; NULL unknown */
	const struct gm_fragmentation *work; /* at the end of the work; NULL: as now */
};

struct gm_oom_top {
	uint32_t site;
	uint64_t bytes, count;
};

struct gm_oom_total {
	const char *what;
	uint64_t bytes;
};

struct gm_oom_process {
	uint64_t pid, bytes;
	bool gone; /* no such process here: it ended badly, or runs in another container */
};

struct gm_oom {
	struct gm_oom_record record;
	const char *api, *verdict, *phase;
	const char *library; /* CUDA library that made the call and hides its error; NULL */
	const char *mark;    /* the last one before it; NULL */
	const char **ranges; /* open in the thread that asked, the outermost first */
	unsigned ranges_count;
	const struct gm_stack *stack;
	struct gm_oom_top *top;	    /* holders of the memory */
	struct gm_oom_top *changes; /* holders of more than at the mark, with the difference */
	struct gm_oom_total *categories;
	struct gm_oom_process *processes; /* others on the device */
	unsigned top_count, changes_count, categories_count, processes_count;
	struct gm_fragmentation *holes; /* per level */
	unsigned holes_count;
	uint64_t kept_bytes; /* working memory from before it that is still live */
	uint32_t kept_site;  /* most of it, GM_NO_SITE */
	const char **advice;
	unsigned advice_count;
};

struct gm_error {
	struct gm_error_record record;
	const char *type, *api;
	const struct gm_stack *stack, *first_free_stack;
};

struct gm_ledger_row {
	const char *what, *library;
	uint64_t bytes;
};

struct gm_ledger {
	struct gm_ledger_record record;
	struct gm_ledger_row *rows;
	unsigned rows_count;
	uint64_t unexplained_growth_bytes;
	struct gm_ledger_record *history; /* samples in order of time, as many as the file kept */
	unsigned history_count;
};

struct gm_phase {
	const char *phase;
	int device;
	uint64_t peak_bytes, retained_bytes;
};

struct gm_category {
	const char *category;
	int device;
	unsigned level;
	uint64_t current_bytes, bytes_at_peak;
};

struct gm_mark {
	struct gm_mark_record record;
	const char *name;
};

/* Live blocks of a range that one site allocated. */
struct gm_range_site {
	uint32_t site;
	uint64_t bytes, count;
};

/* A record of GM_TABLE_RANGES, whose members that are indices lead into the document's list. */
struct gm_named_range {
	struct gm_range_record record;
	const char *name, *domain; /* NULL: none */
	const char *path;	   /* the names of the ranges around it, and its own */
	unsigned depth;
	uint32_t base; /* the first of the records of its devices: itself, mostly */
	bool hidden;   /* by --device, or of names without a figure */
	const char *highest_name, *most_retained_name;
	uint64_t median_peak_bytes;  /* GM_NO_BYTES without an instance */
	int64_t median_retained_bytes;
	/* live at the end of the work and allocated in it by its own thread */
	uint64_t work_bytes, work_count;
	struct gm_range_site *sites; /* of these, the largest first */
	/* allocated while the instance that retained most was open, and live then still */
	struct gm_range_site *retained_sites;
	unsigned sites_count, retained_sites_count;
};

struct gm_device {
	struct gm_device_record record;
	int index;
	const char *name, *uuid;
};

/* Segments of a private pool of PyTorch's: of CUDA graphs, or of a torch.cuda.MemPool. */
struct gm_private_pool {
	const char *name; /* "graph 1", "program 2" */
	unsigned segments;
	uint64_t reserved_bytes, allocated_bytes;
};

/* Figures of one device that a snapshot has and an output file has not. */
struct gm_imported {
	struct gm_private_pool *pools; /* in order of their first segments */
	unsigned pools_count;
	int device;
	uint64_t
		requested_bytes; /* of the blocks that are active; GM_NO_BYTES: not in the schema */
	uint64_t active_bytes;	 /* allocated, or freed and waiting for a stream */
};

enum gm_severity { GM_NOTE, GM_WARNING, GM_ERROR };

struct gm_finding {
	const char *id, *title, *evidence;
	const char *brief; /* the title in fewer words; NULL: there are none */
	enum gm_severity severity;
	int device; /* GM_HOST: none */
	uint64_t bytes;
	uint32_t site; /* GM_NO_SITE: none */
	const char **advice;
	unsigned advice_count;
	const char *job;  /* of findings of a job beside others: its id; NULL */
	const int *ranks; /* of findings of a job: which ranks have it, ascending */
	unsigned ranks_count;
};

struct gm_suppressed {
	const char *pattern;
	uint64_t bytes, count;
	unsigned sites;
};

/* A gate passed, or it failed, or it was not measured. */
struct gm_gate {
	const char *gate;
	bool passed;
	const char *unmeasured; /* reason why the figure is unknown, a clause; NULL: measured */
	bool absent;   /* it was not measured because there is nothing here that it measures */
	bool excused;  /* that it was not measured is allowed */
	uint64_t limit, value; /* bytes, percent or counts; GM_NO_BYTES: none */
	const char *unit;      /* "bytes", "%", "" */
	const char *note;      /* a sentence, NULL */
	uint32_t *sites;
	unsigned sites_count;
	bool by_totals; /* of the sites that were dropped nothing counts: the totals decide */
	bool of_work;  /* it is about the end of the work, not about the end of the file */
	int exit_code; /* if it failed */
};

/* Blocks of one site that are kept alive in the same way. */
struct gm_holder {
	uint32_t site;
	uint64_t bytes, blocks;
	const char **chain; /* from a root to the block */
	unsigned chain_count;
	bool garbage;	  /* unreachable: Python's collector would free it */
	bool complete;	  /* every link is certain */
	const char *note; /* reason why it is not complete, a clause; NULL */
};

struct gm_history;

struct gm_doc {
	struct gm_zone zone;
	struct gm_reader *reader;
	const struct gm_header *header;
	uint64_t late_events; /* that its count of events lacks (load/repair.c) */
	struct gm_symbols *symbols; /* NULL with --no-symbols */

	struct gm_journal_file *journal; /* the complete history; NULL */
	struct gm_history *ring; /* of events, once asked for (history/events.h); NULL */
	struct gm_whatif *whatif; /* it under other settings, once advice asked for it; NULL */
	bool whatif_asked;
	bool archive;			 /* read from the zstd form */
	struct gm_options options;	 /* the options of the command */
	uint64_t at_ns;			 /* --at; GM_NO_BYTES: the end of the file */
	int only_device;		 /* --device: the lists are of this one; -1: of all */
	bool peaks_unknown;		 /* counted back to `at_ns`: peaks before it are 0 */
	struct gm_alloc_record *records; /* with --at, the table of live allocations then */
	unsigned records_count;
	bool shared_symbols;	    /* they belong to the job */

	/* file and process */
	const char *path;
	bool complete, clean_exit;
	uint64_t lacking; /* a bit for each table of a damaged file that records are missing of */
	const char **warnings;
	unsigned warnings_count;
	const char **command;
	unsigned command_count;
	const char *cwd, *host, *program, *end, *started_at;
	const char *version, *backend, *unwinder, *python;
	const char *job, *attempt, *revision; /* by the launcher's variables; NULL */
	const char *superseded;		      /* reason why a job does not count it (job.h); NULL */
	double duration_s;
	const char *since, *until;	/* marks that `since_bytes` are between; NULL */
	const char *allocator_settings; /* PYTORCH_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF; NULL */
	bool uncached_torch;		/* PYTORCH_NO_CUDA_MEMORY_CACHING */
	bool torch;			/* PyTorch's blocks were seen */
	bool framework;			/* some caching framework was seen */

	struct gm_frame_list *frames; /* by number in GM_TABLE_FRAMES, filled when asked for */
	struct gm_stack *stacks;      /* by number in GM_TABLE_STACKS */
	struct gm_site *sites;
	struct gm_block *blocks;
	struct gm_block *freed_blocks; /* freed after the end of the work: see gm_work_block */
	struct gm_alloc_record *commons; /* members that blocks have in common: struct gm_block */
	uint32_t latest_commons[GM_COMMON_SLOTS]; /* by a hash, a number in that list plus 1 */
	struct gm_device *devices;
	struct gm_level_record *levels;
	struct gm_usage_record *usage;
	struct gm_pool_record *pools;
	struct gm_vmm_record *vmm;
	struct gm_torch_record *torches;
	struct gm_torch_record *pluggables; /* allocators of the program's own in PyTorch's place */
	struct gm_imported *imported; /* by a snapshot of PyTorch: the file is one */
	struct gm_fragmentation *fragmentation;
	struct gm_retry_record *retries;
	struct gm_oom *ooms;
	struct gm_error *errors;
	struct gm_error *failures; /* allocations that failed, and not for want of memory */
	struct gm_implicit_record *implicit;
	struct gm_ledger *ledger;
	struct gm_cost_record *costs;
	struct gm_capture_record *captures;
	struct gm_graph_pool *graph_pools;
	struct gm_context_record *contexts;
	struct gm_freed_export_record *freed_exports;
	struct gm_phase *phases;
	struct gm_category *categories;
	struct gm_mark *marks;
	struct gm_named_range *ranges; /* all records, by their numbers in the file */
	struct gm_timeline_record *timeline;
	struct gm_finding *findings;
	struct gm_gate *gates;
	struct gm_suppressed *suppressed;
	const char **unused_suppressions;
	unsigned frames_count, stacks_count, sites_count, blocks_count, freed_blocks_count,
		commons_count, devices_count, levels_count, usage_count, pools_count, vmm_count,
		torches_count, pluggables_count, imported_count, fragmentation_count, retries_count,
		ooms_count, errors_count, failures_count, implicit_count, ledger_count, costs_count,
		captures_count, graph_pools_count, contexts_count, freed_exports_count,
		phases_count, categories_count, marks_count, ranges_count, timeline_count,
		findings_count, gates_count, suppressed_count, unused_suppressions_count;

	struct gm_holder *holders; /* the largest first */
	unsigned holders_count;
	const char *holders_when;   /* now, core, oom, mark, signal, grow; NULL: nobody looked */
	uint64_t holders_ns;	    /* the moment of a copy; GM_NO_BYTES */
	const char *holders_python; /* version, "3.11" */
	uint64_t holders_objects;   /* looked at */
	bool holders_whole;	    /* all objects could be looked at */

	uint64_t ooms_lost; /* OOMs that the file counts beyond `ooms` */

	/* leaks; GM_NO_BYTES where the run did not end by itself */
	uint64_t exit_bytes, exit_count, cached_bytes;
	uint64_t teardown_bytes, teardown_count; /* freed after the end of the work */

	void (*release)(void *rendered); /* called for each frame's, as the document is freed */
};

/* Returns the bytes that an allocation counts in its site: of a sampled recording an estimate. */
static inline uint64_t gm_site_share(const struct gm_alloc_record *record)
{
	return record->bytes * gm_copies(record->extra);
}

/* Returns a clause that says how the recording is sampled; NULL of a full recording. */
const char *gm_sampled(struct gm_doc *doc);

/* Returns the standard error of so many bytes of a site; 0 in a full recording. */
uint64_t gm_site_error(const struct gm_doc *doc, const struct gm_site *site, uint64_t bytes);

/* The same errors for exports, which leave them out where nothing was sampled. */
struct gm_site_errors {
	uint64_t live_bytes, at_peak_bytes, allocated_bytes; /* GM_NO_BYTES in a full recording */
};

struct gm_site_errors gm_site_errors(const struct gm_doc *doc, const struct gm_site *site);

/* Adds a warning of the file, a sentence. */
void gm_doc_warn(struct gm_doc *doc, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Allocation calls that failed, for whatever reason, also those that a repetition served. */
uint64_t gm_doc_failed_calls(const struct gm_doc *doc);

/* True if the file is damaged and records of that table cannot be read. */
static inline bool gm_doc_lacks(const struct gm_doc *doc, enum gm_table_id table)
{
	return doc->lacking >> table & 1;
}

/* The blocks that were live at the end of the work: `blocks`, and those freed after it. */
static inline unsigned gm_work_blocks(const struct gm_doc *doc)
{
	return doc->blocks_count + doc->freed_blocks_count;
}

/* Returns the whole record of a block. */
static inline struct gm_alloc_record gm_block_record(const struct gm_doc *doc,
						     const struct gm_block *block)
{
	struct gm_alloc_record record = doc->commons[block->common];

	record.key = block->key;
	record.bytes = block->bytes;
	record.physical_bytes = block->physical_bytes;
	record.serial = block->serial;
	record.time_ns = block->time_ns;
	record.site = block->site;
	return record;
}

/* The same of a number in `doc->blocks`. */
static inline struct gm_alloc_record gm_doc_block(const struct gm_doc *doc, unsigned index)
{
	return gm_block_record(doc, &doc->blocks[index]);
}

/* Returns the device of a block, whose record need not be put together for it. */
static inline int gm_block_device(const struct gm_doc *doc, const struct gm_block *block)
{
	return doc->commons[block->common].device;
}

/* Makes a block of a record. Blocks of a document are made in no other way. */
void gm_block_put(struct gm_doc *doc, struct gm_block *block, const struct gm_alloc_record *record);

/* Returns a block of those of the end of the work; blocks that are still live come first. */
static inline const struct gm_block *gm_work_block_at(const struct gm_doc *doc, unsigned index)
{
	return index < doc->blocks_count ? &doc->blocks[index]
					 : &doc->freed_blocks[index - doc->blocks_count];
}

/* Returns its record. */
static inline struct gm_alloc_record gm_work_block(const struct gm_doc *doc, unsigned index)
{
	return gm_block_record(doc, gm_work_block_at(doc, index));
}

#define GM_ALL_TABLES UINT64_MAX
#define GM_STACK_TABLES                                                                            \
	(1ull << GM_TABLE_STACKS | 1ull << GM_TABLE_STACK_FRAMES | 1ull << GM_TABLE_FRAMES)
#define GM_PLACE_TABLES (1ull << GM_TABLE_SITES | GM_STACK_TABLES) /* of what is judged by places */

/*
 * Returns NULL if the accounting is complete, with no record missing of the tables (a bit for
 * each), else the reason as a clause, "3 records were dropped". A file can be cut or damaged (a
 * table lacks records), or its process could not store everything (records of these tables were
 * dropped; in files of older shims, of whichever table). Gates, the first lines of the summary and
 * its line of next steps all ask this function.
 */
const char *gm_books_gap(struct gm_doc *doc, uint64_t tables);

/*
 * Returns the reason why the allocations left at the end are not known, as the beginning of a
 * sentence.
 */
const char *gm_exit_unknown(const struct gm_doc *doc);

/* The level record of a device (GM_HOST: host memory), NULL if it was not used. */
const struct gm_level_record *gm_doc_level(const struct gm_doc *doc, int device, unsigned level);
const struct gm_device *gm_doc_device(const struct gm_doc *doc, int device);

/* The level at the end of the work. */
static inline const struct gm_fragmentation *
gm_holes_at_work_end(const struct gm_fragmentation *row)
{
	return row->work ? row->work : row;
}

/* Returns the bytes that a level reserves beyond those that are used. */
static inline uint64_t gm_unused_bytes(const struct gm_fragmentation *row)
{
	return row->used_bytes < row->reserved_bytes ? row->reserved_bytes - row->used_bytes : 0;
}

/*
 * Returns the unused bytes that lie outside the largest hole; GM_NO_BYTES: not known, or nothing is
 * free.
 */
static inline uint64_t gm_scattered_bytes(const struct gm_fragmentation *row)
{
	uint64_t unused = gm_unused_bytes(row), largest = row->largest_free_bytes;

	if (!unused || largest == GM_NO_BYTES)
		return GM_NO_BYTES;
	return largest < unused ? unused - largest : 0;
}

/*
 * Returns the figures that a snapshot of PyTorch has beyond an output file; NULL if the file is
 * none.
 */
const struct gm_imported *gm_doc_imported(const struct gm_doc *doc, int device);

/* Memory of the device: what GPUMEMTRACE_CAPACITY pretends, else the total; GM_NO_BYTES unknown. */
uint64_t gm_device_limit(const struct gm_device *device);

/* Name of a row of GM_TABLE_FUNCTIONS, NULL. */
const char *gm_doc_function(const struct gm_doc *doc, uint32_t function);

/* A figure of the file for the document, in seconds; NAN for GM_NO_BYTES. */
double gm_seconds(uint64_t ns);

/* The figure of a site that --sort or --at peak names; live bytes if neither is given. */
uint64_t gm_site_value(const struct gm_site *site, const struct gm_options *options);

/* Returns the site's whole record, as gm_site_put takes it. */
struct gm_site_record gm_site_record_of(const struct gm_site *site);

/* Gives the site the figures and windows of a record, whose windows are up to date. */
void gm_site_put(struct gm_doc *doc, struct gm_site *site, const struct gm_site_record *record);

/* Gives it windows alone. */
void gm_site_put_windows(struct gm_doc *doc, struct gm_site *site,
			 const struct gm_window windows[GM_WINDOWS]);

/*
 * True if lists have the site. All calls of a site without any allocation failed: it is no memory.
 */
static inline bool gm_site_is_shown(const struct gm_site *site)
{
	return !site->hidden && (site->record.allocations || site->record.failures);
}

/* Sorts allocations of the document by device, key and serial number. */
void gm_sort_blocks(const struct gm_doc *doc, struct gm_block *blocks, unsigned count);

/* Text in the document's zone, as printf. */
#define gm_doc_printf(doc, ...) gm_zone_printf(&(doc)->zone, __VA_ARGS__)

/* Text of a file that may be damaged or cut inside a character: valid UTF-8 in the zone. */
const char *gm_doc_text(struct gm_doc *doc, const char *text, size_t bytes);

/* A size as people read it, "1.50 GiB", in the document's zone. */
const char *gm_size(struct gm_doc *doc, uint64_t bytes);

/* Value of NAME in a "NAME=value\n" string, in the zone; NULL if it is not there. */
const char *gm_doc_variable(struct gm_doc *doc, const char *text, const char *name);

#endif
