// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"os"

	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Files are the files to write a report to. "" means that a form is not written.
type Files struct {
	JSON     string
	Markdown string // as the pull request's comment
	HTML     string // see Web
	SARIF    string // see SARIF
	JUnit    string // see JUnit
}

// Forms are what the forms of a report besides JSON need.
type Forms struct {
	Comment config.Comment // for Markdown
	Sources []string       // for SARIF: see SARIF
	Web     Web            // for HTML; its Report is not used
}

// WriteStopped writes r, of a run that stopped before it had a log, as JSON. Where the log of another
// run was in the way (audit.exists), a file stays: it may be that run's report, the only place of
// its log's key.
func (f Files) WriteStopped(r proposal.Report) error {
	if _, err := os.Lstat(f.JSON); err == nil && r.Error != nil && r.Error.Code == "audit.exists" {
		return nil
	}
	return Files{JSON: f.JSON}.Write(r, Forms{})
}

// Encode returns r in a form: "json", "markdown", "html", "sarif" or "junit".
func (o Forms) Encode(form string, r proposal.Report) ([]byte, error) {
	o.Web.Report = r
	var b bytes.Buffer
	var err error
	switch form {
	case "json":
		return JSON(r)
	case "markdown":
		b.WriteString(Comment(r, o.Comment))
	case "html":
		err = o.Web.Write(&b)
	case "sarif":
		err = SARIF(&b, r, o.Sources)
	case "junit":
		err = JUnit(&b, r)
	default:
		err = fmt.Errorf("no form %q", form)
	}
	return b.Bytes(), err
}

// Write writes r to the files. Its error is a *proposal.StopError.
func (f Files) Write(r proposal.Report, o Forms) error {
	for _, file := range [][2]string{{"json", f.JSON}, {"markdown", f.Markdown}, {"html", f.HTML}, {"sarif", f.SARIF},
		{"junit", f.JUnit}} {
		if file[1] == "" {
			continue
		}
		data, err := o.Encode(file[0], r)
		if err == nil {
			err = os.WriteFile(file[1], data, 0o644)
		}
		if err != nil {
			return &proposal.StopError{Code: "report.not-writable", Message: "cannot write the report",
				Hint: "name a file in an existing directory", Err: err}
		}
	}
	return nil
}
