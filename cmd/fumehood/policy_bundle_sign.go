// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/policy"
	policysource "github.com/fumehood/fumehood/pkg/policy/source"
)

func bundleSignCommand() *command {
	return &command{
		name:     "policy bundle sign",
		synopsis: "sign a bundle, also one that opa built",
		usage: `FILE.tar.gz --signing-key KEY [flags]

The signature covers every file by SHA-256, in place of one that was there. The bundle
gets another digest by it, which is printed.

examples:
  fumehood policy bundle sign policy.tar.gz --signing-key key.pem
  fumehood policy bundle sign policy.tar.gz --signing-key key.pem --scope read --output signed.tar.gz
`,
		run: signBundle,
	}
}

func signBundle(c *invocation) int {
	var output string
	var signature policysource.Signing
	f := c.Flags()
	f.StringVar(&output, "output", "", "`file` to write (default: the bundle itself)")
	defineSigning(&signature, f)
	args, code, ok := c.ParseMixed(f)
	if !ok {
		return code
	}
	if len(args) != 1 || signature.Key == "" {
		return c.Misuse("policy bundle sign needs one bundle and --signing-key")
	}
	if output == "" {
		output = args[0]
	}
	data, err := policysource.ReadFile(args[0])
	if err == nil {
		data, err = signature.Sign(args[0], data)
	}
	if err != nil {
		return c.Stop(err)
	}
	return c.writeBundle(output, data)
}

func bundleVerifyCommand() *command {
	return &command{
		name:     "policy bundle verify",
		synopsis: "say whether a bundle is signed with a key, new enough and fit to decide",
		usage: `BUNDLE [--policy-key KEY] [flags]

BUNDLE is FILE.tar.gz, https://HOST/FILE.tar.gz@sha256:HEX or oci://REGISTRY/REPOSITORY@sha256:HEX.
Exit code 0: it is all that was asked. 1: it is not, and the message says what.

examples:
  fumehood policy bundle verify policy.tar.gz --policy-key key.pub --minimum-revision 14
  fumehood policy bundle verify oci://registry.example/acme/policy@sha256:… --policy-key key.pub --json
`,
		run: verifyBundle,
	}
}

func verifyBundle(c *invocation) int {
	var from gate.Sources
	var asJSON bool
	f := c.Flags()
	f.StringVar(&from.Key, "policy-key", "", "PEM `file` with the public key that must have signed it, or hs256:FILE with a shared secret")
	f.StringVar(&from.Scope, "scope", "", "`scope` that the signature must have")
	f.StringVar(&from.MinimumRevision, "minimum-revision", "", "oldest `revision` that it may have: an integer or an RFC 3339 time")
	f.BoolVar(&asJSON, "json", false, "print what it is as JSON")
	args, code, ok := c.ParseMixed(f)
	if !ok {
		return code
	}
	if len(args) != 1 || !policysource.IsBundle(args[0]) {
		return c.Misuse("policy bundle verify needs one bundle: FILE.tar.gz, https://…@sha256:… or oci://…@sha256:…")
	}
	from.Organisation = args
	list, err := from.Read(c.Ctx)
	if err == nil {
		_, err = newEngine(c.Ctx, policy.Options{Layers: gate.Layers(list)})
	}
	if err != nil {
		return c.unverified(err)
	}
	if asJSON {
		err = c.PrintJSON(json.Marshal(list[0].Origin))
	} else {
		err = policysource.WriteOrigin(c.Stdout, list[0].Origin)
	}
	if err != nil {
		return c.Stop(err)
	}
	return exitOK
}

// unverified tells a bundle that is not what was asked from one that could not be had.
func (c *invocation) unverified(err error) int {
	code := c.Stop(err)
	if policysource.Unread(err) {
		return code
	}
	return exitRefused
}
