/* Certificates in two Secrets, their authority in the webhook configurations. */
#pragma once

#include "certs/configurations.h"
#include "certs/keeper.h"

/* Both of type kubernetes.io/tls with tls.crt and tls.key; the first one has also ca.crt, all that
 * is trusted. Nobody but the leader, or whoever runs propeller-certgen, needs to read it. */
#define CERT_SECRET_CA "propeller-webhook-ca"
#define CERT_SECRET_LEAF "propeller-webhook-cert"

struct cluster_place {
    struct configurations configurations;
    const cJSON *ca; /* Secrets of the last load, in its arena; NULL: not there */
    const cJSON *leaf;
};

/*
 * A place for cert_keep; self must outlive it. Besides what configurations_load keeps out of, it
 * keeps out of Secrets that cert-manager made. Writes bear the resourceVersion of what was loaded.
 * No message has anything of a Secret but its name.
 */
struct cert_place cluster_place(struct cluster_place *self);
