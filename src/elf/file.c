// SPDX-License-Identifier: Apache-2.0
// ELF headers, segments and sections, read in pieces and checked: see file.h.

#include "elf/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/cursor.h"

/* ---- reading ---- */

static ssize_t read_from_fd(void *context, uint64_t offset, void *buffer, size_t length)
{
    if (offset > INT64_MAX)
        return 0;
    ssize_t got = pread((int)(intptr_t)context, buffer, length, (off_t)offset);
    return got < 0 ? -errno : got;
}

static ssize_t read_from_memory(void *context, uint64_t offset, void *buffer, size_t length)
{
    const struct elf_file *file = context;
    if (offset >= file->memory.length)
        return 0;
    length = MIN(length, file->memory.length - offset);
    memcpy(buffer, file->memory.bytes + offset, length);
    return (ssize_t)length;
}

/* How many bytes were read: fewer than asked for only at the end. */
static ssize_t read_fully(struct elf_file *file, uint64_t offset, void *buffer, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t got =
            file->read(file->context, offset + done, (char *)buffer + done, length - done);
        if (got == -EINTR)
            continue;
        if (got < 0)
            return got;
        if (!got)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

int elf_read(struct elf_file *file, uint64_t offset, void *buffer, size_t length)
{
    if (offset > file->size_bytes || length > file->size_bytes - offset)
        return -ENODATA;
    ssize_t got = read_fully(file, offset, buffer, length);
    return got < 0 ? (int)got : (size_t)got < length ? -ENODATA : 0;
}

int elf_read_some(struct elf_file *file, uint64_t offset, uint64_t length,
                  struct buffer *ret_content)
{
    if (offset > file->size_bytes)
        return 0;
    length = MIN(length, file->size_bytes - offset);
    /* Memory is allocated as content arrives, so that a false length costs nothing. */
    for (size_t piece = 256 << 10; length; piece = MIN(piece * 2, (size_t)16 << 20)) {
        size_t want = (size_t)MIN(length, piece);
        /* and a byte more, since callers end strings there */
        char *room = buffer_try_reserve(ret_content, want + 1);
        if (!room)
            return -ENOMEM;
        ssize_t got = read_fully(file, offset, room, want);
        if (got < 0)
            return (int)got;
        ret_content->length += (size_t)got;
        if ((size_t)got < want)
            break;
        offset += want;
        length -= want;
    }
    return 0;
}

/* ---- addresses ---- */

static bool holds(uint64_t start, uint64_t length, uint64_t value)
{
    return value >= start && value - start < length;
}

const struct elf_segment *elf_find_segment(const struct elf_file *file, uint32_t type)
{
    for (size_t i = 0; i < file->segment_count; i++)
        if (file->segments[i].type == type)
            return &file->segments[i];
    return NULL;
}

bool elf_offset_to_address(const struct elf_file *file, uint64_t offset, uint64_t *ret_address)
{
    const struct elf_segment *found = NULL;
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct elf_segment *segment = &file->segments[i];
        if (segment->type == PT_LOAD && holds(segment->offset, segment->file_bytes, offset) &&
            (!found || (segment->flags & PF_X)))
            found = segment;
    }
    if (found)
        *ret_address = found->address + (offset - found->offset);
    return found;
}

static const struct elf_segment *segment_of_address(const struct elf_file *file, uint64_t address)
{
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct elf_segment *segment = &file->segments[i];
        if (segment->type == PT_LOAD && holds(segment->address, segment->file_bytes, address))
            return segment;
    }
    return NULL;
}

bool elf_address_to_offset(const struct elf_file *file, uint64_t address, uint64_t *ret_offset)
{
    const struct elf_segment *segment = segment_of_address(file, address);
    if (segment)
        *ret_offset = segment->offset + (address - segment->address);
    return segment;
}

bool elf_load_bias(const struct elf_file *file, uint64_t start, uint64_t file_offset,
                   uint64_t *ret_bias)
{
    const struct elf_segment *found = NULL;
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct elf_segment *segment = &file->segments[i];
        uint64_t slack = segment->offset & 4095; /* the mapping begins at a page's start */
        if (segment->type == PT_LOAD && segment->file_bytes <= UINT64_MAX - slack &&
            holds(segment->offset - slack, segment->file_bytes + slack, file_offset) &&
            (!found || (segment->flags & PF_X)))
            found = segment;
    }
    if (found)
        *ret_bias = start - (found->address + (file_offset - found->offset));
    return found;
}

/* Where in what can be read an address is, and how many bytes from there the segment has. */
static bool locate(const struct elf_file *file, uint64_t address, uint64_t *ret_offset,
                   uint64_t *ret_left)
{
    const struct elf_segment *segment = segment_of_address(file, address);
    if (!segment)
        return false;
    *ret_left = segment->file_bytes - (address - segment->address);
    if (file->layout == ELF_LAYOUT_MEMORY)
        *ret_offset = address - file->header_address;
    else
        *ret_offset = segment->offset + (address - segment->address);
    return true;
}

int elf_read_address(struct elf_file *file, uint64_t address, void *buffer, size_t length)
{
    uint64_t offset, left;
    if (!locate(file, address, &offset, &left) || left < length)
        return -ENODATA;
    return elf_read(file, offset, buffer, length);
}

/* ---- opening ---- */

static int check_header(const Elf64_Ehdr *header, bool any_machine, struct error *error)
{
    if (memcmp(header->e_ident, ELFMAG, SELFMAG))
        return error_set(error, -EBADMSG, "This is not an ELF file.");
    if (header->e_ident[EI_CLASS] != ELFCLASS64)
        return error_set(error, -ENOTSUP,
                         "This is a 32-bit ELF file; only 64-bit ones are supported.");
    if (header->e_ident[EI_DATA] != ELFDATA2LSB)
        return error_set(error, -ENOTSUP,
                         "This is a big-endian ELF file; only little-endian ones are supported.");
    if (header->e_machine != EM_X86_64 && !any_machine)
        return error_set(error, -ENOTSUP,
                         "This ELF file is for machine number %u; only x86-64 (%u) is supported.",
                         header->e_machine, EM_X86_64);
    return 0;
}

static int read_segments(struct elf_file *file, const Elf64_Ehdr *header, struct error *error)
{
    size_t count = header->e_phnum;
    if (!count)
        return 0; /* an object file, or debug info without segments */
    if (header->e_phentsize != sizeof(Elf64_Phdr))
        return error_set(error, -EBADMSG, "The program headers are %u bytes each instead of %zu.",
                         header->e_phentsize, sizeof(Elf64_Phdr));
    if (count > ELF_SEGMENTS_MAX)
        return error_set(error, -E2BIG, "The file has %zu program headers; the limit is %d.", count,
                         ELF_SEGMENTS_MAX);
    _cleanup_free_ Elf64_Phdr *raw = memory_zalloc(count, sizeof(*raw));
    if (elf_read(file, header->e_phoff, raw, count * sizeof(*raw)) < 0)
        return error_set(error, -EBADMSG, "The file ends before its program headers (offset %llu).",
                         (unsigned long long)header->e_phoff);
    file->segments = memory_zalloc(count, sizeof(*file->segments));
    for (size_t i = 0; i < count; i++)
        file->segments[file->segment_count++] = (struct elf_segment){
            .type = raw[i].p_type,
            .flags = raw[i].p_flags,
            .offset = raw[i].p_offset,
            .address = raw[i].p_vaddr,
            .file_bytes = MIN(raw[i].p_filesz, UINT64_MAX - MAX(raw[i].p_offset, raw[i].p_vaddr)),
            .memory_bytes = MIN(raw[i].p_memsz, UINT64_MAX - raw[i].p_vaddr),
            .alignment = raw[i].p_align,
        };
    return 0;
}

static int read_names(struct elf_file *file, const Elf64_Shdr *section)
{
    if (section->sh_type == SHT_NOBITS || section->sh_size > ELF_NAMES_MAX)
        return -EBADMSG;
    int r = elf_read_some(file, section->sh_offset, section->sh_size, &file->names);
    if (r < 0 || file->names.length != section->sh_size)
        return -EBADMSG;
    buffer_add_char(&file->names, '\0'); /* so that every name ends */
    return 0;
}

/* On any error in them, the file is used without. */
static int read_sections(struct elf_file *file, const Elf64_Ehdr *header)
{
    Elf64_Shdr first;
    if (header->e_shentsize != sizeof(first) ||
        elf_read(file, header->e_shoff, &first, sizeof(first)) < 0)
        return -EBADMSG;
    /* Numbers that don't fit into the header stand in the first section. */
    uint64_t count = header->e_shnum ? header->e_shnum : first.sh_size;
    uint64_t names = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
    if (!count || count > ELF_SECTIONS_MAX || names >= count)
        return -EBADMSG;
    _cleanup_buffer_ struct buffer content = {0};
    elf_read_some(file, header->e_shoff, count * sizeof(Elf64_Shdr), &content);
    if (content.length != count * sizeof(Elf64_Shdr))
        return -EBADMSG;
    const Elf64_Shdr *raw = (const Elf64_Shdr *)content.data;
    int r = read_names(file, &raw[names]);
    if (r < 0)
        return r;
    file->sections = memory_try_zalloc(count, sizeof(*file->sections));
    if (!file->sections)
        return -ENOMEM;
    file->section_count = count;
    for (size_t i = 0; i < count; i++)
        file->sections[i] = (struct elf_section){
            .name = raw[i].sh_name < file->names.length ? file->names.data + raw[i].sh_name : "",
            .type = raw[i].sh_type,
            .link = raw[i].sh_link,
            .flags = raw[i].sh_flags,
            .address = raw[i].sh_addr,
            .offset = raw[i].sh_offset,
            .size_bytes = raw[i].sh_size,
            .entry_bytes = raw[i].sh_entsize,
        };
    return 0;
}

static int load(struct elf_file *file, struct error *error)
{
    Elf64_Ehdr header;
    int r = elf_read(file, 0, &header, sizeof(header));
    if (r < 0 && r != -ENODATA)
        return error_set_errno(error, r, "Failed to read the file");
    if (r < 0)
        return error_set(error, -EBADMSG, "The file is too short to be an ELF file.");
    if ((r = check_header(&header, file->any_machine, error)) < 0)
        return r;
    file->type = header.e_type;
    file->machine = header.e_machine;
    file->entry = header.e_entry;
    if ((r = read_segments(file, &header, error)) < 0)
        return r;
    if (file->layout == ELF_LAYOUT_MEMORY) {
        if (!elf_offset_to_address(file, 0, &file->header_address))
            return error_set(error, -EBADMSG, "No segment of this image holds its ELF header.");
        return 0;
    }
    if (header.e_shoff && read_sections(file, &header) < 0) {
        file->sections_damaged = true;
        buffer_release(&file->names);
        file->names = (struct buffer){0};
    }
    return 0;
}

static int open_as(struct elf_file file, struct elf_file *ret_file, struct error *error)
{
    int r = load(&file, error);
    if (r < 0) {
        file.fd = -1; /* stays the caller's */
        elf_release(&file);
        return r;
    }
    *ret_file = file;
    return 0;
}

static int open_fd(int fd, bool any_machine, struct elf_file *ret_file, struct error *error)
{
    struct stat found;
    if (fstat(fd, &found) < 0)
        return error_set_errno(error, -errno, "Failed to read the file's size");
    if (!S_ISREG(found.st_mode))
        return error_set(error, -EINVAL, "This is not a regular file.");
    return open_as((struct elf_file){.read = read_from_fd,
                                     .context = (void *)(intptr_t)fd,
                                     .fd = fd,
                                     .size_bytes = (uint64_t)found.st_size,
                                     .any_machine = any_machine},
                   ret_file, error);
}

int elf_open_fd(int fd, struct elf_file *ret_file, struct error *error)
{
    return open_fd(fd, false, ret_file, error);
}

int elf_open_foreign_fd(int fd, struct elf_file *ret_file, struct error *error)
{
    return open_fd(fd, true, ret_file, error);
}

int elf_open(const char *path, struct elf_file *ret_file, struct error *error)
{
    /* O_NONBLOCK: a FIFO of that name must not hold us. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return error_set_errno(error, -errno, "Failed to open the file");
    int r = elf_open_fd(fd, ret_file, error);
    if (r < 0)
        close(fd);
    return r;
}

int elf_open_reader(elf_read_fn read, void *context, uint64_t size_bytes, enum elf_layout layout,
                    struct elf_file *ret_file, struct error *error)
{
    return open_as(
        (struct elf_file){
            .read = read, .context = context, .fd = -1, .size_bytes = size_bytes, .layout = layout},
        ret_file, error);
}

static int open_memory(const void *bytes, size_t length, enum elf_layout layout, bool any_machine,
                       struct elf_file *ret_file, struct error *error)
{
    struct elf_file file = {.read = read_from_memory,
                            .fd = -1,
                            .size_bytes = length,
                            .layout = layout,
                            .any_machine = any_machine,
                            .memory = {bytes, length}};
    file.context = &file;
    int r = load(&file, error);
    if (r < 0) {
        elf_release(&file);
        return r;
    }
    *ret_file = file;
    ret_file->context = ret_file;
    return 0;
}

int elf_open_memory(const void *bytes, size_t length, enum elf_layout layout,
                    struct elf_file *ret_file, struct error *error)
{
    return open_memory(bytes, length, layout, false, ret_file, error);
}

int elf_open_foreign_memory(const void *bytes, size_t length, struct elf_file *ret_file,
                            struct error *error)
{
    return open_memory(bytes, length, ELF_LAYOUT_FILE, true, ret_file, error);
}

void elf_release(struct elf_file *file)
{
    if (!file)
        return;
    if (file->read == read_from_fd && file->fd >= 0)
        close(file->fd);
    free(file->segments);
    free(file->sections);
    buffer_release(&file->names);
    *file = (struct elf_file){.fd = -1};
}

/* ---- sections ---- */

/* Where the unwind information is, by the header that the loader knows of. */
static bool eh_frame_by_segment(struct elf_file *file, bool header, struct elf_section *ret_section)
{
    const struct elf_segment *segment = elf_find_segment(file, PT_GNU_EH_FRAME);
    if (!segment)
        return false;
    struct elf_section section = {.name = ".eh_frame_hdr",
                                  .type = SHT_PROGBITS,
                                  .address = segment->address,
                                  .offset = segment->offset,
                                  .size_bytes = segment->file_bytes};
    if (!header) {
        /* version, three encodings, then a pointer that every linker writes as a 32-bit distance
         * from itself */
        uint8_t start[8];
        if (elf_read_address(file, segment->address, start, sizeof(start)) < 0 || start[0] != 1 ||
            start[1] != 0x1b)
            return false;
        struct cursor cursor = cursor_of(start + 4, 4);
        int32_t distance = (int32_t)cursor_u32(&cursor);
        section.name = ".eh_frame";
        section.address = segment->address + 4 + (uint64_t)(int64_t)distance;
        uint64_t unused;
        if (!locate(file, section.address, &unused, &section.size_bytes) ||
            !elf_address_to_offset(file, section.address, &section.offset))
            return false;
        section.open_ended = true;
    }
    *ret_section = section;
    return true;
}

static bool section_by_segment(struct elf_file *file, const char *name,
                               struct elf_section *ret_section)
{
    if (!strcmp(name, ".eh_frame_hdr") || !strcmp(name, ".eh_frame"))
        return eh_frame_by_segment(file, name[9] != '\0', ret_section);
    if (!strcmp(name, ".dynsym"))
        return elf_dynamic_symbols(file, ret_section);
    if (!strcmp(name, ".dynstr"))
        return elf_dynamic_strings(file, ret_section);
    const struct elf_segment *segment = NULL;
    if (!strcmp(name, ".dynamic"))
        segment = elf_find_segment(file, PT_DYNAMIC);
    else if (!strcmp(name, ".text"))
        segment = segment_of_address(file, file->entry);
    else
        return false;
    if (!segment)
        return false;
    *ret_section = (struct elf_section){.name = name[1] == 'd' ? ".dynamic" : ".text",
                                        .type = name[1] == 'd' ? SHT_DYNAMIC : SHT_PROGBITS,
                                        .address = segment->address,
                                        .offset = segment->offset,
                                        .size_bytes = segment->file_bytes};
    return true;
}

bool elf_find_section(struct elf_file *file, const char *name, struct elf_section *ret_section)
{
    for (size_t i = 1; i < file->section_count; i++)
        if (!strcmp(file->sections[i].name, name)) {
            *ret_section = file->sections[i];
            return true;
        }
    return !file->section_count && section_by_segment(file, name, ret_section);
}

int elf_read_section(struct elf_file *file, const struct elf_section *section, size_t limit_bytes,
                     struct buffer *ret_content, struct error *error)
{
    if (section->type == SHT_NOBITS)
        return error_set(error, -ENODATA, "The section %s has no content in this file.",
                         section->name);
    uint64_t size = section->size_bytes;
    if (section->open_ended)
        size = MIN(size, limit_bytes);
    if (size > limit_bytes)
        return error_set(error, -E2BIG, "The section %s is %llu bytes; the limit is %zu.",
                         section->name, (unsigned long long)size, limit_bytes);
    uint64_t offset = section->offset;
    if (file->layout == ELF_LAYOUT_MEMORY)
        offset = section->address - file->header_address;
    size_t before = ret_content->length;
    int r = elf_read_some(file, offset, size, ret_content);
    if (r < 0)
        return error_set_errno(error, r, "Failed to read the section %s", section->name);
    if (!section->open_ended && ret_content->length - before != size) {
        ret_content->length = before;
        return error_set(error, -ENODATA, "The file ends within the section %s.", section->name);
    }
    return 0;
}

enum elf_kind elf_kind_of(struct elf_file *file)
{
    bool interpreter = elf_find_segment(file, PT_INTERP);
    if (file->type == ET_EXEC)
        return interpreter || elf_find_segment(file, PT_DYNAMIC) ? ELF_KIND_DYNAMIC
                                                                 : ELF_KIND_STATIC;
    if (file->type != ET_DYN)
        return ELF_KIND_OTHER;
    struct elf_dynamic dynamic;
    if (!elf_dynamic(file, &dynamic))
        return interpreter ? ELF_KIND_PIE : ELF_KIND_SHARED;
    if (dynamic.flags_1 & DF_1_PIE)
        return interpreter ? ELF_KIND_PIE : ELF_KIND_STATIC_PIE;
    /* Old linkers set no flag. libc.so can be run, but has a name as a library. */
    return interpreter && !dynamic.has_soname ? ELF_KIND_PIE : ELF_KIND_SHARED;
}
