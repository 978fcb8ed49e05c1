// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// adding is an organization's layer with places and options alone.
func adding(t testing.TB, secret, control []string, options string) policy.Layer {
	t.Helper()
	data, err := json.Marshal(map[string]any{"fumehood": map[string]any{
		"places": map[string]any{"secret": secret, "control": control}, "options": options}})
	if err != nil {
		t.Fatal(err)
	}
	return policy.Layer{Name: "acme", Role: policy.Allows, Files: []policy.File{{Name: "data.json", Content: data}}}
}

// What an organization adds holds wherever the lists of fumehood do, in any case of letters, and changes nothing else.
func TestAddedPlacesAndOptions(t *testing.T) {
	layer := adding(t, []string{"*.pem", "deploy/keys", "/opt/acme/*/vault"}, []string{"acme.toml", ".acme", "build/rules"},
		"acmescan = gnu inspector\n\t-o,--output:> --plugin:!\nacmectl = gnu sub\n\t-v\nacmectl get = gnu\n\t-o,--output:>\n")
	without, with := shipped(t), engineAt(t, trialDay, layer)
	for text, want := range map[string]string{ // the rule that denies with the layer; "" is allowed
		"cat certs/PROD.pem": "read.secret", "cat x/a.pem/b": "read.secret", "cat a.pemx": "",
		"cat deploy/keys": "read.secret", "cat ./deploy/../deploy/keys/x": "read.secret", "cat src/deploy/keys/x": "",
		"cd deploy && cat keys/x": "read.secret", "git show HEAD:certs/prod.pem": "read.secret",
		"cat < certs/prod.pem":      "read.secret",
		"cat < \"/opt/acme/e$x\"":   "read.secret",
		"cat /opt/acme/eu/vault/x":  "read.secret",
		"echo x > Acme.toml":        "redirect.place",
		"cat acme.toml":             "",
		"cp a src/.acme/b":          "files.place",
		"tee build/rules/x < a":     "files.place",
		"cp a src/build/rules":      "",
		"sed -i s/a/b/ acme.toml":   "sed.place",
		"sort -o acme.toml a":       "option.place",
		"cp /tmp/acme.toml .":       "operand.place",
		"echo x > .github/acme.pem": "redirect.place",
	} {
		if d := decide(t, without, text); d.Effect != proposal.Allow && !strings.Contains(text, ".github") &&
			!strings.Contains(text, "/opt") {
			t.Errorf("%s: without the layer %s (%v)", text, d.Effect, d.Reasons)
		}
		checkRule(t, with, text, want)
	}
	for text, want := range map[string]string{
		"acmescan src": "", "/usr/bin/acmescan -o out src": "", "acmescan -o .npmrc src": "option.place",
		"acmescan --plugin=./x src": "tool.word", "acmescan -o acme.toml src": "option.place", "./acmescan src": "",
		"acmectl get x": "default.no-rule",
	} {
		checkRule(t, with, text, want)
	}
	if shipped(t).Digest() == with.Digest() {
		t.Error("the digest is that of the shipped policy")
	}
}

func checkRule(t *testing.T, e *policy.Engine, text, want string) {
	t.Helper()
	d := decide(t, e, text)
	var rules []string
	for _, r := range d.Reasons {
		rules = append(rules, r.Rule)
	}
	if got := strings.Join(rules, " "); (d.Effect == proposal.Allow) != (want == "") || !strings.Contains(got, want) {
		t.Errorf("%s: %s by %q, want %q", text, d.Effect, got, want)
	}
}

// What could loosen the shipped policy, or is not understood, stops everything, with its position.
func TestAddedFactsThatAreRefused(t *testing.T) {
	options := func(text string) policy.Layer { return adding(t, nil, nil, text) }
	secret := func(text string) policy.Layer { return adding(t, []string{text}, nil, "") }
	restricting := secret("*.pem")
	restricting.Role = policy.Restricts
	granting := secret("*.pem")
	granting.Name, granting.Role = "granting", policy.Grants
	raw := func(data string) policy.Layer {
		return policy.Layer{Name: "acme", Role: policy.Allows, Files: []policy.File{{Name: "data.json", Content: []byte(data)}}}
	}
	for want, layers := range map[string][]policy.Layer{
		`policy layer "acme" must not add places or options`: {restricting}, `policy layer "granting" must not add`: {granting},
		`unknown field "place"`:                                           {raw(`{"fumehood": {"place": {}}}`)},
		"it is empty":                                                     {raw(`{"fumehood": {}}`)},
		"cannot unmarshal string":                                         {raw(`{"fumehood": {"places": {"secret": "x"}}}`)},
		`"": write a name or a path`:                                      {secret("")},
		"this matches every name":                                         {secret("*/?")},
		"\"a[\": this is no pattern":                                      {secret("a[")},
		"\"a[/]b\": this is no pattern":                                   {secret("a[/]b")},
		"without ., .., //":                                               {secret("../x")},
		"without the workspace":                                           {secret("/workspace/x")},
		"tools need to read it":                                           {secret(".npmrc")},
		`".git/x": tools need to read it`:                                 {secret(".git/x")},
		"a control file is in the workspace":                              {adding(t, nil, []string{"/etc/x"}, "")},
		"more than 500 patterns":                                          {adding(t, make([]string, 501), nil, "")},
		"more than 64 KiB":                                                {options(strings.Repeat("#", 64<<10) + "\n")},
		"policy knows cat already":                                        {options("cat = gnu open")},
		"policy knows git already":                                        {options("git frob = gnu")},
		"policy knows curl already":                                       {options("curl = gnu")},
		`line 1: "*" is no name of a tool`:                                {options("* = gnu open")},
		"line 2: want tool[, tool] = style":                               {options("\nacme = strict")},
		`line 1: unsupported "tools"`:                                     {options("acme = gnu tools")},
		`line 1: unsupported "rest:go"`:                                   {options("acme = gnu rest:go")},
		"line 2: only entries":                                            {options("acme = gnu\nacme starts sh")},
		"line 1: only entries":                                            {options("acme on loopback\n\t-x")},
		`line 2: unsupported "--run:&"`:                                   {options("acme = gnu\n\t--run:&")},
		`line 2: "output" is no option`:                                   {options("acme = gnu\n\toutput")},
		"line 1: options before the first tool":                           {options("\t-x")},
		"line 2: the entry has -x already":                                {options("acme = gnu\n\t-x -x")},
		`"acme get" has options of a subcommand: write an entry "acme = `: {options("acme = gnu\nacme get = gnu")},
		"only a whole tool can be an inspector":                           {options("acme = gnu sub\nacme get = gnu inspector")},
		"policy knows acme already":                                       {options("acme = gnu"), options("acme = gnu open")},
	} {
		_, err := policy.New(t.Context(), policy.Options{Layers: layers})
		stop, ok := errors.AsType[*proposal.StopError](err)
		if !ok || stop.Code != "policy.data" || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: got %v", want, err)
		}
		if !strings.Contains(want, "only entries") && !strings.Contains(want, "must not add") {
			continue
		}
		r, err := policy.Check(t.Context(), layers)
		if err != nil || len(r.Problems) == 0 || !strings.Contains(r.Problems[0].Message, want) {
			t.Errorf("check: %s: got %v, %v", want, r.Problems, err)
		}
	}
}
