/* Files that are part of the program. */
#pragma once

#include <stddef.h>

struct embedded {
    const char *path; /* in the repository */
    const char *text; /* not ended by NUL */
    const char *end;
};

/* The manifests of crds/. */
extern const struct embedded EMBEDDED_CRDS[];
extern const size_t EMBEDDED_CRDS_LEN;

/* Definitions of Kubernetes' own OpenAPI document: the built-in kinds that are served, and metadata. */
extern const struct embedded EMBEDDED_DEFINITIONS;
