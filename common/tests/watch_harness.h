/* A watch machine under test: bytes in, what it told out as text, time by hand. */
#pragma once

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/watch.h"
#include "common/tests/suite.h"

#define ITEM(name, version)                                                                        \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"n\",\"resourceVersion\":\"" version      \
    "\",\"uid\":\"u-" name "\"}}"
#define EVENT(type, name, version) "{\"type\":\"" type "\",\"object\":" ITEM(name, version) "}\n"
#define BOOKMARK(version)                                                                          \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version "\"}}}\n"
#define LIST(items, version)                                                                       \
    "{\"kind\":\"GadgetList\",\"apiVersion\":\"example.org/v1\",\"metadata\":"                     \
    "{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}\n"
#define PAGE(items, version, token)                                                                \
    "{\"apiVersion\":\"example.org/v1\",\"items\":[" items "],\"kind\":\"GadgetList\","            \
    "\"metadata\":{\"continue\":\"" token "\",\"resourceVersion\":\"" version "\"}}\n"
#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"" message     \
    "\",\"reason\":\"" reason "\",\"code\":" #code "}"
#define ERROR_EVENT(code, reason, message)                                                         \
    "{\"type\":\"ERROR\",\"object\":" STATUS(code, reason, message) "}\n"

#define GADGETS "/apis/example.org/v1/gadgets"
#define LIST_CACHED GADGETS "?limit=500&resourceVersion=0"
#define LIST_FROM(version)                                                                         \
    GADGETS "?limit=500&resourceVersion=" version "&resourceVersionMatch=NotOlderThan"
#define LIST_FRESH GADGETS "?limit=500"
#define LIST_PAGE(token) GADGETS "?limit=500&continue=" token
#define WATCH_FROM(version)                                                                        \
    GADGETS "?watch=true&allowWatchBookmarks=true&resourceVersion=" version "&timeoutSeconds=290"

extern const struct kube_kind KIND_GADGET; /* gadgets.example.org */
extern struct watch_machine *machine;
extern int64_t now_ms;
extern char *last_text; /* of the last object that was told */

void watch_set_up(void); /* and tear down: for TEST_GROUP */
void watch_tear_down(void);
void watch_set_up_with(const struct watch_options *options);

/* What was told since the last of these, a line each: "apply n/a @12". */
const char *told_so_far(void);
void expect_told(const char *text);
void forget_told(void);
/* Checks the next request and waits for its time; returns how long that was. */
int64_t request(const char *path);
/* Between half and the whole of it. */
void check_wait(int64_t wait_ms, int64_t whole_ms);
/* A 200 and some bytes in chunks; what watch_machine_feed returned. */
int feed(const char *bytes, size_t len, size_t chunk);
/* A whole reply with status 200 that took some time. */
void reply(const char *body, int64_t lasted_ms);
void refuse(int status, const char *body);
/* Listed at version 10, nothing there; the watch is next. */
void get_to_watch(void);
/* Three ways to say 410 to a watch. */
#define GONE_COUNT 3
extern void (*const GONE[GONE_COUNT])(void);
