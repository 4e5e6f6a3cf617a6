// SPDX-License-Identifier: Apache-2.0
// The children that build symbol indexes: their input and output. Files are mapped: if a shrinking
// file kills a child, only this file is rejected.

#include <sys/mman.h>
#include <sys/stat.h>

#include "symbol/index/build.h"
#include "symbol/index/child.h"

static bool map_file(int fd, struct symbol_index_bytes *ret_bytes)
{
    struct stat found;
    if (fd < 0)
        return true;
    if (fstat(fd, &found) < 0 || found.st_size <= 0)
        return false;
    void *map = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return false;
    *ret_bytes = (struct symbol_index_bytes){map, (size_t)found.st_size};
    return true;
}

static bool map_files(const struct confined_input *input, struct symbol_index_content *content)
{
    const struct index_child_request *request = input->request;
    if (input->request_bytes < sizeof(*request))
        return false;
    content->wanted_count = (input->request_bytes - sizeof(*request)) / sizeof(*request->wanted);
    content->wanted = content->wanted_count ? request->wanted : NULL;
    struct symbol_index_bytes *last = request->has_splits ? &content->splits : &content->package;
    return map_file(input->files[INDEX_CHILD_FILE], &content->file) &&
           map_file(input->files[INDEX_CHILD_DEBUG], &content->debug) &&
           map_file(input->files[INDEX_CHILD_SHARED], &content->shared) &&
           map_file(input->files[INDEX_CHILD_SPLIT], last);
}

static int answer(int code, const struct buffer *content, const struct error *error)
{
    char kind = code < 0 ? INDEX_CHILD_ERROR : INDEX_CHILD_RESULT;
    int32_t number = code;
    confined_write(&kind, 1);
    if (code < 0) {
        confined_write(&number, sizeof(number));
        confined_write(error->text, strlen(error->text));
    } else if (content->length) {
        confined_write(content->data, content->length);
    }
    return 0; /* the process ends now, and everything with it */
}

typedef int (*make_fn)(const struct symbol_index_content *content, struct buffer *ret_result,
                       struct error *error);

static int run(const struct confined_input *input, make_fn make)
{
    struct symbol_index_content content = {0};
    struct buffer result = {0};
    struct error error = {0};
    int r = map_files(input, &content)
                ? make(&content, &result, &error)
                : error_set(&error, -EBADMSG, "The file is empty, or mapping it failed.");
    return answer(r, &result, &error);
}

static int run_make(const struct confined_input *input)
{
    return run(input, symbol_index_make);
}

static int run_list(const struct confined_input *input)
{
    return run(input, symbol_index_list_splits);
}

const struct confined_program symbol_index_program = {
    .name = "symbol-index",
    .run = run_make,
    .memory_bytes = SYMBOL_INDEX_MEMORY_MAX,
    .memory_ratio = SYMBOL_INDEX_MEMORY_RATIO,
    .cpu_seconds = 300,
    .deadline_ms = 600000,
    .output_max_bytes = SYMBOL_INDEX_BYTES_MAX,
};

const struct confined_program symbol_names_program = {
    .name = "symbol-names",
    .run = run_make,
    .memory_bytes = 1ull << 30,
    .memory_ratio = SYMBOL_INDEX_MEMORY_RATIO,
    .cpu_seconds = 20,
    .deadline_ms = 60000,
    .output_max_bytes = 256u << 20,
};

const struct confined_program symbol_index_split_program = {
    .name = "symbol-index-splits",
    .run = run_list,
    .memory_bytes = SYMBOL_INDEX_MEMORY_MAX,
    .memory_ratio = SYMBOL_INDEX_MEMORY_RATIO,
    .cpu_seconds = 60,
    .deadline_ms = 120000,
    .output_max_bytes = 256u << 20,
};
