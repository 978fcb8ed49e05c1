// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/egress/upstream"
)

// redactionMasks returns the values that must never leave: o.Masks, those of the credentials, and the
// passwords of this host's proxies.
func (o Options) redactionMasks() []redact.Mask {
	var masks, credentials []redact.Mask
	for _, m := range o.Masks {
		masks = append(masks, redact.Mask(m))
	}
	for _, c := range o.Credentials {
		credentials = append(credentials, redact.Mask{Name: c.Name, Value: c.Value})
	}
	return upstream.MasksOf(masks, credentials)
}
