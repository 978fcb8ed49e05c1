// SPDX-License-Identifier: Apache-2.0

package bot_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/github/bot"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/plan"
)

func seed(f *testing.F) {
	for _, c := range asks {
		f.Add(c.body)
	}
	for _, c := range wrongs {
		f.Add(c.body)
	}
	for _, c := range reviews {
		f.Add(c.body)
	}
	for _, c := range unfit {
		f.Add(c.body)
	}
	for _, body := range silences {
		f.Add(body)
	}
	for _, body := range planless {
		f.Add(body)
	}
}

// FuzzRead checks that a comment is ignored, or is a command that has one spelling,
// which parses to the same command, or is a Problem without a command.
func FuzzRead(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, body string) {
		c, ok, p := bot.Read(body)
		if ok && !strings.HasPrefix(strings.TrimLeft(body, " \t\r\n"), "/fumehood") {
			t.Fatalf("%q is taken to speak to fumehood", body)
		}
		if !ok || p != nil {
			if !cmp.Equal(c, bot.Command{}) || !ok && p != nil {
				t.Fatalf("%+v, %v, %+v", c, ok, p)
			}
			return
		}
		again, ok, p := bot.Read(written(c))
		if diff := cmp.Diff(c, again); !ok || p != nil || diff != "" {
			t.Fatalf("%q: %+v %s", written(c), p, diff)
		}
		if c.Line != "" {
			checkLine(t, c)
		}
	})
}

// written returns c as a comment.
func written(c bot.Command) string {
	if c.Name == "run" && c.Line == "" {
		return "/fumehood run\n" + wrapped(c.Plan)
	}
	return strings.TrimRight("/fumehood "+c.Name+" "+c.Line+c.Digits+c.ID, " ")
}

func wrapped(document []byte) string {
	fence := text.Fence(string(document))
	return fence + "fumehood\n" + string(document) + fence
}

func checkLine(t *testing.T, c bot.Command) {
	t.Helper()
	for _, r := range c.Line {
		if text.IsHidden(r) {
			t.Fatalf("%q holds %U", c.Line, r)
		}
	}
	decoded, problems := plan.Decode(c.Plan, "")
	if len(problems) > 0 || decoded.Proposals[0].Run != c.Line {
		t.Fatalf("%q: %+v", c.Plan, problems)
	}
}

// FuzzFindPlan checks that the lines of any plan found are in the comment, and that
// the same block alone gives the same plan.
func FuzzFindPlan(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, body string) {
		document, ok, p := bot.FindPlan(body)
		if !ok || p != nil {
			if document != nil || !ok && p != nil {
				t.Fatalf("%q, %v, %+v", document, ok, p)
			}
			return
		}
		for _, l := range strings.Split(string(document), "\n") {
			if !strings.Contains(body, l) {
				t.Fatalf("%q is not in the comment", l)
			}
		}
		again, ok, p := bot.FindPlan(wrapped(document))
		if string(again) != string(document) || !ok || p != nil {
			t.Fatalf("%q: %q, %+v", document, again, p)
		}
		c, ok, p := bot.Read("/fumehood run\n" + wrapped(document))
		if string(c.Plan) != string(document) || !ok || p != nil {
			t.Fatalf("%q: %q, %+v", document, c.Plan, p)
		}
	})
}
