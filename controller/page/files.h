/* The files of the client, which are part of the program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct page_file {
    const char *type;
    const char *text; /* constant */
    size_t len;
};
/* The file at this path of an address; false: there is none. */
bool page_file_find(const char *path, struct page_file *ret);
