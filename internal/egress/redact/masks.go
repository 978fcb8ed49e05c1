// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/egress/secrets"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var variableName = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// MaskOf returns the mask for the value of a variable. One that is not set is refused: a
// misspelt name must not look as if its value were masked.
func MaskOf(name string, getenv func(string) string) (Mask, error) {
	if !variableName.MatchString(name) {
		return Mask{}, maskError("invalid --mask: give the name of a variable, never its value")
	}
	value := getenv(name)
	if strings.TrimSpace(value) == "" {
		return Mask{}, maskError(fmt.Sprintf("--mask names the variable %s, which is not set, or empty", name))
	}
	return Mask{Name: name, Value: value}, nil
}

func maskError(message string) error {
	return &proposal.StopError{Code: "output.mask", Message: message,
		Hint: "for example --mask NPM_TOKEN with NPM_TOKEN in the environment; sudo drops variables without --preserve-env"}
}

// MasksOnly returns a function that redacts the masked values of a text in all forms that a Redactor
// finds, and nothing else. A text that cannot be searched in time is returned without what
// remained. Its error is that of New.
func MasksOnly(masks []Mask) (func(string) string, error) {
	u, err := New(Options{Masks: masks})
	if err != nil {
		return nil, err
	}
	keep := func(rule string) bool {
		return !strings.HasPrefix(rule, redaction.MaskPrefix) && rule != secrets.Unscanned
	}
	return func(s string) string {
		var b strings.Builder
		if _, err := u.redactor.Copy(&b, strings.NewReader(s), keep); err != nil {
			return ""
		}
		return b.String()
	}, nil
}
