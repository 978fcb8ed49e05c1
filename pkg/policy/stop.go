// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"

	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// The stable codes of this package's StopErrors.
const (
	codeMissing    = "policy.missing"
	codeCompile    = "policy.compile"
	codeBuiltin    = "policy.builtin"
	codeEval       = "policy.eval"
	codeDeadline   = "policy.deadline"
	codeNoDecision = "policy.no-decision"
	codeUnknownKey = "policy.unknown-key"
	codeSymlink    = "policy.symlink"
	codeTooLarge   = "policy.too-large"
	codeData       = "policy.data"
)

const hintDeadline = "find the rule that loops over a large product or range and bound it"

func stop(code, message, hint string, err error) *proposal.StopError {
	return &proposal.StopError{Code: code, Message: message, Hint: hint, Err: err}
}

// evalStop says why an evaluation gave no result.
func evalStop(ctx context.Context, layer, point string, err error) error {
	where := "layer " + layer + ", package " + point
	if ctx.Err() != nil || topdown.IsCancel(err) || errors.Is(err, context.DeadlineExceeded) {
		return stop(codeDeadline, "the evaluation was broken off in "+where, hintDeadline, nil)
	}
	return stop(codeEval, "the evaluation stopped in "+where, "mend the rule at the place named", err)
}
