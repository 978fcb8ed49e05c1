// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// The report that may be the only place of a log's key is not replaced by that of a run which did
// not start because the log was there.
func TestWriteStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	stopped := func(code string) proposal.Report {
		return proposal.Report{Schema: proposal.ReportSchema, Records: []proposal.Record{}, Error: &proposal.Failure{Code: code, Message: code}}
	}
	for _, c := range []struct{ code, want string }{{"audit.exists", "audit.exists"}, {"gate.start", "gate.start"}, {"audit.exists", "gate.start"}} {
		if err := (Files{JSON: path}).WriteStopped(stopped(c.code)); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), c.want) {
			t.Errorf("after %s: %s, %v", c.code, data, err)
		}
	}
	if err := (Files{}).WriteStopped(stopped("gate.start")); err != nil {
		t.Errorf("without a file: %v", err)
	}
}
