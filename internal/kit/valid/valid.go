// SPDX-License-Identifier: Apache-2.0

// Package valid has what some fields of plans and reports may contain. Those who write the
// fields cut to it, and the readers of documents refuse anything else.
package valid

import "regexp"

// The maximum number of alternatives of a Reason, and the maximum bytes of one.
const (
	MaxAlternatives = 3
	MaxAlternative  = 300
)

// MaxInvalid is the maximum number of Problems of an Invalid; further ones are left out.
const MaxInvalid = 20

// AttemptTail is the maximum size in bytes of an Attempt's stream.
const AttemptTail = 4 << 10

// MaxGoModules is the maximum number of modules in a Run.
const MaxGoModules = 100

// MaxNew is the maximum length of a Comparison's New.
const MaxNew = 50

// Severities are the severities of a Reason and of a ReviewFinding, the worst first.
var Severities = []string{"critical", "high", "medium", "low"}

var category = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// IsCategory reports whether s is a category of rules: one word of at most 32 lower-case
// letters, digits and hyphens that begins with a letter.
func IsCategory(s string) bool { return category.MatchString(s) }
