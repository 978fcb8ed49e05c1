// SPDX-License-Identifier: Apache-2.0

package proposal

import ()

// A Redaction counts the finds of one rule that were replaced by a marker, or withheld
// with their text.
type Redaction struct {
	// Rule is a detector's, "github-pat", or "mask:NAME" for the value of the mask NAME.
	Rule  string `json:"rule"`
	Count int    `json:"count"` // how often it was found
}
