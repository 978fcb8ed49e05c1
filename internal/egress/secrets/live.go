// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"io"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// A Live replaces secrets in a text while the text is still being written. Each line is
// passed on when it is complete, and an incomplete one when it ends in a blank, as the
// prompts of programs do.
//
// It finds what Copy finds, with two exceptions. Of text that looks like a secret and
// contains a blank or a line end, a part may have been passed on before the rest was
// written; private keys of up to 8 KiB are held back until they are complete. Of a value to
// mask, the first letter may have been passed on if a line ends after it.
type Live struct{ pipe }

// context is how much of the text that was passed on is searched again with the text after
// it: a pattern may begin with the name of the secret, on an earlier line.
const context = 1 << 10

// searchCost is what one search counts at least, in bytes: see pace.
const searchCost = 4 << 10

// Live returns a Live that writes to to.
func (r *Redactor) Live(to io.Writer) *Live {
	p := r.newPipe(to, true, nil)
	p.mask.least, p.search.live = 1, true
	return &Live{p}
}

// Write searches p and passes on what is known to be clean.
func (l *Live) Write(p []byte) (int, error) { return l.mask.Write(p) }

// Close passes on the rest.
func (l *Live) Close() error { return l.close() }

// FindCount returns how many secrets were replaced, and Tally which.
func (l *Live) FindCount() (n int) {
	for _, count := range l.count.found {
		n += count
	}
	return n
}

// Tally returns what was replaced until now.
func (l *Live) Tally() Tally { return l.count.tally() }

// HeldBytes returns how many bytes were written to l and are not passed on yet.
func (l *Live) HeldBytes() int { return len(l.mask.held) + len(l.search.held) - l.search.done }

// keyBegins is the beginning of the one kind of find that has lines.
var keyBegins = pattern.New(`(?i)-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY`)

// writeCompleteLines writes the complete lines of the held text, except for an incomplete private key.
func (s *searcher) writeCompleteLines() error {
	end := bytes.LastIndexByte(s.held, '\n') + 1
	if line := s.held[end:]; len(line) > 0 && bytes.IndexByte([]byte(" \t\r"), line[len(line)-1]) >= 0 &&
		!bytes.Contains(line, []byte("-----")) {
		end = len(s.held)
	}
	if end <= s.done {
		return nil
	}
	if all := keyBegins.FindAllIndex(s.held[s.done:end], -1); len(all) > 0 {
		begin := s.done + all[len(all)-1][0]
		if rest := s.held[begin+len("-----BEGIN"):]; !keyEnds.Match(rest) && len(rest) < overlap {
			end = begin
		}
	}
	if end <= s.done {
		return nil
	}
	s.size += searchCost
	return s.writeBefore(end)
}

// keyEnds is the end of a private key, after its first line's "-----BEGIN".
var keyEnds = pattern.New(`(?i)PRIVATE KEY(?: BLOCK)?-----[\s\S]{64,}?KEY(?: BLOCK)?-----`)
