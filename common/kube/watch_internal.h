/* The state that the two halves of the watch machine share: watch_machine.c decides on requests,
 * watch_reply.c reads replies. */
#pragma once

#include "common/base/buf.h"
#include "common/json/json_splitter.h"
#include "common/kube/watch.h"

/* The version at which the next list begins. */
enum list_start {
    LIST_CACHED, /* any version that the API server has at hand: the first list */
    LIST_KNOWN,  /* not older than the events so far */
    LIST_FRESH   /* the newest there is */
};

/* The state of the transfer under way. */
struct watch_reply {
    bool begun;         /* a 200 */
    bool complete;      /* a page of a list, to its end */
    bool told;          /* an event or a bookmark */
    bool list_next;     /* a change was passed over */
    struct error error; /* the error that ended the feed */
};

struct watch_machine {
    struct watch_options options;
    char *ns;
    char *label_selector;
    char *field_selector;
    char *resource;
    struct buf paths; /* the memory of the lists below */
    const char *unread_of_event[JSON_MAX_UNREAD + 1];
    const char *unread_of_item[JSON_MAX_UNREAD + 1];
    const char *texts_of_event[JSON_MAX_TEXTS + 1];
    watch_sink_fn *sink;
    void *ctx;
    struct json_splitter *splitter;

    bool watching; /* otherwise listing */
    enum list_start start;
    char *page;        /* continue token; NULL: the first page is next */
    bool in_set;       /* after INIT, before INIT_DONE */
    char *set_version; /* of the first page of the set */
    char *version;     /* all events up to it were passed on; NULL: none yet */

    char *path;
    struct watch_reply reply;
    int64_t started_ms;
    int64_t not_before_ms;
    unsigned failures; /* in a row, but for Gone */
    unsigned gones;    /* in a row */
    bool must_tell;    /* the last stream began with 200 and failed by what it said, or by saying
                          nothing: another 200 proves nothing */
    enum error_code problem_code;
    char problem[384];
};

/* "1234": opaque, but not longer than this, as it goes into paths. */
#define WATCH_MAX_VERSION 128
/* Continue tokens are base64 of a key and a version: some hundred bytes. */
#define WATCH_MAX_TOKEN (8u << 10)

/* value NULL: none any more */
void watch_set_string(char **string, const char *value);
void watch_no_problem(struct watch_machine *machine);
/* The splitter's part function; ctx is the machine. */
json_part_fn watch_on_part;
