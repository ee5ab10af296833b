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

# ---- machines that are not always ours ----

inject_workers() { sed 's/^device/worker/' "$PART/$1"; } # GROUP
inject_patch() { # GROUP SPEC
    local workers
    mapfile -t workers < <(inject_workers "$1")
    chaos_wait "Proplets to be edited" kn patch proplet "${workers[@]}" --type=merge -p "{\"spec\":$2}"
}
inject_in() { date -u -d "+$1 seconds" +%Y-%m-%dT%H:%M:%SZ; } # SECONDS
inject_closing() { # STEP GROUP: the devices are closed from now on, or not any more
    chaos_note closings --arg step "$1" --argjson devices "$(jq -Rn '[inputs]' <"$PART/$2")"
}
INJECT_RECLAIM=${API%/*}/reclaim

# close-proplets edit|time GROUP, kill-switch GROUP, reclaim annotation|message GROUP
inject_close() { # KIND ARGUMENT...
    local group=${*: -1} grace='"gracefulShutdownTimeout":"2s"' never
    inject_closing close "$group"
    case "$1 $2" in
    "close-proplets edit")
        inject_patch "$group" "{\"availability\":{$grace,\"override\":{\"state\":\"Closed\",\"until\":\"$(inject_in 60)\"}}}"
        ;;
    "close-proplets time") # open for a while only, of a week in which its window is days away
        never="\"schedule\":{\"windows\":[{\"days\":[\"$(LC_ALL=C date -u -d '+3 days' +%a | tr '[:upper:]' '[:lower:]')\"],\"from\":\"12:00\",\"until\":\"12:01\"}]}"
        inject_patch "$group" "{\"availability\":{$grace,$never,\"override\":{\"state\":\"Open\",\"until\":\"$(inject_in 3)\"}}}"
        ;;
    kill-switch*) inject_patch "$group" '{"killSwitch":true}' ;;
    "reclaim annotation") inject_annotate "$group" =true ;;
    "reclaim message") inject_is_reclaimed message "$group" || true ;;
    esac
}
inject_annotate() { # GROUP =true|-
    local workers
    mapfile -t workers < <(inject_workers "$1")
    chaos_wait "Proplets to be annotated" kn annotate proplet "${workers[@]}" --overwrite "$INJECT_RECLAIM-requested$2"
}

# Whether all are reclaimed. Devices that are not say it (again): a broker that is killed forgets messages.
inject_is_reclaimed() { # annotation|message GROUP
    local device devices
    devices=$(objects proplets | jq -r --arg key "$INJECT_RECLAIM-requested" --rawfile group "$PART/$2" '
        ($group | split("\n")) as $group | .items[] | select(.metadata.annotations[$key] != "true")
        | .spec.connectionConfig.clientId | select(IN($group[]))') || return 1
    [[ -n $devices ]] || return 0
    [[ $1 == message ]] || return 1
    for device in $devices; do
        publish control/proplet/reclaim "{\"proplet_id\":\"$device\"}" || break
    done
    return 1
} 2>/dev/null

# People give back what a message reclaimed that came late.
inject_give_back() {
    local names
    mapfile -t names < <(objects proplets | jq -r --arg key "$INJECT_RECLAIM-requested" '
        .items[].metadata | select(.annotations[$key]).name')
    [[ -z ${names[*]} ]] || kn annotate proplet "${names[@]}" "$INJECT_RECLAIM-requested-"
}

# inject_closed_count GROUP: how many say that they are closed; 0 if the API server does not answer
inject_closed_count() {
    local count
    count=$(objects proplets | jq --rawfile group "$PART/$1" '($group | split("\n")) as $group
        | [.items[] | select((.spec.connectionConfig.clientId | IN($group[])) and
            (.status.availability.state | IN("Draining", "Closed")))] | length') || count=0
    printf '%s\n' "$count"
}

inject_open() { # NUMBER KIND ARGUMENT...
    local group=${*: -1}
    inject_met "$1" "$(inject_closed_count "$group")"
    case $2 in
    close-proplets) inject_patch "$group" '{"availability":null}' ;;
    kill-switch) inject_patch "$group" '{"killSwitch":null}' ;;
    reclaim) inject_annotate "$group" - ;;
    esac
    # Messages that were under way reclaim again.
    [[ "$2 $3" == "reclaim message" ]] || inject_closing open "$group"
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
