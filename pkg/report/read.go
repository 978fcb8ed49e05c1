// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Read reads a fumehood.report/v1 document of at most max bytes that anybody may
// have written. Its errors are StopErrors with the code report.malformed.
func Read(data []byte, max int) (proposal.Report, error) {
	var r proposal.Report
	if len(data) > max {
		return r, malformed("", fmt.Sprintf("has %d bytes, more than %d", len(data), max))
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return proposal.Report{}, malformed("", err.Error())
	}
	return r, nil
}

func malformed(at, message string) error {
	if at != "" {
		message = at + " " + message
	}
	return &proposal.StopError{Code: "report.malformed", Message: "the report " + message, Hint: "a report is only read as fumehood writes it; run the job again"}
}
