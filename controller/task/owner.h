/* A task_owner is the table by which a kind that owns Tasks, or refers to them, plugs into Task. */
#pragma once

#include "common/runtime/controller.h"
#include "controller/device/payload.h"
#include "controller/task/plan/task_plan.h"

struct module_host;

/*
 * Task asks each registered owner, in the order of registration, and skips hooks that are NULL. It
 * knows no owner, so a hook must leave alone every Task that is not its owner's.
 *
 * self is the owner's; it outlives the controllers. Trees are borrowed for the call. Hooks run on
 * the worker that reconciles the Task, but for `forget`.
 */
struct task_owner {
    /* Returns the owner's order to the Task, beyond its spec; TASK_ORDER_NONE for a Task of another
     * owner. The first order of any owner counts. Reads caches only. task: its tree in the cache. */
    enum task_order (*order)(void *self, struct arena *arena, const cJSON *task);
    /* Why, for the status of a Task that such an order ends. */
    const char *order_message;

    /* Returns labels that a Proplet of this Task needs beside those of its spec, a map; NULL: none. Reads caches only. */
    const cJSON *(*match_labels)(void *self, struct arena *arena, const cJSON *task);

    /* The owner still has to look at the outcome of the finished Task: its time to live is extended.
     * Reads caches only. */
    bool (*awaits)(void *self, struct arena *arena, const struct kube_name *name,
                   const cJSON *task);

    /* The device of this Task sends updates: one result several times, of which the first valid one
     * counts and the others are duplicates. */
    bool (*has_updates)(const cJSON *task);

    /*
     * Reads the results of the Task before they are planned for: it may replace what a result says,
     * or refuse it by its verdict. May block on the API server or another store, writes nothing. < 0:
     * a failure that may pass; the messages stay. TASK_RESULTS_LATER: the reconcile ends here, and
     * the owner wakes the Task when more of the results is there.
     */
    int (*read_results)(void *self, struct reconcile *rc, const cJSON *task,
                        struct task_observed *observed, struct error *err);
    /* Stores what the planned status refers to. Idempotent. < 0: the status is not written, the
     * messages stay. */
    int (*before_write)(void *self, struct reconcile *rc, const cJSON *task,
                        const struct task_observed *observed, const struct task_plan *plan,
                        struct error *err);
    /* The status is written: the senders of the results can be answered. */
    void (*after_write)(void *self, const struct task_observed *observed,
                        const struct task_plan *plan);

    /*
     * A start of this attempt is due, of a Task or of a target of a broadcast. Says how far the module is, if the owner
     * brings it; *ret is zero before. A start that is held (bringing_holds) does not go out, and is due again in the
     * next turn. request NULL: the Task is not read yet. BRING_READY with a request: the owner may have replaced
     * request->task, and the start goes out unless the broker is away. Reads memory and local files. The first answer of
     * an owner that is not BRING_NOTHING counts.
     */
    void (*bring)(void *self, struct reconcile *rc, const struct task_observed *attempt,
                  struct start_request *request, struct bringing *ret);
    /* This turn sends no start of the Task, so that the owner stops its work for one. Returns the milliseconds after
     * which it wants another turn; 0: none. Must not block. */
    int64_t (*rest)(void *self, const struct task_observed *observed);

    /* A reconcile of the Task with this uid failed: its messages stay, and must delay no other Task. */
    void (*failed)(void *self, const char *uid);
    /* The Task with this uid is deleted, or its messages are dropped: the owner drops what it holds
     * for it. Any thread; must not block. */
    void (*forget)(void *self, const char *uid);
};

#define TASK_RESULTS_LATER 1

/* The owners of a process. Zero: none. Filled before the controllers start, constant from then on. */
#define TASK_OWNERS_MAX 8
struct task_owners {
    struct {
        const struct task_owner *hooks;
        void *self;
    } items[TASK_OWNERS_MAX];
    size_t len;
};
void task_owners_add(struct task_owners *owners, const struct task_owner *hooks, void *self);
/* To those of the process; by create of a module that stands after Tasks in the list. */
void task_owner_register(const struct module_host *host, const struct task_owner *hooks,
                         void *self);

/* Into observed: order, order_message, has_updates. */
void task_owners_order(const struct task_owners *owners, struct arena *arena, const cJSON *task,
                       struct task_observed *observed);
/* Adds what owners say to spec.propletSelector.matchLabels of the tree, which the caller's arena owns. A label that the spec
 * has stays. */
void task_owners_constrain(const struct task_owners *owners, struct arena *arena, cJSON *task);
/* These ask every owner until one answers otherwise than false or 0. */
bool task_owners_await(const struct task_owners *owners, struct arena *arena,
                       const struct kube_name *name, const cJSON *task);
int task_owners_read_results(const struct task_owners *owners, struct reconcile *rc,
                             const cJSON *task, struct task_observed *observed,
                             struct error *err) MUST_CHECK;
int task_owners_before_write(const struct task_owners *owners, struct reconcile *rc,
                             const cJSON *task, const struct task_observed *observed,
                             const struct task_plan *plan, struct error *err) MUST_CHECK;
void task_owners_after_write(const struct task_owners *owners, const struct task_observed *observed,
                             const struct task_plan *plan);
void task_owners_bring(const struct task_owners *owners, struct reconcile *rc,
                       const struct task_observed *attempt, struct start_request *request,
                       struct bringing *ret);
/* Returns the earliest; 0: none. */
int64_t task_owners_rest(const struct task_owners *owners, const struct task_observed *observed);
void task_owners_failed(const struct task_owners *owners, const char *uid);
void task_owners_forget(const struct task_owners *owners, const char *uid);
