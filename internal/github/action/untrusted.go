// SPDX-License-Identifier: Apache-2.0

package action

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
)

const (
	maxUntrusted    = 1 << 20 // units of one text that are printed
	untrustedPrefix = "| "
)

// PrintUntrusted prints untrusted text: a command's output, a comment, a message of
// another program. Each of three measures alone keeps the runner from reading a
// command in it. Each line has a prefix, so that none begins with "::". The start
// of a command in the older grammar, "##[" anywhere in a line, is broken up, as is
// everything that the runner skips. And all of it is between ::stop-commands:: and
// an unpredictable word, which the runner also masks.
//
// A lone carriage return, escape sequences and everything invisible are shown by name;
// colors are left out. A text of more than 1,048,576 units is cut in the middle.
func (c *Console) PrintUntrusted(s string) {
	if s == "" {
		return
	}
	block := text.Excerpt([]byte(s), nil, int64(len(s)), maxUntrusted)
	c.mu.Lock()
	defer c.mu.Unlock()
	token := c.newStopToken(block.Text)
	var b strings.Builder
	b.WriteString("::stop-commands::" + token + "\n")
	for line := range strings.Lines(block.Text) {
		b.WriteString(untrustedPrefix + strings.TrimSuffix(line, "\n") + "\n")
	}
	b.WriteString("::" + token + "::\n")
	c.write(b.String())
}

// newStopToken returns the word that ends stop-commands. The runner compares it ignoring case.
func (c *Console) newStopToken(around string) string {
	around = strings.ToLower(around)
	for range 10 {
		token := "fumehood-" + c.random()
		if len(token) >= len("fumehood-")+16 && plainName.MatchString(token) &&
			!strings.Contains(around, strings.ToLower(token)) {
			return token
		}
	}
	panic("action: internal error: the source of randomness repeats itself")
}
