#!/usr/bin/env python3
"""Renders k8s/components/monitoring/dashboards/*.json: five Grafana dashboards in the classic format, which Grafana 9 to 13 load.

`scripts/dashboards.py` writes them; `scripts/dashboards.py --check` fails when a file differs from what it would write.
Each panel is one line here: title, kind, unit, width in columns of 24, and queries as (expression, legend).
"""

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "k8s/components/monitoring/dashboards"
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
RATE = "$__rate_interval"


def rate(metric, by="", more=""):
    """The rate of a counter a second, summed by labels."""
    clause = f" by ({by})" if by else ""
    return f"sum{clause} (rate({metric}{more}[{RATE}]))"


def added(metric, by="", more="", over="$__range"):
    """How much a counter grew in the time that is shown."""
    clause = f" by ({by})" if by else ""
    return f"sum{clause} (increase({metric}{more}[{over}]))"


def quantile(share, metric, by="", more=""):
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{more}[{RATE}])))"


OVERVIEW = [
    ("Tickets done", "stat", "none", 4, [(added("journeyman_ticket_lead_time_seconds_count"), "")]),
    ("Tickets that wait", "stat", "none", 4, [("sum(journeyman_tickets_waiting)", "")]),
    ("Oldest wait", "stat", "s", 4, [("max(journeyman_tickets_oldest_wait_seconds)", "")]),
    ("Dead letters", "stat", "none", 4, [("sum(journeyman_dead_letters)", "")]),
    ("Set aside", "stat", "none", 4, [("sum(journeyman_tickets_quarantined)", "")]),
    ("Cost", "stat", "currencyUSD", 4, [(added("journeyman_model_cost_total") + " / 1e6", "")]),
    ("Runs that ended, by reason", "timeseries", "none", 12,
     [(added("journeyman_runs_finished_total", "journeyman_stop_reason", over=RATE), "{{journeyman_stop_reason}}")]),
    ("Live runs, by state", "timeseries", "none", 12,
     [("sum by (journeyman_state) (journeyman_runs_live)", "{{journeyman_state}}")]),
    ("From request to the end of the pull request", "timeseries", "s", 12,
     [(quantile(0.5, "journeyman_ticket_lead_time_seconds"), "p50"),
      (quantile(0.95, "journeyman_ticket_lead_time_seconds"), "p95")]),
    ("Slots of executors", "timeseries", "none", 12,
     [("max by (journeyman_pool, journeyman_state) (journeyman_executors_slots)", "{{journeyman_pool}} {{journeyman_state}}")]),
]

TICKETS = [
    ("Webhooks stored", "timeseries", "reqps", 8,
     [(rate("journeyman_deliveries_total", "journeyman_source"), "{{journeyman_source}}")]),
    ("Webhooks refused, by reason", "timeseries", "reqps", 8,
     [(rate("journeyman_deliveries_refused_total", "journeyman_reason"), "{{journeyman_reason}}")]),
    ("Found by polls without a webhook", "timeseries", "none", 8,
     [(added("journeyman_deliveries_recovered_total", "journeyman_source", over=RATE), "{{journeyman_source}}")]),
    ("Live runs, by job", "timeseries", "none", 12,
     [("sum by (journeyman_job) (journeyman_runs_live)", "{{journeyman_job}}")]),
    ("Runs that ended, by job", "timeseries", "none", 12,
     [(added("journeyman_runs_finished_total", "journeyman_job", over=RATE), "{{journeyman_job}}")]),
    ("Waiting for people", "timeseries", "none", 8,
     [('sum by (journeyman_state) (journeyman_runs_live{journeyman_state=~"decision|answer"})', "{{journeyman_state}}")]),
    ("Tickets that wait", "timeseries", "none", 8, [("sum(journeyman_tickets_waiting)", "tickets")]),
    ("Oldest wait", "timeseries", "s", 8, [("max(journeyman_tickets_oldest_wait_seconds)", "oldest")]),
    ("Wake-ups that were lost and found", "timeseries", "none", 12,
     [(added("journeyman_wakeups_swept_total", "journeyman_log", over=RATE), "{{journeyman_log}}")]),
    ("Records of a newer release, left alone", "timeseries", "none", 12,
     [(added("journeyman_records_newer_total", "journeyman_record", over=RATE), "{{journeyman_record}}")]),
]

CAPACITY = [
    ("Slots, used and free", "timeseries", "none", 12,
     [("max by (journeyman_pool, journeyman_state) (journeyman_executors_slots)", "{{journeyman_pool}} {{journeyman_state}}")]),
    ("Runs that wait for a slot", "timeseries", "none", 12,
     [("max by (journeyman_pool) (journeyman_runs_waiting_for_slot)", "{{journeyman_pool}}")]),
    ("Tools, p50 and p95", "timeseries", "s", 12,
     [(quantile(0.5, "gen_ai_execute_tool_duration_seconds"), "p50"),
      (quantile(0.95, "gen_ai_execute_tool_duration_seconds"), "p95")]),
    ("Tools that fail", "timeseries", "reqps", 12,
     [(rate("gen_ai_execute_tool_duration_seconds_count", "gen_ai_tool_name, error_type", '{error_type!=""}'),
       "{{gen_ai_tool_name}} {{error_type}}")]),
    ("Way out of setup commands", "timeseries", "Bps", 12,
     [(rate("journeyman_egress_traffic_bytes_total", "journeyman_direction"), "{{journeyman_direction}}")]),
    ("Ways out that were refused", "timeseries", "reqps", 12,
     [(rate("journeyman_egress_refusals_total", "journeyman_reason"), "{{journeyman_reason}}")]),
]

MODEL_COST = [
    ("Cost", "stat", "currencyUSD", 6, [(added("journeyman_model_cost_total") + " / 1e6", "")]),
    ("Cost of a ticket that is done", "stat", "currencyUSD", 6,
     [(added("journeyman_model_cost_total") + " / 1e6 / " + added("journeyman_ticket_lead_time_seconds_count"), "")]),
    ("Calls that a budget refused", "stat", "none", 6, [(added("journeyman_budgets_refused_total"), "")]),
    ("Budgets near their limit", "stat", "none", 6, [(added("journeyman_budgets_near_limit_total"), "")]),
    ("Cost an hour, by model", "timeseries", "currencyUSD", 12,
     [(rate("journeyman_model_cost_total", "gen_ai_request_model") + " * 3600 / 1e6", "{{gen_ai_request_model}}")]),
    ("Tokens, by kind", "timeseries", "none", 12,
     [(rate("gen_ai_client_token_usage_sum", "gen_ai_token_type"), "{{gen_ai_token_type}}")]),
    ("Replies, p50 and p95", "timeseries", "s", 12,
     [(quantile(0.5, "gen_ai_client_operation_duration_seconds"), "p50"),
      (quantile(0.95, "gen_ai_client_operation_duration_seconds"), "p95")]),
    ("Calls that failed", "timeseries", "reqps", 12,
     [(rate("gen_ai_client_operation_duration_seconds_count", "journeyman_model_provider, error_type", '{error_type!=""}'),
       "{{journeyman_model_provider}} {{error_type}}")]),
    ("Turns that read nothing from the provider's cache", "timeseries", "reqps", 12,
     [(rate("journeyman_model_turns_without_cache_read_total", "gen_ai_request_model"), "{{gen_ai_request_model}}")]),
    ("Conversations made shorter", "timeseries", "reqps", 12,
     [(rate("journeyman_context_steps_total", "journeyman_context_step"), "{{journeyman_context_step}}")]),
]

EFFECTS = [
    ("Effects, by outcome", "timeseries", "reqps", 12,
     [(rate("journeyman_effects_tried_total", "journeyman_outcome"), "{{journeyman_outcome}}")]),
    ("Effects, by kind", "timeseries", "reqps", 12,
     [(rate("journeyman_effects_tried_total", "journeyman_effect"), "{{journeyman_effect}}")]),
    ("Effects, p50 and p95", "timeseries", "s", 12,
     [(quantile(0.5, "journeyman_effects_duration_seconds"), "p50"),
      (quantile(0.95, "journeyman_effects_duration_seconds"), "p95")]),
    ("Effects that did not succeed", "timeseries", "reqps", 12,
     [(rate("journeyman_effects_tried_total", "journeyman_effect, journeyman_outcome",
            '{journeyman_outcome!~"created|found|known"}'), "{{journeyman_effect}} {{journeyman_outcome}}")]),
    ("Reports, by outcome", "timeseries", "reqps", 12,
     [(rate("journeyman_reports_settled_total", "journeyman_outcome"), "{{journeyman_outcome}}")]),
    ("Comments that stood there twice and were deleted", "timeseries", "none", 12,
     [(added("journeyman_effects_doubles_deleted_total", over=RATE), "deleted")]),
]

DASHBOARDS = [
    ("overview", "Journeyman: overview", "now-24h", OVERVIEW),
    ("tickets", "Journeyman: tickets", "now-6h", TICKETS),
    ("capacity", "Journeyman: capacity", "now-6h", CAPACITY),
    ("model-cost", "Journeyman: models and cost", "now-7d", MODEL_COST),
    ("effects", "Journeyman: effects", "now-6h", EFFECTS),
]


def panel(number, place, title, kind, unit, width, queries):
    options = {"colorMode": "value", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"]}}
    if kind == "timeseries":
        options = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    targets = [
        {"refId": chr(65 + at), "datasource": DATASOURCE, "expr": expression, "legendFormat": legend,
         **({"instant": True} if kind == "stat" else {})}
        for at, (expression, legend) in enumerate(queries)
    ]
    return {
        "id": number, "title": title, "type": kind, "datasource": DATASOURCE, "gridPos": place, "options": options,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []}, "targets": targets,
    }


def layout(panels):
    x = y = height = 0
    for number, (title, kind, unit, width, queries) in enumerate(panels, 1):
        tall = 4 if kind == "stat" else 8
        if x + width > 24:
            x, y, height = 0, y + height, 0
        yield panel(number, {"x": x, "y": y, "w": width, "h": tall}, title, kind, unit, width, queries)
        x, height = x + width, max(height, tall)


def dashboard(name, title, since, panels):
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0}
    return {
        "uid": f"journeyman-{name}", "title": title, "tags": ["journeyman"], "schemaVersion": 39, "version": 1,
        "editable": True, "refresh": "30s", "time": {"from": since, "to": "now"}, "timezone": "browser",
        "templating": {"list": [source]},
        "links": [{"title": "Journeyman", "type": "dashboards", "tags": ["journeyman"], "asDropdown": True}],
        "panels": list(layout(panels)),
    }


def main():
    check = sys.argv[1:] == ["--check"]
    wrong = []
    for name, title, since, panels in DASHBOARDS:
        text = json.dumps(dashboard(name, title, since, panels), indent=2) + "\n"
        path = FOLDER / f"{name}.json"
        if check and (not path.exists() or path.read_text() != text):
            wrong.append(path.name)
        elif not check:
            path.write_text(text)
    if wrong:
        sys.exit(f"dashboards differ from scripts/dashboards.py: {', '.join(wrong)}; run it")


if __name__ == "__main__":
    main()
