// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package export

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/fumehood/fumehood/internal/evidence/export/exporttest"
)

// finding has the fields that OCSF requires of a Detection Finding, and those that queries use.
type finding struct {
	Class       int    `json:"class_uid"`
	Category    int    `json:"category_uid"`
	Activity    int    `json:"activity_id"`
	Type        int    `json:"type_uid"`
	Time        int64  `json:"time"`
	Severity    int    `json:"severity_id"`
	Action      int    `json:"action_id"`
	Disposition int    `json:"disposition_id"`
	Message     string `json:"message"`
	Info        struct {
		UID      string `json:"uid"`
		Title    string `json:"title"`
		Analytic struct {
			Name string `json:"name"`
		} `json:"analytic"`
	} `json:"finding_info"`
	Metadata struct {
		Version  string `json:"version"`
		Sequence int64  `json:"sequence"`
		Product  struct {
			Name string `json:"name"`
		} `json:"product"`
	} `json:"metadata"`
}

// TestE2EOCSF maps every line of a run with docs/ocsf.jq.
func TestE2EOCSF(t *testing.T) {
	log, _ := exporttest.WriteLog(t, exporttest.Run{})
	list, _ := decisionsOf(t, log, Options{All: true})
	cmd := exec.Command("jq", "-c", "-f", "../../../docs/ocsf.jq")
	cmd.Stdin = bytes.NewReader(lines(t, list))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	severities, denied := map[string]int{Informational: 1, Low: 2, Medium: 3, High: 4, Critical: 5}, 0
	decoder := json.NewDecoder(bytes.NewReader(out))
	for i, d := range list {
		var f finding
		if err := decoder.Decode(&f); err != nil {
			t.Fatal(err)
		}
		if f.Class != 2004 || f.Category != 2 || f.Type != 100*f.Class+f.Activity || f.Metadata.Version != "1.5.0" || f.Metadata.Product.Name != "fumehood" || f.Message == "" || f.Info.Title == "" {
			t.Errorf("line %d: %+v", i, f)
		}
		if f.Info.UID != d.DecisionID || f.Metadata.Sequence != int64(i+1) || f.Time/1000 != d.Timestamp.Unix() || f.Severity != severities[d.Custom.Severity] {
			t.Errorf("line %d: %+v is not %+v", i, f, d)
		}
		if blocked := f.Action == 2; blocked != (d.Result.Effect == Deny || d.Result.Effect == Ask && !d.Result.Approved) {
			t.Errorf("line %d: action %d for %s", i, f.Action, d.Result.Effect)
		}
		if f.Action == 2 && d.Result.Effect == Deny && f.Info.Analytic.Name == d.Result.Rules[0] {
			denied++
		}
	}
	if decoder.More() || denied < 2 {
		t.Errorf("%d denials; more output: %t", denied, decoder.More())
	}
}
