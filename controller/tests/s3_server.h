/* A small S3 on a thread: put, get, delete and list of one bucket, path-style. It verifies Signature Version 4
 * of every request by the algorithm that AWS publishes, written here a second time. For tests. */
#pragma once

#include <stddef.h>

#include "common/base/arena.h"

#define S3_TEST_BUCKET "models"
#define S3_TEST_REGION "eu-test-1"
#define S3_TEST_ACCESS_KEY "AKIAIOSFODNN7EXAMPLE"
#define S3_TEST_SECRET_KEY "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

/* request: head and body as they came. NULL: the signature is right, and that of the body; else what is
 * wrong. region NULL: any. */
const char *s3_signature_problem(struct arena *arena, const char *request, const char *region,
                                 const char *access_key, const char *secret_key);

struct s3_server;
struct s3_server *s3_server_start(void);
void s3_server_stop(struct s3_server *server);
int s3_server_port(const struct s3_server *server);
unsigned s3_server_connections(const struct s3_server *server); /* accepted so far */
/* How many objects there are; the text of one becomes another. */
size_t s3_server_objects(struct s3_server *server);
void s3_server_spoil(struct s3_server *server, size_t index, const char *text);
/* From now on every request is answered with this status and error code; 0: no more. */
void s3_server_fail(struct s3_server *server, int status, const char *code);
