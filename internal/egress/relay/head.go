// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bytes"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A framing determines where a request's body ends.
type framing struct {
	chunked bool
	length  int64
}

// checkHead parses one HTTP/1 head, whose line ends were checked, and returns why it
// is ambiguous or invalid, or "".
func checkHead(head []byte) (framing, string) {
	lines := strings.Split(strings.TrimSuffix(string(head), "\r\n\r\n"), "\r\n")
	version, why := checkRequestLine(lines[0])
	if why != "" {
		return framing{}, why
	}
	fields, why := checkFields(lines[1:])
	if why != "" {
		return framing{}, why
	}
	if hosts := fields["host"]; len(hosts) != 1 || !plainHost(hosts[0]) {
		return framing{}, "it does not have exactly one plain Host header"
	}
	return parseFraming(fields, version)
}

func checkRequestLine(line string) (version, why string) {
	parts := strings.Split(line, " ")
	if len(parts) != 3 || !isToken(parts[0]) || parts[1] == "" {
		return "", "its first line is not a method, a target and a version"
	}
	if parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0" {
		return "", "its version is not HTTP/1.1 or HTTP/1.0"
	}
	if !isEncodedTarget(parts[1]) {
		return "", "its target has a character that must be encoded"
	}
	target := parts[1]
	if parts[0] == "CONNECT" && target[0] != '/' {
		target = "http://" + target // a host and a port
	}
	if _, err := url.ParseRequestURI(target); err != nil {
		return "", "its target is malformed"
	}
	return parts[2], ""
}

// isEncodedTarget reports whether a target has no character that must be encoded.
func isEncodedTarget(target string) bool {
	return !slices.ContainsFunc([]byte(target), func(c byte) bool { return c <= ' ' || c >= 0x7f || c == '#' })
}

// checkFields returns the values of header fields, by lower-case name.
func checkFields(lines []string) (map[string][]string, string) {
	fields := map[string][]string{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) {
			return nil, "a header line is not a name, a colon and a value"
		}
		name = asciiLower(name)
		fields[name] = append(fields[name], strings.Trim(value, " \t"))
	}
	return fields, ""
}

// parseFraming determines where the body ends, which must be stated exactly once.
func parseFraming(fields map[string][]string, version string) (framing, string) {
	lengths, codings := fields["content-length"], fields["transfer-encoding"]
	switch {
	case len(lengths)+len(codings) > 1:
		return framing{}, "it specifies more than once where its body ends"
	case len(codings) == 1 && (version != "HTTP/1.1" || asciiLower(codings[0]) != "chunked"):
		return framing{}, "its transfer encoding is not chunked, of HTTP/1.1"
	case len(codings) == 1:
		return framing{chunked: true}, ""
	case len(lengths) == 0:
		return framing{}, ""
	}
	n, err := strconv.ParseUint(lengths[0], 10, 62)
	if err != nil || strconv.FormatUint(n, 10) != lengths[0] {
		return framing{}, "its length is not a plain number"
	}
	return framing{length: int64(n)}, ""
}

// unannounced are the fields that must not appear in trailers.
var unannounced = []string{"content-length", "transfer-encoding", "host", "trailer", "te", "connection",
	"authorization", "cookie", "content-encoding", "content-type"}

func checkTrailers(block []byte) string {
	text := strings.TrimSuffix(string(block), "\r\n")
	if text == "" {
		return ""
	}
	fields, why := checkFields(strings.Split(strings.TrimSuffix(text, "\r\n"), "\r\n"))
	if why != "" {
		return why
	}
	for _, name := range unannounced {
		if _, ok := fields[name]; ok {
			return "the field " + name + " comes after the body"
		}
	}
	return ""
}

const tokenMarks = "!#$%&'*+-.^_`|~"

// isToken reports whether text is a token as HTTP defines it.
func isToken(text string) bool {
	if text == "" {
		return false
	}
	return !slices.ContainsFunc([]byte(text), func(c byte) bool {
		return !isAlphanumeric(c) && bytes.IndexByte([]byte(tokenMarks), c) < 0
	})
}

func plainHost(text string) bool {
	if text == "" {
		return false
	}
	return !slices.ContainsFunc([]byte(text), func(c byte) bool {
		return !isAlphanumeric(c) && strings.IndexByte(".-_:[]", c) < 0
	})
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
