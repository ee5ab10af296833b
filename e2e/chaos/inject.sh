# shellcheck shell=bash
# Faults of chaos.sh that need more than a signal or a command to the network: rights, objects, messages, clocks.

inject_prepare() {
    local letter
    module_server
    for letter in "${CHAOS_REPLICAS[@]}"; do
        own_clock "$CONTROLLER_BIN" "controller-$letter"
    done
}

# inject_met NUMBER COUNT: tells the judge how many requests, Tasks or clocks the fault has met
inject_met() { chaos_note met --argjson number "$1" --argjson count "$2"; }

# ---- rights ----

INJECT_RIGHTS=("$ROOT/rbac/cluster/identities.yaml" "$ROOT/rbac/base/identities.yaml")

# Removes the rights of all identities, or of one. The right to the Lease stays: without it no replica leads.
inject_missing_rights() { # all|task-controller
    INJECT_MARK=$(audit_mark)
    INJECT_SINCE=$(date +%s.%N)
    : >"$PART/uninstalls" # if this case fails now, its end restores the rights for later cases
    chaos_wait "rights to be removed" inject_remove_rights "$1"
}
inject_remove_rights() {
    if [[ $1 == all ]]; then
        k delete --ignore-not-found -f "${INJECT_RIGHTS[0]}" -f "${INJECT_RIGHTS[1]}"
    else
        k delete --ignore-not-found clusterrolebinding "propeller-$1"
    fi
}

inject_rights() { # NUMBER
    chaos_wait "rights to be there again" \
        k apply --server-side -f "${INJECT_RIGHTS[0]}" -f "${INJECT_RIGHTS[1]}"
    rm "$PART/uninstalls"
    printf '%s %s\n' "$INJECT_SINCE" "$(date +%s.%N)" >>"$CLUSTER/missing-rights" # for tools/audit.py
    inject_met "$1" "$(tail -n "+$((INJECT_MARK + 1))" "$CLUSTER/audit.log" | grep '"code":403' |
        grep -c "\"$(audit_identities_prefix)" || true)"
}

# ---- a job that is deleted in mid-round ----

# The participants keep their updates until inject_job_deletion. Other results leave: a device that keeps one
# takes a repeated start of the same Task for a new one.
inject_job() { # NUMBER
    local first=$((CHAOS_NORTH + CHAOS_SOUTH + 1)) participants
    device_say real hold '*' training
    participants=$(seq "$first" $((first + CHAOS_REAL - 1)) | jq -sc '{participants: map({propletId: "worker-\(.)"})}')
    federated_json "job-$1" "$CHAOS_REAL" "$CHAOS_REAL" 2 "$participants" >"$PART/job"
    chaos_wait "a FederatedJob to be made" kn apply -f "$PART/job"
}

# inject_job_runs NUMBER: how many Tasks of the job run; fails if none does
inject_job_runs() {
    local running
    running=$(api "/apis/$API/namespaces/$NS/tasks?labelSelector=${API%/*}/round" | jq --arg name "-job-$1-" '
        [.items[] | select((.metadata.name | contains($name)) and .status.phase == "running")] | length') || running=0
    printf '%s\n' "$running"
    ((running))
}

inject_job_deletion() { # NUMBER
    inject_met "$1" "$(inject_job_runs "$1" || true)"
    chaos_wait "a FederatedJob to be deleted" \
        kn delete federatedjob "job-$1" --wait=false --ignore-not-found
    device_say real release '*'
}

# ---- what the broker keeps ----

# The broker withholds the first two messages from the controllers while they are published, so that the
# controllers get only the retained copies. The result needs no such care: its sender is a wrong one.
inject_retained() {
    local name busy device
    # The one that goes on for longest, apart from those with a deadline of some seconds.
    name=$(chaos_tasks | sed -n 's/ running$//p' | jq -Rrn --slurpfile plan "$LOGS/tasks.plan" '[inputs] as $running |
        [$plan[] | select((.name | IN($running[])) and (.deadline // 60) >= 60)] | max_by(.naps) | .name // empty') || name=
    busy=$(object tasks "${name:-nobody}" | jq -c '[.metadata.uid, .status.assignedProplet // "worker-1"]') || busy='["nobody", "worker-1"]'
    device=device-$(jq -r '.[1] | ltrimstr("worker-")' <<<"$busy")
    broker_withholds "$CONTROLLER_USER" "m/$DOMAIN/c/$CHANNEL/control/proplet/create" \
        publish control/proplet/create "$(jq -nc --arg id "$device" '{proplet_id: $id, metadata: {}}')" -r
    CHANNEL=chan-2 broker_withholds "$CONTROLLER_USER" "m/$DOMAIN/c/chan-2/control/proplet/alive" \
        publish control/proplet/alive '{"proplet_id":"nobody","status":"alive"}' -r
    publish control/proplet/results \
        "$(jq -c '{task_id: .[0], proplet_id: "somebody-else", results: "forged"}' <<<"$busy")" -r
}

# ---- clocks ----

inject_clock_step() { # LETTER forwards|backwards
    INJECT_STEPS=$(inject_steps_noticed "$1")
    if [[ $2 == forwards ]]; then set_clock "controller-$1" +; else set_clock "controller-$1" -; fi
}
inject_clock_back() { # NUMBER LETTER
    inject_met "$1" $(($(inject_steps_noticed "$2") - INJECT_STEPS))
    set_clock "controller-$2" 0
}
inject_steps_noticed() { grep -c 'the wall clock made a step' "$LOGS/replica-$1.log" || true; }
