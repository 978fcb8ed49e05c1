# Maps lines of fumehood export (fumehood.decision/v1) to OCSF 1.5 Detection Findings, with
# the profile security_control:
#   fumehood export audit.jsonl --key KEY | jq -c -f ocsf.jq
# Everything that has no OCSF field is in unmapped.
def severity: {informational: 1, low: 2, medium: 3, high: 4, critical: 5}[.custom.severity];
def blocked: .result.effect == "deny" or (.result.effect == "ask" and (.result.approved | not));
def title:
  (.path | ltrimstr("fumehood/")) as $point
  | if $point == "run" then "run ended"
    else [.result.effect, $point, (.result.rules[0] // empty)] | join(" ") end;
{
  class_uid: 2004, class_name: "Detection Finding", category_uid: 2, category_name: "Findings",
  activity_id: 1, activity_name: "Create", type_uid: 200401,
  time: (.timestamp | sub("\\.[0-9]+Z$"; "Z") | fromdateiso8601 * 1000),
  severity_id: severity,
  severity: (.custom.severity | (.[0:1] | ascii_upcase) + .[1:]),
  status_id: 1,
  action_id: (if blocked then 2 else 1 end),
  disposition_id: (if .path == "fumehood/event" or .path == "fumehood/run" then 17 elif blocked then 2 else 1 end),
  message: (title as $title | .result.reasons[0].message // "" | if . == "" then $title else . end),
  finding_info: {
    uid: .decision_id, title: title, types: [.path],
    analytic: {type_id: 1, name: (.result.rules[0] // "none")}
  },
  metadata: {
    version: "1.5.0", profiles: ["security_control"], uid: .decision_id,
    log_name: "fumehood.audit", sequence: .custom.sequence, correlation_uid: .custom.run,
    product: {name: "fumehood", vendor_name: "fumehood", version: (.labels.version // "unknown")}
  },
  resources: [{type: "repository", name: (.labels.repository // "unknown"), uid: (.labels.head_sha // "unknown")}],
  evidences: [{data: {log_key: .custom.key, log_entry: .custom.entry, log_checkpoint: .custom.checkpoint, log_state: .custom.log}}],
  unmapped: {labels: .labels, bundles: .bundles, input: .input, result: .result, metrics: .metrics}
}
