// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

const (
	suitesFile  = "../../testdata/compatibility/suites.yml"
	resultsFile = "../../testdata/compatibility/results.json"
)

// A suite is a project's tests, and how to run them: a row of suitesFile, which explains the fields.
type suite struct {
	Name, Version, Area, Source, Package, Dir, Prepare, Path, Run, Read string

	Files  []string
	Least  int
	Speed  string
	Differ []difference
}

// A difference explains why outcomes are not the same in the sandbox as outside.
type difference struct {
	Outcome pattern // all of an outcome's name
	Why     string
	Issue   string // of gVisor
}

// A pattern matches whole names.
type pattern struct{ *regexp.Regexp }

func (p *pattern) UnmarshalYAML(node *yaml.Node) (err error) {
	p.Regexp, err = regexp.Compile("^(?:" + node.Value + ")$")
	return err
}

// readSuites returns the rows of suitesFile.
func readSuites(t testing.TB) (list []suite) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(golden.Read(t, suitesFile)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

// compatibility is what resultsFile has: the last run of each suite.
type compatibility struct {
	Machine string        `json:"machine"`
	GVisor  string        `json:"gvisor"`
	Suites  []suiteResult `json:"suites"` // sorted by name
}

// A suiteResult compares one run of a suite inside the sandbox with one outside, in that order, on one machine.
type suiteResult struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Date     string `json:"date"`
	Outcomes int    `json:"outcomes"` // inside, outside or both
	Same     int    `json:"same"`
	// Differ counts the outcomes that each difference of the suite matches.
	Differ []int `json:"differ,omitempty"`
	// Milliseconds of processor time and of a clock, inside and outside.
	CPU  [2]int64 `json:"cpu_ms"`
	Wall [2]int64 `json:"wall_ms"`
}

func ratio(ms [2]int64) string { return fmt.Sprintf("%.1f", float64(ms[0])/float64(max(ms[1], 1))) }

func readCompatibility(t testing.TB) (c compatibility) {
	t.Helper()
	if err := json.Unmarshal(golden.Read(t, resultsFile), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// docs/COMPATIBILITY.md is made from the last run of each suite, whose differences are all explained.
func TestCompatibilityPage(t *testing.T) {
	c, suites := readCompatibility(t), readSuites(t)
	for _, r := range c.Suites {
		i := slices.IndexFunc(suites, func(s suite) bool { return s.Name == r.Name })
		if i < 0 || suites[i].Version != r.Version || len(suites[i].Differ) != len(r.Differ) {
			t.Fatalf("%s: %s is not about a suite of %s: run TestNightlySuites… with -update", resultsFile, r.Name, suitesFile)
		}
	}
	golden.Compare(t, "../../docs/COMPATIBILITY.md", compatibilityPage(t, c, suites))
}

func compatibilityPage(t *testing.T, c compatibility, suites []suite) []byte {
	t.Helper()
	var rows, differences, speeds bytes.Buffer
	outcomes, same, first, last, area := 0, 0, "", "", ""
	var unmeasured []string
	shares := 0.0
	for _, s := range suites {
		i := slices.IndexFunc(c.Suites, func(r suiteResult) bool { return r.Name == s.Name })
		if i < 0 {
			unmeasured = append(unmeasured, s.Name)
			continue
		}
		r := c.Suites[i]
		outcomes, same, last = outcomes+r.Outcomes, same+r.Same, max(last, r.Date)
		shares += percent(r.Same, r.Outcomes)
		if first == "" || r.Date < first {
			first = r.Date
		}
		shown := ""
		if s.Area != area {
			shown, area = s.Area, s.Area
		}
		fmt.Fprintf(&rows, "| %s | %s | %d | %d | %s | %s | %s |\n", shown, strings.TrimSpace(s.Name+" "+s.Version),
			r.Outcomes, r.Same, orNone(r.Outcomes-r.Same), ratio(r.CPU), ratio(r.Wall))
		for j, d := range s.Differ {
			why := d.Why
			if d.Issue != "" {
				why += " ([issue](" + d.Issue + "))"
			}
			fmt.Fprintf(&differences, "| %s | %d | %s |\n", s.Name, r.Differ[j], why)
		}
		if s.Speed != "" {
			fmt.Fprintf(&speeds, "| %s | %s | %s | %s | %s |\n", s.Speed, ratio(r.CPU), ratio(r.Wall), seconds(r.Wall[1]),
				seconds(r.Wall[0]))
		}
	}
	share := percent(same, outcomes)
	if share < 98 {
		t.Errorf("%.2f %% of outcomes are the same; want 98 at least", share)
	}
	days := first
	if last != first {
		days = first + " to " + last
	}
	if len(unmeasured) > 0 {
		fmt.Fprintf(&rows, "\nThe nightly lane has these, too, whose outcomes are not in the figures yet: %s.\n",
			strings.Join(unmeasured, ", "))
	}
	return fmt.Appendf(nil, compatibilityText, same, outcomes, share, len(c.Suites), shares/float64(len(c.Suites)), days,
		c.Machine, c.GVisor, &rows, &differences, &speeds)
}

// percent rounds down, so that only what is whole is 100.
func percent(part, whole int) float64 { return math.Floor(float64(part)/float64(whole)*10000) / 100 }

func orNone(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func seconds(ms int64) string {
	return fmt.Sprintf("%.1f s", (time.Duration(ms) * time.Millisecond).Seconds())
}

const compatibilityText = `# Compatibility

**%d of %d outcomes (%.2f %%) of %d projects are the same in the sandbox as outside.** The mean of the
projects, some of which have many outcomes, is %.1f %%. They stress what sandboxes break: terminals, file watching, sockets,
/proc, signals, compilers and databases.

Measured %s on %s, with gVisor %s.
A test made this page. Each project ran once inside, with the default policy, and once outside, as an unprivileged user
without capabilities whose network is a loopback interface.

- An outcome is the state of a named test: passed, failed or skipped. A test that fails on both sides, such as one that
  needs the Internet, counts as the same.
- The nightly lane repeats the runs. It fails if an outcome differs that this page does not explain, if an explained
  one does not differ any more, and if a command hangs.
- CPU and wall are ratios: the time inside divided by the time outside, of processors and of a clock. Other work used
  the same processors meanwhile, on the one side more than on the other: rely on the ratios of CPU alone.

## Projects

| area | project | outcomes | same | different | CPU | wall |
| --- | --- | --- | --- | --- | --- | --- |
%s
## Differences

| project | outcomes | reason |
| --- | --- | --- |
%s
Programs that show the most important ones are in [testdata/gvisor](../testdata/gvisor).

## Speed

| tool | CPU | wall | outside | inside |
| --- | --- | --- | --- | --- |
%s
What file systems cost in large repositories: [LIMITS](LIMITS.md).
`
