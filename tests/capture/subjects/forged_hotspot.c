/* SPDX-License-Identifier: Apache-2.0 */
/* A program that pretends to be HotSpot 17, with structures that lead in circles and to nowhere:
 * forged_hotspot HOW SECONDS, of CPU time. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct entry {
    const char *type, *field, *text;
    int32_t is_static;
    uint64_t offset;
    void *address;
};
struct type {
    const char *name, *super;
    int32_t flags[2];
    uint64_t bytes;
};

static uint64_t heaps_array[3], heap_list[1], heap[40], queue[8], version, release, stub,
    code_queue;
static uint64_t *heaps = heaps_array;
static uint64_t method[16], const_method[32], pool[32], klass[16];
static uint8_t tags[16];
static char class_name[64] __attribute__((aligned(8))), method_name[64] __attribute__((aligned(8)));
static uint8_t segments[4096];

#define FIELD(type, field, offset)                                                                 \
    {                                                                                              \
        type, field, "int", 0, offset, NULL                                                        \
    }
#define SHORT(type, field, offset)                                                                 \
    {                                                                                              \
        type, field, "u2", 0, offset, NULL                                                         \
    }
#define STATIC(type, field, where)                                                                 \
    {                                                                                              \
        type, field, "void*", 1, 0, where                                                          \
    }

static struct entry entries[] = {
    STATIC("CodeCache", "_heaps", &heaps),
    STATIC("AbstractInterpreter", "_code", &code_queue),
    STATIC("StubRoutines", "_call_stub_return_address", &stub),
    STATIC("Abstract_VM_Version", "_vm_major_version", &version),
    STATIC("Abstract_VM_Version", "_s_vm_release", &release),
    FIELD("GrowableArrayBase", "_len", 0),
    FIELD("GrowableArray<int>", "_data", 8),
    FIELD("CodeHeap", "_memory", 8),
    FIELD("CodeHeap", "_segmap", 120),
    FIELD("CodeHeap", "_log2_segment_size", 256),
    FIELD("VirtualSpace", "_low_boundary", 0),
    FIELD("VirtualSpace", "_high_boundary", 8),
    FIELD("StubQueue", "_stub_buffer", 8),
    FIELD("StubQueue", "_buffer_limit", 20),
    FIELD("CodeBlob", "_name", 96),
    FIELD("CodeBlob", "_size", 12),
    FIELD("CodeBlob", "_frame_size", 28),
    FIELD("CodeBlob", "_frame_complete_offset", 20),
    FIELD("CodeBlob", "_code_begin", 32),
    FIELD("CompiledMethod", "_method", 112),
    FIELD("CompiledMethod", "_scopes_data_begin", 120),
    FIELD("CompiledMethod", "_deopt_handler_begin", 128),
    FIELD("nmethod", "_orig_pc_offset", 300),
    FIELD("nmethod", "_metadata_offset", 260),
    FIELD("nmethod", "_scopes_pcs_offset", 268),
    FIELD("nmethod", "_dependencies_offset", 272),
    FIELD("nmethod", "_compile_id", 304),
    FIELD("Method", "_constMethod", 8),
    FIELD("ConstMethod", "_constants", 8),
    FIELD("ConstMethod", "_constMethod_size", 24),
    SHORT("ConstMethod", "_flags", 28),
    SHORT("ConstMethod", "_code_size", 32),
    SHORT("ConstMethod", "_name_index", 34),
    FIELD("ConstantPool", "_tags", 8),
    FIELD("ConstantPool", "_pool_holder", 24),
    FIELD("ConstantPool", "_length", 60),
    SHORT("ConstantPool", "_source_file_name_index", 54),
    FIELD("Klass", "_name", 24),
    SHORT("Symbol", "_length", 0),
    FIELD("Symbol", "_body", 6),
    {0},
};
static struct type types[] = {{"HeapBlock", NULL, {0}, 16},
                              {"ConstMethod", NULL, {0}, 48},
                              {"ConstantPool", NULL, {0}, 72},
                              {0}};

struct entry *gHotSpotVMStructs = entries;
uint64_t gHotSpotVMStructEntryArrayStride = sizeof(struct entry);
uint64_t gHotSpotVMStructEntryTypeNameOffset = offsetof(struct entry, type);
uint64_t gHotSpotVMStructEntryFieldNameOffset = offsetof(struct entry, field);
uint64_t gHotSpotVMStructEntryTypeStringOffset = offsetof(struct entry, text);
uint64_t gHotSpotVMStructEntryIsStaticOffset = offsetof(struct entry, is_static);
uint64_t gHotSpotVMStructEntryOffsetOffset = offsetof(struct entry, offset);
uint64_t gHotSpotVMStructEntryAddressOffset = offsetof(struct entry, address);
struct type *gHotSpotVMTypes = types;
uint64_t gHotSpotVMTypeEntryArrayStride = sizeof(struct type);
uint64_t gHotSpotVMTypeEntryTypeNameOffset = offsetof(struct type, name);
uint64_t gHotSpotVMTypeEntrySizeOffset = offsetof(struct type, bytes);

#define ADDRESS(of) ((uint64_t)(uintptr_t)(of))
#define PUT(base, offset, type, value)                                                             \
    do {                                                                                           \
        type put_ = (type)(value);                                                                 \
        memcpy((char *)(base) + (offset), &put_, sizeof(put_));                                    \
    } while (0)

static void symbol(char *at, const char *text, unsigned length)
{
    PUT(at, 0, uint16_t, length);
    memcpy(at + 6, text, strlen(text));
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

enum { CACHE_BYTES = 1 << 16, BLOB = 16, CODE = 0x400, SCOPES = 0x800 };

int main(int argc, char **argv)
{
    int how = argc > 1 ? atoi(argv[1]) : 0;
    double end = seconds() + (argc > 2 ? atof(argv[2]) : 1);
    /* dec rdi; jnz; ret */
    static const uint8_t loop[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
    char *cache = mmap(NULL, CACHE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (cache == MAP_FAILED)
        return 1;
    char *blob = cache + BLOB;
    memcpy(cache + CODE, loop, sizeof(loop));
    version = 17;
    release = ADDRESS("17.0.1+1");
    stub = ADDRESS(cache) + 8;
    code_queue = ADDRESS(queue);
    PUT(queue, 8, uint64_t, cache + CACHE_BYTES - 4096);
    PUT(queue, 20, uint32_t, 4096);
    heaps_array[0] = 1;
    heaps_array[1] = ADDRESS(heap_list);
    heap_list[0] = ADDRESS(heap);
    PUT(heap, 8, uint64_t, cache);
    PUT(heap, 16, uint64_t, cache + CACHE_BYTES);
    PUT(heap, 120, uint64_t, segments);
    PUT(heap, 256, uint32_t, 7);
    for (unsigned i = 0; i < sizeof(segments); i++)
        segments[i] = (uint8_t)(how == 4 ? 1 : i < 254 ? i : 254);
    if (how == 4)
        segments[0] = 1; /* never a beginning */
    PUT(blob, 96, uint64_t, "nmethod");
    PUT(blob, 28, uint32_t, how == 1 ? 0x7fffffff : 1);
    PUT(blob, 32, uint64_t, how == 1 ? 0 : ADDRESS(cache) + CODE);
    PUT(blob, 20, uint32_t, 64); /* all of it is before its frame is complete */
    PUT(blob, 112, uint64_t, how == 2 ? 0xdead0000beef : ADDRESS(method));
    PUT(blob, 304, uint32_t, 7);
    PUT(blob, 120, uint64_t, blob + SCOPES);
    PUT(blob, 260, uint32_t, SCOPES - 8);
    PUT(blob, 268, uint32_t, how == 3 ? 0x7ffffff0 : SCOPES + 16);
    PUT(blob, 272, uint32_t, how == 3 ? 0xffffffff : SCOPES + 64);
    PUT(blob, SCOPES - 8, uint64_t, method);
    static const uint8_t scopes[] = {0, 0, 1, 1, 4, 1, 1}; /* the second is inlined into itself */
    memcpy(blob + SCOPES, scopes, sizeof(scopes));
    static const int32_t pcs[3][4] = {{-1, 0, 0, 0}, {64, 4, 0, 0}, {99999, 0, 0, 0}};
    memcpy(blob + SCOPES + 16, pcs, sizeof(pcs));
    PUT(method, 8, uint64_t, const_method);
    PUT(const_method, 8, uint64_t, pool);
    PUT(const_method, 24, uint32_t, how == 3 ? 0xffffffff : 8);
    PUT(const_method, 28, uint16_t, 1);
    PUT(const_method, 34, uint16_t, 3);
    PUT(pool, 8, uint64_t, tags);
    PUT(pool, 24, uint64_t, klass);
    PUT(pool, 60, uint32_t, how == 2 ? 0xffffffff : 8);
    PUT(pool, 72 + 24, uint64_t, method_name);
    tags[4 + 3] = 1;
    PUT(klass, 24, uint64_t, class_name);
    symbol(class_name, "forged/Class", 12);
    symbol(method_name, how == 5 ? "\x1b[31m" : "name", how == 5 ? 65535 : 4);
    while (seconds() < end)
        ((void (*)(uint64_t))(uintptr_t)(cache + CODE))(1000000);
    return 0;
}
