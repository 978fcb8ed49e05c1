// SPDX-License-Identifier: Apache-2.0

package module

import "github.com/fumehood/fumehood/pkg/proposal"

// The stable codes of this package's StopErrors.
const (
	CodeMissing    = "policy.missing"
	CodeCompile    = "policy.compile"
	CodeBuiltin    = "policy.builtin"
	CodeEval       = "policy.eval"
	CodeDeadline   = "policy.deadline"
	CodeNoDecision = "policy.no-decision"
	CodeUnknownKey = "policy.unknown-key"
	CodeSymlink    = "policy.symlink"
	CodeTooLarge   = "policy.too-large"
	CodeData       = "policy.data"
	CodeContext    = "policy.context"
	CodeMode       = "policy.mode"
	CodeOverride   = "policy.override"
)

// Stop makes the error of a run that must not continue.
func Stop(code, message, hint string, err error) *proposal.StopError {
	return &proposal.StopError{Code: code, Message: message, Hint: hint, Err: err}
}
