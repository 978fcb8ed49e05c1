// SPDX-License-Identifier: Apache-2.0

package results

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// KeyGrammar is the form of a Key: lower-case hex SHA-256.
var KeyGrammar = pattern.New(`^[0-9a-f]{64}$`)

// Inputs are everything that the result of a command may depend on. A field that the caller
// does not know must not be left empty: then there is no key.
type Inputs struct {
	Canonical string               `json:"canonical"` // the text that was decided
	Argv      []string             `json:"argv"`
	Cwd       string               `json:"cwd"`
	Stdin     string               `json:"stdin"`
	Rules     []string             `json:"rules"`
	Grant     proposal.Grant       `json:"grant"` // with the variables and the limits
	Policy    string               `json:"policy"`
	Root      string               `json:"root"`       // kind and digest
	Toolchain []proposal.Toolchain `json:"toolchains"` //
	Program   string               `json:"program"`    // digest of fumehood
	Runsc     string               `json:"runsc"`      // digest of fumehood-runsc
	Arch      string               `json:"arch"`
	Workspace string               `json:"workspace"` // see DigestWorkspace
	Sandbox   string               `json:"sandbox"`   // digest of the variables, PATH and files that every command has
	Setup     []proposal.Proposal  `json:"setup"`     // set-up commands of the run
	Layers    []string             `json:"layers"`    // digests of dependencies that set-up did not install, in order
}

// InputsOf returns the part of Inputs that belongs to the command of r.
func InputsOf(r proposal.Record) Inputs {
	in := Inputs{Canonical: r.Analysis.Canonical, Cwd: r.Proposal.Cwd, Stdin: r.Proposal.Stdin, Rules: r.Decision.Rules,
		Grant: *r.Decision.Grant}
	if r.Proposal.Form() == "argv" {
		in.Argv = r.Analysis.Commands[0].Argv()
	}
	return in
}

// Key returns the digest of in, or "" if a required part is missing.
func (in Inputs) Key() string {
	for _, part := range []string{in.Canonical, in.Policy, in.Root, in.Program, in.Runsc, in.Arch, in.Workspace,
		in.Sandbox} {
		if part == "" {
			return ""
		}
	}
	return Digest(Schema, in)
}

// Digest returns the lower-case hex SHA-256 of values as JSON, "" if one has no JSON.
func Digest(values ...any) string {
	data, err := json.Marshal(values)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// CheckRequested returns why the result of r cannot be kept or used, whatever its inputs are, or
// nil. Policy's answer is one part of it.
func CheckRequested(r proposal.Record) error {
	p, d := r.Proposal, r.Decision
	switch {
	case d.Grant == nil || !d.Grant.Cache || !p.Cache:
		return fmt.Errorf("policy does not grant it")
	case d.Effect != proposal.Allow || len(d.Reasons) > 0 || r.Approved():
		return fmt.Errorf("the decision is not a plain allow")
	case len(d.Grant.Network) > 0 || d.Grant.Phase != proposal.PhaseRun || p.Origin != "":
		return fmt.Errorf("it has a network or belongs to set-up")
	case len(p.Outputs) > 0 || p.Code != "" || p.Context != "" || r.Background:
		return fmt.Errorf("it has outputs, code or a context, or runs in the background")
	case len(r.Redacted) > 0 || len(r.Analysis.Commands) == 0:
		return fmt.Errorf("it contains a secret")
	}
	return nil
}
