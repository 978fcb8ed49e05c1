// SPDX-License-Identifier: Apache-2.0

package export

import (
	"testing"

	"github.com/fumehood/fumehood/internal/evidence/export/exporttest"
)

// TestGapsShow: the last line's sequence is the number of lines, also of a run without any
// decision, of one that was cut off and of a report.
func TestGapsShow(t *testing.T) {
	for name, r := range map[string]exporttest.Run{"whole": {}, "cut": {Cut: true}} {
		log, a := exporttest.WriteLog(t, r)
		list, story := decisionsOf(t, log, Options{})
		last := list[len(list)-1]
		if last.Path != PathRun || last.Custom.Sequence != int64(len(list)) || last.Metrics["log_entries"] != a.Entries || last.Custom.Checkpoint != a.Checkpoint {
			t.Errorf("%s: the last of %d lines: %+v", name, len(list), last)
		}
		for i, d := range list {
			if d.Custom.Sequence != int64(i+1) || d.Custom.Key != a.Key || d.Custom.Severity == "" {
				t.Errorf("%s: line %d: %+v", name, i, d.Custom)
			}
		}
		if story.Totals != nil && last.Metrics["denied"] != 1 {
			t.Errorf("%s: %v", name, last.Metrics)
		}
	}
}
