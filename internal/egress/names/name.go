// SPDX-License-Identifier: Apache-2.0

package names

import (
	"errors"
	"fmt"
	"strings"
)

// The limits of a name (RFC 1035 §2.3.4), in dotted form without the final dot.
const (
	MaxName  = 253
	MaxLabel = 63
)

// Parse returns name in the only form that the rest of the package uses: lower case,
// without a final dot. Labels are letters, digits, inner hyphens, and underscores; an
// internationalized name must be in "xn--" form, which is kept. Anything that is, or
// could be read as, an IP address is not a name.
func Parse(name string) (string, error) {
	name = strings.TrimSuffix(name, ".")
	if name == "" {
		return "", errors.New("invalid name: empty")
	}
	if len(name) > MaxName {
		return "", fmt.Errorf("invalid name: %d bytes, at most %d", len(name), MaxName)
	}
	name = lowerASCII(name)
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if err := checkLabel(label); err != nil {
			return "", fmt.Errorf("invalid name %q: %w", name, err)
		}
	}
	if isNumericLabel(labels[len(labels)-1]) {
		return "", fmt.Errorf("invalid name %q: an address", name)
	}
	return name, nil
}

// lowerASCII lowers ASCII only: strings.ToLower would turn some other characters into
// letters.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return errors.New("empty label")
	case len(label) > MaxLabel:
		return fmt.Errorf("label of %d bytes, at most %d", len(label), MaxLabel)
	case label[0] == '-' || label[len(label)-1] == '-':
		return errors.New("label with a hyphen at its end")
	}
	for i := range len(label) {
		c := label[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return fmt.Errorf("character %q in a label", c)
		}
	}
	return nil
}

// isNumericLabel reports whether a last label makes some programs read the whole name as an
// IPv4 address: "1", "0x7f" (as in the URL standard).
func isNumericLabel(label string) bool {
	digits, set := label, "0123456789"
	if strings.HasPrefix(label, "0x") {
		digits, set = label[2:], set+"abcdef"
	}
	return strings.Trim(digits, set) == ""
}
