// SPDX-License-Identifier: Apache-2.0
// The fuzzer of lists of source files. What is accepted, written out and read again is the same
// list; its paths are in order, each once, and lead nowhere but down.

#include <string.h>

#include "symbol/sources/sources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_path(const char *path, struct buffer *scratch)
{
    require(source_path(path, strlen(path), scratch) && !strcmp(scratch->data, path));
    require(strcmp(path, "..") && strncmp(path, "../", 3) && !strstr(path, "/../"));
    size_t length = strlen(path);
    require(length < 3 || strcmp(path + length - 3, "/.."));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    _cleanup_source_list_ struct source_list list = {0}, again = {0};
    _cleanup_buffer_ struct buffer first = {0}, second = {0}, scratch = {0};
    struct error error = {0};
    if (source_path((const char *)data, length, &scratch)) {
        _cleanup_buffer_ struct buffer path = {0};
        buffer_add(&path, scratch.data, scratch.length);
        check_path(buffer_text(&path), &scratch);
    }
    if (source_list_read(&list, (const char *)data, length, &error) < 0) {
        require(error.text[0]);
        return 0;
    }
    source_list_sort(&list);
    for (size_t i = 0; i < list.count; i++) {
        check_path(list.items[i].path, &scratch);
        require(!i || strcmp(list.items[i - 1].path, list.items[i].path) < 0);
        require(source_list_find(&list, list.items[i].path) == &list.items[i]);
    }
    source_list_write(&list, &first);
    require(source_list_read(&again, first.data, first.length, &error) == 0);
    source_list_sort(&again);
    source_list_write(&again, &second);
    require(first.length == second.length && !strcmp(buffer_text(&first), buffer_text(&second)));
    return 0;
}
