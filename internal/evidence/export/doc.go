// SPDX-License-Identifier: Apache-2.0

// Package export turns a finished run into decision records: one line of JSON for
// each decision of policy, for systems that collect decisions centrally.
//
// # Format
//
// A line is an event of OPA's decision log and has no other fields, so that tools
// for OPA's logs can read it. Fumehood's own fields are in "custom", which OPA
// reserves for that. The schema is testdata/schema/fumehood.decision.v1.json. The
// lines differ from OPA's own as follows:
//
//   - decision_id is not random. It is the run's id, a slash and the number of the
//     entry of the audit log that holds the decision, so that fumehood show and prove
//     find it, and so that exporting twice gives the same lines. A suffix after a dot
//     names a part of the entry: "c1" is the decision on its second command, "e0" its
//     first event, "f0" the first finding about the command.
//   - path is the decision point with a slash: "fumehood/exec" for data.fumehood.exec.
//   - input is an extract, under the name of its kind, and not the document that
//     rules saw. It is bounded. Truncated values are listed in masked, and values left
//     out in erased, as JSON pointers like OPA's. The values of variables and a
//     proposal's standard input are always left out.
//   - result is the merged result of all layers, not one policy's.
//   - bundles has an item for each layer of the policy; its revision is the one in
//     the layer's manifest, or the commit or digest that was read.
//   - requested_by is the proposer, or for a trigger the person. In OPA it is an address.
//   - metrics describe the outcome, with the unit in their names.
//   - trace_id and span_id are those that internal/evidence/export/otlp uses for the run.
//   - The last line of a run is not a decision. Its path is fumehood/run, its effect note,
//     and its metrics count what the log and the run had. It is there also for a run without
//     decisions. custom.sequence counts the lines of a run from 1, and that of the last line
//     is their number: a reader that has fewer has lost some, and one without the last line
//     has lost it or reads a run that is not exported to its end.
//   - custom has the log's key and last checkpoint, as far as they are known: fumehood verify
//     --key and --checkpoint check the log itself. custom.severity of a denial is the worst
//     severity of the rules that deny: low, medium, high or critical. If none has one, it is
//     medium (denied before anything ran) or high (a program or connection that was refused
//     while it ran). Otherwise it is informational (allowed), or low (a finding, a question or
//     only observed).
//   - result.rules and reasons begin with those that decide: of a denial, a rule that denies.
//   - There is no query, nd_builtin_cache or error: if a decision cannot be made, the
//     run stops and there is nothing after it.
//
// The records cover every proposal, every command that a rule objected to, every
// program that was refused or would have been, every request to the gateway, and
// every finding; with Options.All also every program that started. From a report,
// only proposals, commands and findings are exported, under the same ids: a report
// has extracts of programs and network events, without their log entries.
//
// # Promises
//
// Log exports a log only after verifying it, and only entries that are signed.
// Every text is valid UTF-8 and bounded. Every line is at most MaxLine long and
// safe to print: it has no hidden or control characters.
//
// # What it does not protect against
//
// A log contains what its writer wrote; package audit says how far to trust it.
// Output of commands is not in a record, but their arguments are. Secrets are
// redacted before they are logged, not here.
package export
