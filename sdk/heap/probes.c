// SPDX-License-Identifier: Apache-2.0
// The USDT probes: a nop each, and a note that describes it. See probes.h.

#include "heap/probes.h"

/* Semaphores live in a section of this name so that tools find and change them. */
__attribute__((section(".probes"), used)) volatile struct heap_switch assay_heap_alloc_switch;
__attribute__((section(".probes"), used,
               visibility("hidden"))) volatile uint16_t assay_heap_free_semaphore;

/* A version 3 note: owner "stapsdt", then the probe's address, the base that prelink would move,
 * the semaphore's address, provider, name, and where the arguments are. */
#define PROBE(name, semaphore, arguments, ...)                                                     \
    __asm__ volatile("990: nop\n"                                                                  \
                     ".pushsection .note.stapsdt,\"\",\"note\"\n"                                  \
                     ".balign 4\n"                                                                 \
                     ".4byte 992f-991f, 994f-993f, 3\n"                                            \
                     "991: .asciz \"stapsdt\"\n"                                                   \
                     "992: .balign 4\n"                                                            \
                     "993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                           \
                     ".asciz \"otel_memory\"\n"                                                    \
                     ".asciz \"" name "\"\n"                                                       \
                     ".asciz \"" arguments "\"\n"                                                  \
                     "994: .balign 4\n"                                                            \
                     ".popsection\n"                                                               \
                     ".ifndef _.stapsdt.base\n"                                                    \
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"       \
                     ".weak _.stapsdt.base\n"                                                      \
                     ".hidden _.stapsdt.base\n"                                                    \
                     "_.stapsdt.base: .space 1\n"                                                  \
                     ".size _.stapsdt.base, 1\n"                                                   \
                     ".popsection\n"                                                               \
                     ".endif\n" ::__VA_ARGS__)

__attribute__((noinline)) void heap_probe_alloc(void *pointer, size_t size, uint64_t weight)
{
    PROBE("alloc", "assay_heap_alloc_switch", "8@%0 8@%1 8@%2", "r"(pointer), "r"(size),
          "r"(weight));
}

__attribute__((noinline)) void heap_probe_free(void *pointer)
{
    PROBE("free", "assay_heap_free_semaphore", "8@%0", "r"(pointer));
}
