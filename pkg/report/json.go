// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// JSON returns r as a fumehood.report/v1 document, indented, ending in a newline.
//
// An empty Schema is set to the current one; any other value is an error. Hidden
// characters are written as \u escapes and no line is a workflow command, so the
// document is safe to print. It decodes to exactly the same report, except that
// bytes in text that are not UTF-8 become U+FFFD.
func JSON(r proposal.Report) ([]byte, error) {
	if r.Schema == "" {
		r.Schema = proposal.ReportSchema
	}
	if r.Schema != proposal.ReportSchema {
		return nil, fmt.Errorf("invalid report schema %q: want %q", r.Schema, proposal.ReportSchema)
	}
	if r.Records == nil {
		r.Records = []proposal.Record{}
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot write report: %w", err)
	}
	return append(text.EscapeJSON(data), '\n'), nil
}
