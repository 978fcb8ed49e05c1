// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

// The tests of real projects have the same outcomes in the sandbox as on the host, except for differences that
// suitesFile explains. -update keeps the results in resultsFile, from which docs/COMPATIBILITY.md is made. Several
// tests have the suites of one area each, so that a part of the lane has a few of them.
func TestNightlySuitesGo(t *testing.T)        { compareSuites(t, "Go modules") }
func TestNightlySuitesDatabases(t *testing.T) { compareSuites(t, "databases") }
func TestNightlySuitesPython(t *testing.T)    { compareSuites(t, "Python") }
func TestNightlySuitesNode(t *testing.T)      { compareSuites(t, "Node") }
func TestNightlySuitesPrograms(t *testing.T)  { compareSuites(t, "programs") }
func TestNightlySuitesSpeed(t *testing.T)     { compareSuites(t, "speed") }

func compareSuites(t *testing.T, area string) {
	found := false
	for _, s := range readSuites(t) {
		if s.Area != area {
			continue
		}
		found = true
		t.Run(strings.ReplaceAll(s.Name, "/", "_"), func(t *testing.T) {
			if s.Path != "" {
				t.Setenv("PATH", s.Path+":"+os.Getenv("PATH"))
			}
			d := newDesk(t)
			s.fetch(t, d)
			inside := s.inside(t, d) // makes the build cache that native copies
			outside := s.native(t, d)
			r := s.compare(t, inside, outside)
			t.Logf("%d of %d outcomes are the same; processor %s times, wall %s times as long as outside: %d ms",
				r.Same, r.Outcomes, ratio(r.CPU), ratio(r.Wall), r.Wall[1])
			if *golden.Update && !t.Failed() {
				keepResult(t, r)
			}
		})
	}
	if !found {
		t.Fatalf("%s has no suite of the area %q", suitesFile, area)
	}
}

// compare compares the outcomes with what the suite says about their differences.
func (s suite) compare(t *testing.T, inside, outside verdict) suiteResult {
	t.Helper()
	r := suiteResult{Name: s.Name, Version: s.Version, Date: time.Now().UTC().Format(time.DateOnly),
		CPU:  [2]int64{inside.cpu.Milliseconds(), outside.cpu.Milliseconds()},
		Wall: [2]int64{inside.took.Milliseconds(), outside.took.Milliseconds()}}
	if len(s.Differ) > 0 {
		r.Differ = make([]int, len(s.Differ))
	}
	in, out := groupOutcomes(inside.outcomes), groupOutcomes(outside.outcomes)
	all := maps.Clone(in)
	maps.Copy(all, out)
	var unexplained []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n := max(len(in[name]), len(out[name]))
		r.Outcomes += n
		i := slices.IndexFunc(s.Differ, func(d difference) bool { return d.Outcome.MatchString(name) })
		switch {
		case slices.Equal(in[name], out[name]):
			r.Same += n
		case i >= 0:
			r.Differ[i] += n
		default:
			unexplained = append(unexplained, fmt.Sprintf("%s: %v outside, %v inside", name, out[name], in[name]))
		}
	}
	for i, d := range s.Differ {
		if r.Differ[i] == 0 {
			t.Errorf("no outcome that %q matches differs: remove it from %s", d.Outcome, suitesFile)
		}
	}
	if len(unexplained) > 0 {
		t.Errorf("%d outcomes differ, and %s does not say why:\n%s\n%s", len(unexplained), suitesFile,
			strings.Join(unexplained, "\n"), inside.failures())
	}
	if len(inside.outcomes) < s.Least {
		t.Errorf("%d outcomes inside, %d outside, want %d at least\n%s\n== outside\n%s", len(inside.outcomes),
			len(outside.outcomes), s.Least, inside.failures(), outside.failures())
	}
	if inside.code != outside.code && len(s.Differ) == 0 {
		t.Errorf("exit code %d inside, %d outside\n%s", inside.code, outside.code, inside.failures())
	}
	return r
}

// groupOutcomes returns the states of each name, sorted.
func groupOutcomes(outcomes []string) map[string][]string {
	groups := map[string][]string{}
	for _, outcome := range outcomes {
		i := strings.LastIndex(outcome, ": ")
		groups[outcome[:i]] = append(groups[outcome[:i]], outcome[i+2:])
	}
	return groups
}

// keepResult writes one suite's result to resultsFile.
func keepResult(t *testing.T, r suiteResult) {
	t.Helper()
	var c compatibility
	if _, err := os.Stat(resultsFile); err == nil {
		c = readCompatibility(t)
	}
	c.Suites = slices.DeleteFunc(c.Suites, func(old suiteResult) bool { return old.Name == r.Name })
	c.Suites = append(c.Suites, r)
	slices.SortFunc(c.Suites, func(a, b suiteResult) int { return strings.Compare(a.Name, b.Name) })
	find := func(expr, file string) string {
		if m := regexp.MustCompile(expr).FindSubmatch(golden.Read(t, file)); m != nil {
			return strings.TrimSpace(string(m[1]))
		}
		return "unknown"
	}
	c.Machine = fmt.Sprintf("%d cores of %s, Linux %s", runtime.NumCPU(),
		find(`(?m)^model name\s*: (.*)$`, "/proc/cpuinfo"), find(`(\d+\.\d+)`, "/proc/sys/kernel/osrelease"))
	c.GVisor = find(`gvisor.dev/gvisor (\S+)`, "../../go.mod")
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(resultsFile, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
