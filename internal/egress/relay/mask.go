// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maskBuffer is how much of a body is searched at once.
const maskBuffer = 32 << 10

// removeEchoedSecrets makes a server's answer to a request with credentials safe to pass on: a server that
// repeats what it was sent, as many debugging pages do, must not give them to the program. Only
// bodies without an encoding are searched, so authorize has asked for such.
func (x *exchange) removeEchoedSecrets(res *http.Response) error {
	if res.StatusCode == http.StatusSwitchingProtocols {
		return x.prepareUpgrade(res)
	}
	if !encodedBody(res.Header) {
		res.Body = x.maskedBody(res.Body)
	}
	return nil
}

// maskedBody returns body without what was put on the request.
func (x *exchange) maskedBody(body io.ReadCloser) io.ReadCloser {
	var patterns [][]byte
	for _, p := range x.put {
		patterns = append(patterns, valueSpellings(p.value)...)
	}
	if len(patterns) == 0 {
		return body
	}
	return &maskingReader{ReadCloser: body, patterns: patterns}
}

// encodedBody reports whether a body is compressed, or otherwise not as it is.
func encodedBody(h http.Header) bool {
	return slices.ContainsFunc(h.Values("Content-Encoding"), func(v string) bool {
		return !strings.EqualFold(strings.TrimSpace(v), "identity") && v != ""
	})
}

// valueSpellings are the ways to write a value that programs use, and two that a person would. A
// short value occurs by chance, so it has none.
func valueSpellings(value string) [][]byte {
	if len(value) < minForm {
		return nil
	}
	quoted, _ := json.Marshal(value) // of a string there is no error
	backwards := []byte(value)
	slices.Reverse(backwards)
	spelled := strings.TrimSuffix(strings.ReplaceAll(value, "", " ")[1:], " ")
	digits := hex.EncodeToString([]byte(value))
	all := [][]byte{[]byte(value), bytes.Trim(quoted, `"`), backwards, []byte(spelled), []byte(digits),
		[]byte(strings.ToUpper(digits)),
		[]byte(strings.ReplaceAll(value, "/", `\/`)), []byte(url.QueryEscape(value)), []byte(url.PathEscape(value)),
		[]byte(base64.StdEncoding.EncodeToString([]byte(value)))}
	slices.SortFunc(all, bytes.Compare)
	return slices.CompactFunc(all, bytes.Equal)
}

// maskingReader is a body in which stars replace the patterns, byte by byte, so that its length and the
// positions of everything else stay. It holds back only what may be the beginning of a pattern, so
// that events of a stream are not late.
type maskingReader struct {
	io.ReadCloser
	patterns [][]byte
	raw      []byte // read, not yet passed on
	within   int    // how many bytes at the beginning of raw belong to a pattern that began before
	out      []byte // ready to be passed on
	err      error
}

// Read implements io.Reader.
func (m *maskingReader) Read(p []byte) (int, error) {
	for len(m.out) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		m.fillReady()
	}
	n := copy(p, m.out)
	m.out = m.out[n:]
	return n, nil
}

// fillReady reads once, and makes what cannot be the beginning of a pattern ready.
func (m *maskingReader) fillReady() {
	begun := len(m.raw)
	m.raw = slices.Grow(m.raw, maskBuffer)[:begun+maskBuffer]
	n, err := m.ReadCloser.Read(m.raw[begun:])
	m.raw, m.err = m.raw[:begun+n], err
	ready := len(m.raw)
	if err == nil {
		ready -= m.heldLength()
	}
	hidden := m.findPatterns()
	m.out = bytes.Clone(m.raw[:ready])
	for i := range m.out {
		if hidden[i] {
			m.out[i] = '*'
		}
	}
	m.within = 0
	for i := ready; i < len(m.raw) && hidden[i]; i++ {
		m.within++
	}
	m.raw = append(m.raw[:0], m.raw[ready:]...)
}

// heldLength is the length of the longest end of raw that is the beginning of a pattern.
func (m *maskingReader) heldLength() int {
	held := 0
	for _, pattern := range m.patterns {
		for n := min(len(pattern)-1, len(m.raw)); n > held; n-- {
			if bytes.HasSuffix(m.raw, pattern[:n]) {
				held = n
			}
		}
	}
	return held
}

// findPatterns tells for each byte of raw whether it belongs to a pattern.
func (m *maskingReader) findPatterns() []bool {
	hidden := make([]bool, len(m.raw))
	for i := range m.within {
		hidden[i] = true
	}
	for _, pattern := range m.patterns {
		for from := 0; ; from++ {
			at := bytes.Index(m.raw[from:], pattern)
			if at < 0 {
				break
			}
			from += at
			for i := range pattern {
				hidden[from+i] = true
			}
		}
	}
	return hidden
}
