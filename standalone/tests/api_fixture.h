/* The API on a store of its own, and short words for requests. Whatever is not expected fails the test. */
#pragma once

#include "standalone/api/api.h"
#include "standalone/tests/kv_fixture.h"
#include "standalone/tests/resources_fixture.h"

extern uint64_t api_history; /* revisions that the store keeps, of the next setup; 0: many */
extern const char *api_vfs;  /* of its store; NULL: the default one */
extern const struct admission_policy *api_policy; /* of the next setup or restart; NULL: none */
extern int64_t (*api_wall_us)(
    void *ctx); /* of the clock, with its own ctx; NULL: the fake clock's */
extern struct api *api;
extern struct user api_user;        /* an admin; may be changed */
extern const char *api_accept;      /* of the requests of this test; NULL: none */
extern struct api_reply api_answer; /* of the last request */

void api_setup(void); /* the namespace "default" is there */
void api_teardown(void);
/* Closes the store and opens it again; meanwhile, if it is not NULL, is called in between. */
void api_restart(void (*meanwhile)(void));

#define TASKS "/apis/propeller.propeller.abstractmachines.fr/v1/namespaces/default/tasks"
#define CONFIGMAPS "/api/v1/namespaces/default/configmaps"

/* path may have a query. The body that came; its status is expected. */
const cJSON *ask(const char *method, const char *path, const char *body, int status);
const cJSON *ask_patch(const char *path, const char *type, const char *body, int status);
/* As ask, of any content type; what came is left in api_answer. */
void api_try(const char *method, const char *path, const char *type, const char *body);
void api_send(const char *method, const char *path, const char *type, const char *body, int status);
/* Any thread: the status of the answer, which is let go. */
int api_status(const char *method, const char *path, const char *type, const char *body);
/* A ConfigMap of the namespace default, with these JSON members behind the name and so many bytes of data. */
void api_put(const char *name, const char *more, size_t bytes);
size_t api_allocated(void); /* bytes of this process */
/* "reason: message" of the refusal that is expected. */
const char *refusal(const char *method, const char *path, const char *body, int status);

/* A Task of that name; more: JSON members that are put behind its metadata's and its spec's. */
const char *task_text(const char *name, const char *more_metadata, const char *more_spec);

/* A string of metadata, "" without. */
const char *meta(const cJSON *object, const char *field);

void api_collect(void); /* from now on there is a garbage collector */
void await_gone(const char *path);

struct api_watch *watch_open(const char *path);
/* "ADDED name@version", "BOOKMARK @7", "ERROR 410"; "." nothing now; "END". */
const char *watch_next(struct api_watch *watch);
