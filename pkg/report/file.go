// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// WriteFiles writes r as JSON and as Markdown to the files at these paths, but not to "".
// Its error is a *proposal.StopError.
func WriteFiles(r proposal.Report, asJSON, asMarkdown string) error {
	data, err := JSON(r)
	if err != nil {
		return err
	}
	for path, content := range map[string][]byte{asJSON: data, asMarkdown: []byte(Markdown(r))} {
		if path == "" {
			continue
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return &proposal.StopError{Code: "report.not-writable", Message: "cannot write the report", Hint: "name a file in an existing directory", Err: err}
		}
	}
	return nil
}
