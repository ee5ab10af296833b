/* A client of an HTTP server that says exactly these bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define HTTP_TALK_MAX 4096

int http_dial(unsigned port);
void say(int fd, const char *text);
void say_many(int fd, size_t count); /* so many times 'x', at most HTTP_TALK_MAX */
/* Everything until the server closes, or the first `enough` bytes of an answer that keeps alive. */
const char *hear(int fd, char ret[static HTTP_TALK_MAX], const char *enough);
/* The same; false: it was closed before. */
bool hears(int fd, char ret[static HTTP_TALK_MAX], const char *enough);
size_t hear_all(int fd); /* bytes until the server closes, however many */
/* Nothing was heard, and it is not closed. */
bool is_open(int fd);
/* So that more than the time of a request has passed: one that says nothing is cut, twice. */
void outlast_a_request(unsigned port);
/* It said nothing for a while. */
bool is_silent(int fd);
