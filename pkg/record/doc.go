// SPDX-License-Identifier: Apache-2.0

// Package record turns a finished run into decision records: one line of JSON for each
// answer of policy, for whoever keeps the decisions of many systems in one place.
//
// # Format
//
// A line is an event of OPA's decision log and has no field that OPA's does not have, so
// that what reads those reads these. What is ours alone stands in "custom", which OPA
// keeps for that. The schema is testdata/schema/fumehood.decision.v1.json. It differs
// from what OPA itself writes in these:
//
//   - decision_id is no random number: it is the run's id, a slash and the number of the
//     entry of the audit log that holds the decision, so that fumehood show and prove
//     find it, and so that exporting twice gives the same lines. What follows a dot is a
//     part of the entry: "c1" what was said of its second command, "e0" its first event,
//     "f0" the first finding about the command.
//   - path is the decision point with a slash: "fumehood/exec" for data.fumehood.exec.
//   - input is an extract, under the name of what was judged, and not the document that
//     rules saw. It is bounded; what was cut is named in masked, what was left out in
//     erased, as JSON pointers like OPA's. The values of variables and a proposal's
//     standard input are always left out.
//   - result is the answer of all layers, merged, and not one policy's.
//   - bundles has an item for each layer of the policy, in revision what its own
//     manifest says, or the commit or digest that it was read at.
//   - requested_by is the proposer, or for a trigger the person. OPA has an address.
//   - metrics are milliseconds of what became of it, and say so in their names.
//   - trace_id and span_id are those that pkg/record/otlp gives the run.
//   - There is no query, nd_builtin_cache or error: a decision that could not be made
//     stops the run, and nothing follows it.
//
// Told are every proposal, every command of it that a rule spoke against, every program
// that was refused or would have been, everything that was asked of the gateway, and every
// finding; with Options.All every program that began, too. A report tells of proposals,
// commands and findings alone, under the same ids: of programs and the network it has
// extracts without their entries.
//
// # What it promises
//
// Log looks at a log only when it verifies, and hands out nothing that was not signed.
// Every text is valid UTF-8 and bounded, every line is at most MaxLine long and may be
// printed: no character of it is hidden or a control.
//
// # What it does not protect against
//
// A log says what its writer wrote; see package audit on whose word that is. What commands
// printed is not in a record, but what they were called with is. Secrets are redacted
// before they are logged, not here.
package record
