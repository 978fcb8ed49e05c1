// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"net/netip"
	"strings"
)

// hostName returns name in lower case, or an error if it is not a plain host name:
// letters, digits, hyphens and underscores in labels of at most 63 bytes, not an address.
// A final dot, which some clients send against RFC 6066, is not part of the result.
func hostName(name string) (string, error) {
	name = strings.TrimSuffix(name, ".")
	if len(name) == 0 || len(name) > 253 {
		return "", invalidHello("server name of %d bytes", len(name))
	}
	name = lowerASCII(name)
	for label := range strings.SplitSeq(name, ".") {
		if !goodLabel(label) {
			return "", invalidHello("server name %q", name)
		}
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return "", invalidHello("server name %q is an address", name)
	}
	return name, nil
}

// lowerASCII changes ASCII only: in Unicode the Kelvin sign would become a k.
func lowerASCII(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func goodLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		c := label[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
