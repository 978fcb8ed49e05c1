// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Finding is what Verify found, for people and as JSON.
type Finding struct {
	Summary
	Fault error // the *VerifyError, or nil
}

// Inspect is Verify.
func Inspect(r io.Reader, trust Trust) Finding {
	summary, err := Verify(r, trust)
	return Finding{summary, err}
}

// Complete is Summary.Complete; false with a fault.
func (f Finding) Complete() bool { return f.Fault == nil && f.Summary.Complete() }

// Sealed reports whether the log is whole and sealed, by whatever key.
func (f Finding) Sealed() bool { return f.Fault == nil && f.State == Sealed }

// Unread reports whether the log could not be read, so that nothing was found.
func (f Finding) Unread() bool {
	var fault *VerifyError
	return errors.As(f.Fault, &fault) && fault.Code == codeRead
}

// String is one sentence. A fault may quote the log.
func (f Finding) String() string {
	if f.Fault != nil {
		return f.Fault.Error()
	}
	return f.Summary.String()
}

// MarshalJSON writes the Summary, with the fault as "error" and where it is as "fault".
func (f Finding) MarshalJSON() ([]byte, error) {
	var at *VerifyError
	errors.As(f.Fault, &at)
	return json.Marshal(struct {
		Summary
		Error string       `json:"error,omitempty"`
		Fault *VerifyError `json:"fault,omitempty"`
	}{f.Summary, f.Message(), at})
}

// Message is the fault's message, or "".
func (f Finding) Message() string {
	if f.Fault == nil {
		return ""
	}
	return f.Fault.Error()
}

// OpenFile opens the log at path to read. Its error is a *proposal.StopError.
func OpenFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Unreadable(path, err)
	}
	return f, nil
}

// Unreadable returns the *proposal.StopError for a log that err kept from being read.
func Unreadable(path string, err error) error {
	return &proposal.StopError{Code: "audit.not-readable", Message: fmt.Sprintf("cannot read log %q", path),
		Hint: "name the audit.jsonl of a run; the report says where it is", Err: err}
}
