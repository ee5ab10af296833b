/* The gate holds the starts of Tasks back until their modules can be had by their devices. */
#pragma once

#include "common/runtime/store.h"
#include "controller/registry/delivery.h"
#include "controller/registry/wasm_modules.h"
#include "controller/task/owner.h"

/*
 *   spec.imageUrl names a registry   pulled; then in the start, or in parts before it
 *   spec.file                        in the start as ever, or in parts
 *   http, https, encrypted           none of its business, unless signatures are needed
 *
 * A module goes into the start if that has at most PAYLOAD_STANDARD_MAX bytes, and so have the starts for all Proplets
 * of the channel together. Otherwise it goes in parts, and the start names it by its digest. Never in parts where a
 * microcontroller is on the channel.
 *
 * All functions but create and destroy are for any thread.
 */
struct gate;

struct gate_options {
    struct wasm_modules *modules;
    struct deliveries *deliveries;
    struct store *proplets; /* INDEX_CHANNEL, INDEX_EMBEDDED */
    int64_t pull_timeout_ms;
    bool needs_signatures; /* nothing runs that no registry has */
};

struct gate *gate_create(const struct gate_options *options);
void gate_destroy(struct gate *gate); /* NULL is fine */

extern const struct task_owner GATE_OWNER; /* self: struct gate */
