/* The service of modules with two registries, r.example and other.example, and modules that differ by a number: for
 * TEST_GROUP. */
#pragma once

#include "common/tests/arena_fixture.h"
#include "common/tests/fake_clock.h"
#include "controller/registry/wasm_modules.h"
#include "controller/tests/fake_registry.h"

#define MODULE_BYTES 5000
#define CACHE_BYTES 12000
#define MAX_BYTES 6000
#define TAG "r.example/acme/add:1"
#define LOGIN "user:password"

extern struct fake_registry *registry, *other;
extern struct fake_clock clock_of_test;
extern struct wasm_modules *modules;
extern struct wasm_modules_settings settings;
extern struct wasm_module_answer answer; /* the last one */
extern unsigned secret_reads;

void service_set_up(void);
void service_tear_down(void);
void restart_service(void);
/* The Secret 'pull' of the namespace 'private' from now on. code: reads fail with it; login NULL: it does not exist. */
void set_secret(enum error_code code, const char *login);

const char *module_of(int number);
const char *digest_of(int number);
/* Returns the digest of its manifest. The tag may be NULL. */
const char *push(struct fake_registry *to, const char *tag, int number);
const char *by_digest(const char *digest); /* reference to r.example */

/* A Task of this namespace asks for its module. */
void want_of(const char *ns, const char *uid, const char *reference, const char *manifest,
             bool with_secret);
unsigned wakes_seen(void);
void await_wake(unsigned seen);
/* Asks again at each wake until the state is no PENDING, or its reason is this one. */
void await_of(const char *ns, const char *uid, const char *reference, const char *manifest,
              bool with_secret, enum reason reason);
/* The same of the namespace 'public', without a Secret. */
void await(const char *uid, const char *reference, const char *manifest);
void expect_ready(const char *manifest, int number);
void expect_failed(enum reason reason, bool is_final, const char *message);
