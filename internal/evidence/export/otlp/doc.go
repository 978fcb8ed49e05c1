// SPDX-License-Identifier: Apache-2.0

// Package otlp sends a finished run to an OpenTelemetry collector: the run as a trace,
// its decisions and findings as log records.
//
// # Format
//
// OTLP/HTTP with binary protobuf, to ENDPOINT/v1/traces and ENDPOINT/v1/logs. The
// trace has a span for the run, below it one for each proposal, and below that
// "decide" and, if the command was started, "execute". The ids of the trace and its
// spans are derived from the run's id, so that sending twice gives the same ids. A
// TRACEPARENT in the environment makes the run part of that trace. Each log record is
// one decision of package export, in the span that it belongs to. Table prints the
// attributes; their names come from the semantic conventions where those have one.
//
// # Promises
//
// A run neither waits for a collector nor fails because of it. Send returns when its
// context ends, holds and sends a bounded number of bytes, and returns any failure as
// an error with the code otlp.failed, which the caller should report as a warning.
// The evidence is the audit log. Each kind of decision has its own limit, so that a
// flood of one cannot crowd out another; the run's span counts what was left out. No
// environment variables are sent, and no text with control characters or beyond its
// bound. Certificates are verified and redirects are refused. A secret header is
// never sent over plain HTTP to another machine, unless Options.Plain is set.
//
// # What it does not protect against
//
// A collector can lose what it has accepted. Anyone who may send to the same
// collector can send records that look like fumehood's.
//
// # Why
//
// The OpenTelemetry SDK is designed for programs that trace themselves while they
// run. Here all times and ids are in the past and responses must be bounded. Its
// exporters also depend on gRPC: together they add 6.6 MB to the program, the
// messages alone 0.1 MB.
package otlp
