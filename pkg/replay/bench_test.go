// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bufio"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/replay"
)

// BenchmarkAgain is the aim: 10,000 decisions a second on two processors, with the
// default policy, of what runs are made of: commands, and the programs that they start.
func BenchmarkAgain(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	e := engineOf(b)
	for name, programs := range map[string]int{"proposals": 0, "programs": 20} {
		past := ran(corpus(b)...)
		for i := range past.Runs {
			for range programs {
				past.Runs[i].Deeds[0].Execs = append(past.Runs[i].Deeds[0].Execs, replay.Exec{Exec: proposal.Exec{Path: "/usr/bin/git", Layer: proposal.LayerRootfs, Argv: []string{"git", "log"}}, Times: 1})
			}
		}
		b.Run(name, func(b *testing.B) {
			decisions := 0
			before := processor()
			for b.Loop() {
				o, err := replay.Again(b.Context(), past, e, nil)
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

// processor is what the process has used: unlike the clock it says the same on a busy
// machine.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// corpus are texts that reviewers propose, one a line.
func corpus(b *testing.B) []string {
	b.Helper()
	f, err := os.Open("../../testdata/corpus/benign.txt")
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
