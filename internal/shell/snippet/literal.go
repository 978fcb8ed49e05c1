// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/shell/snippet/grammar"
)

// unescapeText decodes the escapes that both languages share; others stay unchanged.
func unescapeText(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var plain strings.Builder
	for i := 0; i < len(text); {
		if text[i] != '\\' || i+1 == len(text) {
			plain.WriteByte(text[i])
			i++
			continue
		}
		value, width := decodeEscape(text[i+1:])
		plain.WriteString(value)
		i += 1 + width
	}
	return plain.String()
}

// decodeEscape decodes the text after a backslash and returns how much of it belongs to the
// escape.
func decodeEscape(text string) (string, int) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}
	if n := digits[text[0]]; n > 0 && len(text) > n {
		if code, err := strconv.ParseUint(text[1:n+1], 16, 32); err == nil {
			return string(rune(code)), n + 1
		}
	}
	if text[0] >= '0' && text[0] <= '7' {
		n := 1
		for n < 3 && n < len(text) && text[n] >= '0' && text[n] <= '7' {
			n++
		}
		code, _ := strconv.ParseUint(text[:n], 8, 32)
		return string(rune(code)), n
	}
	if plain, ok := map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"",
		'\n': ""}[text[0]]; ok {
		return plain, 1
	}
	_, width := utf8.DecodeRuneInString(text)
	return `\` + text[:width], width
}

// remoteURL reports whether text is a URL of a host other than the sandbox itself.
func remoteURL(text string) bool {
	scheme, _, found := strings.Cut(text, "://")
	if !found || !strings.Contains(" http https ws wss ftp tcp ssh redis ", " "+strings.ToLower(scheme)+" ") {
		return false
	}
	u, err := url.Parse(text)
	return err != nil || u.Hostname() != "" && isRemoteHost(u.Hostname())
}

// isRemoteHost reports whether host is a machine other than the sandbox itself.
func isRemoteHost(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return !a.Unmap().IsLoopback() && !a.IsUnspecified()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	switch {
	case host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost"):
		return false
	}
	return strings.Contains(host, ".") && !strings.ContainsAny(host, " /{}%")
}

// addedStrings returns the value of a + b, if both are constant strings.
func addedStrings(n grammar.Node, depth int, constant func(grammar.Node, int) (string, bool)) (string, bool) {
	if n.ChildIn("operator").Text() != "+" {
		return "", false
	}
	left, ok := constant(n.ChildIn("left"), depth+1)
	if !ok {
		return "", false
	}
	right, ok := constant(n.ChildIn("right"), depth+1)
	return left + right, ok
}
