// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	// MaxBody is how many bytes of a body are searched, from its beginning.
	MaxBody = 64 << 10
	// maxHead is how many bytes of a URL or of all header fields are searched; more is
	// Unscanned.
	maxHead = 128 << 10
)

// Scan searches a request's URL, header fields and the first MaxBody bytes of body. It
// reports each rule once for each place, in order.
func (s *Scanner) Scan(url string, header http.Header, body []byte) []proposal.EgressSecret {
	limit, end := s.acquireSlot(patience)
	defer end()
	var list []proposal.EgressSecret
	add := func(where string, spans []secretFind) {
		for _, f := range spans {
			list = append(list, proposal.EgressSecret{Rule: f.rule, Where: where})
		}
	}
	add("url", s.findSpans(url, "url", limit))
	text, _ := headerText(header)
	add("header", s.findSpans(text, "header", limit))
	add("body", s.findSpans(string(body[:min(len(body), MaxBody)]), "body", limit))
	slices.SortFunc(list, func(a, b proposal.EgressSecret) int {
		return strings.Compare(a.Where+" "+a.Rule, b.Where+" "+b.Rule)
	})
	return slices.Compact(list)
}

// Redact returns a request whose secrets are replaced by asterisks of the same length,
// so that a Content-Length stays correct. If a secret is encoded, the whole encoded form
// is replaced. The arguments are not changed. Scan finds nothing in the result: if a
// replacement leaves something, the whole part is replaced.
func (s *Scanner) Redact(url string, header http.Header, body []byte) (string, http.Header, []byte) {
	limit, end := s.acquireSlot(patience)
	defer end()
	url = s.maskText(url, "url", limit)
	first := min(len(body), MaxBody)
	body = append([]byte(s.maskText(string(body[:first]), "body", limit)), body[first:]...)
	return url, s.maskHeader(header, limit), body
}

// findSpans finds the secrets of one part in every view of it, as offsets in the part.
func (s *Scanner) findSpans(text, where string, limit timeBudget) []secretFind {
	var list []secretFind
	if len(text) > maxHead {
		list = append(list, secretFind{rule: Unscanned, end: len(text)})
		text = text[:maxHead]
	}
	for _, v := range searchedViews(text, where) {
		for _, f := range s.findSecrets(v.text, maxFound, limit) {
			f.start, f.end = v.originalRange(f.start, f.end)
			list = append(list, f)
		}
	}
	return list
}

// generic is the rule for anything that is called a key or token. In the output of build
// tools it takes checksums for secrets, which ordinary recognizes by the text before them.
const (
	generic = "generic-api-key"
	before  = 48
)

var ordinary = pattern.New(`(?i)(\bh1:|\bsha-?(1|256|384|512)[:=-]|\b(hash|sum|digest|checksum|integrity|fingerprint|etag|cache[ _-]?key)\b)[^\n]{0,24}$`)

// textSpans finds the secrets of a text that is not a request.
func (s *Scanner) textSpans(text string, maximum int, patience time.Duration) []secretFind {
	limit, end := s.acquireSlot(patience)
	defer end()
	var list []secretFind
	readable := readableView(text)
	for _, seen := range displayedViews(readable.text) {
		for _, v := range searchedViews(seen.text, "text") {
			for _, f := range s.findSecrets(v.text, maximum, limit) {
				if f.rule == generic && ordinary.MatchString(v.text[max(0, f.start-before):f.start]) {
					continue
				}
				f.start, f.end = readable.originalRange(seen.originalRange(v.originalRange(f.start, f.end)))
				list = append(list, f)
			}
		}
	}
	return list
}

func (s *Scanner) maskText(text, where string, limit timeBudget) string {
	for range 3 {
		spans := s.findSpans(text, where, limit)
		if len(spans) == 0 {
			return text
		}
		b := []byte(text)
		for _, f := range spans {
			fillAsterisks(b[f.start:f.end])
		}
		text = string(b)
	}
	if len(s.findSpans(text, where, limit)) == 0 {
		return text
	}
	return strings.Repeat("*", len(text))
}

func fillAsterisks(b []byte) {
	for i := range b {
		b[i] = '*'
	}
}

// headerText formats header fields one per line, and returns where each value begins.
func headerText(header http.Header) (string, []int) {
	var b strings.Builder
	var starts []int
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			b.WriteString(name + ": ")
			starts = append(starts, b.Len())
			b.WriteString(value + "\n")
		}
	}
	return b.String(), starts
}

// maskHeader masks values, never names: a field whose name is a secret is removed.
func (s *Scanner) maskHeader(header http.Header, limit timeBudget) http.Header {
	text, starts := headerText(header)
	masked := s.maskText(text, "header", limit)
	out := http.Header{}
	i := 0
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			at := starts[i]
			i++
			if masked[at-len(name)-2:at-2] == name {
				out[name] = append(out[name], masked[at:at+len(value)])
			}
		}
	}
	return out
}
