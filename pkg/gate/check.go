// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/egress/wire"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// checkOptions refuses options that contradict each other or make no sense.
func (o Options) checkOptions() error {
	for _, c := range o.Credentials {
		if err := c.checkCredential(); err != nil {
			return err
		}
	}
	for _, r := range o.Resolvers {
		if !r.IsValid() || r.Port() == 0 {
			return invalidOptionsError(fmt.Sprintf("invalid resolver %q: it has no address or no port", r),
				"give an address and a port, for example 192.0.2.53:53")
		}
	}
	if !slices.Contains([]string{"", "off", "read", "write"}, o.Results.Mode) {
		return invalidOptionsError(fmt.Sprintf("invalid mode %q of Results", o.Results.Mode), "use off, read or write")
	}
	if !slices.Contains([]string{"", "off", "auto", "read", "write"}, o.Layers.Mode) {
		return invalidOptionsError(fmt.Sprintf("invalid mode %q of Layers", o.Layers.Mode),
			"use off, auto, read or write")
	}
	if err := o.checkObserved(); err != nil {
		return err
	}
	if err := o.checkDecideOnly(); err != nil {
		return err
	}
	return o.checkPolicies()
}

func invalidOptionsError(message, hint string) error {
	return &proposal.StopError{Code: "gate.options", Message: message, Hint: hint}
}

// checkDecideOnly refuses DecideOnly together with options that only a run uses.
func (o Options) checkDecideOnly() error {
	runs := o.Artifacts+o.AuditFile+o.Runsc != "" || o.Signer != nil || o.ObserveNetworkUnsafe ||
		len(o.Credentials)+len(o.MountsUnsafe)+len(o.Resolvers) > 0
	if o.DecideOnly && runs {
		return invalidOptionsError("DecideOnly is set together with options for running commands",
			"remove DecideOnly or those options")
	}
	return nil
}

// checkPolicies refuses two layers that replace the shipped policy, and an origin
// whose role differs from the layer's.
func (o Options) checkPolicies() error {
	granting := 0
	for _, p := range o.Policies {
		has, err := p.parseRole()
		if err != nil {
			return err
		}
		if has == policy.Grants {
			granting++
		}
		if role := p.Origin.Role; role != "" && role != has.String() {
			return invalidOptionsError(fmt.Sprintf("the origin of policy %q has the role %q, but the policy itself %q",
				p.Name,
				role, has), "leave the origin's role empty")
		}
	}
	if granting > 1 {
		return invalidOptionsError("two policies replace the shipped one", "give one of them another role")
	}
	return nil
}

var (
	credentialName = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	credentialHost = pattern.New(`^[A-Za-z0-9._-]+(:[0-9]{1,5})?$`)
)

// checkCredential returns an error that does not contain the value.
func (c Credential) checkCredential() error {
	const code, hint = "network.credential", "set Name, Host and Value; Path begins with a slash"
	switch {
	case !credentialName.MatchString(c.Name) || !credentialHost.MatchString(c.Host) || c.Path != "" && c.Path[0] != '/':
		return &proposal.StopError{Code: code, Message: "invalid name, host or path of a credential", Hint: hint}
	case c.Header != "" && !wire.IsCredentialHeader(c.Header):
		return &proposal.StopError{Code: code, Message: fmt.Sprintf("invalid header %q of a credential", c.Header),
			Hint: "use for example Authorization, X-Api-Key or Cookie"}
	case c.Query != "" && (c.Header != "" || !wire.IsWord(c.Query)):
		return &proposal.StopError{Code: code,
			Message: fmt.Sprintf("invalid query parameter %q of a credential", c.Query),
			Hint:    "use for example api_key, and no Header"}
	case !isHeaderValue(c.Value):
		return &proposal.StopError{Code: code, Message: "the value of a credential is empty or has a control character",
			Hint: hint}
	}
	return nil
}

// isHeaderValue reports whether a credential can be value.
func isHeaderValue(value string) bool {
	return value != "" && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f })
}
