// SPDX-License-Identifier: Apache-2.0
// Contexts of threads and of the process: what libassay publishes is what readers outside see.

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "c/assay.h"
#include "c/record.h"
#include "context/process.h"
#include "context/thread.h"
#include "unit.h"

extern __thread struct assay_record *otel_thread_ctx_v1;

static const unsigned char trace_id[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const unsigned char span_id[8] = {21, 22, 23, 24, 25, 26, 27, 28};

static bool none(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

/* ---- spans ---- */

static void nests_spans(void **state)
{
    (void)state;
    struct assay_span outer, inner, deepest;
    int key = assay_key("http.route");
    assay_begin(&outer);
    const struct assay_record *record = otel_thread_ctx_v1;
    assert_non_null(record);
    struct assay_record first = *record;
    assert_int_equal(first.valid, 1);
    assert_false(none(first.trace_id, 16));
    assert_false(none(first.span_id, 8));
    assert_int_equal(first.flags, ASSAY_SAMPLED);
    assert_int_equal(assay_set(key, "/cart"), 0);
    assert_int_equal(record->attribute_bytes, 2 + 5);
    assert_int_equal(record->attributes[0], key);
    assert_int_equal(record->attributes[1], 5);
    assert_memory_equal(record->attributes + 2, "/cart", 5);
    assay_begin(&inner);
    assert_memory_equal(record->trace_id, first.trace_id, 16);
    assert_memory_not_equal(record->span_id, first.span_id, 8);
    assert_int_equal(assay_set(key, "/inner"), 0);
    assert_int_equal(record->attribute_bytes, 2 + 5 + 2 + 6);
    assay_begin(&deepest);
    assert_int_equal(assay_end(&inner), 0); /* and what was begun within it */
    assert_memory_equal(record->span_id, first.span_id, 8);
    assert_int_equal(record->attribute_bytes, 2 + 5);
    assert_int_equal(record->valid, 1);
    assert_int_equal(assay_end(&deepest), -EPERM);
    assert_int_equal(assay_end(&inner), -EPERM);
    assert_memory_equal(record->span_id, first.span_id, 8);
    assert_int_equal(assay_end(&outer), 0);
    assert_true(none(record->trace_id, 16) && none(record->span_id, 8));
    assert_int_equal(record->attribute_bytes, 0);
    unsigned char trace[16], span[8];
    assert_int_equal(assay_current(trace, span), 0);
}

static void takes_ids(void **state)
{
    (void)state;
    struct assay_span span, none_span;
    char text[ASSAY_TRACEPARENT_BYTES];
    assay_attach(&span, trace_id, span_id, 3);
    const struct assay_record *record = otel_thread_ctx_v1;
    assert_memory_equal(record->trace_id, trace_id, 16);
    assert_memory_equal(record->span_id, span_id, 8);
    assay_traceparent(text);
    assert_string_equal(text, "00-0102030405060708090a0b0c0d0e0f10-15161718191a1b1c-03");
    /* Ids of zeros are none: nothing begins. */
    assay_attach(&none_span, trace_id, (const unsigned char[8]){0}, 0);
    assert_memory_equal(record->span_id, span_id, 8);
    assert_int_equal(assay_end(&none_span), -EPERM);
    assert_int_equal(assay_end(&span), 0);
    assay_traceparent(text);
    assert_string_equal(text, "");
}

static void continues_traces(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "00",
        "00-0102030405060708090a0b0c0d0e0f10-15161718191a1b1c-0",
        "00-0102030405060708090A0b0c0d0e0f10-15161718191a1b1c-03",
        "00-00000000000000000000000000000000-15161718191a1b1c-03",
        "00-0102030405060708090a0b0c0d0e0f10-0000000000000000-03",
        "ff-0102030405060708090a0b0c0d0e0f10-15161718191a1b1c-03",
        "00-0102030405060708090a0b0c0d0e0f10-15161718191a1b1c-03-more",
        "00_0102030405060708090a0b0c0d0e0f10-15161718191a1b1c-03",
    };
    struct assay_span span;
    assert_int_equal(
        assay_begin_traceparent(&span, "00-0102030405060708090a0b0c0d0e0f10-15161718191a1b1c-00"),
        0);
    const struct assay_record *record = otel_thread_ctx_v1;
    assert_memory_equal(record->trace_id, trace_id, 16);
    assert_memory_not_equal(record->span_id, span_id, 8);
    assert_int_equal(record->flags, 0);
    assert_int_equal(assay_end(&span), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
        assert_int_equal(assay_begin_traceparent(&span, wrong[i]), -EINVAL);
        assert_memory_not_equal(record->trace_id, trace_id, 16);
        assert_false(none(record->trace_id, 16));
        assert_int_equal(assay_end(&span), 0);
    }
    assert_int_equal(assay_begin_traceparent(&span, NULL), -EINVAL);
    assert_int_equal(assay_end(&span), 0);
    /* A later version may have more behind it. */
    assert_int_equal(assay_begin_traceparent(
                         &span, "01-0102030405060708090a0b0c0d0e0f10-15161718191a1b1c-01-more"),
                     0);
    assert_int_equal(assay_end(&span), 0);
}

static void limits_attributes(void **state)
{
    (void)state;
    char value[257];
    struct assay_span span;
    int key = assay_key("limited");
    memset(value, 'x', sizeof(value));
    value[256] = '\0';
    assay_begin(&span);
    assert_int_equal(assay_set(key, value), -E2BIG);
    value[255] = '\0';
    assert_int_equal(assay_set(key, value), 0);
    assert_int_equal(assay_set(key, value), 0);
    assert_int_equal(assay_set(key, value), -E2BIG); /* 3 * 257 > 612 */
    assert_int_equal(assay_set(-1, "x"), -EINVAL);
    assert_int_equal(assay_set(256, "x"), -EINVAL);
    assert_int_equal(assay_end(&span), 0);
    assert_int_equal(assay_key(""), -EINVAL);
    assert_int_equal(assay_key(NULL), -EINVAL);
    value[255] = 'x';
    assert_int_equal(assay_key(value), -EINVAL);
}

static void *end_of_another(void *span)
{
    assert_int_equal(assay_end(span), -EPERM);
    assert_null(otel_thread_ctx_v1); /* it has begun none */
    struct assay_span own;
    assay_begin(&own);
    assert_non_null(otel_thread_ctx_v1);
    return NULL; /* without its end */
}

static void keeps_threads_apart(void **state)
{
    (void)state;
    pthread_t thread;
    struct assay_span span;
    assay_begin(&span);
    struct assay_record before = *otel_thread_ctx_v1;
    assert_int_equal(pthread_create(&thread, NULL, end_of_another, &span), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_memory_equal(&before, otel_thread_ctx_v1, ASSAY_RECORD_HEADER);
    assert_int_equal(assay_end(&span), 0);
}

/* ---- the process ---- */

static uint64_t header_of(pid_t pid)
{
    char path[64], line[512];
    uint64_t address = 0;
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof(line), maps) && !process_context_of_mapping(line, &address)) {
    }
    if (maps)
        fclose(maps);
    return address;
}

static void publishes(void **state)
{
    (void)state;
    struct process_context context = {0};
    struct runtime_reader reader;
    runtime_reader_init(&reader);
    assert_int_equal(assay_init("shop", "1.2.3"), 0);
    assert_int_equal(assay_set_resource("deployment.environment.name", "test"), 0);
    int key = assay_key("tenant");
    assert_true(key >= 0);
    assert_int_equal(assay_key("tenant"), key);
    struct runtime_memory memory = runtime_reader_of(&reader, (uint32_t)getpid());
    uint64_t address = header_of(getpid());
    assert_true(address > 0);
    assert_int_equal(process_context_update(&memory, address, &context), PROCESS_CONTEXT_READ);
    assert_string_equal(process_context_attribute(&context, "service.name"), "shop");
    assert_string_equal(process_context_attribute(&context, "service.version"), "1.2.3");
    assert_string_equal(process_context_attribute(&context, "deployment.environment.name"), "test");
    assert_null(process_context_attribute(&context, "service.namespace"));
    assert_int_equal(context.schema, PROCESS_SCHEMA_THREADS);
    assert_string_equal(context.keys[key], "tenant");
    assert_int_equal(process_context_update(&memory, address, &context), PROCESS_CONTEXT_SAME);
    assert_int_equal(assay_set_resource("deployment.environment.name", NULL), 0);
    assert_int_equal(process_context_update(&memory, address, &context), PROCESS_CONTEXT_READ);
    assert_null(process_context_attribute(&context, "deployment.environment.name"));
    assert_int_equal(process_context_update(&memory, address + 8, &context),
                     PROCESS_CONTEXT_INVALID);
    process_context_release(&context);
    runtime_reader_release(&reader);
}

static void counts_requests(void **state)
{
    (void)state;
    struct process_context context = {0};
    struct runtime_reader reader;
    struct assay_requests requests;
    runtime_reader_init(&reader);
    int route = assay_route("GET /user/{id}"), other = assay_route("GET /cart");
    assert_true(route >= 0 && other >= 0 && route != other);
    assert_int_equal(assay_route("GET /user/{id}"), route);
    assay_count(route, 1000, 0);
    assay_count(route, 3000, 1);
    assay_count(ASSAY_ROUTES_MAX, 1, 0); /* none of ours */
    assay_count(-1, 1, 0);
    struct runtime_memory memory = runtime_reader_of(&reader, (uint32_t)getpid());
    assert_int_equal(process_context_update(&memory, header_of(getpid()), &context),
                     PROCESS_CONTEXT_READ);
    assert_true(context.requests > 0);
    assert_true(runtime_read(&memory, context.requests, &requests, sizeof(requests)));
    assert_memory_equal(requests.signature, "ASSAYREQ", 8);
    assert_int_equal(requests.version, ASSAY_REQUESTS_VERSION);
    assert_string_equal(requests.rows[route].name, "GET /user/{id}");
    assert_int_equal(requests.rows[route].requests, 2);
    assert_int_equal(requests.rows[route].failed, 1);
    assert_int_equal(requests.rows[route].duration_ns, 4000);
    assert_int_equal(requests.rows[other].requests, 0);
    process_context_release(&context);
    runtime_reader_release(&reader);
}

/* The child has its own context and ids of its own, and goes on in the span. */
static int child_is_wrong(const struct assay_record *before, uint64_t address)
{
    struct assay_span span;
    if (memcmp(otel_thread_ctx_v1->span_id, before->span_id, 8) != 0)
        return 1;
    uint64_t own = header_of(getpid());
    if (!own)
        return 2;
    struct process_context context = {0};
    struct runtime_reader reader;
    runtime_reader_init(&reader);
    struct runtime_memory memory = runtime_reader_of(&reader, (uint32_t)getpid());
    if (process_context_update(&memory, own, &context) != PROCESS_CONTEXT_READ ||
        strcmp(process_context_attribute(&context, "service.name"), "shop") != 0)
        return 3;
    (void)address;
    assay_begin(&span);
    ssize_t written = write(STDERR_FILENO, "", 0);
    (void)written;
    return memcmp(otel_thread_ctx_v1->trace_id, before->trace_id, 16) ? 4 : 0;
}

static void follows_forks(void **state)
{
    (void)state;
    int status, ends[2];
    struct assay_span span, next;
    unsigned char child_id[8];
    assay_begin(&span);
    struct assay_record before = *otel_thread_ctx_v1;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (!pid) {
        int wrong = child_is_wrong(&before, header_of(getppid()));
        if (write(ends[1], otel_thread_ctx_v1->span_id, 8) != 8)
            _exit(9);
        _exit(wrong);
    }
    assert_int_equal(read(ends[0], child_id, 8), 8);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assay_begin(&next);
    assert_memory_not_equal(otel_thread_ctx_v1->span_id, child_id, 8);
    assert_int_equal(assay_end(&next), 0);
    assert_int_equal(assay_end(&span), 0);
    close(ends[0]);
    close(ends[1]);
}

/* ---- readers ---- */

static void finds_the_variable(void **state)
{
    (void)state;
    struct error error = {0};
    struct thread_variable variable;
    struct bpf_thread_context way;
    struct runtime_reader reader;
    struct assay_span span;
    struct elf_file file;
    runtime_reader_init(&reader);
    assert_int_equal(elf_open("/proc/self/exe", &file, &error), 0);
    assay_begin(&span);
    /* Only exported variables can be found in executables with shared libraries. */
    if (thread_variable_find(&file, &variable)) {
        struct runtime_memory memory = runtime_reader_of(&reader, (uint32_t)getpid());
        assert_int_equal(variable.access, THREAD_ACCESS_STATIC);
        assert_true(thread_variable_attach(&variable, 0, false, &memory, &way));
        assert_int_equal(way.way, BPF_CONTEXT_STATIC);
        assert_int_equal(
            thread_context_record(&way, &memory, (uint64_t)(uintptr_t)__builtin_thread_pointer()),
            (uint64_t)(uintptr_t)otel_thread_ctx_v1);
    } else {
        fail_msg("the test exports the variable");
    }
    assert_int_equal(assay_end(&span), 0);
    elf_release(&file);
    runtime_reader_release(&reader);
}

static bool read_nothing(void *context, uint64_t address, void *buffer, size_t length)
{
    (void)context, (void)address, (void)buffer, (void)length;
    return false;
}

/* Memory that says anything. */
static bool read_forged(void *context, uint64_t address, void *buffer, size_t length)
{
    uint64_t seed = address ^ *(const uint64_t *)context;
    for (size_t i = 0; i < length; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)buffer)[i] = (uint8_t)(seed >> (seed & 1 ? 60 : 33));
    }
    return true;
}

static void refuses_forged_slots(void **state)
{
    (void)state;
    uint64_t seed;
    struct bpf_thread_context way;
    struct runtime_memory nothing = {.read = read_nothing};
    for (int access = THREAD_ACCESS_DESCRIPTOR; access <= THREAD_ACCESS_MODULE; access++) {
        struct thread_variable variable = {.access = (enum thread_access)access, .slot = 4096};
        assert_false(thread_variable_attach(&variable, 0, false, &nothing, &way));
        for (seed = 1; seed < 5000; seed++) {
            struct runtime_memory forged = {.read = read_forged, .context = &seed};
            if (!thread_variable_attach(&variable, 0, seed & 1, &forged, &way))
                continue;
            assert_true(way.way != BPF_CONTEXT_STATIC ||
                        (way.offset < 0 && way.offset > -(1 << 29)));
            assert_true(way.way == BPF_CONTEXT_STATIC || (way.module && way.module <= 65536));
            thread_context_record(&way, &forged, 0x7f0000000000);
        }
    }
}

/* ProcessContext{resource{service.name = shop}, threadlocal.*, assay.requests}. */
static const uint8_t message[] =
    "\x0a\x18\x0a\x16\x0a\x0cservice.name\x12\x06\x0a\x04shop"
    "\x12\x2d\x0a\x1athreadlocal.schema_version\x12\x0f\x0a\x0dtlsdesc_v1_de"
    "\x12\x33\x0a\x1dthreadlocal.attribute_key_map\x12\x12\x2a\x10\x0a\x07\x0a\x05route"
    "\x0a\x05\x0a\x03who"
    "\x12\x14\x0a\x0e\x61ssay.requests\x12\x02\x18\x7f";

static void parses_messages(void **state)
{
    (void)state;
    struct process_context context = {0};
    assert_true(process_context_parse(message, sizeof(message) - 1, &context));
    assert_string_equal(process_context_attribute(&context, "service.name"), "shop");
    assert_int_equal(context.schema, PROCESS_SCHEMA_UNKNOWN); /* it is not quite ours */
    assert_int_equal(context.key_count, 2);
    assert_string_equal(context.keys[0], "route");
    assert_string_equal(context.keys[1], "who");
    assert_int_equal(context.requests, 127);
    process_context_release(&context);
}

static void try_message(const uint8_t *bytes, size_t length)
{
    struct process_context context = {0};
    uint8_t *exact = memory_alloc(length + !length);
    memcpy(exact, bytes, length);
    process_context_parse(exact, length, &context);
    assert_true(context.key_count <= PROCESS_CONTEXT_KEYS_MAX);
    assert_true(context.attribute_count <= PROCESS_CONTEXT_ATTRIBUTES_MAX);
    process_context_release(&context);
    free(exact);
}

static void survives_damage(void **state)
{
    (void)state;
    uint8_t bytes[sizeof(message)];
    for (size_t length = 0; length < sizeof(message); length++)
        try_message(message, length);
    for (size_t bit = 0; bit < 8 * (sizeof(message) - 1); bit++) {
        memcpy(bytes, message, sizeof(message));
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        try_message(bytes, sizeof(message) - 1);
    }
}

static void recognises_mappings(void **state)
{
    (void)state;
    uint64_t address;
    assert_true(process_context_of_mapping(
        "7f10-7f20 rw-p 00000000 00:01 1037   /memfd:OTEL_CTX (deleted)\n", &address));
    assert_int_equal(address, 0x7f10);
    assert_true(
        process_context_of_mapping("7f10-7f20 rw-p 00000000 00:00 0  [anon:OTEL_CTX]", &address));
    assert_true(
        process_context_of_mapping("7f10-7f20 rw-p 0 00:00 0  [anon_shmem:OTEL_CTX]", &address));
    assert_false(
        process_context_of_mapping("7f10-7f20 rw-p 0 00:00 0  /tmp/memfd:OTEL_CTX", &address));
    assert_false(process_context_of_mapping("7f10-7f20 rw-p 0 00:00 0", &address));
    assert_false(process_context_of_mapping("", &address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nests_spans),         cmocka_unit_test(takes_ids),
        cmocka_unit_test(continues_traces),    cmocka_unit_test(limits_attributes),
        cmocka_unit_test(keeps_threads_apart), cmocka_unit_test(publishes),
        cmocka_unit_test(counts_requests),     cmocka_unit_test(follows_forks),
        cmocka_unit_test(finds_the_variable),  cmocka_unit_test(refuses_forged_slots),
        cmocka_unit_test(parses_messages),     cmocka_unit_test(survives_damage),
        cmocka_unit_test(recognises_mappings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
