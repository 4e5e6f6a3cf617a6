// SPDX-License-Identifier: Apache-2.0
// The table of formats, recognising them, and writing files. See format.h; read.c reads.

#include "format/format.h"

#include <libdeflate.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/text.h"

/* In the order of preference when two are equally sure. */
static const struct format *const table[] = {
    &format_pprof,
    &format_otlp,
    &format_otlp_json,
    &format_jfr,
    &format_perf_data,
    &format_speedscope,
    &format_cpuprofile,
    &format_heapprofile,
    &format_stackprof,
    &format_flamebearer,
    &format_chrome_trace,
    &format_firefox,
    &format_callgrind,
    &format_massif,
    &format_heaptrack,
    &format_pstats,
    &format_austin,
    &format_bpftrace,
    &format_dtrace,
    &format_macos_sample,
    &format_gperftools_cpu,
    &format_gperftools_heap,
    &format_perf_script,
    &format_folded,
    &format_svg,
    &format_html,
    &format_autofdo,
    &format_autofdo_gcc,
    NULL,
};

const struct format *format_at(size_t index)
{
    return index < ARRAY_LENGTH(table) ? table[index] : NULL;
}

const struct format *format_by_name(const char *name)
{
    for (size_t i = 0; table[i]; i++)
        if (!strcmp(table[i]->name, name))
            return table[i];
    return NULL;
}

const char *format_meant(const char *word, bool to_write)
{
    struct text_meant meant = {.word = word, .length = strlen(word)};
    for (size_t i = 0; table[i]; i++)
        if (to_write ? table[i]->write != NULL : format_readable(table[i]))
            text_meant_offer(&meant, table[i]->name);
    return text_meant_best(&meant);
}

/* Length of the longest extension in the space-separated list that `path` ends with, or 0. */
static size_t matching_extension(const char *path, const char *extensions)
{
    size_t path_length = strlen(path), best = 0;
    for (const char *at = extensions; at && *at;) {
        size_t length = strcspn(at, " ");
        if (length > best && length < path_length &&
            !strncasecmp(path + path_length - length, at, length))
            best = length;
        at += length + strspn(at + length, " ");
    }
    return best;
}

const struct format *format_by_extension(const char *path)
{
    const struct format *best = NULL;
    size_t longest = 0;
    for (size_t i = 0; table[i]; i++) {
        size_t length = table[i]->write ? matching_extension(path, table[i]->extensions) : 0;
        if (length > longest) {
            longest = length;
            best = table[i];
        }
    }
    return best;
}

int format_detect(struct source *source, const struct format **ret_format, struct error *error)
{
    int r = source_decode_text(source, error);
    if (!r)
        r = source_need(source, FORMAT_SNIFF_BYTES, error);
    if (r < 0)
        return r;
    size_t length = MIN(source_available(source), (size_t)FORMAT_SNIFF_BYTES);
    if (!length)
        return error_set(error, -EBADMSG, "%s is empty.", source->name);
    const struct format *best = NULL;
    int surest = 0;
    for (size_t i = 0; table[i] && surest < FORMAT_CERTAIN; i++) {
        int sure = table[i]->detect ? table[i]->detect(source_data(source), length) : 0;
        if (sure > surest) {
            surest = sure;
            best = table[i];
        }
    }
    const char *foreign = surest < 2 ? format_foreign(source_data(source), length) : NULL;
    if (foreign)
        return error_set(error, -ENOTSUP, "%s is %s.", source->name, foreign);
    if (!best)
        return error_set(
            error, -ENOTSUP,
            "%s: unrecognised format; `assay convert --help` lists the supported ones.",
            source->name);
    *ret_format = best;
    return 0;
}

static void release_compressor(struct libdeflate_compressor **compressor)
{
    libdeflate_free_compressor(*compressor);
}

int format_compress_gzip(const struct buffer *content, struct buffer *ret_compressed)
{
    _cleanup_(release_compressor) struct libdeflate_compressor *compressor =
        libdeflate_alloc_compressor(1); /* a twentieth larger than level 6 in half the time */
    if (!compressor)
        return -ENOMEM;
    size_t room = libdeflate_gzip_compress_bound(compressor, content->length);
    buffer_reserve(ret_compressed, room);
    ret_compressed->length = libdeflate_gzip_compress(compressor, content->data, content->length,
                                                      ret_compressed->data, room);
    return ret_compressed->length ? 0 : -EIO;
}

static bool ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && !strcasecmp(text + length - tail, suffix);
}

/* "x.pb" stays raw, "x.pb.gz" and standard output are compressed where the format usually is. */
static bool wants_gzip(const char *path, const struct format *format)
{
    return ends_with(path, ".gz") || (format->gzip && !matching_extension(path, ".pb .raw .json"));
}

int format_write_file(const char *path, const struct format *format, const struct profile *profile,
                      const struct write_options *options, struct error *error)
{
    static const struct write_options defaults = {.type = -1};
    if (!format->write)
        return error_set(error, -ENOTSUP, "The %s format can be read but not written.",
                         format->name);
    _cleanup_buffer_ struct buffer content = {0};
    int r = format->write(&content, profile, options ? options : &defaults, error);
    if (r < 0)
        return r;
    if (wants_gzip(path, format)) {
        struct buffer compressed = {0};
        r = format_compress_gzip(&content, &compressed);
        buffer_release(&content);
        content = compressed;
        if (r < 0)
            return error_set_errno(error, r, "Failed to compress %s", path);
    }
    return file_write_atomic(path, content.data, content.length, error);
}
