// SPDX-License-Identifier: Apache-2.0

package names

import (
	"errors"
	"fmt"
	"strings"
)

// What a name may be (RFC 1035 §2.3.4), in the form with dots and without the last one.
const (
	MaxName  = 253
	MaxLabel = 63
)

// Parse returns name in the one form that everything else here speaks of: lower case,
// without a final dot. Labels are letters, digits, hyphens within, and underscores; a
// name of another script is in its "xn--" form and stays so. What is or may be read as
// an IP address is no name.
func Parse(name string) (string, error) {
	name = strings.TrimSuffix(name, ".")
	if name == "" {
		return "", errors.New("invalid name: empty")
	}
	if len(name) > MaxName {
		return "", fmt.Errorf("invalid name: %d bytes, at most %d", len(name), MaxName)
	}
	name = lower(name)
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if err := checkLabel(label); err != nil {
			return "", fmt.Errorf("invalid name %q: %w", name, err)
		}
	}
	if numeric(labels[len(labels)-1]) {
		return "", fmt.Errorf("invalid name %q: an address", name)
	}
	return name, nil
}

// lower lowers ASCII alone: strings.ToLower would make letters of some other signs.
func lower(s string) string {
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

// numeric says whether a last label makes some programs read the whole as an IPv4
// address: "1", "0x7f" (as the URL standard has it).
func numeric(label string) bool {
	digits, set := label, "0123456789"
	if strings.HasPrefix(label, "0x") {
		digits, set = label[2:], set+"abcdef"
	}
	return strings.Trim(digits, set) == ""
}
