/* The AdmissionReviews of webhook/tests/reviews/<hook>/<case>.request.json, and beside each what is
 * to be answered. */
#pragma once

#include "webhook/admission.h"
#include "webhook/tests/tls_client.h"

struct review_file {
    const struct admission_hook *hook; /* "validate-task" is /validate-…-task */
    const char *name;                  /* "validate-task/priority-101" */
    const char *body;
    size_t body_len;
    /*
     * code      of the HTTP answer
     * error     its text, for other codes than 200
     * allowed, warnings, patch, causes   of the review
     * validation   "refused": a default is made for it, and validation refuses it afterwards
     * withoutWebhook   "allowed" or "refused": what the API server says on its own, where that is
     *                  not the same
     */
    const cJSON *expected;
};

/* How many there are; before the tests, so it fails no test. 0: run from the wrong directory. */
size_t review_files_find(void);
void review_files_forget(void);
/* In a test; fails it if the files are not in order. index: by name. */
struct review_file review_file_read(struct arena *arena, size_t index);

/* Fails the test unless the answer is the expected one. */
void review_check(struct arena *arena, const struct review_file *file, int code,
                  const char *content_type, const char *body, size_t len);
/* Sends all of them, and checks each answer. */
void review_files_post(struct tls_client *client, unsigned port, size_t count);
