/* The documents that documents.py makes when the program is built: discovery, OpenAPI, and the kinds. */
#pragma once

#include <stddef.h>

/* A document, ended by NUL, which is part of the program. NULL: there is none with this name. */
const char *bundle_find(const char *name, size_t *ret_len);
