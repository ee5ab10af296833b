/* Backend that keeps the key pairs in two directories, for machines without the controller. */
#pragma once

#include "certs/keeper.h"

#define FILE_PLACE_CERT "tls.crt"
#define FILE_PLACE_KEY "tls.key"
#define FILE_PLACE_CA "ca.crt" /* the authority first, then older ones that are still trusted */
#define FILE_PLACE_CA_KEY "ca.key"

struct file_place {
    const char *cert_dir; /* tls.crt and tls.key, for propeller-webhook --cert-dir */
    const char *ca_dir;   /* ca.crt and ca.key */
};

/* load, save_ca and save_leaf of a struct cert_place whose self is a struct file_place. One process
 * at a time: file_set_lock(ca_dir). */
int file_place_load(void *self, struct arena *arena, struct cert_observed *ret,
                    struct error *err) MUST_CHECK;
int file_place_save_ca(void *self, struct arena *arena, const struct cert_pair *ca,
                       const char *trust, struct error *err) MUST_CHECK;
int file_place_save_leaf(void *self, struct arena *arena, const struct cert_pair *leaf,
                         struct error *err) MUST_CHECK;
