/* Files of the repository that are part of the program. */
#pragma once

#include <stddef.h>

struct embedded {
    const char *path; /* in the repository */
    const char *text; /* not ended by NUL */
    const char *end;
};

/* Defines symbol and symbol_end, for this source alone. The assembler reads the file, below the folder that the
 * build runs in; the Makefile says that the object depends on it. */
#define EMBED(symbol, path)                                                                        \
    __asm__(".pushsection .rodata\n" #symbol ":\n"                                                 \
            ".incbin \"" path "\"\n" #symbol "_end:\n"                                             \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char symbol[] __attribute__((visibility("hidden")));                              \
    extern const char symbol##_end[] __attribute__((visibility("hidden")))
