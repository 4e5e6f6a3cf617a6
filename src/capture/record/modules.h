/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binaries that processes have mapped: what they are called, their identity, and their unwind rows,
 * which are read from the cache or compiled when they are first asked for. Rows and open files are
 * both limited: what was not used for the longest time is given back, and fetched again when it is
 * needed. One thread at a time.
 */
#pragma once

#include "base/limits/pace.h"
#include "base/process/shared_fd.h"
#include "capture/record/rowcache.h"
#include "context/thread.h"
#include "elf/unwind/rows.h"
#include "runtime/frames.h"
#include "runtime/go/binary.h"
#include "runtime/go/labels.h"
#include "runtime/hotspot/binary.h"
#include "runtime/php/binary.h"
#include "runtime/python/binary.h"
#include "runtime/ruby/binary.h"
#include "runtime/v8/binary.h"

#define MODULE_ANCESTORS 3

/* Information about a mapping. */
struct module_request {
    const char *path;       /* as the process sees it; " (deleted)" behind it is taken off */
    uint32_t pid;           /* 0: not known */
    uint64_t start, end;    /* of the mapping now; start == end: not known */
    uint64_t device, inode; /* as the kernel gives them with mappings; inode 0: not known */
    /* Processes that it descends from, nearest first; 0: not known. They have its root, nearly
     * always: the way to files in a container when the process has ended. */
    uint32_t ancestors[MODULE_ANCESTORS];
};

/* A file as stat sees it: equal ones have the same content. */
struct module_stamp {
    uint64_t device, inode, size_bytes;
    int64_t changed_ns;
};

enum module_rows_state {
    MODULE_ROWS_NOT_HELD, /* not asked for yet, or given back */
    MODULE_ROWS_HELD,
    MODULE_ROWS_NONE, /* the file has none, or they can't be read */
};

/* A binary, as long as the table lives. */
struct module {
    char *path;                     /* as the process sees it */
    char *build_id;                 /* hex; "" when it has none */
    bool readable;                  /* false: nothing is known but its name */
    struct python_binary *python;   /* the interpreter in it; NULL: there is none */
    struct hotspot_binary *hotspot; /* likewise */
    struct v8_binary *v8;
    struct php_binary *php;
    struct ruby_binary *ruby;
    struct go_binary *go;     /* the program, if it is written in Go */
    struct bpf_go *go_labels; /* labels of goroutines, if it is a Go program that can have them */
    struct thread_variable *thread_variable; /* with contexts of threads; NULL: it has none */
    enum runtime_frame frame_kind;           /* what its frames are */

    /* The rest is for modules.c and module_file.c. */
    struct modules *table;
    struct module *same;    /* whose rows serve: itself, or an equal one in another place */
    uint64_t device, inode; /* as it was asked for, or by stat if that was not known */
    struct module_stamp stamp;
    bool is_vdso;
    bool stale;             /* the file has changed since: for mappings of that time only */
    bool trusted;           /* belongs to us or to root: may share rows by its build ID */
    bool irreplaceable;     /* its path leads elsewhere now: the last to be closed */
    int fd;                 /* -1: not open */
    struct shared_fd *held; /* by whoever reads the file after the module is gone, too */
    int64_t checked_ns;     /* when the file was last looked at */
    uint32_t pid;           /* of a process that had it mapped, and where */
    uint64_t start, end;
    uint32_t ancestors[MODULE_ANCESTORS]; /* of that process */
    struct elf_file headers;              /* its segments; nothing can be read through it */
    struct rows_identity identity;
    enum module_rows_state rows_state;
    struct unwind_rows rows;
    int64_t rows_used_ns;     /* when they were last asked for */
    int64_t postponed_ns;     /* since when its rows wait for better times; 0: they don't */
    int64_t rows_tried_ns;    /* when the file could not be opened for them; 0: it could */
    uint64_t used, rows_used; /* numbers that grow with each use of the table */
};

#define MODULES_MAX 16384
#define MODULES_OPEN_MAX 512
/* Of rows held: beyond the first, what was not used for a moment goes; beyond the second, but for a
 * single file with more, whatever was not used for the longest time. */
#define MODULES_ROWS_BYTES (8u << 20)
#define MODULES_ROWS_BYTES_MAX (16u << 20)
#define MODULES_ROWS_MOMENT_NS 1000000000
#define MODULES_ROWS_IDLE_NS 60000000000 /* rows unused for so long go in any case */

struct modules {
    struct module **list;
    size_t count, capacity;
    struct id_table index;          /* by device, inode */
    struct id_table build_id_index; /* of the first with each build ID, if trusted */
    struct unwind_rules rules;
    struct row_cache cache;
    bool no_map_files; /* we may not open /proc/PID/map_files */
    struct module *open[MODULES_OPEN_MAX];
    size_t open_count, open_max;
    struct module **held; /* those with rows */
    size_t held_count, held_capacity;
    uint64_t held_bytes, held_bytes_soft, held_bytes_max;
    uint64_t freed_bytes; /* of rows, since the heap was last gone through */
    uint64_t uses;

    struct pace pace; /* of compiling rows of large files: as fast as can be unless it is set */

    uint64_t refused;   /* beyond MODULES_MAX */
    uint64_t postponed; /* times that a large file had to wait */
    uint64_t compiled;  /* rows that were not in the cache */
    uint64_t released;  /* rows that were given back to make room */
};

void modules_init(struct modules *modules);
void modules_release(struct modules *modules);

/* The kernel's names of mappings that are not binaries: [heap], //anon, anon_inode:..., and shared
 * memory, which JITs put code in; programs that run from a memfd (/memfd:...) are the exception. */
bool modules_is_no_file(const char *path);

/*
 * The module of a mapping. NULL for what is no file (anonymous and shared memory other than an ELF
 * file, what the kernel maps by itself), and for files beyond the limit. "[vdso]" is the vDSO,
 * which is the same in every process. A file that is known by device, inode and path costs no
 * system call, but one look at it per second.
 */
struct module *modules_get(struct modules *modules, const struct module_request *request);

/* The kind of a frame at an offset of the file; a call of the evaluation function is at its start.
 */
enum runtime_frame module_frame_kind(const struct module *module, uint64_t offset);

/* Between a process's addresses and the file's: false when no segment is there. */
bool module_bias(const struct module *module, uint64_t start, uint64_t offset, uint64_t *ret_bias);

/*
 * Its rows; NULL when it has none. Good until the rows of another module are asked for. Modules
 * with the same `same` have the same rows.
 */
const struct unwind_rows *module_rows(struct modules *modules, struct module *module);

/* Gives back rows that nobody has asked for in a while, and the memory they were in: to be called
 * every few seconds. */
void modules_tidy(struct modules *modules);

/* Where its content can be opened now, for naming: NULL when it is gone. */
#define MODULE_PATH_BYTES 4224
const char *module_open_path(const struct module *module, char buffer[MODULE_PATH_BYTES]);
