// SPDX-License-Identifier: Apache-2.0
// Calls that are bound when they are first made: each goes through its stub into the loader.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#pragma GCC diagnostic ignored "-Wunused-result"
void lazy_calls(void);
void lazy_calls(void)
{
    char *volatile text = "text";
    volatile int n = 'a';
    char room[8];
    strcpy(room, text);
    strcat(room, text + 2);
    strcspn(text, room);
    strspn(text, room);
    strpbrk(text, room);
    strstr(text, room);
    strcasecmp(text, room);
    strncasecmp(text, room, (size_t)n);
    strcoll(text, room);
    strtol(text, NULL, n - 87);
    strtoul(text, NULL, n - 87);
    strtod(text, NULL);
    iswalpha((wint_t)n);
    iswdigit((wint_t)n);
    iswpunct((wint_t)n);
    towupper((wint_t)n);
    towlower((wint_t)n);
    labs(n);
    div(n, 7);
    ldiv(n, 7);
    __asm__ volatile("" ::: "memory");
}
