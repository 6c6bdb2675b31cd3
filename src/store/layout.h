/*
 * The format of the output file. The file is the tracker's memory: the shim maps it shared and
 * keeps everything it knows in it, so what a reader finds after a kill is what the tracker knew.
 *
 * Included by the shim (writer) and by the report (reader). Defines structures only; calls nothing.
 * Everything is in the byte order of the machine that wrote it; `byte_order` tells a reader.
 *
 * The file:   header (one page) | chunk directory | chunk 0 | chunk 1 | ...
 *
 * A table is a sequence of fixed-size records, numbered from 0. Its records lie in chunks of
 * GM_CHUNK_BYTES; a record never crosses a chunk. Record i of a table lies in the table's chunk
 * number i / (GM_CHUNK_BYTES / record_bytes). The directory lists the chunks in file order, each
 * with its table and its number within the table. Records point at each other by index; GM_NONE is
 * "no record".
 *
 * Visibility: a record is filled first, then counted in `tables[].count` (release). Records whose
 * first member is `state` are reused: state goes to GM_STATE_EMPTY before a change of owner and to
 * its new value last. Counters that belong together change while `sequence` is odd.
 *
 * The end of the work: an allocation record that was emptied keeps its content until an allocation
 * uses it again. Records are used again in the reverse order of their emptying, so all that was
 * freed after the last allocation is still there: the chain of empty records from `emptied` up to
 * `emptied_at_work`. A reader adds these to the live ones to see the memory as it was at the end of
 * the work (load_sites.c).
 */
#ifndef GM_STORE_LAYOUT_H
#define GM_STORE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define GM_MAGIC	   "GMTRACE"	/* 8 bytes with the NUL */
#define GM_BYTE_ORDER	   0x01020304u
#define GM_FORMAT_VERSION  1u		/* written into every file */
#define GM_FORMAT_OLDEST   1u /* a reader of at least this version can read what we write */
#define GM_HEADER_BYTES	   4096u
#define GM_CHUNK_BYTES	   65536u
#define GM_MIN_FILE_BYTES  (1ull << 20) /* the least cap that leaves room for figures */
#define GM_MAX_FILE_BYTES  (16ull << 30) /* a larger one is not read, so it is not written */
#define GM_NONE		   UINT32_MAX	/* no record, no string */
#define GM_NO_BYTES	   UINT64_MAX	/* a figure that is not known */
#define GM_HOST		   (-1)		/* `device` of host memory */
#define GM_MAX_DEPTH	   256		/* most frames a stack can have */
#define GM_WINDOWS	   16
#define GM_TIMELINE_POINTS 256
#define GM_SHALLOW_FRAMES  8		/* frames of a free's stack */

/* A file that says where the live file is, on one line after this one (contract.md,
 * GPUMEMTRACE_OUT). */
#define GM_POINTER_MAGIC   "gpumemtrace-pointer 1\n"
#define GM_HISTORY_SUFFIX  ".events" /* of the complete history beside it (journal_code.h) */

/* Feature bits of `features`: what this file may hold. A reader ignores bits it does not know. */
#define GM_FEATURE_PYTHON (1ull << 0) /* Python frames */
#define GM_FEATURE_TORCH  (1ull << 1) /* PyTorch's blocks */
#define GM_FEATURE_RING	  (1ull << 2) /* table GM_TABLE_EVENTS is a ring */
#define GM_FEATURE_CUPTI  (1ull << 3) /* events came from CUPTI */
#define GM_FEATURE_IMPORTED (1ull << 4) /* made by the report from another tool's snapshot */
#define GM_FEATURE_JOURNAL (1ull << 5) /* the complete history is beside it (journal_code.h) */
#define GM_FEATURE_COPY	   (1ull << 6) /* a copy of a file that its process went on writing */
#define GM_FEATURE_LOCKED  (1ull << 7) /* the file of a live process is locked (store/new_file.h) */
#define GM_FEATURE_STARTS  (1ull << 8) /* the shim reads `wanted` */
#define GM_FEATURE_ATTACHED (1ull << 9) /* gpumem-report attach loaded the shim */

enum gm_table_id {
	GM_TABLE_STRINGS, /* bytes: NUL-terminated UTF-8; a string's number is its first byte's */
	GM_TABLE_MODULES, /* struct gm_module_record */
	GM_TABLE_FRAMES,  /* struct gm_frame_record */
	GM_TABLE_STACK_FRAMES, /* uint32_t: frame numbers, innermost first; stacks are runs of them
				*/
	GM_TABLE_STACKS,       /* struct gm_stack_record */
	GM_TABLE_SITES,	       /* struct gm_site_record */
	GM_TABLE_ALLOCS,       /* struct gm_alloc_record */
	GM_TABLE_DEVICES,      /* struct gm_device_record: record number = CUDA's device ordinal */
	GM_TABLE_LEVELS,       /* struct gm_level_record */
	GM_TABLE_USAGE,	       /* struct gm_usage_record */
	GM_TABLE_POOLS,	       /* struct gm_pool_record */
	GM_TABLE_ERRORS,       /* struct gm_error_record */
	GM_TABLE_OOMS,	       /* struct gm_oom_record */
	GM_TABLE_OOM_SITES,    /* struct gm_oom_site_record: runs, one per OOM */
	GM_TABLE_OOM_BLOCKS,   /* struct gm_oom_block_record: runs, one per OOM */
	GM_TABLE_IMPLICIT,     /* struct gm_implicit_record */
	GM_TABLE_MARKS,	       /* struct gm_mark_record */
	GM_TABLE_TIMELINE,     /* struct gm_timeline_record */
	GM_TABLE_EVENTS,       /* struct gm_event_record */
	GM_TABLE_LEDGER,       /* struct gm_ledger_record: one per device, the latest sample */
	GM_TABLE_COSTS,	       /* struct gm_cost_record */
	GM_TABLE_RETRIES,      /* struct gm_retry_record: one per device */
	GM_TABLE_TORCH,	       /* struct gm_torch_record: one per device */
	GM_TABLE_VMM,	       /* struct gm_vmm_record: one per device */
	GM_TABLE_CONTEXTS,     /* struct gm_context_record */
	GM_TABLE_LEDGER_HISTORY, /* struct gm_ledger_record: bounded samples over time */
	GM_TABLE_FUNCTIONS, /* struct gm_function_record: CUDA functions that appear in the file */
	GM_TABLE_PEAKS,	    /* struct gm_peak_record: one per device and level of holes */
	GM_TABLE_PEAK_BLOCKS,	/* struct gm_peak_block_record */
	GM_TABLE_FREED_EXPORTS, /* struct gm_freed_export_record */
	GM_TABLE_RANGES,	/* struct gm_range_record */
	GM_TABLE_CAPTURES,	/* struct gm_capture_record */
	GM_TABLES_NOW,		/* one past the last table of this version */
	GM_TABLES = 40		/* room in the header */
};

/* The level that handed out the memory; sites and allocations of the three are kept apart. */
enum gm_level { GM_LEVEL_DRIVER, GM_LEVEL_TORCH, GM_LEVEL_CUSTOM, GM_LEVELS };

/*
 * The kind of memory (contract.md, section 4). GM_KIND_NONE: no memory (a mapping, a reservation).
 */
enum gm_kind {
	GM_KIND_NONE,
	GM_KIND_DEVICE,
	GM_KIND_MANAGED,
	GM_KIND_ARRAY,
	GM_KIND_ASYNC,
	GM_KIND_VMM,
	GM_KIND_GRAPH,
	GM_KIND_PINNED,
	GM_KIND_REGISTERED,
	GM_KIND_IMPORTED,
	GM_KINDS
};

/* Name spaces of an allocation's key: the same number may be a pointer in one and a handle in
 * another. */
enum gm_space {
	GM_SPACE_POINTER, /* address of memory CUDA handed out; freed by any of its free calls */
	GM_SPACE_ARRAY,	  /* CUarray = cudaArray_t */
	GM_SPACE_MIPMAP,  /* CUmipmappedArray */
	GM_SPACE_HANDLE,  /* CUmemGenericAllocationHandle */
	GM_SPACE_RESERVATION, /* address of a cuMemAddressReserve range */
	GM_SPACE_MAPPING,     /* address of a cuMemMap range */
	GM_SPACE_REGISTERED,  /* address of a registered host range */
	GM_SPACE_EXTERNAL,    /* CUexternalMemory */
	GM_SPACE_MULTICAST,   /* multicast object */
	GM_SPACE_TORCH,	      /* address of a PyTorch block */
	GM_SPACE_CUSTOM,      /* address of a block of a program's own pool */
	GM_SPACES
};

/*
 * The bits above GM_STATE_BITS of an allocation record's `state` are 0 unless the record is empty.
 * Then they lead to the record that was emptied before it and not used again (its offset in
 * GM_OFFSET_UNIT_BYTES; 0: none).
 */
#define GM_OFFSET_UNIT_BYTES 32u
#define GM_STATE_BITS 3
#define GM_STATE_MASK ((1u << GM_STATE_BITS) - 1)

enum gm_state {
	GM_STATE_EMPTY, /* not in use */
	GM_STATE_LIVE,
	GM_STATE_FREEING, /* live; written by earlier shims during a free call */
	GM_STATE_PENDING /* freed by the program, memory still held (references or mappings left) */
};

/*
 * The end of the process, `end`. GM_END_DETACHED: the process did not end, gpumem-report detach
 * closed the file.
 */
enum gm_end { GM_END_NONE, GM_END_EXIT, GM_END_EXEC, GM_END_DETACHED };

/* `wanted`: 0 in files of older shims, which always record. */
enum gm_wanted { GM_WANT_RECORDING, GM_WANT_SLEEP };

/* `recording`. GM_SLEEPS: asleep, or put to sleep; the tables hold the latest period. */
enum gm_recording { GM_RECORDS, GM_SLEEPS };

struct gm_table_info {
	uint32_t record_bytes;
	uint32_t count; /* records that a reader may look at (release) */
};

/* A string (`..._string`) is a byte number in GM_TABLE_STRINGS or GM_NONE. */
struct gm_header {
	char magic[8];
	uint32_t byte_order;
	uint32_t format_version;
	uint32_t oldest_version;
	uint32_t header_bytes;
	uint32_t chunk_bytes;
	uint32_t directory_offset;	/* bytes from the start of the file */
	uint32_t directory_capacity;	/* entries */
	uint32_t chunk_count;		/* entries in use (release) */
	uint64_t features;
	uint64_t cap_bytes;		/* GPUMEMTRACE_MAX_FILE */
	uint64_t data_offset;		/* of chunk 0, from the start of the file */
	struct gm_table_info tables[GM_TABLES];

	/* the process */
	uint32_t pid, ppid;
	uint64_t pid_start_ticks;	/* field 22 of /proc/PID/stat: tells a reused pid apart */
	uint64_t started_realtime_ns;	/* wall clock of time 0, since 1970 */
	uint64_t started_monotonic_ns;	/* CLOCK_MONOTONIC at time 0 = the first CUDA event */
	uint64_t ended_ns;		/* since time 0; 0 while running */
	uint32_t end;			/* enum gm_end; GM_END_NONE in a killed process's file */
	int32_t exit_status;		/* of _exit and exit where known, else -1 */
	int32_t rank, local_rank, world_size; /* -1: not in the environment */
	uint32_t command_string; /* arguments, each ended by '\n' with '\\' and '\n' escaped by '\\'
				  */
	uint32_t cwd_string, host_string, program_string;
	uint32_t settings_string;	/* "NAME=value\n" of every setting in force */
	uint32_t environment_string;	/* "NAME=value\n" of the few variables that advice needs */
	uint32_t tracer_version_string, backend_string, unwinder_string;
	uint32_t python_string; /* CPython's version, or the reason why there are no frames */
	uint32_t job_string;		/* "NAME=value\n": job ids of launchers */
	uint64_t machine;		/* a number for the host that pid belongs to; 0 unknown */
	uint32_t other_libcudas; /* linker namespaces (dlmopen) with a libcuda that is not seen */
	uint32_t launched; /* kernels and graphs that a thread launched since it last allocated:
			      the most when last written, which a launch in 64 and the end do; an
			      allocation makes it 0 */
	uint32_t reserved1[2];

	/* fields that every event changes or reads: 64 bytes, one cache line */
	uint64_t last_event_ns;		/* since time 0 */
	uint64_t serial;		/* of the last allocation recorded */
	uint64_t events;		/* calls recorded, successful or not */
	uint64_t event_head;	    /* events ever written to the ring; record = head % capacity */
	uint64_t first_mark_serial; /* `serial` at the program's first mark, 0: no mark. For leaks
				       at exit */
	uint64_t freed; /* allocation records that were emptied so far: the clock of the windows */
	uint32_t sequence;		/* odd: counters here and in the tables are being changed */
	uint32_t emptied; /* the allocation record emptied last (GM_OFFSET_UNIT_BYTES), 0: none */
	uint32_t emptied_at_work;	/* the same when an allocation was last recorded */
	uint16_t worked; /* 1: a launch or a refused allocation came after the last free */
	uint16_t wanted; /* enum gm_wanted: written by gpumem-report, read at each event (atomic) */

	uint64_t event_capacity;	/* records of the ring */
	uint64_t own_bytes;		/* private memory of the tracker */

	/* counters of the tracker itself */
	uint64_t dropped_records;	/* not stored: file cap, full disk, tables full */
	uint64_t unknown_frees;		/* CUDA accepted a free of memory that we did not record */
	uint64_t lost_stacks;		/* the unwinder gave up */
	uint64_t overhead_ns;		/* estimate: time spent in the tracker (sampled) */
	uint64_t teardown_frees;	/* frees answered "unloading" at the end of the process */
	uint64_t oom_events;		/* also those that are not kept */
	uint64_t passed_calls; /* calls the tracker let through unrecorded (disabled, in a fork) */
	uint64_t heap_limit_bytes;	/* cudaLimitMallocHeapSize last set, GM_NO_BYTES if never */
	uint64_t stack_limit_bytes;

	/* windows: stretches of equal work or between marks; every site keeps GM_WINDOWS of them */
	uint32_t window_current;	/* index of the window that is open */
	uint32_t window_merges; /* merges of neighbours so far: window i covers 2^merges firsts
				 */
	uint32_t window_marks;		/* 1: windows are marks' (see gm_site_record) */
	uint32_t
		window_resets; /* 1 after the first mark made the windows before it into window 0 */
	uint64_t window_width;		/* in frees, of windows of equal work */
	uint64_t window_start_ns[GM_WINDOWS];
	uint32_t window_mark[GM_WINDOWS]; /* the mark that opened it; GM_NONE */
	uint32_t window_filled;		  /* marks of the program so far, if window_marks */
	uint32_t marks_dropped;		/* marks beyond those that are kept */

	/* GPUMEMTRACE_UNWINDER=check: walks by the unwind tables and by libunwind; else 0 */
	uint64_t walks_compared, walks_differing;
	uint64_t walks_not_compared;	/* one of the two did not find the frames to compare */

	/*
	 * a recording of a part of the run (GPUMEMTRACE_START=asleep, gpumem-report stop, attach)
	 */
	uint32_t recording;		/* enum gm_recording: what the shim does now (release) */
	uint32_t periods; /* times that recording began in a process at work; 0: the whole run */
	uint64_t period_started_ns;	/* of the latest period, since time 0 */
	uint64_t period_ended_ns;	/* 0: it goes on */
	uint64_t process_age_ns; /* of an attached process at time 0; 0: recorded from its start */
	uint64_t before_frees,
		before_freed_bytes;   /* freed in the period, allocated before, size confirmed */
	uint64_t slots, tables_words; /* attached: relocation slots, words of driver tables that
					 lead here */
	uint64_t dropped_tables; /* bit i: records of table i were dropped. Of GM_TABLE_LEVELS: an
				    allocation is in no total. 0 in files of older shims */
	uint64_t ranges_dropped; /* that were not recorded: too many open, too many names */
	uint32_t cupti_functions; /* attached: functions whose calls CUPTI reports */
	uint32_t cupti_string;	  /* if none: why; 0 in files of older shims */
	/*
	 * GPUMEMTRACE_SAMPLE, 0: every allocation is recorded in full. Else the mean distance of
	 * samples in bytes: sites have estimates, PyTorch's blocks that are not sampled have no
	 * record, other allocations that are not sampled have one whose site has no stack.
	 */
	uint64_t sample_bytes;
};
_Static_assert(sizeof(struct gm_header) <= GM_HEADER_BYTES, "header fits its page");
_Static_assert(offsetof(struct gm_header, last_event_ns) % 64 == 0,
	       "what an event changes is one line");

struct gm_directory_entry {
	uint32_t table;		/* enum gm_table_id */
	uint32_t ordinal;	/* number of this chunk within its table */
};

/* A loaded object, for frames. A library loaded again elsewhere is a new record. */
struct gm_module_record {
	uint64_t start, end;	/* addresses it covered */
	uint64_t bias;		/* address - bias = address in the file's own terms */
	uint32_t path_string;
	uint8_t build_id_bytes;	/* 0: it has none */
	uint8_t unloaded;	/* 1: was gone when last looked at */
	uint8_t interpreter;	/* 1: CPython's own code */
	uint8_t reserved;
	uint8_t build_id[24];
};

enum gm_frame_kind { GM_FRAME_NATIVE, GM_FRAME_PYTHON };

struct gm_frame_record {
	uint32_t kind;
	union {
		struct {
			uint32_t module;	/* GM_NONE: no object covers the address */
			uint64_t offset; /* address - bias; of the return address, so look up offset
					    - 1 */
		} native;
		struct {
			uint32_t function_string; /* qualified name where CPython has one */
			uint32_t file_string;
			uint32_t line;		/* 0: unknown */
		} python;
	};
};

enum gm_layer { GM_LAYER_RUNTIME, GM_LAYER_DRIVER, GM_LAYER_FRAMEWORK };

/* A function of CUDA (a row of cuda_api.def) or a hook, named so that a file explains itself. */
struct gm_function_record {
	uint32_t name_string;
	uint32_t layer;		/* enum gm_layer */
};

#define GM_STACK_TRUNCATED	  1u /* more frames were there than GPUMEMTRACE_DEPTH */
#define GM_STACK_PYTHON_TRUNCATED 2u /* the Python part was cut */
#define GM_STACK_INCOMPLETE	  4u /* the unwinder stopped before the thread's first frame */
#define GM_STACK_PYTHON_UNREADABLE 8u /* a Python thread whose frames could not be read */

struct gm_stack_record {
	uint64_t hash;
	uint32_t first;		/* in GM_TABLE_STACK_FRAMES */
	uint16_t frames;
	uint16_t flags;		/* GM_STACK_... */
};

struct gm_window {
	uint64_t min_bytes, max_bytes, last_bytes;
};

/*
 * A site: one stack, kind, device, level. Windows: `windows[0..window_current]` are valid after the
 * same merges as the header's (`window_merges`) were applied, lazily: a site that did not change
 * since lacks them. A reader applies what is missing (account/site_windows.h). In a window that the
 * site was not touched in, min = max = last = the last bytes of the window before. Peak: if `epoch`
 * is older than its level's, bytes_at_peak is to be read as live_bytes.
 */
#define GM_SITE_TORCH	      1u /* its memory is PyTorch's segments: divided into blocks */
#define GM_SITE_OVERFLOW      4u /* of the places for which no room was left */
#define GM_SITE_COLLECTOR_OFF 2u /* a collector that was switched off freed some at Python's end */

/* Members of a structure that are a structure, `group`, as well. */
#define GM_GROUP(tag, group, ...)                                                                  \
	union {                                                                                    \
		struct {                                                                           \
			__VA_ARGS__                                                                \
		};                                                                                 \
		struct tag {                                                                       \
			__VA_ARGS__                                                                \
		} group;                                                                           \
	}

/* In an order that saves time: a free changes the first 64 bytes and a window, an allocation the
 * second 64 too; the third are for seldom events. Records start at cache lines. */
/* clang-format off */
struct gm_site_record {
	GM_GROUP(gm_site_figures, figures,
	uint32_t stack;		/* GM_NONE: stacks are off */
	uint8_t kind, level;
	int16_t device;		/* GM_HOST for host memory */
	uint64_t live_bytes, live_count;
	uint64_t freed_bytes, frees;
	uint64_t bytes_at_peak, epoch;
	uint8_t window_current, window_merges, window_resets, window_reserved;
	uint32_t function;	/* GM_TABLE_FUNCTIONS: the one that allocated first */

	uint64_t peak_bytes;
	uint64_t allocated_bytes, allocations;
	uint64_t last_ns;		/* of the latest allocation */
	uint64_t level_max_bytes; /* the level's highest total right after one of its allocations */
	uint64_t min_alloc_bytes, max_alloc_bytes;
	uint64_t failures;

	uint64_t first_ns;
	uint64_t stray_bytes,
		stray_count; /* live and allocated before the first mark (not leaks at exit) */
	uint64_t first_serial;		/* of its first allocation */
	uint32_t failed_frees, retries;	/* frees CUDA refused; retry chains begun here */
	uint32_t caller_module;		/* innermost module outside CUDA and the shim, GM_NONE */
	uint8_t flags;			/* GM_SITE_... */
	uint8_t reserved[3];
	/* Freed by CPython's garbage collector before the interpreter's end. 0 too where Python's
	 * frames are not read, and in files of older shims. */
	uint64_t collected_bytes, collected_count;
	);
	struct gm_window windows[GM_WINDOWS];
};
/* clang-format on */
_Static_assert(sizeof(struct gm_site_record) % 64 == 0, "a record starts at a cache line");

#define GM_ALLOC_EXPORTED    1u	/* an IPC or shareable handle of it was taken */
#define GM_ALLOC_BEFORE_MARK 2u	/* allocated before the program's first mark */
#define GM_ALLOC_AUTO_FREE   4u	/* graph memory that auto-free-on-launch handles */
#define GM_ALLOC_TORCH	     8u	/* taken by PyTorch's allocator: a segment, or a mapping of one */
#define GM_ALLOC_PLUGGABLE  16u	/* taken by an allocator that the program gave to PyTorch */
#define GM_ALLOC_RELAXED    32u /* by a thread that allows itself what captures forbid */
/*
 * The bits above have the order of magnitude of the launches of the thread since its allocation
 * before: 0 none, 1 one, 2 two or three, 3 four to seven, ... Not of PyTorch's blocks; 0 in files
 * of older shims.
 */
#define GM_ALLOC_LAUNCHES_SHIFT 8

/* A free of a block needs the first 32 bytes alone, which lie in one cache line; 96 bytes lie in
 * two. */
struct gm_alloc_record {
	uint32_t state;		/* enum gm_state, and the chain of empty ones (release) */
	uint32_t site;
	uint64_t key;		/* pointer, array or handle: see enum gm_space */
	uint64_t bytes;		/* asked for */
	uint64_t serial;	/* counts allocations; unique */

	uint64_t physical_bytes; /* held by the driver, rounded to pages or 512 B; 0 of a block */
	uint16_t flags;		/* GM_ALLOC_... */
	uint8_t space, kind;
	int16_t device;
	uint8_t level;
	int8_t extra; /* allocations like it that count in its site beyond itself, as a code of
			 gm_copies: 0, unless `sample_bytes` of the header is set; -1: it counts in
			 no site's figures (account/sampling.h) */
	uint64_t time_ns;	/* of the call */
	uint64_t stream;	/* handle the caller gave, 0 default */
	uint32_t owner; /* pool (GM_TABLE_POOLS) or, of a mapping, the handle's record; GM_NONE */
	uint32_t references;	/* of a handle: those the program holds; 0 and mapped is
				   GM_STATE_PENDING.    Of an import: how often it was opened */
	uint32_t thread;	/* tid */
	uint32_t mappings; /* of a handle: mappings, tiles and multicast bindings that hold it */
	uint32_t context;	/* GM_TABLE_CONTEXTS: the one it goes with; GM_NONE */
	uint32_t ipc; /* of an exported or imported one: its handle's number, 0 none (a descriptor)
		       */
	uint32_t range; /* GM_TABLE_RANGES plus 1: the thread's innermost one; 0 none */
	uint32_t capture; /* GM_TABLE_CAPTURES plus 1: the one that PyTorch took it for; 0 none */
};
_Static_assert(sizeof(struct gm_alloc_record) == 96, "a record lies in two cache lines");

struct gm_device_record {
	uint32_t used;		/* 1: a context or an allocation was seen on it (release) */
	uint32_t name_string;
	uint8_t uuid[16];
	uint64_t total_bytes;	/* as CUDA reports it */
	uint64_t capacity_bytes; /* GPUMEMTRACE_CAPACITY; GM_NO_BYTES unless set */
	uint64_t free_before_bytes; /* driver's free bytes before the first context; GM_NO_BYTES */
	uint64_t context_bytes;	/* the first context's cost; GM_NO_BYTES */
	uint32_t context_stack;	/* the call that made the first context, GM_NONE */
	uint32_t pci_domain, pci_bus, pci_device;
	/*
	 * In use when the period began and not freed since (gm_header's `periods`), GM_NO_BYTES:
	 * not measured yet. If no context's cost is known, the contexts are part of it.
	 */
	uint64_t before_bytes;
	uint64_t before_torch_bytes; /* PyTorch's blocks among it when it first told, GM_NO_BYTES:
					not yet */
};

/* Totals of a level on a device. Driver level: the owned device kinds; device GM_HOST: pinned. A
 * block changes the first 64 bytes alone. */
struct gm_level_record {
	uint64_t current_bytes, current_count;
	uint64_t peak_bytes;
	uint64_t epoch;			/* raised whenever the total reaches or exceeds its peak */
	uint64_t allocated_bytes, freed_bytes, allocations, frees;

	uint64_t peak_at_ns;
	uint64_t physical_bytes, physical_peak_bytes; /* of the driver level */
	uint64_t failures;
	int16_t device;
	uint8_t level;
	uint8_t reserved[5];
	/*
	 * Freed by CPython's garbage collector, as `collected_bytes` of the sites, of what was
	 * live at a peak: the most for any peak so far; and for the peak at `collected_peak_ns`,
	 * the latest peak after which the collector freed something.
	 */
	uint64_t collected_of_peak_bytes;
	uint64_t collected_since_bytes, collected_peak_ns;
};
_Static_assert(sizeof(struct gm_level_record) == 128, "a record is two cache lines");

struct gm_usage_record {
	int16_t device;			/* GM_HOST for host kinds */
	uint8_t kind;
	uint8_t reserved[5];
	uint64_t current_bytes, current_count;
	uint64_t peak_bytes;
	uint64_t allocated_bytes, freed_bytes, allocations, frees, failures;
};

enum gm_pool_type { GM_POOL_DEFAULT, GM_POOL_EXPLICIT, GM_POOL_GRAPH, GM_POOL_IMPORTED };

struct gm_pool_record {
	uint32_t state; /* GM_STATE_LIVE; destroyed: GM_STATE_PENDING while memory of it is
			   allocated, then GM_STATE_EMPTY */
	int16_t device;
	uint8_t type;			/* enum gm_pool_type */
	uint8_t configured;		/* 1: release_threshold_bytes was asked */
	uint64_t handle;
	uint64_t reserved_bytes;	/* by the pool's attributes when last asked */
	uint64_t used_bytes; /* live_bytes; of a graph pool: by its attributes (pools.c) */
	uint64_t reserved_peak_bytes, used_peak_bytes;
	uint64_t pending_free_bytes;	/* freed on a stream, still in the pool's reserve */
	uint64_t allocations;
	uint64_t sampled_ns;
	uint32_t stack;			/* of its creation, GM_NONE */
	uint32_t samples;		/* times its attributes were asked */
	uint64_t live_bytes;		/* allocated from it and not freed, by our own books */
	uint64_t release_threshold_bytes; /* bytes that it keeps at waits, when last asked */
	uint64_t trims,
		trimmed_bytes; /* calls that trimmed it, by how much they lowered its reserve */
	uint64_t max_bytes;		/* that it was made with; 0: no maximum */
};

enum gm_error_type {
	GM_ERROR_DOUBLE_FREE,
	GM_ERROR_UNKNOWN_POINTER,
	GM_ERROR_INTERIOR_POINTER,
	GM_ERROR_WRONG_FAMILY,
	GM_ERROR_FREE_FAILED,
	GM_ERROR_FREE_AFTER_RESET,
	GM_ERROR_RELEASED_TWICE,
	GM_ERROR_FREED_WHILE_MAPPED,
	GM_ERROR_FREED_WHILE_EXPORTED,
	GM_ERROR_TYPES,
	GM_ERROR_ALLOC_FAILED =
		64 /* no bad free: an allocation failed, and not for want of memory */
};

/*
 * Bad frees and failed allocations, one record for the same type, function, error and stack. Of a
 * failed allocation `victim_site` is its own site, `bytes` what was asked for in all.
 */
struct gm_error_record {
	uint32_t type;
	uint32_t function;	/* GM_TABLE_FUNCTIONS */
	int32_t error;		/* CUDA's code */
	uint32_t stack;
	uint32_t first_free_stack;
	uint32_t victim_site;	/* site of the memory that the first free took, GM_NONE */
	uint64_t pointer;	/* of the latest */
	uint64_t count, bytes;
	uint64_t time_ns;	/* of the first */
};

/* An OOM carries a copy of the live table, so only the first and the latest are kept. */
#define GM_OOMS_FIRST 32u
#define GM_OOMS_KEPT  64u
#define GM_OOM_RANGES_BYTES 256u

enum gm_oom_verdict {
	GM_OOM_UNDECIDED,	/* the report decides from the figures */
	GM_OOM_LIMIT,
	GM_OOM_HOST
};

#define GM_OOM_PENDING 4u

/* The bytes that were freed on a stream that nobody has waited for since. */
struct gm_oom_pending {
	uint64_t stream, bytes; /* 0 bytes: no more of them */
	uint32_t stack;		/* of the latest free, GM_NONE */
	uint32_t reserved;
};

struct gm_oom_record {
	uint64_t time_ns;
	uint64_t requested_bytes;
	uint64_t free_bytes, total_bytes; /* by the driver; GM_NO_BYTES if it could not be asked */
	uint64_t tracked_bytes, tracked_physical_bytes;
	uint64_t others_bytes;			/* other processes, by NVML; GM_NO_BYTES */
	uint64_t own_bytes;			/* this process, by NVML; GM_NO_BYTES */
	uint64_t torch_reserved_bytes, torch_allocated_bytes; /* GM_NO_BYTES without PyTorch */
	uint64_t torch_largest_hole_bytes;	/* GM_NO_BYTES: not computed by the shim */
	uint64_t pool_reserved_bytes, pool_used_bytes, pending_free_bytes;
	uint64_t mark_delta_bytes;		/* growth of the level since the last mark */
	uint32_t function; /* GM_TABLE_FUNCTIONS; GM_NONE: reported by a framework alone */
	int32_t error;
	int16_t device;
	uint8_t verdict;			/* enum gm_oom_verdict */
	uint8_t level;				/* level that gave up: driver or torch */
	uint32_t stack, thread;
	uint32_t first_site, sites;		/* run in GM_TABLE_OOM_SITES */
	uint32_t first_block, blocks;		/* run in GM_TABLE_OOM_BLOCKS */
	uint32_t attempts;			/* failing calls of its chain */
	uint32_t other_pids_string;		/* "PID BYTES\n" lines, GM_NONE */
	uint32_t injected;			/* 1: by GPUMEMTRACE_FAIL or _CAPACITY */
	uint32_t withdrawn;			/* 1: the request was served after all, no OOM */
	uint32_t reserved;
	uint64_t slab_reserved_bytes, slab_used_bytes;
	uint64_t pool_max_bytes,
		pool_live_bytes; /* of the pool that was asked: 0 if it has no maximum */
	struct gm_oom_pending
		pending[GM_OOM_PENDING]; /* frees that streams had not reached, most first */
	uint64_t driver_bytes; /* the refused request to the driver: a segment is larger than its
				  block; 0: the driver was not asked */
	uint64_t torch_private_idle_bytes; /* idle in private pools of PyTorch's, as a snapshot
					      tells; else 0, and the report finds it */
	char ranges[GM_OOM_RANGES_BYTES];  /* names of the thread's open ranges, outermost first,
					      a line each; innermost ones without room left out */
};

struct gm_oom_site_record {
	uint32_t site;
	uint32_t count;
	uint64_t bytes;
};

#define GM_FREED_EXPORTS_KEPT 4096u /* the latest */

/*
 * Memory that was freed after a handle for other processes was taken. Another process that has it
 * open keeps it on the device.
 */
struct gm_freed_export_record {
	struct gm_alloc_record block; /* as it was before the free */
	uint64_t freed_ns;
	uint64_t serial; /* of the file's latest allocation then */
	uint32_t stack;	 /* of the free, GM_NONE */
	uint32_t reserved;
};

#define GM_OOM_BLOCK_TORCH 1u /* taken by PyTorch's allocator: a segment, also an empty one */

/*
 * A block that was live on an OOM's device and has an address (as many as fit), for holes: blocks,
 * driver memory that can be divided into blocks, mappings, and reserved addresses, at whose starts
 * expandable segments end.
 */
struct gm_oom_block_record {
	uint64_t address, bytes;
	uint32_t site;
	uint8_t level, kind, space;
	uint8_t flags; /* GM_OOM_BLOCK_... */
};

enum gm_implicit_cause {
	GM_IMPLICIT_DEVICE_RESET,
	GM_IMPLICIT_CONTEXT_DESTROY,
	GM_IMPLICIT_POOL_DESTROY,
	GM_IMPLICIT_GRAPH,
	GM_IMPLICIT_CAUSES
};

/* A record for each device, cause and place that caused it. */
struct gm_implicit_record {
	int16_t device;
	uint8_t cause;
	uint8_t reserved;
	uint32_t stack; /* of the call that let the memory go, GM_NONE */
	uint64_t bytes, count;
};

enum gm_mark_source { GM_MARK_PROGRAM, GM_MARK_SIGNAL, GM_MARK_SNAPSHOT, GM_MARK_NVTX };

struct gm_mark_record {
	uint32_t name_string;
	uint32_t source;	/* enum gm_mark_source */
	uint64_t time_ns;
	uint64_t current_bytes;	/* owned bytes of all devices, driver level */
	uint64_t torch_bytes;	/* PyTorch's allocated bytes of all devices */
	uint64_t serial;	/* `serial` at that moment */
};

/*
 * Ranges: named stretches of work. A range that was closed is an instance; what it counts is of one
 * device. Peaks and starts are bytes in use there, as gpumemtrace_live_bytes tells them.
 */
#define GM_RANGE_NAME_BYTES 96u	 /* with the NUL; longer names are cut */
#define GM_RANGE_RECORDS    2048u
#define GM_RANGE_NAMES	    128u /* of a group that have a record of their own */
#define GM_RANGE_DEVICES    8u	 /* use of others is not measured */
#define GM_RANGE_SAMPLES    64u

enum gm_range_source {
	GM_RANGE_NVTX,
	GM_RANGE_PROGRAM, /* gpumemtrace_range_push */
	GM_RANGE_MARKS,	  /* from one mark of the program to the next, named by the first */
	GM_RANGE_ANNOTATION /* of PyTorch's, in an imported snapshot */
};

struct gm_range_instance {
	uint64_t start_ns, end_ns;
	uint64_t peak_ns;	/* when the peak was reached */
	uint64_t peak_bytes, start_bytes;
	int64_t retained_bytes;	/* in use at the end less at the start */
	uint64_t first_serial, last_serial; /* of the allocations in between, of all threads */
	uint32_t thread;
	uint32_t reserved;
	char name[GM_RANGE_NAME_BYTES];
};

struct gm_range_sample {
	uint64_t start_bytes, peak_bytes;
	int64_t retained_bytes;
};

/*
 * The ranges of one name inside another one, or of a group: all names that differ only in numbers,
 * which are '#' in the group's. The first GM_RANGE_NAMES names of a group have records of their own
 * as well; of the others the group alone knows.
 */
struct gm_range_record {
	uint32_t hash;
	uint32_t name_string, domain_string; /* GM_NONE: no domain */
	uint32_t parent;	/* a record without `group`; GM_NONE: it lies in no range */
	uint32_t group;		/* that it belongs to; GM_NONE: it is one, or has no numbers */
	uint32_t names;		/* of a group, that have records */
	uint16_t domain_number;
	uint8_t source;		/* enum gm_range_source */
	uint8_t overflowed;	/* 1: it has instances of names without a record */
	int16_t device;		/* GM_HOST: nothing was in use on any */
	uint16_t samples_count;
	uint32_t other_device;	/* the record of the same on another device; GM_NONE */
	uint64_t opened, closed, measured; /* on this device; `opened` on any */
	uint64_t lowest_peak_bytes;
	uint64_t most_added_bytes; /* the highest rise above an instance's start */
	int64_t retained_bytes;	/* of all instances together */
	struct gm_range_instance highest, most_retained;
	uint64_t stride;	/* every so manieth instance is in `samples` */
	struct gm_range_sample samples[GM_RANGE_SAMPLES];
};

enum gm_series {
	GM_SERIES_TRACKED,	 /* owned bytes, driver level */
	GM_SERIES_TORCH_ALLOCATED,
	GM_SERIES_TORCH_RESERVED,
	GM_SERIES_POOL_RESERVED,
	GM_SERIES_PINNED,	 /* device GM_HOST */
	GM_SERIES_DRIVER_USED,	 /* the driver's own figure, when sampled */
	GM_SERIES_CUSTOM,
	GM_SERIES_COUNT
};

/* Equal stretches of time from time 0; when full, neighbours merge and the width doubles. */
struct gm_timeline_record {
	int16_t device;
	uint8_t series;
	uint8_t reserved[5];
	uint64_t width_ns;
	uint32_t points;	/* in use; the last is open */
	uint32_t reserved1;
	uint64_t min_bytes[GM_TIMELINE_POINTS];
	uint64_t max_bytes[GM_TIMELINE_POINTS];
	uint64_t last_bytes[GM_TIMELINE_POINTS];
};

enum gm_event_op {
	GM_OP_ALLOC,
	GM_OP_FREE,
	GM_OP_ALLOC_FAILED,
	GM_OP_FREE_FAILED,
	GM_OP_MARK,
	GM_OP_IMPLICIT_FREE,
	GM_OP_OOM,
	GM_OP_CONTEXT,
	GM_OP_MAP,
	GM_OP_UNMAP,
	GM_OP_LAUNCH, /* the last one in the ring */
	/*
	 * The trace of PyTorch's allocator of its own blocks; in a complete history alone.
	 */
	GM_OP_TORCH_POOL, /* the device's next blocks are of the stream and of the pool `key`: twice
			     a graph's number, or twice a program's plus 1; 0 PyTorch's own,
			     GM_NO_BYTES: neither is known */
	GM_OP_TORCH_REQUEST,	/* `bytes` were asked for with the next block, which is at `key` */
	GM_OP_TORCH_FREE_WAITS, /* streams still use the block at `key`, whose free is next */
	GM_OP_TORCH_FREE_DONE,	/* streams no longer use what was the block at `key` */
	/* Of a pool of stream-ordered memory, in a complete history alone. */
	GM_OP_WAIT,	/* a stream was waited for that had freed memory of it */
	GM_OP_WAIT_ALL, /* all streams of a context were */
	GM_OP_TRIM,	/* it was trimmed to so many bytes */
	GM_OPS
};

/* An event of the history ring. */
struct gm_event_record {
	uint64_t time_ns;
	uint64_t key;		/* pointer or handle; of a mark its record */
	uint64_t bytes;
	uint64_t serial;	/* of the allocation concerned, 0 unknown */
	uint32_t site;		/* of an allocation; GM_NONE */
	uint32_t stack;		/* of a free where captured; GM_NONE */
	uint32_t thread;
	uint16_t function;	/* GM_TABLE_FUNCTIONS, UINT16_MAX for blocks and marks */
	uint8_t op, kind;
	int16_t device;
	uint8_t level, space;
	int32_t error;		/* CUDA's code, 0 success */
	uint64_t stream;
};

/*
 * The source of the driver's figure for this process, which is kept beside the bytes that were
 * tracked at that moment.
 */
enum gm_ledger_source { GM_LEDGER_NONE, GM_LEDGER_NVML_PROCESS, GM_LEDGER_DEVICE_DELTA };

struct gm_ledger_record {
	int16_t device;
	uint8_t source;		/* enum gm_ledger_source */
	uint8_t reason; /* 0 context, 1 peak, 2 oom, 3 mark, 4 periodic, 5 a call that took memory,
			   6 a period began */
	uint32_t samples;
	uint64_t time_ns;
	uint64_t process_used_bytes;
	uint64_t device_used_bytes;	/* all processes */
	uint64_t tracked_physical_bytes;
	uint64_t context_bytes, code_bytes; /* contexts; modules and limits */
	uint64_t managed_bytes;		/* allocated, resident or not */
	int64_t unexplained_bytes;	/* process_used - what is above: negative, counted twice */
	int64_t unexplained_min_bytes;	/* over the run */
	int64_t unexplained_first_bytes;
	uint64_t launch_bytes, stream_bytes; /* of code_bytes: kernels' first launches, streams */
	uint64_t graph_bytes;	/* of code_bytes: executable graphs */
	uint64_t later_calls;	/* calls that may have taken memory since, and were not sampled */
	uint64_t before_bytes;	/* from before the period (gm_device_record), as far as not freed
				   since */
};

/* Memory that calls cost beside allocations: how it is measured says recorder/calls/role_cost.c. */
enum gm_cost { GM_COST_CONTEXT, GM_COST_MODULE, GM_COST_STACK_LIMIT, GM_COST_HEAP_LIMIT,
	       GM_COST_LAUNCH, /* a kernel's first launch: its code, local memory */
	       GM_COST_STREAM,  /* made: the queues behind them */
	       GM_COST_GRAPH,   /* instantiated: what the driver keeps of an executable graph */
	       GM_COST_KINDS };

#define GM_COST_TIMES 16u

struct gm_cost_record {
	int16_t device;
	uint8_t cost;		/* enum gm_cost */
	uint8_t reserved;
	uint32_t live_then; /* objects there were when the latest was made, at most 2^32 - 1; 0 in
			       files of older shims */
	uint64_t calls, ends;	/* objects made and destroyed: modules, streams, graphs */
	uint64_t live;		/* objects there are now */
	int64_t bytes;		/* sum of the differences */
	uint32_t module;	/* library that called, GM_NONE */
	uint32_t stack;		/* of the latest call; of objects all have the same */
	uint64_t nodes;		/* of executable graphs: nodes of all of them */
	uint64_t last_ns;	/* of the latest object that was made */
	uint64_t times_ns[GM_COST_TIMES]; /* of the object number 2^i */
};

#define GM_CAPTURES_KEPT 1024u /* the last record stands for all later ones */

/*
 * A capture of a stream into a graph. What PyTorch takes from the device meanwhile belongs to a
 * private pool, which captures share if one uses memory of another. Blocks that a capture uses
 * again cost nothing: `taken_bytes` is what came anew.
 */
struct gm_capture_record {
	int16_t device;
	uint8_t reserved[6];
	uint32_t stack;		/* of the first one's beginning, GM_NONE */
	uint32_t pool;		/* the first capture of its pool: itself, unless it shares one */
	uint64_t captures;	/* begun; 1, but of the last record */
	uint64_t graphs;	/* that came of them */
	uint64_t made, live;	/* executables of these graphs, and those there are */
	uint64_t nodes;		/* of all executables made */
	int64_t executable_bytes; /* taken by the driver to instantiate them, as far as measured */
	uint64_t taken_bytes;	/* segments */
	uint64_t time_ns;	/* of the beginning, of several the latest */
};

struct gm_retry_record {
	int16_t device;
	uint8_t reserved[6];
	uint64_t attempts, recovered, exhausted;
	uint64_t stall_ns, flushed_bytes;
};

enum gm_torch_allocator {
	GM_TORCH_NATIVE,
	GM_TORCH_EXPANDABLE,
	GM_TORCH_ASYNC,
	GM_TORCH_PLUGGABLE
};

/*
 * While `by_level` is 1 the level GM_LEVEL_TORCH of the device says what there is to say of blocks,
 * in a file that ends so too: allocated_bytes is its current_bytes and beyond_bytes, the counts and
 * totals are its own, and the timeline's last_bytes is its current_bytes. What is kept here then
 * may be older.
 *
 * While `counting` is 1, in a sampled recording, the level itself may be older, and so may `events`
 * of the header: counts[turn / 2 & 1] says what there is to say of blocks. An event makes `turn`
 * odd, fills in the other of the two and makes `turn` even again, the next number but one, so a
 * process that is killed leaves a whole one.
 */
struct gm_block_counts {
	uint64_t allocated_bytes; /* the level's current_bytes and beyond_bytes */
	uint64_t allocations, frees, allocated_total_bytes; /* as in the level */
};

struct gm_torch_record {
	int16_t device;
	uint8_t allocator; /* enum gm_torch_allocator; of a pluggable one only the reserve is known
			    */
	uint8_t by_level;	/* (release) */
	uint8_t counting;	/* (release) */
	uint8_t reserved[3];
	uint64_t allocated_bytes, allocated_peak_bytes;
	uint64_t reserved_bytes;
	uint64_t allocations, frees;
	uint64_t allocated_total_bytes, freed_total_bytes;

	uint64_t reserved_peak_bytes;
	uint64_t reserved_total_bytes, released_total_bytes;
	uint64_t alloc_retries, ooms;
	uint64_t mismatches;	/* times that ours and PyTorch's own totals differed */
	uint64_t releases;	/* segments and mappings given back to the driver */
	uint64_t rounds;	/* times that memory was taken again after some was given back */
	uint64_t first_release_ns, last_release_ns;
	uint64_t release_weight; /* bytes by which release_stack leads all others together */
	uint32_t release_stack;	/* gave back more than half of what was, if any one did; GM_NONE */
	uint8_t releasing;	/* 1: given back since memory was last taken */
	uint8_t reserved1[3];
	uint64_t beyond_bytes; /* PyTorch's count once, less our blocks; wraps around below 0
				*/
	uint8_t reserved2[24];

	struct gm_block_counts counts[2];

	/* In the units of counts[].allocated_bytes. All are atomic. */
	uint64_t turn;		 /* (release) */
	uint64_t lower_bytes;	 /* a minimum of the timeline's open point */
	uint64_t upper_bytes;	 /* a maximum of it, below which no peak is reached */
	uint64_t headroom_bytes; /* up to this total no peak is reached */
	uint64_t reserved_seen_bytes; /* reserved_bytes that PyTorch is expected to pass */
	uint64_t due_ticks; /* of the tracker's clock: it is read under the lock again */
	uint32_t contended; /* two events were at once: the allocator does not call under a lock */
	uint8_t reserved3[12];
};
_Static_assert(sizeof(struct gm_torch_record) == 320, "a record starts at a cache line");
_Static_assert(offsetof(struct gm_torch_record, counts) % 64 == 0 &&
		       offsetof(struct gm_torch_record, turn) % 64 == 0,
	       "an event changes two cache lines");

/* The levels at which memory is reserved beyond what is used. */
enum gm_holes_level {
	GM_HOLES_TORCH,
	GM_HOLES_POOL,
	GM_HOLES_SLAB,
	GM_HOLES_CUSTOM, /* a program's own pool: of no peak */
	GM_HOLES_LEVELS
};

/*
 * The moment at which what is used of a device's level last stood at its highest. What was
 * allocated then: the live records whose serial is at most this one's, and the peak blocks that
 * name it.
 */
struct gm_peak_record {
	int16_t device;
	uint8_t level;		/* enum gm_holes_level */
	uint8_t lost;		/* 1: not all that was freed since could be kept */
	uint8_t reserved[4];
	uint64_t used_bytes, reserved_bytes;
	uint64_t serial;	/* of the file's latest allocation then */
	uint64_t time_ns;
};

/* Freed since the peak whose serial it names; of an older peak it says nothing any more. */
struct gm_peak_block_record {
	uint64_t peak_serial;	/* (release) */
	uint64_t address, bytes;
	uint32_t site;
	int16_t device;
	uint8_t space;		/* enum gm_space: a block, a segment, a mapping, a reservation */
	uint8_t level;		/* enum gm_holes_level */
};
_Static_assert(GM_CHUNK_BYTES % (1024 * sizeof(struct gm_peak_block_record)) == 0,
	       "runs of them do not cross a chunk");

struct gm_vmm_record {
	int16_t device;
	uint8_t reserved[6];
	uint64_t created_bytes, mapped_bytes, reserved_va_bytes, handles;
	uint64_t created_peak_bytes, mapped_peak_bytes;
};

struct gm_context_record {
	uint32_t state;		/* GM_STATE_LIVE or _EMPTY (destroyed) */
	int16_t device;
	uint8_t primary, green;
	uint64_t handle;
	uint64_t time_ns;
	uint64_t bytes;		/* cost by the driver's free bytes, GM_NO_BYTES */
	uint32_t stack;
	uint32_t references;	/* of the primary context */
};

#endif
