// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"errors"
	"fmt"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Check finds invalid flags before anything runs, and reads the values to redact.
func (s *Flags) Check(c *cli.Invocation) error {
	return errors.Join(s.export.checkFlags(c.Version), s.readMasks())
}

// NamesFiles reports whether a flag names a file or a directory of one run.
func (s *Flags) NamesFiles() bool {
	return s.Artifacts+s.AuditFile+s.Report+s.markdown+s.export.decisions != ""
}

// InvalidSetup reports whether --setup is an unknown mode.
func (s *Flags) InvalidSetup() bool { return InvalidSetup(s.Setup) }

// ReportSession writes the files that flags name, and prints where the log is.
func (s *Flags) ReportSession(c *cli.Invocation, r proposal.Report, err error) {
	if r.Audit != nil {
		err = errors.Join(err, report.Files{JSON: s.Report, Markdown: s.markdown}.Write(r,
			report.Forms{Comment: s.shown}), s.export.exportTo(c, r.Audit.File, r.Audit))
		t := r.Totals
		c.PrintNotes(fmt.Sprintf("session ended: %d proposed, %d denied, %d need approval, %d succeeded, %d failed%s; log %s, key %s",
			t.Proposed, t.Denied, t.Asked, t.Succeeded, t.Failed, t.Others(), r.Audit.File, r.Audit.Key))
	}
	if err != nil {
		c.WarnOf(err)
	}
}
