#include "controller/tests/broadcast_world.h"

#include <stdio.h>
#include <string.h>

#include "common/base/str.h"

struct broadcast_world all;

const char *broadcast_name_of(size_t i)
{
    return arena_printf(world.arena, "worker-%04zu", i);
}

static const char *client_of(size_t i)
{
    return arena_printf(world.arena, "device-%zu", i);
}

void broadcast_make_fleet(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        all.proplets[i].spec =
            (struct proplet_spec){ .type = PROPLET_EXTERNAL, .external = &all.externals[i] };
        all.fleet[i] = (struct candidate){ .name = broadcast_name_of(i),
                                           .proplet = &all.proplets[i],
                                           .ready = true };
    }
    world.observed.candidates.candidates = all.fleet;
    world.observed.candidates.len = count;
}

void broadcast_set_up(void)
{
    world_set_up();
    all.fleet = arena_array(world.arena, struct candidate, WORLD_FLEET);
    all.proplets = arena_array(world.arena, struct proplet, WORLD_FLEET);
    all.externals = arena_array(world.arena, struct proplet_external, WORLD_FLEET);
    all.memory = arena_array(world.arena, struct attempt, WORLD_FLEET);
    all.parts = arena_array(world.arena, struct task_observed, WORLD_FLEET);
    all.results = arena_array(world.arena, struct observed_result, WORLD_FLEET);
    world.observed.results = all.results;
    world.spec->broadcast = true;
    broadcast_make_fleet(3);
}

struct task_target *broadcast_targets(void)
{
    return world.status->broadcast_results.items;
}

void broadcast_observe(void)
{
    for (size_t i = 0; i < world.status->broadcast_results.len; i++) {
        const struct task_target *target = &broadcast_targets()[i];
        struct task_observed *part = &all.parts[i];
        bool old = part->target_id != NULL;
        struct observed_proplet proplet = part->proplet;
        struct observed_restart restart = part->restart;
        size_t number;

        ck_assert_int_eq(sscanf(target->proplet, "worker-%zu", &number), 1);
        *part = world.observed;
        part->target_id =
            message_id_of_target(world.arena, WORLD_UID, world.status->attempt, target->index);
        part->task.status = (struct task_status){
            .phase = target->phase == TARGET_RUNNING ? TASK_RUNNING : TASK_SCHEDULED,
            .assigned_proplet = target->proplet,
            .attempt = world.status->attempt,
            .started_at_us = target->started_at_us,
            .reason = target->reason,
            .device_restarts = target->restarts,
        };
        part->attempt = all.memory[target->index];
        part->proplet = (struct observed_proplet){ .exists = true,
                                                   .ready = true,
                                                   .reachable = true,
                                                   .client_id = client_of(number),
                                                   .channel = WORLD_CHANNEL,
                                                   .qos = 1,
                                                   .heard_since_ms = 1 };
        if (old) {
            part->proplet = proplet;
            part->restart = restart;
        }
        struct observed_result *mine =
            arena_array(world.arena, struct observed_result, world.observed.result_count + 1);
        part->results = mine;
        part->result_count = 0;
        for (size_t j = 0; j < world.observed.result_count; j++) {
            if (str_equal(all.results[j].message.task_id, part->target_id))
                mine[part->result_count++] = all.results[j];
        }
    }
    world.observed.parts = all.parts;
}

struct task_plan broadcast_plan_refusing(size_t refused)
{
    broadcast_observe();
    struct task_plan plan = world_plan();
    for (size_t i = 0; plan.targets && i < plan.status.broadcast_results.len; i++) {
        struct target_action *action = &plan.targets[i];
        struct attempt *attempt = &all.memory[action->before.index];
        if (i == refused)
            action->undone = action->action == TASK_START || action->stop;
        if (action->undone)
            continue;
        if (action->stop)
            attempt->stop_sent_ms = world.observed.now_ms;
        if (action->action == TASK_START) {
            attempt->began_ms = attempt->published_ms = world.observed.now_ms;
            attempt->stop_sent_ms = 0;
            attempt->publishes++;
        }
    }
    if (plan.targets)
        plan = world_conclude(&plan, SETBACK_NONE, REASON_NONE, NULL);
    ck_assert(task_may_become(world.status->phase, plan.status.phase));
    return plan;
}

struct task_plan broadcast_plan_all(void)
{
    return broadcast_plan_refusing(SIZE_MAX);
}

void broadcast_write(const struct task_plan *plan)
{
    const struct task_target *fresh = plan->status.broadcast_results.items;

    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        if (plan->action == TASK_ASSIGN ||
            (plan->targets && plan->targets[i].action == TASK_ASSIGN))
            all.memory[fresh[i].index] = (struct attempt){ .number = plan->status.attempt,
                                                           .chosen_here = true,
                                                           .first_seen_ms = world.observed.now_ms };
        all.parts[i].restart = (struct observed_restart){ 0 };
    }
    *world.status = plan->status;
    if (plan->ack_up_to)
        world.observed.result_count = 0;
}

void broadcast_turn(void)
{
    struct task_plan plan = broadcast_plan_all();

    broadcast_write(&plan);
}

void broadcast_dispatch(size_t count)
{
    broadcast_make_fleet(count);
    broadcast_turn();
    ck_assert_int_eq(world.status->phase, TASK_SCHEDULED);
    for (size_t i = 0; i < count; i += BROADCAST_STARTS_A_TURN)
        broadcast_turn();
    ck_assert_int_eq(world.status->phase, TASK_RUNNING);
    world_wait_ms(1000);
}

void broadcast_say(const char *id, const char *client, const char *rest)
{
    const char *text = arena_printf(world.arena, "{\"task_id\":\"%s\",\"proplet_id\":\"%s\",%s}",
                                    id, client, rest);
    struct observed_result *result = &all.results[world.observed.result_count];

    *result = (struct observed_result){ .sequence = 100 + world.observed.result_count++,
                                        .channel = WORLD_CHANNEL };
    ck_assert_int_eq(message_result_parse(world.arena, text, strlen(text), &result->message, NULL),
                     0);
}

void broadcast_answer(size_t i, const char *rest)
{
    broadcast_say(message_id_of_target(world.arena, WORLD_UID, world.status->attempt,
                                       broadcast_targets()[i].index),
                  client_of(i), rest);
}

const char *broadcast_phases(const struct task_status *status)
{
    const struct task_target *list = status->broadcast_results.items;
    const char *text = "";

    for (size_t i = 0; i < status->broadcast_results.len; i++)
        text = arena_printf(world.arena, "%s%s%s%s%s", text, i ? " " : "",
                            TARGET_PHASE_NAMES[list[i].phase], list[i].reason ? ":" : "",
                            list[i].reason ? list[i].reason : "");
    return text;
}
