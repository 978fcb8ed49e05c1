// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/author/replay"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// BenchmarkAgain has the goal of 10,000 decisions a second on two processors, with the
// default policy, for typical runs: commands that are all different, the same commands
// with twenty different programs each, and a past in which each was proposed ten times.
func BenchmarkAgain(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	e := engineOf(b)
	for name, past := range map[string]replay.Past{"distinct": ran(corpus(b)...), "programs": withPrograms(ran(corpus(b)...), 20), "repeated": ran(slices.Repeat(corpus(b), 10)...)} {
		b.Run(name, func(b *testing.B) {
			decisions := 0
			before := processor()
			for b.Loop() {
				o, err := replay.Redecide(b.Context(), past, e, nil)
				if err != nil {
					b.Fatal(err)
				}
				decisions += o.Decisions
			}
			b.ReportMetric(float64((processor()-before).Microseconds())/float64(decisions), "cpu-µs/decision")
			b.ReportMetric(float64(decisions)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}

// withPrograms adds programs that are all different.
func withPrograms(past replay.Past, each int) replay.Past {
	for i := range past.Runs {
		for n := range each {
			exec := proposal.Exec{Path: "/usr/bin/git", Layer: proposal.LayerRootfs, Argv: []string{"git", "log", fmt.Sprint(i, ".", n)}}
			past.Runs[i].Acts[0].Execs = append(past.Runs[i].Acts[0].Execs, replay.Exec{Exec: exec, Times: 1})
		}
	}
	return past
}

// processor returns the CPU time of the process. Unlike the clock, it does not
// depend on the load of the machine.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// corpus returns the texts that reviewers propose, one per line.
func corpus(b *testing.B) []string {
	b.Helper()
	f, err := os.Open("../../../testdata/corpus/benign.txt")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var texts []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text := strings.TrimSpace(lines.Text()); text != "" && text != "---" && !strings.HasPrefix(text, "#") {
			texts = append(texts, text)
		}
	}
	return texts
}
