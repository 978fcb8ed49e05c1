// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"encoding/base64"
	"strings"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/egress/upstream"
)

// NewRedactor returns a redactor for o's Masks and Credentials, and for text that looks
// like a secret, for use before or outside a Gate. It does not ask policy.
func NewRedactor(o Options) (*redact.Redactor, error) {
	return redact.New(redact.Options{Masks: o.masks()})
}

// masks returns the values that must never leave: o.Masks, those of the credentials, and the
// passwords of this host's proxies.
func (o Options) masks() []redact.Mask {
	masks := append([]redact.Mask(nil), o.Masks...)
	for _, c := range o.Credentials {
		masks = append(masks, redact.Mask{Name: c.Name, Value: c.Value})
		for _, part := range credentialParts(c.Value) {
			if len(part) >= redact.MinMask {
				masks = append(masks, redact.Mask{Name: c.Name, Value: part})
			}
		}
	}
	proxies, _ := upstream.FromEnvironment() // one that is invalid is never used
	for _, secret := range proxies.Secrets() {
		if len(secret) >= redact.MinMask {
			masks = append(masks, redact.Mask{Name: "HTTPS_PROXY", Value: secret})
		}
	}
	return masks
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
