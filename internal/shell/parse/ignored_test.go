// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestExitUses(t *testing.T) {
	words := map[Use]string{Ignored: "ignored", Piped: "piped", Mentioned: "mentioned", Tested: "tested"}
	for text, want := range map[string]string{
		"go test ./...":                          "go:ignored",
		"go test ./... 2>&1 | tail -5":           "go:piped tail:ignored",
		"a | b | c":                              "a:piped b:piped c:ignored",
		"a |& tee log; b":                        "a:piped b:ignored tee:ignored",
		"(a; b) | c":                             "a:piped b:piped c:ignored",
		"{ a; b; } | c":                          "a:piped b:piped c:ignored",
		"for x in 1 2; do a; done | c":           "a:piped c:ignored",
		"f() { a; }\nf | c":                      "a:piped c:ignored",
		"f() { f; a; }\nf":                       "a:ignored f:ignored",
		"set -o pipefail; a | c":                 "a:ignored c:ignored set:ignored",
		"set -euo pipefail\na | c; d":            "a:ignored c:ignored d:ignored set:ignored",
		"a | c; test ${PIPESTATUS[0]} -eq 3":     "a:tested c:ignored test:ignored",
		"a || true":                              "a:ignored true:ignored",
		"a || :":                                 "::ignored a:ignored",
		"a || echo failed":                       "a:mentioned echo:ignored",
		"a || b":                                 "a:tested b:ignored",
		"a && b; c":                              "a:tested b:ignored c:ignored",
		"! a":                                    "a:tested",
		"! a | grep -q x":                        "a:tested grep:tested",
		"if a; then b; else c; fi":               "a:tested b:ignored c:ignored",
		"while a; do b; done":                    "a:tested b:ignored",
		"a | grep -q x && echo ok":               "a:tested echo:ignored grep:tested",
		"a 2>/dev/null | wc -l":                  "a:mentioned wc:ignored",
		"a &>/dev/null; b":                       "a:mentioned b:ignored",
		"a >/dev/null; b":                        "a:ignored b:ignored",
		"x=$(a); echo $x":                        "a:ignored echo:ignored",
		"echo $(a | b)":                          "a:piped b:ignored echo:ignored",
		"cat <(a)":                               "a:ignored cat:ignored",
		"bash -c 'a | b'":                        "a:piped b:ignored bash:ignored",
		"exec a | b":                             "a:piped b:ignored",
		"env X=1 a | b":                          "b:ignored env:piped",
		"./run.sh | cat":                         "cat:ignored run.sh:piped",
		"a & wait":                               "a:ignored wait:ignored",
		"time a | b":                             "a:piped b:ignored",
		"case x in x) a;; esac; b":               "a:ignored b:ignored",
		"if python3 -c x; then python3 y; fi; b": "b:ignored python3:tested",
		"$x | b":                                 "b:ignored",
		"a | (":                                  "",
	} {
		uses := ExitUses(text)
		var got []string
		for _, name := range slices.Sorted(maps.Keys(uses)) {
			got = append(got, fmt.Sprintf("%s:%s", name, words[uses[name]]))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %s, want %s", text, s, want)
		}
	}
	deep := strings.Repeat("bash -c '", 1) + strings.Repeat("a | ", 5000) + "b'"
	if n := len(ExitUses(deep)); n > maxUses {
		t.Errorf("%d names", n)
	}
}
