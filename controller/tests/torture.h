/* Every request and every publish of a scenario fails once in every way, and the process dies before
 * and after each: the end is the same, and no device runs anything twice. */
#pragma once

#include "controller/tests/outside.h"
#include "controller/tests/stage.h"

#define TORTURE_ACTS 10
struct scenario {
    const char *name;
    void (*acts[TORTURE_ACTS])(void); /* the controller comes to rest after each */
    /* "<phase> <result or error> attempt <n>[ failures <n>][ run <n>] <Scheduled> <Started>
     * <Completed>" of the Task, or "gone"; of each target of a broadcast ", <Proplet> <phase>
     * <result or reason>"; then of each id on a device "; uid[.<n>] x<executions>", " stopped", " up <instances of
     * a daemon>". */
    const char *end;
};
/* A check of each; returns what main returns. */
int torture_main(const char *name, const struct scenario *all, size_t len);

/* The same where other things than Tasks are at stake. */
struct torture {
    const char *name;
    void (*begin)(void);         /* before the first act: stage_set_up, and what is there already */
    const char *(*ending)(void); /* what scenario->end has to say */
    void (*check)(void);         /* what holds besides; may be NULL */
};
int torture_run(const struct torture *what, const struct scenario *all, size_t len);

/* Acts. */
#define TORTURE_SPEC "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"inputs\":[10,32]"
void torture_create(void);
/* Two retries; created, or changed to that. */
void torture_create_with_retries(void);
void torture_let_fail(void); /* whatever runs */
void torture_delete(void);
void torture_let_answer(void); /* whatever runs, and whatever is started from now on */
void torture_wait_a_minute(void);
/* The network of the device that has the Task is gone; what runs there goes on. With it most of a fleet. */
void torture_lose_device(void);
void torture_find_device(void);
void torture_lose_fleet(void);
