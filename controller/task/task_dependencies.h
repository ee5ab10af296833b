/* Tasks that wait for Tasks, in the cache: what is observed of them, and whom a change wakes. */
#pragma once

#include "controller/task/plan/task_dependencies_plan.h"
#include "controller/task/task.h"

/*
 * Of a Task whose dependencies are undecided; json is its tree, task what was decoded of it. A
 * circle is looked for when it may have come or gone only: the Task is new or was edited, or it, or
 * one that it waits for, says that it is in one. So a circle is told from member to member, and its
 * end as well, while everything else that happens costs no search. At most DEPENDENTS_SEARCHED
 * waiting Tasks are looked at; in what is larger a circle waits without being called one.
 */
#define DEPENDENTS_SEARCHED 10000
struct dependencies dependencies_observe(struct store *tasks, struct arena *arena,
                                         const struct kube_name *name, const cJSON *json,
                                         const struct task *task);

/* There are Tasks that have not begun and depend on this one. */
bool dependencies_awaited(struct store *tasks, const struct kube_name *name);

/* A Task came, went, ended, began anew, or entered or left a circle: those that wait for it, and
 * nobody else, are queued. It waits for others no more: those of them that have a time to live are
 * queued, which may be over. Either of the trees may be NULL. Informer's thread. */
void dependencies_wake(struct store *tasks, struct arena *arena, const struct kube_name *name,
                       const cJSON *old, const cJSON *current, struct workqueue *queue);
