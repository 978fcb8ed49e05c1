// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/export/exporttest"
	"github.com/fumehood/fumehood/pkg/internal/golden"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report"
)

// forms returns s as JUnit and as SARIF.
func forms(t *testing.T, s Story) (junit, sarif string) {
	t.Helper()
	var x, y bytes.Buffer
	if err := report.JUnit(&x, s.Report()); err != nil {
		t.Fatal(err)
	}
	if err := report.SARIF(&y, s.Report(), nil); err != nil {
		t.Fatal(err)
	}
	return x.String(), y.String()
}

// The forms of a log have every command, denial and finding, and no output of commands.
func TestRendered(t *testing.T) {
	log, _ := exporttest.Written(t, exporttest.Run{})
	_, story := decisionsOf(t, log, Options{})
	junit, sarif := forms(t, story)
	golden.Compare(t, "testdata/junit.xml", []byte(junit))
	golden.Compare(t, "testdata/log.sarif", []byte(sarif))
	if got := story.Report().Totals; story.Totals == nil || got != *story.Totals {
		t.Errorf("totals %+v, the log says %+v", got, story.Totals)
	}

	log, _ = exporttest.Written(t, exporttest.Run{Cut: true})
	_, story = decisionsOf(t, log, Options{})
	if junit, _ := forms(t, story); !strings.Contains(junit, "the log ends while it ran") || !strings.Contains(junit, `failures="1"`) {
		t.Errorf("a command that ran when the log was cut off:\n%s", junit)
	}
}

// What a report has besides is in its forms: output, and approvals.
func TestRenderedReport(t *testing.T) {
	asked := proposal.Record{Proposal: proposal.Proposal{ID: "deploy", Run: "make"}, Decision: proposal.Decision{Effect: proposal.Ask}, Approval: &proposal.Approval{},
		Result: &proposal.Result{Status: proposal.Exited, Stdout: proposal.Stream{Bytes: 6, Head: []byte("hello\n")}}}
	client := asked
	client.Proposal.ID, client.Approval, client.ClientApproval = "other", nil, &proposal.ClientApproval{}
	for name, r := range map[string]proposal.Report{
		"a person":  {Run: proposal.Run{Approval: &proposal.Approval{}}, Records: []proposal.Record{asked}},
		"a program": {Records: []proposal.Record{client}},
	} {
		story, err := Report(r, Options{}, func(Decision) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if junit, _ := forms(t, story); !strings.Contains(junit, "hello") || !strings.Contains(junit, `skipped="0"`) || !strings.Contains(junit, `failures="0"`) {
			t.Errorf("%s:\n%s", name, junit)
		}
	}
}
