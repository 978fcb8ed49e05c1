// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/internal/evidence/export/otlp"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The forms of an Export.
const (
	Decisions = "decisions" // a line each, as OPA's decision log
	OTLP      = "otlp"      // to an OpenTelemetry collector
)

// ExportForms are all forms of an Export.
func ExportForms() []string { return []string{Decisions, OTLP} }

// An Export writes a run in another form.
type Export struct {
	Form     string         // of Forms
	Trust    audit.Trust    // of the log, as for audit.Verify
	Options  export.Options // of decisions and OTLP
	Path     string         // the file to make or replace; Out if empty
	Out      io.Writer
	Exporter *otlp.Exporter        // of OTLP
	Warn     func(words ...string) // gets what the export lacks; required
}

// ExportFile exports the log, or the report, at path. whole is false if a log was cut off: what it has is
// exported. An altered log is not exported. The error is a *proposal.StopError, such as
// export.CodeUnverified.
func (x Export) ExportFile(ctx context.Context, path string) (whole bool, err error) {
	if !slices.Contains(ExportForms(), x.Form) {
		return false, &proposal.StopError{Code: "export.form", Message: fmt.Sprintf("there is no form %q", x.Form),
			Hint: "use one of " + strings.Join(ExportForms(), ", ")}
	}
	file, err := audit.OpenFile(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	if x.Form == OTLP {
		return x.sendFile(ctx, file)
	}
	out, err := x.createWriter()
	if err != nil {
		return false, err
	}
	if _, whole, err = x.readDecisions(file, out.Write); err != nil {
		out.Abandon()
		return false, err
	}
	return whole, out.Close()
}

func (x Export) createWriter() (*export.Writer, error) {
	if x.Path == "" {
		return export.NewWriter(x.Out), nil
	}
	return export.Create(x.Path)
}

func (x Export) sendFile(ctx context.Context, file *os.File) (bool, error) {
	var b otlp.Batch
	story, whole, err := x.readDecisions(file, b.Take)
	if err != nil {
		return false, err
	}
	ctx, cancel := otlp.NewSendContext(ctx)
	defer cancel()
	return whole, x.Exporter.Send(ctx, story, &b)
}

// readDecisions calls each with every decision of file.
func (x Export) readDecisions(file *os.File, each func(export.Decision) error) (export.Story, bool, error) {
	if report.Is(file) {
		r, err := report.ReadFrom(file)
		if err != nil {
			return export.Story{}, false, err
		}
		x.Warn("a report contains only proposals, commands and findings; export the audit log for programs and connections")
		story, err := export.Report(r, x.Options, each)
		return story, true, err
	}
	story, summary, err := export.Log(file, x.Trust, x.Options, each)
	if err == nil && !summary.Complete() {
		x.Warn("the log is " + summary.String())
	}
	return story, summary.State == audit.Sealed, export.UnverifiedError(file.Name(), err)
}
