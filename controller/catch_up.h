/* Before the first message of a term: the store holds every Task that the API server has. */
#pragma once

#include "common/kube/client.h"
#include "common/runtime/store.h"

/*
 * A watch may lag behind, so a result could come for a Task that the store does not know yet, and
 * would be dropped as unknown. One quorum list of the Tasks (uid and resourceVersion only), then
 * wait until the store has seen each of them at that version or newer. (The list's own
 * resourceVersion will not do: it is the whole etcd's, moved by every lease renewal, and a quiet
 * watch never reaches it.) After that an id that the store does not know is unknown: our own starts
 * are there by our own writes.
 */
struct catch_up;
/* namespaces: NULL or empty for all. Borrowed, like client and store. */
struct catch_up *catch_up_create(struct kube_client *client, struct store *tasks,
                                 const char *const *namespaces, size_t len);
void catch_up_destroy(struct catch_up *catch_up);
/* 1: done; 0: not yet, call again. Lists at the first call, and again after a failed one; never
 * gives up. */
int catch_up_ready(void *self, struct error *err); /* struct catch_up * */
