// SPDX-License-Identifier: Apache-2.0

package action

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/text"
)

const (
	maxUntrusted    = 1 << 20 // units of one text that are printed
	untrustedPrefix = "| "
)

// Untrusted prints what a stranger wrote: a command's output, a comment, a message
// of another program. Three things each suffice to keep the runner from taking any of
// it for a command: each line has a prefix, so that none begins with "::"; what the
// older grammar finds anywhere in a line, "##[", is broken, as is everything that the
// runner skips over; and it all stands between ::stop-commands:: and a word that
// nobody could know before, which the runner also masks.
//
// A lone carriage return, escape sequences and everything invisible are shown by
// name; colours are left out. More than 1,048,576 units are cut in the middle.
func (c *Console) Untrusted(s string) {
	if s == "" {
		return
	}
	block := text.Excerpt([]byte(s), nil, int64(len(s)), maxUntrusted)
	c.mu.Lock()
	defer c.mu.Unlock()
	token := c.token(block.Text)
	var b strings.Builder
	b.WriteString("::stop-commands::" + token + "\n")
	for line := range strings.Lines(block.Text) {
		b.WriteString(untrustedPrefix + strings.TrimSuffix(line, "\n") + "\n")
	}
	b.WriteString("::" + token + "::\n")
	c.write(b.String())
}

// token returns a word that ends a stop of commands. The runner compares it in any
// case of letters.
func (c *Console) token(around string) string {
	around = strings.ToLower(around)
	for range 10 {
		token := "fumehood-" + c.random()
		if len(token) >= len("fumehood-")+16 && plainName.MatchString(token) && !strings.Contains(around, strings.ToLower(token)) {
			return token
		}
	}
	panic("action: internal error: the source of randomness repeats itself")
}
