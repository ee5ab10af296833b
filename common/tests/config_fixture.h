/* What the tests of the configuration share: a directory, a clock, no environment. */
#pragma once

#include "common/kube/config.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/fake_clock.h"

extern const char *dir;            /* $HOME, and the service account's; empty at first */
extern struct kube_config *config; /* what was loaded last; NULL at first */
extern struct error load_error;
extern struct fake_clock now; /* of config */

void config_setup(void);
void config_teardown(void);

int load(const char *path); /* NULL: wherever it is looked for */
/* Fails the test unless this (NULL: none) is the token of now. */
void check_token(const char *expected);

#define SERVER "server: 'https://198.51.100.1:6443'"
/* Fabricated: "not a certificate" between the marks. */
#define CERT "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n"
