// SPDX-License-Identifier: Apache-2.0

package runspec

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/egress/registry"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The child reads what its parent wrote, and nothing of what follows.
func TestSpec(t *testing.T) {
	want := Spec{
		Plan: "/p\n", Rootfs: "host", Observe: true, Timeout: time.Minute, Owner: "1:2", LayersExchange: "/l",
		Subject: gate.Subject{Repository: "o/r", PR: 7, Left: []string{"x: submodule"}, Approval: &proposal.Approval{By: "me", Time: time.Unix(1, 0).UTC()}},
		Ceiling: proposal.Limits{Pids: 3}, Hosts: []string{"/h"}, Origins: map[string]proposal.PolicyOrigin{"/h": {Spec: "git:main:x"}},
		Masks: []redact.Mask{{Name: "M", Value: "hidden\nvalue"}}, Proxies: process.Proxies{HTTPS: "http://user:hidden@proxy.corp:3128"},
		Registries: []registry.Registry{}, Review: Review{Base: "b", Model: &Model{Provider: "p", Rounds: 2, Limit: review.LimitText{Tokens: -1}}},
	}
	line, err := want.EncodeLine()
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(strings.NewReader(string(line) + "an answer of the model"))
	got := Spec{}
	if err := got.ReadLine(in); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if rest, err := io.ReadAll(in); string(rest) != "an answer of the model" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

// A field that is not named keeps its value, as of a flag.
func TestSpecKeepsOthers(t *testing.T) {
	s := Spec{Rootfs: "host"}
	if err := s.ReadLine(bufio.NewReader(strings.NewReader(`{"Plan": "p"}` + "\n"))); err != nil || s.Rootfs != "host" || s.Plan != "p" {
		t.Errorf("%+v, %v", s, err)
	}
}

// What is not one whole document is refused, and no value of it is in the error.
func TestSpecRefused(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":       "",
		"an empty line": "\n",
		"no end":        `{"Plan": "p"}`,
		"unknown field": `{"Plan": "hidden", "Policy": "hidden"}` + "\n",
		"repeated":      `{"Plan": "hidden", "plan": "p"}` + "\n",
		"two documents": `{"Plan": "hidden"} {}` + "\n",
		"another type":  `{"Proxies": {"HTTP": 7, "HTTPS": "hidden"}}` + "\n",
		"not JSON":      `{"Masks": hidden}` + "\n",
		"too large":     `{"Plan": "` + strings.Repeat("x", maxSpec) + `"}` + "\n",
	} {
		err := new(Spec).ReadLine(bufio.NewReader(strings.NewReader(text)))
		var stop *proposal.StopError
		if !errors.As(err, &stop) || stop.Code != "about.invalid" || strings.Contains(fmt.Sprintf("%v %v", err, stop.Err), "hidden") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
