// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Read reads a fumehood.report/v1 document of at most max bytes that is
// untrusted.
//
// It accepts only what JSON writes: every field exactly once under its exact name,
// every text, list and number within bounds, every digest and commit in its
// grammar, and every count equal to what it counts. It refuses a record whose
// decision and result contradict each other. Errors are StopErrors with the code
// report.malformed that give the location.
//
// It does not protect against a well-formed report with false content.
func Read(data []byte, max int) (proposal.Report, error) {
	var r proposal.Report
	if len(data) > max {
		return r, malformedError("", fmt.Sprintf("has %s, more than %s", text.Size(int64(len(data))),
			text.FormatCount(int64(max))))
	}
	if err := checkShape(data); err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return proposal.Report{}, malformedError("", text.Inline(err.Error(), 200))
	}
	if f := checkFacts(r); f != nil {
		return proposal.Report{}, malformedError(locatePath(data, f.path), f.message)
	}
	return r, nil
}

// MaxDocument is the maximum size of a report, in bytes.
const MaxDocument = 64 << 20

// Is reports whether file begins like a report: an object that names the schema first. It
// does not move file's position.
func Is(file io.ReaderAt) bool {
	head := make([]byte, 256)
	n, _ := file.ReadAt(head, 0)
	head = bytes.TrimLeft(head[:n], " \t\r\n")
	rest, object := bytes.CutPrefix(head, []byte("{"))
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return object && bytes.HasPrefix(rest, []byte(`"schema"`)) && bytes.Contains(rest, []byte("fumehood.report/"))
}

// ReadFrom is Read of a whole file of at most MaxDocument bytes.
func ReadFrom(file io.Reader) (proposal.Report, error) {
	data, err := io.ReadAll(bufio.NewReader(io.LimitReader(file, MaxDocument+1)))
	if err != nil {
		return proposal.Report{}, &proposal.StopError{Code: "report.not-readable", Message: "cannot read the report",
			Err: err}
	}
	return Read(data, MaxDocument)
}

// malformedError returns the error for an invalid document, with the location.
func malformedError(at, message string) error {
	if at == "" {
		at = "the report"
	}
	return &proposal.StopError{
		Code: "report.malformed", Message: at + " " + message,
		Hint: "run the job again: a report must have been written by the same version of fumehood",
	}
}

// Open is ReadFrom of the file called name.
func Open(name string) (proposal.Report, error) {
	file, err := os.Open(name)
	if err != nil {
		return proposal.Report{}, &proposal.StopError{Code: "report.not-readable", Message: "cannot read the report",
			Hint: "give the report.json of a run", Err: err}
	}
	defer file.Close()
	return ReadFrom(file)
}
