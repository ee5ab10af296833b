/*
 * Says which Node is that of a Machine, and builds the patches of a cordon and of taints: pure functions.
 *
 * Every patch tests the uid and the resourceVersion that were read, so it never changes a Node that was made again under
 * its name, nor undoes a change of another writer.
 */
#pragma once

#include "controller/machine/machine_objects.h"
#include "controller/machine/taint_plan.h"

#define NODE_ANNOTATION_CORDONED SCHEDULEDMACHINE_GROUP "/cordoned"
#define NODE_ANNOTATION_TAINTS SCHEDULEDMACHINE_GROUP "/applied-taints"
#define NODE_ANNOTATION_RECLAIM SCHEDULEDMACHINE_GROUP "/reclaim-requested"
#define NODE_ANNOTATION_RECLAIM_REASON SCHEDULEDMACHINE_GROUP "/reclaim-reason"
#define NODE_LABEL_AGENT SCHEDULEDMACHINE_GROUP "/reclaim-agent"
#define NODE_ANNOTATION_RECLAIM_AT SCHEDULEDMACHINE_GROUP "/reclaim-requested-at"
/* The Machine of a Node, as Cluster API writes it there. */
#define NODE_ANNOTATION_MACHINE MACHINE_API_GROUP "/machine"
#define NODE_ANNOTATION_MACHINE_NS MACHINE_API_GROUP "/cluster-namespace"
#define NODE_ANNOTATION_CLUSTER MACHINE_API_GROUP "/cluster-name"

enum machine_node {
    MACHINE_NODE_NONE,      /* the Machine has no Node yet, or the Node is gone */
    MACHINE_NODE_ELSEWHERE, /* the Node of that name has another providerID, or names another Machine */
    MACHINE_NODE_HERE,
};
/* node: the Node with the name of status.nodeRef of the Machine; NULL: there is none. A providerID is no secret. So a Node
 * with annotations of Cluster API must also name the Machine, its namespace and its cluster, as far as they are there. */
enum machine_node machine_node_of(const cJSON *machine, const cJSON *node);
/* Returns the name in status.nodeRef; NULL: none yet. */
const char *machine_node_name(const cJSON *machine);

bool node_is_ready(const cJSON *node);
bool node_is_reclaimed(const cJSON *node); /* the annotation is "true", and nothing else */
bool node_has_reclaim_annotations(const cJSON *node); /* one of the three */

/* Return operations of a JSON patch; NULL: nothing is to be done. */
const cJSON *node_cordon(struct arena *arena, const cJSON *node);
const cJSON *node_uncordon(struct arena *arena, const cJSON *node); /* only what node_cordon did */
const cJSON *node_clear_reclaim(struct arena *arena, const cJSON *node);
/* Both the taints and the annotation, so that no taint is ever there without its owner. */
const cJSON *node_set_taints(struct arena *arena, const cJSON *node, const struct taint_plan *plan);

bool node_has_agent(const cJSON *node); /* the label that calls a reclaim agent */
const cJSON *node_set_agent(struct arena *arena, const cJSON *node, bool wanted);
/* Returns the reclaim.toml of a reclaim agent for these commands. */
const char *node_reclaim_config(struct arena *arena, const struct str_list *commands);
