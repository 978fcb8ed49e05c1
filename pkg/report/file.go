// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"os"

	"github.com/fumehood/fumehood/pkg/config"
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

// Write writes r to the files. Its error is a *proposal.StopError.
func (f Files) Write(r proposal.Report, o Forms) error {
	o.Web.Report = r
	for _, form := range []struct {
		path  string
		write func(*bytes.Buffer) error
	}{
		{f.JSON, func(b *bytes.Buffer) error { data, err := JSON(r); b.Write(data); return err }},
		{f.Markdown, func(b *bytes.Buffer) error { b.WriteString(Comment(r, o.Comment)); return nil }},
		{f.HTML, func(b *bytes.Buffer) error { return o.Web.Write(b) }},
		{f.SARIF, func(b *bytes.Buffer) error { return SARIF(b, r, o.Sources) }},
		{f.JUnit, func(b *bytes.Buffer) error { return JUnit(b, r) }},
	} {
		if form.path == "" {
			continue
		}
		var b bytes.Buffer
		err := form.write(&b)
		if err == nil {
			err = os.WriteFile(form.path, b.Bytes(), 0o644)
		}
		if err != nil {
			return &proposal.StopError{Code: "report.not-writable", Message: "cannot write the report", Hint: "name a file in an existing directory", Err: err}
		}
	}
	return nil
}
