// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"bytes"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A gvisorDifference is something that programs find in Linux and not in gVisor, as measured.
type gvisorDifference struct {
	has   []string         // one of them is in every match: output without them need not be matched
	named *pattern.Pattern // in output
	words string
}

var differences = []gvisorDifference{
	{[]string{"ECHOCTL"}, pattern.New(`\bECHOCTL\b`), "a terminal echoes control characters as they are, not as ^X (ECHOCTL)"},
	{[]string{"IN_ATTRIB"}, pattern.New(`\bIN_ATTRIB\b`), "inotify reports no IN_ATTRIB for a file that a rename replaces"},
	{[]string{"/proc/net/"}, pattern.New(`/proc/net/(?:snmp|netstat|sockstat)\b`), "files of /proc/net such as snmp, netstat and sockstat are shorter or missing"},
	{[]string{"/proc/"}, pattern.New(`/proc/(?:self|[0-9]+)/(?:smaps_rollup|wchan|schedstat|clear_refs|pagemap|timerslack_ns|sessionid)\b`), "this file of /proc/PID is missing"},
	{[]string{"/proc/"}, pattern.New(`/proc/(?:diskstats|vmstat|swaps|interrupts|kallsyms|pressure/)`), "this file of /proc is missing"},
	{[]string{"transparent_hugepage", "/sys/kernel/mm/"}, pattern.New(`\btransparent_hugepage\b|/sys/kernel/mm/`), "/sys/kernel/mm is missing"},
	{[]string{"io_uring", "liburing", "IO_URING", "LIBURING"}, pattern.New(`\b(?:io_uring|liburing|IO_URING|LIBURING)`), "there is no io_uring"},
	{[]string{"userfaultfd", "fanotify", "landlock", "memfd_secret", "futex_waitv", "perf_event_open", "keyctl"}, pattern.New(`\b(?:userfaultfd|fanotify|landlock|memfd_secret|futex_waitv|perf_event_open|keyctl)(?:\b|_)`), "this system call is missing or refused"},
	{[]string{"O_TMPFILE"}, pattern.New(`\bO_TMPFILE\b`), "open does not support O_TMPFILE"},
	{[]string{"PUNCH_HOLE", "SEEK_HOLE", "SEEK_DATA"}, pattern.New(`\b(?:FALLOC_FL_)?PUNCH_HOLE\b|\bSEEK_(?:HOLE|DATA)\b`), "files have no holes: fallocate cannot punch them, and lseek finds none"},
	{[]string{"AF_VSOCK"}, pattern.New(`\bAF_VSOCK\b`), "there are no sockets of the family AF_VSOCK"},
}

// GVisorDifference returns a known difference of gVisor that the output of a command that failed names,
// or "". It is a hint and no Cause, because the code of a pull request can print anything: the
// failure stays one.
func GVisorDifference(r proposal.Record) string {
	if r.Outcome() != proposal.OutcomeFailed || r.Result == nil || r.Result.Status != proposal.Exited {
		return ""
	}
	for _, s := range []proposal.Stream{r.Result.Stdout, r.Result.Stderr} {
		for _, piece := range streamParts(s) {
			parts := [][]byte{piece}
			if len(piece) > maxScanned {
				parts = [][]byte{piece[:maxScanned], piece[len(piece)-maxScanned:]}
			}
			for _, part := range parts {
				for _, d := range differences {
					if d.isNamed(part) {
						return d.words
					}
				}
			}
		}
	}
	return ""
}

func (d gvisorDifference) isNamed(output []byte) bool {
	has := func(word string) bool { return bytes.Contains(output, []byte(word)) }
	return slices.ContainsFunc(d.has, has) && d.named.Match(output)
}
