// SPDX-License-Identifier: Apache-2.0

// Package evidence answers what the holder of the files of an earlier run asks: whether an audit
// log is the run's, what an entry's proof proves, and what the run is in the form of another tool.
// The formats are those of packages audit and export.
package evidence
