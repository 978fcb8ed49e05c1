// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// check refuses options that contradict each other or make no sense.
func (o Options) check() error {
	for _, c := range o.Credentials {
		if err := c.check(); err != nil {
			return err
		}
	}
	for _, r := range o.Resolvers {
		if !r.IsValid() || r.Port() == 0 {
			return invalid(fmt.Sprintf("invalid resolver %q: it has no address or no port", r), "give an address and a port, for example 192.0.2.53:53")
		}
	}
	if err := o.checkObserved(); err != nil {
		return err
	}
	if err := o.checkDecideOnly(); err != nil {
		return err
	}
	return o.checkPolicies()
}

func invalid(message, hint string) error {
	return &proposal.StopError{Code: "gate.options", Message: message, Hint: hint}
}

// checkDecideOnly refuses DecideOnly together with options that only a run uses.
func (o Options) checkDecideOnly() error {
	runs := o.Artifacts+o.AuditFile+o.Runsc != "" || o.Signer != nil || o.ObserveNetworkUnsafe || len(o.Credentials)+len(o.MountsUnsafe)+len(o.Resolvers) > 0
	if o.DecideOnly && runs {
		return invalid("DecideOnly is set together with options for running commands", "remove DecideOnly or those options")
	}
	return nil
}

// checkPolicies refuses two layers that replace the shipped policy, and an origin
// whose role differs from the layer's.
func (o Options) checkPolicies() error {
	granting := 0
	for _, p := range o.Policies {
		if p.Layer.Role == policy.Grants {
			granting++
		}
		if role := p.Origin.Role; role != "" && role != p.Layer.Role.String() {
			return invalid(fmt.Sprintf("the origin of policy %q has the role %q, but the policy itself %q", p.Layer.Name, role, p.Layer.Role), "leave the origin's role empty")
		}
	}
	if granting > 1 {
		return invalid("two policies replace the shipped one", "give one of them another role")
	}
	return nil
}

var (
	credentialName = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	credentialHost = pattern.New(`^[A-Za-z0-9._-]+(:[0-9]{1,5})?$`)
)

// check returns an error that does not contain the value.
func (c Credential) check() error {
	const code, hint = "network.credential", "set Name, Host and Value; Path begins with a slash"
	switch {
	case !credentialName.MatchString(c.Name) || !credentialHost.MatchString(c.Host) || c.Path != "" && c.Path[0] != '/':
		return &proposal.StopError{Code: code, Message: "invalid name, host or path of a credential", Hint: hint}
	case c.Header != "" && !credentialHeader(c.Header):
		return &proposal.StopError{Code: code, Message: fmt.Sprintf("invalid header %q of a credential", c.Header), Hint: "use for example Authorization, X-Api-Key or Cookie"}
	case c.Query != "" && (c.Header != "" || !wordName.MatchString(c.Query)):
		return &proposal.StopError{Code: code, Message: fmt.Sprintf("invalid query parameter %q of a credential", c.Query), Hint: "use for example api_key, and no Header"}
	case c.Value == "" || strings.ContainsFunc(c.Value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return &proposal.StopError{Code: code, Message: "the value of a credential is empty or has a control character", Hint: hint}
	}
	return nil
}

// ParseMount reads SRC[:DST]. Its error is a *proposal.StopError.
func ParseMount(text string) (Mount, error) {
	source, target, _ := strings.Cut(text, ":")
	m := Mount{Source: source, Target: target}
	if strings.HasSuffix(text, ":") {
		return m, mountError(text, nil)
	}
	bind, err := m.bind()
	if err != nil {
		return m, mountError(text, errors.Unwrap(err))
	}
	m.Source, m.Target = bind.Source, bind.Target
	return m, nil
}

func mountError(text string, err error) error {
	return &proposal.StopError{Code: "mount.invalid", Message: fmt.Sprintf("invalid mount %q: want DIRECTORY or DIRECTORY:/PATH/INSIDE", text),
		Hint: "give for example ~/go/pkg/mod:/home/fumehood/go/pkg/mod (--mount, or Options.MountsUnsafe)", Err: err}
}

// bind resolves m, following links of the source: the sandbox follows none.
func (m Mount) bind() (sandbox.Bind, error) {
	abs, err := filepath.Abs(m.Source)
	if err != nil {
		return sandbox.Bind{}, err
	}
	target := m.Target
	if target == "" {
		target = abs
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	info, err := os.Stat(abs)
	if err != nil || !info.IsDir() || !mountTarget(target) {
		return sandbox.Bind{}, mountError(m.Source+":"+target, err)
	}
	return sandbox.Bind{Source: abs, Target: target}, nil
}

// mountTarget refuses the places that the sandbox provides itself.
func mountTarget(path string) bool {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return false
	}
	for _, own := range []string{"/proc", "/sys", "/dev", "/.fumehood", "/workspace", "/etc", "/tmp"} {
		if path == own || strings.HasPrefix(path, own+"/") {
			return false
		}
	}
	return true
}
