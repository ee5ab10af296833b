/* Everything that a user made, as YAML that kubectl apply and propeller-standalone import take. */
#pragma once

#include <stdio.h>

#include "standalone/moving/manifest.h"
#include "standalone/schema/resource.h"
#include "standalone/store/kv.h"

struct export_options {
    const char *ns; /* only this namespace and its objects; "" or NULL: all */
    bool status;    /* finished Tasks, jobs and rounds with their status: for import */
    bool all;       /* finished ones without it: they run again */
};

/*
 * Documents behind "---", members by name, in this order: namespaces, accounts, Secrets and ConfigMaps,
 * Proplets, jobs, rounds, Tasks, each by namespace and name as the store has them. The same store gives
 * the same bytes. In memory is one page of the store at a time. ERROR_UNAVAILABLE: file takes no more;
 * the caller flushes it.
 */
int export_write(struct arena *arena, struct kv_reader *reader, const struct resources *resources,
                 const struct export_options *options, FILE *file, struct manifest_counts *ret,
                 struct error *err) MUST_CHECK;
