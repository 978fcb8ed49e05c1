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
	layer := proposal.Layer{Key: "sha256:" + digest("k"), Digest: "sha256:" + digest("d"), Run: "20260101-000000-abc", Made: time.Unix(1, 0).UTC()}
	result := proposal.Result{Status: proposal.Exited, Layer: &layer, Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}}}
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

// A private layer is named as such where it was made and where it is used, and a command in a new
// sandbox is not said to lack what set-up left.
func TestPrivateLayer(t *testing.T) {
	r := fromLayer()
	r.Records[0].Result.Layer.Private = true
	r.Records = append(r.Records, approvedRun().Records[0])
	r.Records[1].Proposal.ID, r.Records[1].Result.NewSandbox = "again", true
	r.Totals = proposal.Total(r.Records)
	for _, words := range []string{"from private layer <code>", "with what set-up left and without the files of other commands"} {
		if text := Markdown(r); !strings.Contains(text, words) {
			t.Errorf("lacks %q:\n%s", words, text)
		}
	}
	if text := Text(r); !strings.Contains(text, "from private layer sha256:") {
		t.Error(text)
	}
	r.Records[0].Result.Layer.Kept, r.Records[0].Result.Layer.Run = true, r.Run.ID
	if text := Markdown(r); !strings.Contains(text, "what set-up left is the private layer <code>") {
		t.Error(text)
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
