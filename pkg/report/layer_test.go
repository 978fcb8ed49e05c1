// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// fromLayer returns a report whose first command was replaced by a layer.
func fromLayer() proposal.Report {
	r := approvedRun()
	rec := &r.Records[0]
	rec.Proposal.Origin = proposal.OriginSetup
	result := proposal.FromLayer(proposal.Layer{Key: "sha256:" + digest("k"), Digest: "sha256:" + digest("d"), Run: "20260101-000000-abc", Made: time.Unix(1, 0).UTC()})
	rec.Result = &result
	r.Totals = proposal.Total(r.Records)
	return r
}

// A command that a layer replaced is a success, and every form names the layer and its run.
func TestFromLayer(t *testing.T) {
	r := fromLayer()
	if _, err := Read(document(t, r), maxRead); err != nil {
		t.Fatal(err)
	}
	short, run := "sha256:"+digest("d")[:12], "20260101-000000-abc"
	for text, words := range map[string]string{Text(r): "from layer " + short + " of run " + run, Markdown(r): "from layer <code>" + short + "</code> of run <code>" + run + "</code>"} {
		if !strings.Contains(text, words) || !strings.Contains(text, "from a layer") {
			t.Errorf("lacks %q:\n%s", words, text)
		}
	}
}

// A report cannot say of a command that ran that a layer replaced it, or of a proposer's.
func TestReadRefusesLayer(t *testing.T) {
	for name, edit := range map[string]func(*proposal.Record){
		"a proposer's command": func(r *proposal.Record) { r.Proposal.Origin = "" },
		"a failure":            func(r *proposal.Record) { r.Result.ExitCode = 1 },
		"output":               func(r *proposal.Record) { r.Result.Stdout.Bytes = 1 },
		"time":                 func(r *proposal.Record) { r.Result.WallMS = 1 },
		"another run's":        func(r *proposal.Record) { r.Result.Layer.Kept = true },
		"no digest":            func(r *proposal.Record) { r.Result.Layer.Digest = "" },
		"no key":               func(r *proposal.Record) { r.Result.Layer.Key = "x" },
		"no run":               func(r *proposal.Record) { r.Result.Layer.Run = "a b" },
	} {
		r := fromLayer()
		edit(&r.Records[0])
		r.Totals = proposal.Total(r.Records)
		if _, err := Read(document(t, r), maxRead); err == nil {
			t.Errorf("%s: the report was read", name)
		}
	}
}
