// SPDX-License-Identifier: Apache-2.0

// Package runs has the commands run and review, and what session, mcp, serve and demo share with
// them: the flags that describe a gate on this host, the gate that they describe, and the reports
// and exports of what it did.
//
// package job starts run and review as root, with the document of package runspec; this package is
// the other end. Values to redact, proxies and the configuration are read before anything is
// printed or runs, and a run that could not start still writes the report that a flag names. The
// workspace is the pull request's: if a job says what to run (--job), its configuration
// names no policy.
package runs
