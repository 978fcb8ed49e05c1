// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Providers are the names that New knows.
var Providers = []string{"anthropic", "openai", "gemini", "command"}

// Options choose a provider. Getenv reads the key and the address:
//
//	anthropic  ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
//	openai     OPENAI_API_KEY, OPENAI_BASE_URL, which may be of any service with that interface
//	gemini     GEMINI_API_KEY, GEMINI_BASE_URL
type Options struct {
	Provider string
	Getenv   func(string) string
	Command  string   // program of the provider command
	Env      []string // names of the variables that it gets
}

// services are the providers that are reached by HTTP.
var services = map[string]struct {
	prefix, address string
	format          format
}{
	"anthropic": {"ANTHROPIC", anthropicURL, anthropicFormat{}},
	"openai":    {"OPENAI", openaiURL, openaiFormat{}},
	"gemini":    {"GEMINI", geminiURL, geminiFormat{}},
}

// New returns the provider that o describes, and the values that must appear nowhere but in
// its requests. The error is a *proposal.StopError.
func New(o Options) (Provider, []string, error) {
	if o.Provider == "command" {
		return newCommand(o)
	}
	s, known := services[o.Provider]
	if !known {
		return nil, nil, &proposal.StopError{Code: "model.provider",
			Message: fmt.Sprintf("unsupported provider %q", o.Provider),
			Hint:    "use one of " + strings.Join(Providers, ", ")}
	}
	base, err := parseURL(cmp.Or(o.Getenv(s.prefix+"_BASE_URL"), s.address))
	if err != nil {
		return nil, nil, err
	}
	key := o.Getenv(s.prefix + "_API_KEY")
	if key == "" {
		return nil, nil, &proposal.StopError{Code: "model.key", Message: "no key for the provider " + o.Provider,
			Hint: "set the variable " + s.prefix + "_API_KEY"}
	}
	return newService(s.format, key, base), []string{key}, nil
}

// secretName are names of variables whose value is redacted everywhere. Others, such as HOME,
// have values that ordinary output contains.
var secretName = pattern.New(`(?i)KEY|TOKEN|SECRET|PASS|CREDENTIAL`)

func newCommand(o Options) (Provider, []string, error) {
	if o.Command == "" {
		return nil, nil, &proposal.StopError{Code: "model.command", Message: "the provider command needs a program",
			Hint: "name it with --model-command"}
	}
	p := &commandProvider{program: o.Command, env: []string{}} // nil would be this process's
	var values []string
	for _, name := range o.Env {
		value := o.Getenv(name)
		if value == "" {
			return nil, nil, &proposal.StopError{Code: "model.command",
				Message: fmt.Sprintf("the variable %q is empty", name),
				Hint:    "set it, or leave out --model-env " + name}
		}
		p.env = append(p.env, name+"="+value)
		if secretName.MatchString(name) {
			values = append(values, value)
		}
	}
	return p, values, nil
}
