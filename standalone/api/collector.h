/* The thread that finishes deletions: dependents of what is gone, orphaning deletions, namespaces, Events that are
 * over. For this folder only. */
#pragma once

#include <stddef.h>

#include "common/base/error.h"

struct api;
struct collector;

/*
 * Watches the whole store. In memory is the key of each object that has an owner, and of each that is to be looked at.
 * An owner that goes costs a few looks for each dependent, whatever order they end in, and a namespace for each object
 * in it; meanwhile others are looked at, too. A deletion that is impossible now (a conflict, a full disk, an object
 * that cannot be read) is tried again every collector_retry_ms. Nothing is done before it has read all events.
 */
#define COLLECTOR_EVENTS_MS 60000
int collector_create(struct api *api, struct collector **ret, struct error *err);
void collector_destroy(struct collector *collector); /* joins; NULL is fine */
/* Objects that it has read so far. Any thread. */
size_t collector_looked_at(const struct collector *collector);
