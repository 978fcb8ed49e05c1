// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/egress/redact"
)

// MasksOf returns the values that must never leave a run: masks, the values of the credentials that the
// gateway adds, with their parts, and the passwords of this host's proxies.
func MasksOf(masks, credentials []redact.Mask) []redact.Mask {
	all := slices.Clone(masks)
	for _, c := range credentials {
		all = append(all, c)
		for _, part := range credentialParts(c.Value) {
			if len(part) >= redact.MinMask {
				all = append(all, redact.Mask{Name: c.Name, Value: part})
			}
		}
	}
	proxies, _ := FromEnvironment() // one that is invalid is never used
	for _, secret := range proxies.Secrets() {
		if len(secret) >= redact.MinMask {
			all = append(all, redact.Mask{Name: "HTTPS_PROXY", Value: secret})
		}
	}
	return all
}

// credentialParts returns the parts of a header's value that are as sensitive as the
// whole: the part after the scheme, and the password in it.
func credentialParts(value string) []string {
	scheme, token, ok := strings.Cut(value, " ")
	if !ok {
		return nil
	}
	parts := []string{token}
	if plain, err := base64.StdEncoding.DecodeString(token); err == nil && strings.EqualFold(scheme, "basic") {
		_, password, _ := strings.Cut(string(plain), ":")
		parts = append(parts, string(plain), password)
	}
	return parts
}
