/* A server of reviews on a free port, with certificates of the test. */
#pragma once

#include "common/tests/suite.h"
#include "webhook/serving.h"
#include "webhook/tests/tls_client.h"

#define SERVING_PATH "/validate-propeller-propeller-abstractmachines-fr-v1-task"

/* Unchecked fixture: a CA, and pairs "a" and "b" from it, for localhost. */
void serving_make_certificates(void);
void serving_remove_certificates(void);
const char *serving_ca(void); /* PEM file; any thread */

/* Checked fixture: an empty directory, an arena, a server that is not started, a clock. */
void serving_set_up(void);
void serving_tear_down(void);
extern struct arena *serving_arena;
extern struct serving *serving;
extern const char *serving_dir;

/* The clock of the server is ahead of the real one by so much. */
void serving_advance_clock(int64_t seconds);

/* Puts a file of a pair ("a") into the directory, under the name that is served ("tls.crt"). */
void serving_put_cert(const char *pair);
void serving_put_key(const char *pair);
void serving_put_pair(const char *pair);
const char *serving_file_of(const char *pair, const char *suffix); /* path of "a" ".crt" */

void serving_begin(void); /* starts it */
bool serving_is_ready(char why[static 300]);
/* Waits until readyz says yes, or no with this text in the reason. */
void serving_wait_ready(void);
void serving_wait_unready(const char *text);

/* On a new connection: the subject of the certificate that answered 400 to "{", "" for no answer.
 */
const char *serving_subject(void);
void serving_wait_subject(const char *subject);
