// SPDX-License-Identifier: Apache-2.0

// Package settings makes options of a gate from what people and jobs say: flags as text, configuration
// files, and policies by name. Nothing that it reads may be a pull request's, except for the
// configuration in a workspace, which must not choose what commands see of the host.
package settings

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/egress/registry"
	"github.com/fumehood/fumehood/internal/egress/upstream"
	"github.com/fumehood/fumehood/internal/evidence/key"
	"github.com/fumehood/fumehood/internal/gate/environment"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
)

// Texts are options of a gate as text, as a command line gives them. The zero value sets nothing.
type Texts struct {
	Masks       []string // variables whose values are redacted
	Credentials []string // as ParseCredential reads them
	Resolvers   []string // as ParseResolver reads them
	Mounts      []string // as environment.ParseMount reads them
	AuditKey    string   // what signs the audit log, as key.ReadSigner reads it
	Owner       string   // UID:GID of a user whose tools are shown like root's
}

// ReadSecrets returns the values that must never be printed: handed, those of variables, and the credentials.
// Its errors quote none of them.
func (s Texts) ReadSecrets(handed []redact.Mask, getenv func(string) string) (secrets Secrets, err error) {
	secrets.Masks = slices.Clone(handed)
	for _, name := range s.Masks {
		m, err := redact.MaskOf(name, getenv)
		if err != nil {
			return secrets, err
		}
		secrets.Masks = append(secrets.Masks, m)
	}
	for _, text := range s.Credentials {
		c, err := ParseCredential(text, getenv)
		if err != nil {
			return secrets, err
		}
		secrets.Credentials = append(secrets.Credentials, c)
	}
	return secrets, nil
}

// Secrets are values that must never be printed.
type Secrets struct {
	Masks       []redact.Mask
	Credentials []gate.Credential
}

// NewRedactor returns a redactor for s, the passwords of this host's proxies, and text that looks like a
// secret, for use before or outside a gate. It does not ask policy.
func (s Secrets) NewRedactor() (*redact.Redactor, error) {
	var credentials []redact.Mask
	for _, c := range s.Credentials {
		credentials = append(credentials, redact.Mask{Name: c.Name, Value: c.Value})
	}
	return redact.New(redact.Options{Masks: upstream.MasksOf(s.Masks, credentials)})
}

// MakeOptions returns everything that s sets, with what Secrets returns. Its errors are
// *proposal.StopErrors.
func (s Texts) MakeOptions(handed []redact.Mask, getenv func(string) string) (o gate.Options, err error) {
	secrets, err := s.ReadSecrets(handed, getenv)
	if err != nil {
		return o, err
	}
	o.Credentials = secrets.Credentials
	for _, m := range secrets.Masks {
		o.Masks = append(o.Masks, gate.Mask(m))
	}
	if o.Signer, err = s.ReadSigner(); err != nil {
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
		bind, err := environment.ParseMount(text)
		if err != nil {
			return o, err
		}
		o.MountsUnsafe = append(o.MountsUnsafe,
			gate.Mount{Source: bind.Source, Target: bind.Target,
				Note: "the host directory " + text + " is readable inside (--mount)"})
	}
	owner, err := process.ParseOwner(s.Owner)
	if owner != nil {
		o.ToolOwners = []int{owner.UID()}
	}
	return o, err
}

// ReadSigner reads AuditKey; nil if it is not set.
func (s Texts) ReadSigner() (*audit.Signer, error) {
	if s.AuditKey == "" {
		return nil, nil
	}
	return key.ReadSigner(s.AuditKey)
}

// FixedRegistries returns a function that finds only these registries.
func FixedRegistries(list []registry.Registry) func(context.Context, []string) ([]gate.Registry, error) {
	found := make([]gate.Registry, len(list))
	for i, r := range list {
		public := gate.Registry{Name: r.Name, Source: r.Source, Env: r.Env, Files: map[string]string{}}
		for _, o := range r.Origins {
			public.URLs = append(public.URLs, o.String())
		}
		for _, f := range r.Files {
			public.Files[f.Path] = f.Content
		}
		for _, c := range r.Credentials {
			host := net.JoinHostPort(c.Host, strconv.Itoa(cmp.Or(c.Port, 443)))
			public.Credentials = append(public.Credentials,
				gate.Credential{Host: host, Path: c.Path, Header: c.Header, Value: c.Value})
		}
		found[i] = public
	}
	return func(context.Context, []string) ([]gate.Registry, error) { return found, nil }
}

// SetupOf returns s as options of a gate.
func SetupOf(s setup.Setup) gate.Setup {
	public := gate.Setup{Services: s.Services, Env: s.Env, Path: s.Path, Projects: s.Always}
	for _, step := range s.Steps {
		public.Steps = append(public.Steps, gate.SetupStep(step))
	}
	for _, n := range s.Notes {
		public.Notes = append(public.Notes, n.String())
	}
	return public
}
