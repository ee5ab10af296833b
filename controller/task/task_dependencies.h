/* This module observes Tasks that wait for Tasks, in the cache, and wakes those that a change
 * concerns. */
#pragma once

#include "controller/task/plan/task_dependencies_plan.h"
#include "controller/task/task.h"

/*
 * Of a Task whose dependencies are undecided; json is its tree, task the decoded object. A circle
 * is looked for only when it may have come or gone: the Task is new or was edited, or it, or one
 * that it waits for, says that it is in one. So the news of a circle goes from member to member,
 * and that of its end as well, while every other change costs no search. At most
 * DEPENDENTS_SEARCHED waiting Tasks are looked at; in a larger graph a circle waits without being
 * called one.
 */
#define DEPENDENTS_SEARCHED 10000
struct dependencies dependencies_observe(struct store *tasks, struct arena *arena,
                                         const struct kube_name *name, const cJSON *json,
                                         const struct task *task);

/* There are Tasks that have not begun and depend on this one. */
bool dependencies_awaited(struct store *tasks, const struct kube_name *name);

/* A Task came, went, ended, began again, or entered or left a circle: those that wait for it are
 * queued, and no others. If it waits for others no more, those of them with a time to live are
 * queued, which may be over. Either of the trees may be NULL. Informer's thread. */
void dependencies_wake(struct store *tasks, struct arena *arena, const struct kube_name *name,
                       const cJSON *old, const cJSON *current, struct workqueue *queue);
