// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"regexp"
	"strings"
	"unicode"
)

// maxMessage bounds, in bytes, what one rule says for people.
const maxMessage = 2000

// named is what a rule's id must be: it stands in comments, logs and workflow commands.
var named = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// legible is what a rule says, in one line without what steers a terminal or turns
// text around. It may repeat what a stranger proposed, so it is cut and not refused:
// else a proposal could stop a run by its length.
func legible(said string) string {
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
