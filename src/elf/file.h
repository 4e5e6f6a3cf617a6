/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file as the profiler needs it: segments, sections, identity. Files are read in pieces by
 * pread and never mapped, so a file that shrinks or is replaced while it is read gives an error and
 * not a signal, and a binary of hundreds of megabytes costs only the pieces that are read.
 *
 * Nothing in a file is trusted: each table is read within the file's real size and within a limit.
 * Damaged section headers are dropped (`sections_damaged`), since a process runs by its segments
 * alone; a file whose segments can't be read is refused.
 *
 * 64-bit little-endian only, and x86-64 unless any machine will do. A `struct elf_file` is used by
 * one thread at a time.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

#define ELF_SEGMENTS_MAX 1024  /* real files have about 15 */
#define ELF_SECTIONS_MAX 65536 /* 8 MiB of our own structs; linked files have about 40 */
#define ELF_NAMES_MAX (4u << 20)
#define ELF_BUILD_ID_MAX 64

/* Reads up to `length` bytes at `offset` and returns how many, 0 at the end, or a negative errno.
 */
typedef ssize_t (*elf_read_fn)(void *context, uint64_t offset, void *buffer, size_t length);

enum elf_layout {
    ELF_LAYOUT_FILE,   /* offsets are those of the file */
    ELF_LAYOUT_MEMORY, /* as loaded: offset 0 is the first byte of the ELF header in memory, and all
                          else is at its address; no section headers */
};

enum elf_kind {
    ELF_KIND_OTHER, /* object and core files */
    ELF_KIND_STATIC,
    ELF_KIND_DYNAMIC, /* linked at a fixed address, with shared libraries */
    ELF_KIND_PIE,
    ELF_KIND_STATIC_PIE,
    ELF_KIND_SHARED,
};

struct elf_segment {
    uint32_t type;
    uint32_t flags;
    uint64_t offset;
    uint64_t address;
    uint64_t file_bytes;
    uint64_t memory_bytes;
    uint64_t alignment;
};

struct elf_section {
    const char *name; /* lives as long as the file; "" when the name can't be read */
    uint32_t type;
    uint32_t link;
    uint64_t flags;
    uint64_t address;
    uint64_t offset;
    uint64_t size_bytes;
    uint64_t entry_bytes;
    bool open_ended; /* found through a segment: the content may end before size_bytes */
};

struct elf_file {
    elf_read_fn read;
    void *context;
    int fd;              /* closed on release; -1 when there is none */
    uint64_t size_bytes; /* UINT64_MAX when unknown */
    enum elf_layout layout;
    bool any_machine; /* not only ours */
    uint16_t type;
    uint16_t machine;
    uint64_t entry;
    uint64_t header_address; /* in the memory layout: the address of the ELF header */
    struct elf_segment *segments;
    size_t segment_count;
    struct elf_section *sections;
    size_t section_count;
    struct buffer names;
    bool sections_damaged; /* there are section headers, and they make no sense */
    struct {
        const uint8_t *bytes;
        size_t length;
    } memory;
};

/* All of these set *ret_file, which is then released by elf_release, or leave it as it was. */
int elf_open(const char *path, struct elf_file *ret_file, struct error *error);
/* Takes the descriptor over when it succeeds. */
int elf_open_fd(int fd, struct elf_file *ret_file, struct error *error);
/* The bytes are borrowed and must outlive the file. With ELF_LAYOUT_FILE they are a file's content,
 * or the vDSO's image, which is mapped as it is in its file. The address of *ret_file is kept, so
 * the struct must stay where it is. */
int elf_open_memory(const void *bytes, size_t length, enum elf_layout layout,
                    struct elf_file *ret_file, struct error *error);
/* Anything that can be read, such as another process's memory. */
int elf_open_reader(elf_read_fn read, void *context, uint64_t size_bytes, enum elf_layout layout,
                    struct elf_file *ret_file, struct error *error);
/* The same for programs of any 64-bit little-endian machine: names and debug information don't
 * depend on the machine, while unwinding and stubs do. */
int elf_open_foreign_fd(int fd, struct elf_file *ret_file, struct error *error);
int elf_open_foreign_memory(const void *bytes, size_t length, struct elf_file *ret_file,
                            struct error *error);
void elf_release(struct elf_file *file);
#define _cleanup_elf_ _cleanup_(elf_release)

/* Exactly `length` bytes, or -ENODATA when the file ends before. */
int elf_read(struct elf_file *file, uint64_t offset, void *buffer, size_t length);
/* By address, out of the PT_LOAD segment that holds all of it. */
int elf_read_address(struct elf_file *file, uint64_t address, void *buffer, size_t length);
/* Appends; what is not there is not appended and no error. At most `length` bytes. */
int elf_read_some(struct elf_file *file, uint64_t offset, uint64_t length,
                  struct buffer *ret_content);

/*
 * Between file offsets and addresses, through the PT_LOAD segments; false when no segment has it.
 * Two segments may share a page of the file: where both fit, the executable one is meant.
 */
bool elf_offset_to_address(const struct elf_file *file, uint64_t offset, uint64_t *ret_address);
bool elf_address_to_offset(const struct elf_file *file, uint64_t address, uint64_t *ret_offset);

/* Subtracting the bias from an address in a process gives the file's own, given that the page at
 * `file_offset` is mapped at `start`. The page may begin before the segment does. */
bool elf_load_bias(const struct elf_file *file, uint64_t start, uint64_t file_offset,
                   uint64_t *ret_bias);

const struct elf_segment *elf_find_segment(const struct elf_file *file, uint32_t type);

/*
 * By name. Where there are no section headers, these are found through the segments: .eh_frame_hdr,
 * .eh_frame, .dynamic, .dynstr, .dynsym, and .text as the segment with the entry point.
 */
bool elf_find_section(struct elf_file *file, const char *name, struct elf_section *ret_section);

/* The section's bytes as they are in the file (compressed ones stay so). -E2BIG beyond the
 * limit, -ENODATA when the file ends before it; a section of unknown size gives the bytes that
 * are there. */
int elf_read_section(struct elf_file *file, const struct elf_section *section, size_t limit_bytes,
                     struct buffer *ret_content, struct error *error);
/* The limit of all compressed sections of a file together, unpacked: debug information shrinks to a
 * third or a tenth, and a file that claims far more would only fill memory. (unpack.c) */
uint64_t elf_unpack_limit(const struct elf_file *file);
/* The same, unpacked where it is compressed; the limit is for both, and so is the file's. */
int elf_unpack_section(struct elf_file *file, const struct elf_section *section, size_t limit_bytes,
                       struct buffer *ret_content, struct error *error);

enum elf_kind elf_kind_of(struct elf_file *file);

/* ---- identity (identity.c) ---- */

/* The GNU build ID; false when there is none. */
bool elf_build_id(struct elf_file *file, uint8_t ret_id[ELF_BUILD_ID_MAX], size_t *ret_length);
/* Go's own build ID, a text of up to a few hundred bytes. */
bool elf_go_build_id(struct elf_file *file, struct buffer *ret_text);
/* The name and checksum of the separate debug file. */
bool elf_debug_link(struct elf_file *file, struct buffer *ret_name, uint32_t *ret_crc);

/* ---- through PT_DYNAMIC (dynamic.c) ---- */

struct elf_dynamic {
    uint64_t string_table, string_bytes, symbol_table, hash, gnu_hash, flags_1;
    uint64_t relocations, relocation_bytes;           /* with addends */
    uint64_t lazy_relocations, lazy_relocation_bytes; /* of the table of procedures */
    bool has_soname;
};
bool elf_dynamic(struct elf_file *file, struct elf_dynamic *ret_dynamic);
/* .dynsym and .dynstr by the dynamic section's word. */
bool elf_dynamic_symbols(struct elf_file *file, struct elf_section *ret_section);
bool elf_dynamic_strings(struct elf_file *file, struct elf_section *ret_section);

/* ---- one dynamic symbol by its name (dynamic_symbol.c) ---- */

struct elf_symbol {
    uint64_t address, size_bytes;
    uint32_t number;      /* in the table */
    bool is_thread_local; /* its address is an offset in the file's block of each thread */
};
/* By the file's hash table, in a few reads for any number of symbols. False when it has no such
 * symbol, or no such table. */
bool elf_dynamic_symbol(struct elf_file *file, const char *name, struct elf_symbol *ret_symbol);

/* ---- the variable at an address (data_symbol.c) ---- */

#define ELF_DATA_NAME_BYTES 128 /* longer names are cut */
/* By .symtab, or else .dynsym. False when no variable is known there. */
bool elf_data_symbol(struct elf_file *file, uint64_t address, char ret_name[ELF_DATA_NAME_BYTES],
                     uint64_t *ret_offset);

/* ---- variables by their names (named_symbol.c) ---- */

struct elf_variable {
    const char *name;              /* at most ELF_DATA_NAME_BYTES */
    uint64_t bytes_min, bytes_max; /* only variables of such a size are looked at */
    bool is_thread_local;          /* its address is an offset in the file's block of each thread */
    bool found;
    uint64_t address, size_bytes;
};
/* By .symtab, in one pass over it. Returns how many were found. */
size_t elf_variables(struct elf_file *file, struct elf_variable *wanted, size_t count);
