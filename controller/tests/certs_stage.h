/* The reconciler of the webhook's certificates in one thread, on an API server in memory. */
#pragma once

#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "controller/process/certificates.h"

#define CERTS_STAGE_NS "propeller-system"
#define CERTS_STAGE_KIND_COUNT 2
#define HOUR_MS (60u * 60 * 1000)

struct certs_stage {
    struct arena *arena;
    char *dir;
    struct fake_api *api;
    struct fake_clock clock;
    struct kube_config *config;
    struct kube_client *client;
    struct cert_settings settings; /* those of the manifests; certs_stage_make takes others */
    struct certificates *certificates;
    bool may_write;
    const char *forbidden; /* part of a path; NULL: nothing is */
    const char *vanish;    /* deleted before a patch of it; NULL: nothing is */
    const cJSON *appears;  /* a Secret that somebody makes before it is made here */
    const cJSON *manifests[CERTS_STAGE_KIND_COUNT]; /* once they are put */
    uint32_t wait_ms;                               /* of the last pass */
};
extern struct certs_stage certs_stage;
/* Of the two configurations: validating, mutating. */
extern const struct kube_kind *const CERTS_STAGE_KINDS[CERTS_STAGE_KIND_COUNT];

void certs_stage_set_up(void);
void certs_stage_tear_down(void);
/* Another process, with the settings as they are now. */
void certs_stage_make(void);
int certs_stage_pass(struct error *err);
void certs_stage_expect_pass(void);

/* As the manifests have them, without bundles. */
void certs_stage_put_configurations(void);
const cJSON *certs_stage_configuration(size_t i);
cJSON *certs_stage_client_config(const cJSON *entry);
const cJSON *certs_stage_secret(const char *name); /* NULL: not there */
/* Of a Secret, decoded. */
const char *certs_stage_field(const char *name, const char *key);
/* Requests that are no GET. */
size_t certs_stage_writes(void);
/* The Secrets are of each other, and every entry has what signed the certificate. */
void certs_stage_expect_complete(void);
/* What is counted down, and nothing else. */
void certs_stage_tick(void);
/* A gauge, with its labels as they are printed; it must be there. */
double certs_stage_gauge(const char *series);
double certs_stage_managed(void); /* propeller_webhook_certificates_managed */
