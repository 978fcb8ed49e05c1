// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/pkg/audit"
)

// Settings are Options as text, as a command line gives them. The zero value sets nothing.
type Settings struct {
	Masks       []string // variables whose values are redacted
	Credentials []string // as ParseCredential reads them
	Resolvers   []string // as ParseResolver reads them
	Mounts      []string // as ParseMount reads them
	AuditKey    string   // file with the key that signs the audit log
	Owner       string   // UID:GID of a user whose tools are shown like root's
}

// Secrets returns the Options with values that must never be printed: handed, and those of
// variables. Its errors quote none of them.
func (s Settings) Secrets(handed []redact.Mask, getenv func(string) string) (o Options, err error) {
	o.Masks = append(o.Masks, handed...)
	for _, name := range s.Masks {
		m, err := redact.MaskOf(name, getenv)
		if err != nil {
			return o, err
		}
		o.Masks = append(o.Masks, m)
	}
	for _, text := range s.Credentials {
		c, err := ParseCredential(text, getenv)
		if err != nil {
			return o, err
		}
		o.Credentials = append(o.Credentials, c)
	}
	return o, nil
}

// Options returns everything that s sets, with what Secrets returns. Its errors are
// *proposal.StopErrors.
func (s Settings) Options(handed []redact.Mask, getenv func(string) string) (Options, error) {
	o, err := s.Secrets(handed, getenv)
	if err != nil {
		return o, err
	}
	if o.Signer, err = s.Signer(); err != nil {
		return o, err
	}
	for _, text := range s.Resolvers {
		server, err := ParseResolver(text)
		if err != nil {
			return o, err
		}
		o.Resolvers = append(o.Resolvers, server)
	}
	for _, text := range s.Mounts {
		m, err := ParseMount(text)
		if err != nil {
			return o, err
		}
		m.Note = "the host directory " + text + " is readable inside (--mount)"
		o.MountsUnsafe = append(o.MountsUnsafe, m)
	}
	owner, err := process.ParseOwner(s.Owner)
	if owner != nil {
		o.ToolOwners = []int{owner.UID()}
	}
	return o, err
}

// Signer reads AuditKey; nil if it is not set.
func (s Settings) Signer() (*audit.Signer, error) {
	if s.AuditKey == "" {
		return nil, nil
	}
	return audit.ReadSigner(s.AuditKey)
}
