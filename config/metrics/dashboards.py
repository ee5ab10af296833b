#!/usr/bin/env python3
"""dashboards.py FOLDER: writes the Grafana dashboards as JSON, a file each.

Each replica has the caches, so gauges of objects are the largest over the replicas, not the sum. The panels are the
table below: title, description, unit, and a query with its legend for each line. The library is
grafana-foundation-sdk (config/metrics/requirements.txt). `make dashboards` writes config/metrics/dashboards.
"""

import json
import pathlib
import sys

from grafana_foundation_sdk.builders import dashboard, prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DataSourceRef

RATE = "[$__rate_interval]"


def quantiles(metric, by=""):
    """The median and the 99th percentile of a histogram, per value of a label."""
    labels = f"le, {by}" if by else "le"
    name = f"{{{{{by}}}}} " if by else ""
    return [(f"histogram_quantile({q}, sum by ({labels}) (rate({metric}_bucket{RATE})))", f"{name}p{int(q * 100)}")
            for q in (0.5, 0.99)]


def rate(metric, by):
    return [(f"sum by ({by}) (rate({metric}{RATE}))", f"{{{{{by}}}}}")]


DASHBOARDS = {
    "fleet": ("Propeller: fleet and Tasks", {
        "Fleet": [
            ("Proplets", "Proplets by phase.", "short", [("sum by (phase) (max by (type, phase) (propeller_proplets))", "{{phase}}")]),
            ("Changes of the phase", "Proplets that become ready or Offline. Many at once point to the network or the broker.",
             "ops", rate("propeller_proplet_transitions_total", "phase")),
            ("Devices without a Proplet", "Devices that send heartbeats and that no Proplet names, such as mistyped client ids.",
             "short", [("max(propeller_strangers)", "devices")]),
            ("Fleet brake", "1 while most of the fleet is away, so that no Proplet counts as lost.", "short",
             [("max(propeller_fleet_brake)", "brake")]),
        ],
        "Tasks": [
            ("Tasks", "Tasks by phase.", "short", [("max by (phase) (propeller_tasks)", "{{phase}}")]),
            ("Tasks that wait", "Tasks that wait, by reason. The reference of reasons says what to do.", "short",
             [("max by (reason) (propeller_tasks_waiting)", "{{reason}}")]),
            ("Oldest wait", "Time for which the oldest Task waits that no Proplet takes.", "s",
             [("max(propeller_tasks_oldest_wait_seconds)", "oldest")]),
            ("Runs that ended", "Runs per second, by outcome.", "ops", rate("propeller_task_runs_total", "outcome")),
            ("Attempts that failed", "Failed attempts per second, by reason.", "ops",
             [(f'sum by (reason) (rate(propeller_task_attempts_total{{outcome="failed"}}{RATE}))', "{{reason}}")]),
            ("Wait for a Proplet", "Time from the creation, the schedule or the retry to the choice of a Proplet.", "s",
             quantiles("propeller_task_wait_seconds")),
            ("Start", "Time from the choice of a Proplet to the start on it.", "s", quantiles("propeller_task_dispatch_seconds")),
            ("Run", "Time from the start to the end of an attempt.", "s", quantiles("propeller_task_run_seconds", "outcome")),
            ("Starts", "Starts per second, and starts that were repeated.", "ops",
             [(f"sum(rate(propeller_starts_total{RATE}))", "starts"),
              (f"sum(rate(propeller_starts_repeated_total{RATE}))", "repeated")]),
        ],
        "Jobs": [
            ("Jobs and rounds", "PropellerJobs, FederatedJobs and TrainingRounds by phase.", "short",
             [("max by (kind, phase) (propeller_jobs)", "{{kind}} {{phase}}")]),
        ],
    }),
    "controller": ("Propeller: controller", {
        "Reconciling": [
            ("Reconciles", "Reconciles per second, by controller.", "ops", rate("controller_runtime_reconcile_total", "controller")),
            ("Errors", "Reconciles that failed per second, by controller.", "ops",
             [(f'sum by (controller) (rate(controller_runtime_reconcile_total{{result="error"}}{RATE}))', "{{controller}}")]),
            ("Duration", "Time of a reconcile.", "s", quantiles("controller_runtime_reconcile_time_seconds", "controller")),
            ("Active workers", "Workers that reconcile now.", "short",
             [("sum by (controller) (controller_runtime_active_workers)", "{{controller}}")]),
            ("Queue", "Objects that are due and wait for a worker.", "short", [("sum by (name) (workqueue_depth)", "{{name}}")]),
            ("Wait in the queue", "Time for which a due object waits for a worker.", "s",
             quantiles("workqueue_queue_duration_seconds", "name")),
        ],
        "API server": [
            ("Requests", "Requests per second, by answer.", "ops", rate("rest_client_requests_total", "code")),
            ("Latency", "Time from a request to its reply.", "s", quantiles("rest_client_request_duration_seconds", "verb")),
        ],
        "Broker": [
            ("Connections", "1 while a connection to the broker stands.", "short",
             [("max by (connection) (propeller_mqtt_connected)", "{{connection}}")]),
            ("Messages", "Messages of devices per second.", "ops", [(f"sum(rate(propeller_mqtt_messages_total{RATE}))", "messages")]),
            ("Acknowledgement", "Time from the publication of a message to the broker's acknowledgement.", "s",
             quantiles("propeller_mqtt_publish_seconds")),
            ("Messages that wait", "Age of the oldest message that is not written to a status yet.", "s",
             [("max(propeller_mail_oldest_seconds)", "oldest")]),
        ],
        "Process": [
            ("Memory", "Resident memory of each process.", "bytes", [("process_resident_memory_bytes", "{{instance}}")]),
            ("Processor", "Processor time of each process, as a part of one core.", "percentunit",
             [(f"rate(process_cpu_seconds_total{RATE})", "{{instance}}")]),
        ],
    }),
    "federated": ("Propeller: federated learning", {
        "Rounds": [
            ("Rounds", "Rounds that ended per second, by result.", "ops", rate("propeller_training_rounds_total", "result")),
            ("Duration of a round", "Time from the start of a round to its end.", "s",
             quantiles("propeller_training_round_seconds", "result")),
            ("Updates", "Updates per second that were aggregated into models.", "ops",
             [(f"sum(rate(propeller_training_updates_total{RATE}))", "updates")]),
            ("Participants", "Participants of ended rounds per second, by their status at the end.", "ops",
             rate("propeller_training_participants_total", "status")),
        ],
    }),
    "standalone": ("Propeller: standalone server", {
        "API": [
            ("Requests", "Requests per second, by verb; those of the controller in the same process too.", "ops",
             rate("apiserver_request_total", "verb")),
            ("Answers", "Requests per second, by the status of the answer.", "ops", rate("apiserver_request_total", "code")),
            ("Latency", "Time from a request to its answer.", "s", quantiles("apiserver_request_duration_seconds", "verb")),
            ("Watches", "Watches that are open, by resource.", "short",
             [("sum by (resource) (apiserver_longrunning_requests)", "{{resource}}")]),
        ],
        "Store": [
            ("Objects", "Stored objects, by resource.", "short", [("max by (resource) (propeller_store_objects)", "{{resource}}")]),
            ("Size", "Size of the files of the store.", "bytes", [("max by (file) (propeller_store_bytes)", "{{file}}")]),
            ("Free space", "Free bytes of the file system that has the store.", "bytes",
             [("min(propeller_store_free_bytes)", "free")]),
            ("Commit", "Time that the disk takes to make writes durable.", "s", quantiles("propeller_store_commit_seconds")),
            ("Readable", "0 while a part of the store cannot be read.", "short", [("min(propeller_store_readable)", "readable")]),
        ],
    }),
}


def panel(title, description, unit, queries):
    made = timeseries.Panel().title(title).description(description).unit(unit).min(0).datasource(
        DataSourceRef(type_val="prometheus", uid="${datasource}"))
    for ref, (expr, legend) in zip("ABCDEF", queries):
        made = made.with_target(prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(ref))
    return made


def build(name, title, rows):
    made = dashboard.Dashboard(title).uid(f"propeller-{name}").tags(["propeller"]).refresh("30s").time("now-3h", "now")
    made = made.with_variable(dashboard.DatasourceVariable("datasource").type("prometheus").label("Data source"))
    for row, panels in rows.items():
        made = made.with_row(dashboard.Row(row))
        for each in panels:
            made = made.with_panel(panel(*each))
    return json.loads(JSONEncoder().encode(made.build()))


def main(folder):
    for name, (title, rows) in DASHBOARDS.items():
        text = json.dumps(build(name, title, rows), indent=2, sort_keys=True) + "\n"
        (pathlib.Path(folder) / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:2])
