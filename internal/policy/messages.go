// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"unicode"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// maxMessage limits the bytes of one rule's message and suggestion.
const maxMessage = 2000

// named matches valid rule ids: they appear in comments, logs and workflow commands.
var named = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// sanitizeLine is a rule's text in one line, without terminal control characters and
// bidirectional overrides. It may quote an untrusted proposal, so it is cut and not
// refused: otherwise a proposal could stop a run by its length.
func sanitizeLine(said string) string {
	if len(said) > maxMessage {
		said = strings.ToValidUTF8(said[:maxMessage], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, said)
}
