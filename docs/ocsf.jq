# Maps lines of fumehood export (fumehood.decision/v1) to events of OCSF 1.5, with the profile
# security_control:
#   fumehood export --all audit.jsonl --key KEY | jq -c -f ocsf.jq
# A program that was started is a Process Activity, a connection that was allowed a Network
# Activity, and everything else a Detection Finding. A command that is denied is one finding,
# with the reasons of all its parts: the lines of the parts are left out. What is refused again
# in the same command has the same finding_info.uid. Everything that has no OCSF field is in
# unmapped.
def severity: {informational: 1, low: 2, medium: 3, high: 4, critical: 5}[.custom.severity];
def blocked: .result.effect == "deny" or (.result.effect == "ask" and (.result.approved | not));
def title:
  (.path | ltrimstr("fumehood/")) as $point
  | if $point == "run" then "run ended"
    else [.result.effect, $point, (.result.rules[0] // empty)] | join(" ") end;
def milliseconds:
  capture("^(?<whole>[^.Z]+)(\\.(?<part>[0-9]+))?Z$")
  | (.whole + "Z" | fromdateiso8601) * 1000 + ((.part // "") + "000" | .[0:3] | tonumber);
def name: split("/") | last | if . == "" then "unknown" else . end;
def program: {pid, name: (.path | name), path, cmd_line: (.argv | join(" ")), file: {name: (.path | name), path, type_id: 1}};
def parent: if .parent > 0 then {process: {pid: .parent, name: (.parent_path | name), path: .parent_path}} else {} end;
def sandbox: {type_id: 99, type: "gVisor sandbox", name: ("fumehood/" + .custom.run), uid: .custom.run};
def finding:
  .input.exec.argv_digest as $argv | .input.egress as $to
  | if $argv then [.custom.run, .custom.id, .path, $argv]
    elif $to then [.custom.run, .custom.id, .path, $to.kind, $to.name, $to.address, $to.port]
    else [.decision_id] end
  | map(tostring) | join("/");
def class($category; $categoryName; $class; $className; $activity; $activityName): {
  category_uid: $category, category_name: $categoryName, class_uid: $class, class_name: $className,
  activity_id: $activity, activity_name: $activityName, type_uid: ($class * 100 + $activity)
};

select(.path != "fumehood/command")
| title as $title
| (.result.reasons[0].message // "" | if . == "" then $title else . end) as $message
| {
  time: (.timestamp | milliseconds),
  severity_id: severity,
  severity: (.custom.severity | (.[0:1] | ascii_upcase) + .[1:]),
  status_id: 1,
  action_id: (if blocked then 2 else 1 end),
  disposition_id: (if .path == "fumehood/event" or .path == "fumehood/run" then 17 elif blocked then 2 else 1 end),
  message: $message,
  metadata: {
    version: "1.5.0", profiles: ["security_control"], uid: .decision_id,
    log_name: "fumehood.audit", sequence: .custom.sequence, correlation_uid: .custom.run,
    product: {name: "fumehood", vendor_name: "fumehood", version: (.labels.version // "unknown")}
  },
  unmapped: {labels: .labels, bundles: .bundles, input: .input, result: .result, metrics: .metrics,
    log_key: .custom.key, log_entry: .custom.entry, log_checkpoint: .custom.checkpoint, log_state: .custom.log}
} + if .input.exec and (blocked | not) then
  class(1; "System Activity"; 1007; "Process Activity"; 1; "Launch")
  + {process: (.input.exec | program), actor: ({app_name: "fumehood"} + (.input.exec | parent)), device: sandbox}
elif .input.egress and (blocked | not) then
  class(4; "Network Activity"; 4001; "Network Activity"; 6; "Traffic")
  + {dst_endpoint: ({hostname: .input.egress.name, ip: .input.egress.address, port: .input.egress.port}
      | with_entries(select(.value != "" and .value != 0))),
    traffic: {bytes_out: (.metrics.flow_sent_bytes // 0), bytes_in: (.metrics.flow_received_bytes // 0)},
    connection_info: {direction_id: 2, protocol_name: .input.egress.protocol}, device: sandbox}
else
  class(2; "Findings"; 2004; "Detection Finding"; 1; "Create")
  + {
    finding_info: {
      uid: finding, title: $title, types: [.path],
      analytic: {type_id: 1, name: (.result.rules[0] // "none")}
    },
    resources: [{type: "repository", name: (.labels.repository // "unknown"), uid: (.labels.head_sha // "unknown")}],
    evidences: [{data: {log_key: .custom.key, log_entry: .custom.entry}}]
  }
end
