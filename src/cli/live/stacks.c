// SPDX-License-Identifier: Apache-2.0
// `assay stacks -p PID`: what every thread of a process is doing now.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "capture/ptrace/snapshot.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/table.h"
#include "elf/vdso.h"
#include "io/json_write.h"
#include "profile/naming.h"
#include "symbol/jit/jit.h"
#include "symbol/naming/symbolizer.h"

/* Names longer than that push their binary to the right instead of all others. */
#define NAME_COLUMNS_MAX 60

struct dump {
    const struct snapshot *snapshot;
    struct symbolizer *symbolizer;
    struct jit_names *jit;
    struct buffer out;
    bool separate; /* each thread is shown */
};

/* Threads that do the same. */
struct thread_group {
    size_t *members; /* indexes of the snapshot's threads */
    size_t count;
};

#define IDS_SHOWN 16

/* What stands for the binary of its frames, for those that can't be read, and their kind. */
static const struct {
    const char *binary, *unread, *kind;
} runtimes[] = {
    [SNAPSHOT_PYTHON] = {"[python]", "[python frame not read]", "cpython"},
    [SNAPSHOT_JAVA] = {"[java]", "[java frame not read]", "jvm"},
    [SNAPSHOT_SCRIPT] = {"[javascript]", "[javascript frame not read]", "v8js"},
};

static const char *binary_of(const struct snapshot_frame *frame)
{
    return frame->runtime  ? runtimes[frame->runtime].binary
           : frame->module ? path_base(frame->module->path)
                           : "[anonymous]";
}

static struct symbolizer_file *file_of(const struct dump *dump, const struct snapshot_frame *frame)
{
    char path[MODULE_PATH_BYTES];
    const char *place = frame->module ? module_open_path(frame->module, path) : NULL;
    if (frame->module && !strcmp(frame->module->path, VDSO_NAME))
        place = VDSO_NAME;
    return place ? symbolizer_file(dump->symbolizer, place, frame->module->build_id) : NULL;
}

/* Debug information is read for all frames at once. */
static void look_up(const struct dump *dump)
{
    const struct snapshot *snapshot = dump->snapshot;
    for (size_t i = 0; i < snapshot->count; i++)
        for (size_t k = 0; k < snapshot->threads[i].frame_count; k++) {
            const struct snapshot_frame *frame = &snapshot->threads[i].frames[k];
            struct symbolizer_file *file = file_of(dump, frame);
            if (file)
                symbolizer_want(file, &frame->offset, 1);
        }
    symbolizer_look_up(dump->symbolizer);
    jit_names_load(dump->jit, (uint32_t)snapshot->pid);
}

/* The function of a frame and what is inlined there, innermost first. Returns how many, of which a
 * single one may have no name. */
static size_t name_frame(const struct dump *dump, const struct snapshot_frame *frame,
                         struct symbol_frame named[SYMBOL_FRAMES_MAX])
{
    struct symbolizer_file *file = file_of(dump, frame);
    enum frame_kind kind;
    if (frame->runtime) {
        named[0] = (struct symbol_frame){
            .name = frame->function, .file = frame->file, .line = frame->line};
        return 1;
    }
    size_t count = file ? symbolizer_file_frames(file, frame->offset, named) : 0;
    if (!frame->module)
        count = symbolizer_find_jit(dump->symbolizer, (uint32_t)dump->snapshot->pid, frame->address,
                                    &named[0], &kind);
    if (count)
        return count;
    named[0] = (struct symbol_frame){0};
    return 1;
}

/* The function's name, or the place of its first instruction that is known. */
static void write_name(const struct dump *dump, const struct snapshot_frame *frame,
                       const struct symbol_frame *named, struct buffer *name)
{
    struct symbol symbol = {0};
    struct symbolizer_file *file = file_of(dump, frame);
    name->length = 0;
    if (named->name) {
        text_escape_terminal(name, named->name, strlen(named->name));
    } else if (frame->runtime) {
        buffer_add_text(name, runtimes[frame->runtime].unread);
    } else if (frame->module) {
        const char *binary = binary_of(frame);
        if (file)
            symbolizer_file_find(file, frame->offset, &symbol);
        text_escape_terminal(name, binary, strlen(binary));
        buffer_printf(name, "+0x%" PRIx64, frame->offset - symbol.distance);
    } else {
        buffer_printf(name, "0x%" PRIx64, frame->address);
    }
}

static void add_end(struct buffer *out, const struct snapshot_thread *thread)
{
    if (!thread->read)
        buffer_add_text(out, "  [not available]\n");
    else if (thread->end == UNWIND_END_TRUNCATED || thread->end == UNWIND_END_LIMIT)
        buffer_add_text(out, "  [truncated]\n");
    else if (thread->end != UNWIND_END_COMPLETE)
        buffer_printf(out, "  [unknown: %s]\n", unwind_end_reason(thread->end));
}

/* How wide the column of names is. */
static size_t widest_name(struct dump *dump, const struct snapshot_thread *thread)
{
    _cleanup_buffer_ struct buffer name = {0};
    struct symbol_frame named[SYMBOL_FRAMES_MAX];
    size_t widest = 0;
    for (size_t i = 0; i < thread->frame_count; i++) {
        size_t count = name_frame(dump, &thread->frames[i], named);
        for (size_t k = 0; k < count; k++) {
            write_name(dump, &thread->frames[i], &named[k], &name);
            size_t columns = utf8_columns(name.data, name.length);
            widest = MAX(widest, MIN(columns, (size_t)NAME_COLUMNS_MAX));
        }
    }
    return widest;
}

/* "thread 12 "name" state, holds the GIL", or of all that do the same "threads 12, 13, 14 "name"
 * state". */
static void write_heading(struct dump *dump, const struct thread_group *group)
{
    struct buffer *out = &dump->out;
    const struct snapshot_thread *first = &dump->snapshot->threads[group->members[0]];
    buffer_add_text(out, group->count > 1 ? "threads " : "thread ");
    for (size_t i = 0; i < MIN(group->count, (size_t)IDS_SHOWN); i++)
        buffer_printf(out, "%s%d", i ? ", " : "",
                      (int)dump->snapshot->threads[group->members[i]].tid);
    if (group->count > IDS_SHOWN)
        buffer_printf(out, " and %zu more", group->count - IDS_SHOWN);
    buffer_add_text(out, " \"");
    text_escape_terminal(out, first->name, strlen(first->name));
    buffer_printf(out, "\" %s%s\n", snapshot_state_name(first->state),
                  first->holds_lock ? ", holds the GIL" : "");
}

static void write_threads(struct dump *dump, const struct thread_group *group)
{
    struct buffer *out = &dump->out;
    const struct snapshot_thread *thread = &dump->snapshot->threads[group->members[0]];
    _cleanup_buffer_ struct buffer name = {0};
    struct symbol_frame named[SYMBOL_FRAMES_MAX];
    write_heading(dump, group);
    int digits = MAX(snprintf(NULL, 0, "%zu", thread->frame_count), 2);
    size_t widest = widest_name(dump, thread), number = 0;
    for (size_t i = 0; i < thread->frame_count; i++) {
        const char *binary = binary_of(&thread->frames[i]);
        size_t count = name_frame(dump, &thread->frames[i], named);
        for (size_t k = 0; k < count; k++) {
            write_name(dump, &thread->frames[i], &named[k], &name);
            size_t columns = utf8_columns(name.data, name.length);
            buffer_printf(out, "  #%-*zu ", digits, number++);
            buffer_add(out, name.data, name.length);
            buffer_printf(out, "%*s  ", columns < widest ? (int)(widest - columns) : 0, "");
            text_escape_terminal(out, binary, strlen(binary));
            if (named[k].file) {
                const char *file = path_base(named[k].file);
                buffer_add_text(out, "  ");
                text_escape_terminal(out, file, strlen(file));
                if (named[k].line)
                    buffer_printf(out, ":%" PRIu32, named[k].line);
            }
            buffer_add_char(out, '\n');
        }
    }
    add_end(out, thread);
}

static bool same_frame(const struct snapshot_frame *a, const struct snapshot_frame *b)
{
    if (a->runtime != b->runtime)
        return false;
    if (a->runtime == SNAPSHOT_NATIVE)
        return a->address == b->address;
    return a->line == b->line && a->function && b->function && !strcmp(a->function, b->function) &&
           !strcmp(a->file ? a->file : "", b->file ? b->file : "");
}

static bool same_stack(const struct snapshot_thread *a, const struct snapshot_thread *b)
{
    if (!a->read || !b->read || a->frame_count != b->frame_count || !a->frame_count ||
        a->state != b->state || a->end != b->end || a->holds_lock != b->holds_lock ||
        strcmp(a->name, b->name))
        return false;
    for (size_t i = 0; i < a->frame_count; i++)
        if (!same_frame(&a->frames[i], &b->frames[i]))
            return false;
    return true;
}

/* Threads of one name with the same stack and state are shown once. */
static void write_text(struct dump *dump)
{
    const struct snapshot *snapshot = dump->snapshot;
    _cleanup_free_ bool *done = memory_zalloc(snapshot->count + 1, sizeof(*done));
    _cleanup_free_ size_t *members = memory_zalloc(snapshot->count + 1, sizeof(*members));
    for (size_t i = 0; i < snapshot->count; i++) {
        if (done[i])
            continue;
        struct thread_group group = {.members = members};
        for (size_t k = i; k < snapshot->count; k++)
            if (k == i || (!done[k] && !dump->separate &&
                           same_stack(&snapshot->threads[i], &snapshot->threads[k]))) {
                members[group.count++] = k;
                done[k] = true;
            }
        if (i)
            buffer_add_char(&dump->out, '\n');
        write_threads(dump, &group);
    }
}

static void put_json_text(struct json_writer *json, const char *key, const char *text)
{
    if (text)
        json_member_text(json, key, text);
    else
        json_member_null(json, key);
}

static void write_json_frame(struct dump *dump, const struct snapshot_frame *frame,
                             struct json_writer *json)
{
    struct symbol_frame named[SYMBOL_FRAMES_MAX];
    size_t count = name_frame(dump, frame, named);
    for (size_t i = 0; i < count; i++) {
        json_write_object(json);
        put_json_text(json, "function", named[i].name);
        put_json_text(json, "binary", binary_of(frame));
        if (frame->runtime)
            json_member_text(json, "kind", runtimes[frame->runtime].kind);
        else
            json_member_unsigned(json, "offset", frame->offset);
        if (named[i].file) {
            json_member_text(json, "file", named[i].file);
            json_member_unsigned(json, "line", named[i].line);
        }
        if (i + 1 < count)
            json_member_bool(json, "inlined", true);
        json_write_object_end(json);
    }
}

static void write_json(struct dump *dump)
{
    const struct snapshot *snapshot = dump->snapshot;
    struct json_writer json = json_writer(&dump->out);
    json_write_object(&json);
    json_member_signed(&json, "pid", snapshot->pid);
    json_member_text(&json, "name", snapshot->name);
    json_write_key(&json, "threads");
    json_write_array(&json);
    for (size_t i = 0; i < snapshot->count; i++) {
        const struct snapshot_thread *thread = &snapshot->threads[i];
        json_write_object(&json);
        json_member_signed(&json, "tid", thread->tid);
        json_member_text(&json, "name", thread->name);
        json_member_text(&json, "state", snapshot_state_name(thread->state));
        json_member_text(&json, "end",
                         thread->read ? unwind_end_name(thread->end) : "not available");
        if (thread->holds_lock)
            json_member_bool(&json, "holds_gil", true);
        json_write_key(&json, "frames");
        json_write_array(&json);
        for (size_t k = 0; k < thread->frame_count; k++)
            write_json_frame(dump, &thread->frames[k], &json);
        json_write_array_end(&json);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    buffer_add_char(&dump->out, '\n');
}

static void say_what_was_read(const struct snapshot *snapshot)
{
    _cleanup_buffer_ struct buffer said = {0};
    size_t unread = snapshot->refused;
    for (size_t i = 0; i < snapshot->count; i++)
        unread += !snapshot->threads[i].read;
    buffer_printf(&said, "assay: %zu thread%s of %d (", snapshot->count,
                  snapshot->count == 1 ? "" : "s", (int)snapshot->pid);
    text_escape_terminal(&said, snapshot->name, strlen(snapshot->name));
    buffer_add_char(&said, ')');
    if (snapshot->longest_stop_ns)
        buffer_printf(&said, ", each stopped for at most %" PRId64 " us",
                      (snapshot->longest_stop_ns + 999) / 1000);
    if (unread)
        buffer_printf(&said, ", %zu not available", unread);
    fprintf(stderr, "%s\n", buffer_text(&said));
}

static int dump_stacks(pid_t pid, enum table_format format, bool interpreter_frames, bool separate)
{
    struct snapshot snapshot;
    struct error error = {0};
    int r = snapshot_take(&snapshot, pid, interpreter_frames, &error);
    if (r < 0) {
        r = fail(&error);
    } else {
        struct dump dump = {.snapshot = &snapshot,
                            .symbolizer = symbolizer_new(),
                            .jit = jit_names_new(),
                            .separate = separate};
        symbolizer_set_jit(dump.symbolizer, dump.jit);
        look_up(&dump);
        if (format == TABLE_JSON)
            write_json(&dump);
        else
            write_text(&dump);
        print_buffer(&dump.out);
        fflush(stdout);
        say_what_was_read(&snapshot);
        buffer_release(&dump.out);
        symbolizer_free(dump.symbolizer);
        jit_names_free(dump.jit);
    }
    snapshot_release(&snapshot);
    return r;
}

int command_stacks(int argc, char **argv)
{
    const char *pid_text = NULL, *format_name = NULL;
    bool interpreter_frames = false, separate = false;
    const struct option own[] = {
        {"Input", .kind = OPTION_GROUP},
        {"pid", 'p', OPTION_TEXT, "PID", "the process to inspect", &pid_text},
        {"Output", .kind = OPTION_GROUP},
        {"format", 'f', OPTION_TEXT, "F", "text or json", &format_name},
        {"interpreter-frames", 0, OPTION_FLAG, NULL, "show native frames of interpreters too",
         &interpreter_frames},
        {"all-threads", 0, OPTION_FLAG, NULL, "show threads with the same stack separately",
         &separate},
        {0}};
    struct command_line line = {
        .command = "stacks",
        .arguments = "PID",
        .summary = "Shows the call stack and the state of every thread of a process, once. "
                   "Each\nthread is stopped only while its stack is copied; stacks are complete "
                   "even for\nprograms built without frame pointers. Threads with the same stack "
                   "are shown\ntogether.",
        .options = own,
        .most = 1,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    enum table_format format;
    uint64_t pid;
    if (!table_format_parse(format_name, &format) || format == TABLE_CSV)
        return options_wrong("stacks", "--format must be text or json, not \"%s\".", format_name);
    if (pid_text && line.count)
        return options_wrong("stacks", "unexpected argument \"%s\".", line.values[0]);
    if (line.count)
        pid_text = line.values[0];
    if (!pid_text)
        return options_wrong("stacks", "specify the process with --pid PID.");
    if (!text_to_u64(pid_text, strlen(pid_text), &pid) || !pid || pid > INT32_MAX)
        return options_wrong("stacks", "--pid requires a process id, not \"%s\".", pid_text);
    return dump_stacks((pid_t)pid, format, interpreter_frames, separate);
}
