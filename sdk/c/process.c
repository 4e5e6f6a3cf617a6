// SPDX-License-Identifier: Apache-2.0
// Publishes the process's description of itself: the process context, a mapping that is called
// OTEL_CTX, with a header that leads to a message. Readers take the time in the header for a
// version: 0 while it changes.

#include "c/assay.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "c/internal.h"
#include "c/record.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

#define CONTEXT_NAME "OTEL_CTX"
#define CONTEXT_VERSION 2
#define RESOURCES_MAX 64
#define TEXT_MAX 256
#define SCHEMA "tlsdesc_v1_dev"

struct header {
    char signature[8];
    uint32_t version;
    uint32_t payload_bytes;
    uint64_t published_ns;
    uint64_t payload;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct header *header;
static unsigned char *payload;
static struct {
    char *key, *value;
} resources[RESOURCES_MAX];
static unsigned resource_count;
static char *keys[ASSAY_KEYS_MAX];
static unsigned key_count;
static struct assay_requests *requests;

/* ---- the message ---- */

/* Counts while there is no memory to write to. */
struct writer {
    unsigned char *bytes;
    size_t length;
};

static void put_byte(struct writer *writer, unsigned byte)
{
    if (writer->bytes)
        writer->bytes[writer->length] = (unsigned char)byte;
    writer->length++;
}

static void put_varint(struct writer *writer, uint64_t number)
{
    for (; number > 127; number >>= 7)
        put_byte(writer, (unsigned)(number & 127) | 128);
    put_byte(writer, (unsigned)number);
}

static size_t varint_bytes(uint64_t number)
{
    struct writer count = {0};
    put_varint(&count, number);
    return count.length;
}

static void put_field(struct writer *writer, unsigned field, size_t bytes)
{
    put_byte(writer, field << 3 | 2);
    put_varint(writer, bytes);
}

static void put_text(struct writer *writer, unsigned field, const char *text)
{
    put_field(writer, field, strlen(text));
    for (; *text; text++)
        put_byte(writer, (unsigned char)*text);
}

static size_t field_bytes(size_t bytes)
{
    return 1 + varint_bytes(bytes) + bytes;
}

static size_t text_bytes(const char *text)
{
    return field_bytes(strlen(text));
}

/* KeyValue{key = 1, value = 2: AnyValue{string_value = 1}} in this field. */
static void put_attribute(struct writer *writer, unsigned field, const char *key, const char *value)
{
    put_field(writer, field, text_bytes(key) + field_bytes(text_bytes(value)));
    put_text(writer, 1, key);
    put_field(writer, 2, text_bytes(value));
    put_text(writer, 1, value);
}

static void put_number(struct writer *writer, unsigned field, const char *key, uint64_t number)
{
    size_t value = 1 + varint_bytes(number);
    put_field(writer, field, text_bytes(key) + field_bytes(value));
    put_text(writer, 1, key);
    put_field(writer, 2, value);
    put_byte(writer, 3 << 3); /* int_value */
    put_varint(writer, number);
}

/* ArrayValue{values = 1} is AnyValue's field 5. */
static void put_keys(struct writer *writer, unsigned field)
{
    static const char name[] = "threadlocal.attribute_key_map";
    size_t array = 0;
    for (unsigned i = 0; i < key_count; i++)
        array += field_bytes(text_bytes(keys[i]));
    put_field(writer, field, text_bytes(name) + field_bytes(field_bytes(array)));
    put_text(writer, 1, name);
    put_field(writer, 2, field_bytes(array));
    put_field(writer, 5, array);
    for (unsigned i = 0; i < key_count; i++) {
        put_field(writer, 1, text_bytes(keys[i]));
        put_text(writer, 1, keys[i]);
    }
}

static void put_resource(struct writer *writer)
{
    for (unsigned i = 0; i < resource_count; i++)
        put_attribute(writer, 1, resources[i].key, resources[i].value);
}

/* ProcessContext{resource = 1: Resource{attributes = 1}, attributes = 2}. */
static void put_message(struct writer *writer)
{
    struct writer resource = {0};
    put_resource(&resource);
    put_field(writer, 1, resource.length);
    put_resource(writer);
    put_attribute(writer, 2, "threadlocal.schema_version", SCHEMA);
    put_keys(writer, 2);
    if (requests)
        put_number(writer, 2, "assay.requests", (uint64_t)(uintptr_t)requests);
}

/* ---- publishing ---- */

static int make_mapping(void)
{
    int fd = memfd_create(CONTEXT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0)
        fd = memfd_create(CONTEXT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, (off_t)sizeof(*header)) < 0) {
        close(fd);
        fd = -1;
    }
    void *memory = mmap(NULL, sizeof(*header), PROT_READ | PROT_WRITE,
                        fd >= 0 ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
    int code = errno;
    if (fd >= 0)
        close(fd);
    if (memory == MAP_FAILED)
        return -code;
    if (madvise(memory, sizeof(*header), MADV_DONTFORK) < 0) {
        code = errno;
        munmap(memory, sizeof(*header));
        return -code;
    }
    header = memory;
    return 0;
}

static uint64_t next_time(uint64_t before)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    return now_ns > before ? now_ns : before + 1;
}

/* With the lock held. */
static int publish(void)
{
    struct writer count = {0};
    int r = header ? 0 : make_mapping();
    if (r < 0)
        return r;
    put_message(&count);
    struct writer writer = {.bytes = malloc(count.length)};
    if (!writer.bytes)
        return -ENOMEM;
    put_message(&writer);
    uint64_t before = header->published_ns;
    __atomic_store_n(&header->published_ns, 0, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    memcpy(header->signature, CONTEXT_NAME, sizeof(header->signature));
    header->version = CONTEXT_VERSION;
    header->payload_bytes = (uint32_t)writer.length;
    header->payload = (uint64_t)(uintptr_t)writer.bytes;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&header->published_ns, next_time(before), __ATOMIC_SEQ_CST);
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, header, sizeof(*header), CONTEXT_NAME);
    free(payload);
    payload = writer.bytes;
    return 0;
}

void assay_publish_begin(void)
{
    pthread_mutex_lock(&lock);
    publish();
    pthread_mutex_unlock(&lock);
}

void assay_fork_begin(void)
{
    pthread_mutex_lock(&lock);
}

void assay_fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The mapping has stayed with the parent; the rows of requests count the child's own from here. */
void assay_fork_child(void)
{
    header = NULL;
    for (unsigned i = 0; requests && i < ASSAY_ROUTES_MAX; i++)
        requests->rows[i].requests = requests->rows[i].failed = requests->rows[i].duration_ns = 0;
    publish();
    pthread_mutex_unlock(&lock);
}

/* ---- attributes ---- */

static bool is_text(const char *text, size_t max)
{
    return text && *text && strnlen(text, max + 1) <= max;
}

/* With the lock held. */
static int set_resource(const char *key, const char *value)
{
    unsigned at = 0;
    while (at < resource_count && strcmp(resources[at].key, key) != 0)
        at++;
    if (!value || !*value) {
        if (at < resource_count) {
            free(resources[at].key);
            free(resources[at].value);
            resources[at] = resources[--resource_count];
        }
        return 0;
    }
    if (at == RESOURCES_MAX)
        return -E2BIG;
    char *copy = strdup(value), *name = at < resource_count ? resources[at].key : strdup(key);
    if (!copy || !name) {
        free(copy);
        if (at == resource_count)
            free(name);
        return -ENOMEM;
    }
    if (at < resource_count)
        free(resources[at].value);
    else
        resource_count++;
    resources[at].key = name;
    resources[at].value = copy;
    return 0;
}

int assay_init(const char *service, const char *version)
{
    if ((service && strnlen(service, TEXT_MAX + 1) > TEXT_MAX) ||
        (version && strnlen(version, TEXT_MAX + 1) > TEXT_MAX))
        return -E2BIG;
    assay_prepare();
    pthread_mutex_lock(&lock);
    int r = set_resource("service.name", service);
    if (!r)
        r = set_resource("service.version", version);
    if (!r)
        r = publish();
    pthread_mutex_unlock(&lock);
    return r;
}

int assay_set_resource(const char *key, const char *value)
{
    if (!is_text(key, TEXT_MAX) || (value && strnlen(value, TEXT_MAX + 1) > TEXT_MAX))
        return key && *key ? -E2BIG : -EINVAL;
    assay_prepare();
    pthread_mutex_lock(&lock);
    int r = set_resource(key, value);
    if (!r)
        r = publish();
    pthread_mutex_unlock(&lock);
    return r;
}

int assay_key(const char *name)
{
    unsigned at = 0;
    if (!is_text(name, 255))
        return -EINVAL;
    assay_prepare();
    pthread_mutex_lock(&lock);
    while (at < key_count && strcmp(keys[at], name) != 0)
        at++;
    int r = (int)at;
    if (at == ASSAY_KEYS_MAX)
        r = -E2BIG;
    else if (at == key_count && !(keys[at] = strdup(name)))
        r = -ENOMEM;
    else if (at == key_count) {
        key_count++;
        publish();
    }
    pthread_mutex_unlock(&lock);
    return r;
}

/* ---- requests ---- */

static int find_requests(void)
{
    if (requests)
        return 0;
    struct assay_requests *memory =
        mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    memcpy(memory->signature, "ASSAYREQ", sizeof(memory->signature));
    memory->version = ASSAY_REQUESTS_VERSION;
    requests = memory;
    publish();
    return 0;
}

int assay_route(const char *name)
{
    uint32_t at = 0;
    if (!is_text(name, ASSAY_ROUTE_BYTES - 1))
        return -EINVAL;
    assay_prepare();
    pthread_mutex_lock(&lock);
    int r = find_requests();
    while (!r && at < requests->count && strcmp(requests->rows[at].name, name) != 0)
        at++;
    if (!r && at == ASSAY_ROUTES_MAX)
        r = -E2BIG;
    if (!r && at == requests->count) {
        strcpy(requests->rows[at].name, name);
        __atomic_store_n(&requests->count, at + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return r ? r : (int)at;
}

void assay_count(int route, uint64_t duration_ns, int failed)
{
    struct assay_requests *all = requests;
    if (!all || route < 0 || (uint32_t)route >= __atomic_load_n(&all->count, __ATOMIC_ACQUIRE))
        return;
    __atomic_fetch_add(&all->rows[route].requests, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&all->rows[route].duration_ns, duration_ns, __ATOMIC_RELAXED);
    if (failed)
        __atomic_fetch_add(&all->rows[route].failed, 1, __ATOMIC_RELAXED);
}
