/* Exports of the store of api_fixture.h, and imports into it and into a second one. */
#pragma once

#include "standalone/moving/export.h"
#include "standalone/moving/import.h"
#include "standalone/server/in_process.h"
#include "standalone/tests/api_fixture.h"

/* The store that things are moved to; empty. */
extern struct kv_fixture second_store;
extern struct in_process second; /* its API */

void moving_setup(void); /* and api_setup's */
void moving_teardown(void);

extern struct export_counts exported;
/* Of a store's file. */
const char *export_of(const struct kv_fixture *store, const struct export_options *options);

extern struct import_counts imported;
extern const char *import_refusals; /* a line each */
/* Requests to the API go to roundtrip. */
int try_import(const char *text, http_roundtrip_fn *roundtrip, void *ctx, struct error *err);
/* Without errors. */
void import_into(struct api *target, const char *text);

#define GROUP "/apis/propeller.propeller.abstractmachines.fr/v1/namespaces/default/"
#define API_VERSION "propeller.propeller.abstractmachines.fr/v1"
#define API "\"apiVersion\":\"" API_VERSION "\""

/* Through the API; more_…: JSON members behind those of the same. */
void make_task(const char *name, const char *more_metadata, const char *more_spec);
void make_configmap(const char *name, const char *more_metadata, const char *data);
void make_job(const char *name);
/* It has a name alone. collection: its path. */
void make_plain(const char *collection, const char *api_version, const char *kind,
                const char *name);
void set_status(const char *plural, const char *name, const char *status);
/* Tasks done, failed, again (with a retry left), nightly (recurring), running, needs (on done), and a finished job. */
void make_finished(void);

/* "Kind name, Kind name" of an export. */
const char *names_in(const char *yaml);
