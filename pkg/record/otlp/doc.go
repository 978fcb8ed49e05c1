// SPDX-License-Identifier: Apache-2.0

// Package otlp sends a finished run to an OpenTelemetry collector: the run as a trace,
// its decisions and findings as log records.
//
// # Format
//
// OTLP/HTTP with binary protobuf, to ENDPOINT/v1/traces and ENDPOINT/v1/logs. The trace has
// a span for the run, below it one for each proposal, below that "decide" and, of what was
// started, "execute". A span's and the trace's ids are made of the run's, so that sending
// twice gives the same ids; a TRACEPARENT in the environment makes the run a part of that
// trace. Each log record is one decision of package record, in the span that it belongs to.
// Attributes are a table, which Table prints: the semantic conventions' where they have one.
//
// # What it promises
//
// A run neither waits for a collector nor fails by it: Send takes as long as its context
// lets it, holds and sends a bounded number of bytes, and what it could not do is an error
// with the code otlp.failed for the caller to warn with. The evidence is the audit log.
// Each kind of decision has room of its own, so that a flood of one cannot crowd out
// another; what was left out is counted on the run's span. Nothing of an environment is
// sent, and no text with control characters or more than its bound. Certificates are
// verified, redirects are refused, and a secret header never goes over plain HTTP to
// another machine, unless Options.Plain says so.
//
// # What it does not protect against
//
// A collector that takes what it is given and loses it. Whoever may send to the same
// collector can send records that look like ours.
//
// # Why
//
// The OpenTelemetry SDK is made for programs that trace themselves while they run. Here
// all times and ids lie in the past, answers must be bounded, and its exporters bring gRPC:
// together 6.6 MB of program, where the messages alone take 0.1 MB.
package otlp
