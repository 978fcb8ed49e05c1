// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestRunDifferences: a run's report has what the commands changed in the files of the
// workspace, without what set-up changed, redacted and bounded, and the log binds it.
func TestRunDifferences(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	writeFile(t, ws, "lib/one.txt", "one\n")
	writeFile(t, ws, "lib/two.txt", "two\n")
	writeFile(t, ws, "edited", "a\nb\nc\n")
	writeFile(t, ws, "gone.txt", "gone\n")
	writeFile(t, ws, "touched", "same\n")
	writeFile(t, ws, "secret.env", "TOKEN=gh"+"p_"+"aZ3kQ9rT7mW1xY5vB8nC2dF6gH4jL0pS3uEq\nmode=a\n")
	g := newGate(t, gate.Options{Workspace: ws, Setup: gate.Setup{Steps: []gate.SetupStep{{Proposal: proposal.Proposal{ID: "deps", Phase: proposal.PhaseSetup, Run: "echo made > made", Origin: proposal.OriginSetup}}}}})
	r, err := g.Run(t.Context(), planOf(t, "sed -i s/b/B/ edited && rm -r lib && rm gone.txt && touch touched", "sed -i s/mode=a/mode=b/ secret.env",
		"ln -s edited link; printf 'a\\0b' > binary; truncate -s 300000 large; seq 20000 > long; mkdir new; echo '<b>' > new/a; echo x > gone", "rm gone; echo more >> made"))
	if err != nil || r.Totals.Succeeded != 5 {
		t.Fatalf("%+v, %v, %+v", r.Totals, err, r.Records[3].Decision)
	}
	d := r.Differences
	var got []string
	for _, f := range d.Files {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Kind, f.Path, f.Note)))
	}
	want := []string{"added binary binary; after 3 bytes, sha256 " + fmt.Sprintf("%x", sha256.Sum256([]byte("a\x00b"))), "changed edited", "removed gone.txt", "added link",
		"added long left out: the difference is larger than 64 KiB", "added made", "added new/a", "changed secret.env secrets are redacted"}
	if diff := cmp.Diff(want, got); diff != "" || d.Omitted != 2 { // lib and large
		t.Errorf("%d omitted; -want +got:\n%s", d.Omitted, diff)
	}
	var all string
	for _, f := range d.Files {
		all += f.Text
	}
	if strings.Contains(all, "p_aZ3k") || !strings.Contains(all, "-b\n+B\n") || !strings.Contains(all, "+mode=b") || !strings.Contains(all, "+edited\n") {
		t.Errorf("%s", all)
	}
	checkLog(t, r, true)
	entries := entriesOf(t, r)
	if doubts := order.CompareLog(r, entries); len(doubts) > 0 {
		t.Errorf("doubts: %q", doubts)
	}
	data, err := report.JSON(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := report.Read(data, report.MaxDocument); err != nil {
		t.Error(err)
	}
	forged := strings.Replace(string(data), "+mode=b", "+mode=c", 1)
	if _, err := report.Read([]byte(forged), report.MaxDocument); err == nil || !strings.Contains(err.Error(), "differences.patch") {
		t.Errorf("a changed text was read: %v", err)
	}
	r.Differences = nil
	if doubts := order.CompareLog(r, entries); len(doubts) == 0 {
		t.Error("a report without its differences agrees with its log")
	}
}

// Commands that change no file leave no differences. A command that ran into its time limit
// leaves what it changed, and a new sandbox begins with the original workspace.
func TestRunWithoutDifferences(t *testing.T) {
	t.Parallel()
	g := newGate(t, gate.Options{})
	r, err := g.Run(t.Context(), planOf(t, "cat task", "echo x > /tmp/x"))
	if err != nil || r.Differences != nil {
		t.Errorf("%+v, %v", r.Differences, err)
	}
	plan := planOf(t, "echo x > first", "echo x > second", "echo x > third; sleep 60")
	plan.Proposals[1].Fresh, plan.Proposals[2].Limits = true, &proposal.Limits{Wall: proposal.Duration(500 * time.Millisecond)}
	r, err = g.Run(t.Context(), plan)
	if err != nil || r.Records[2].Result.Status != proposal.TimedOut || r.Differences == nil || len(r.Differences.Files) != 2 || r.Differences.Files[0].Path != "second" {
		t.Fatalf("%+v, %v", r.Differences, err)
	}
	if doubts := order.CompareLog(r, entriesOf(t, r)); len(doubts) > 0 {
		t.Errorf("doubts: %q", doubts)
	}
}

// planOf is a plan of shell texts.
func planOf(t *testing.T, texts ...string) proposal.Plan {
	t.Helper()
	p := proposal.Plan{Schema: proposal.PlanSchema}
	for i, text := range texts {
		p.Proposals = append(p.Proposals, proposal.Proposal{ID: fmt.Sprint("c", i), Run: text})
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(data))
}
