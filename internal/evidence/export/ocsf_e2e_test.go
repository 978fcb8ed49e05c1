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

// An ocsfEvent has what OCSF 1.5 requires of an event, and what queries use.
type ocsfEvent struct {
	Class       int    `json:"class_uid"`
	Category    int    `json:"category_uid"`
	Activity    int    `json:"activity_id"`
	Type        int    `json:"type_uid"`
	Time        int64  `json:"time"`
	Severity    int    `json:"severity_id"`
	Action      int    `json:"action_id"`
	Disposition int    `json:"disposition_id"`
	Message     string `json:"message"`
	Metadata    struct {
		Version  string `json:"version"`
		UID      string `json:"uid"`
		Sequence int64  `json:"sequence"`
		Product  struct {
			Name string `json:"name"`
		} `json:"product"`
	} `json:"metadata"`
	Info *struct {
		UID      string `json:"uid"`
		Title    string `json:"title"`
		Analytic struct {
			Name string `json:"name"`
		} `json:"analytic"`
	} `json:"finding_info"` // of a Detection Finding
	Process *struct {
		PID     int    `json:"pid"`
		Path    string `json:"path"`
		Command string `json:"cmd_line"`
		File    struct {
			Name string `json:"name"`
			Type int    `json:"type_id"`
		} `json:"file"`
	} `json:"process"` // of a Process Activity, with the next two
	Actor struct {
		App string `json:"app_name"`
	} `json:"actor"`
	Device struct {
		Type int `json:"type_id"`
	} `json:"device"`
	Destination *struct {
		Hostname string `json:"hostname"`
		IP       string `json:"ip"`
	} `json:"dst_endpoint"` // of a Network Activity
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
	severities := map[string]int{Informational: 1, Low: 2, Medium: 3, High: 4, Critical: 5}
	classes, findings := map[int]int{}, map[string]bool{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for i, d := range list {
		if d.Path == "fumehood/command" {
			continue // it is a part of its proposal's finding
		}
		var e ocsfEvent
		if err := decoder.Decode(&e); err != nil {
			t.Fatal(err)
		}
		blocked := d.Result.Effect == Deny || d.Result.Effect == Ask && !d.Result.Approved
		want := [2]int{2, 2004}
		switch {
		case d.Path == "fumehood/exec" && !blocked:
			want = [2]int{1, 1007}
		case d.Path == "fumehood/egress" && !blocked:
			want = [2]int{4, 4001}
		}
		if [2]int{e.Category, e.Class} != want || e.Type != 100*e.Class+e.Activity || e.Activity == 0 || e.Message == "" {
			t.Errorf("line %d: %+v is of another class than %s", i, e, d.Path)
		}
		if m := e.Metadata; m.Version != "1.5.0" || m.Product.Name != "fumehood" || m.UID != d.DecisionID || m.Sequence != int64(i+1) {
			t.Errorf("line %d: %+v", i, m)
		}
		if e.Time != d.Timestamp.UnixMilli() || e.Severity != severities[d.Custom.Severity] || (e.Action == 2) != blocked || (e.Disposition == 2) != blocked {
			t.Errorf("line %d: %+v is not %+v", i, e, d)
		}
		switch e.Class {
		case 2004:
			if e.Info == nil || e.Info.UID == "" || e.Info.Title == "" {
				t.Fatalf("line %d: %+v", i, e)
			}
			findings[e.Info.UID] = true
			if blocked && len(d.Result.Rules) > 0 && e.Info.Analytic.Name != d.Result.Rules[0] {
				t.Errorf("line %d: %+v is not of %s", i, e.Info, d.Result.Rules[0])
			}
		case 1007:
			if p := e.Process; p == nil || p.PID == 0 || p.Path == "" || p.Command == "" || p.File.Name == "" || p.File.Type != 1 || e.Actor.App == "" || e.Device.Type != 99 {
				t.Errorf("line %d: %+v", i, e)
			}
		case 4001:
			if n := e.Destination; n == nil || n.Hostname == "" && n.IP == "" {
				t.Errorf("line %d: %+v", i, e)
			}
		}
		classes[e.Class]++
	}
	if decoder.More() || classes[1007] == 0 || classes[2004] < 3 || len(findings) < 3 {
		t.Errorf("%v, %d findings; more output: %t", classes, len(findings), decoder.More())
	}
}
