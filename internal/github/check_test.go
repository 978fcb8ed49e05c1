// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// sentCheck holds the fields of a check run request that these tests compare.
type sentCheck struct {
	Name, Status, Conclusion string
	HeadSHA                  string `json:"head_sha"`
	Output                   *struct {
		Title, Summary, Text string
		Annotations          []map[string]any
	}
}

func sentChecks(t *testing.T, s *script) (list []sentCheck) {
	t.Helper()
	for _, body := range s.bodies() {
		var sent sentCheck
		if err := json.Unmarshal([]byte(body), &sent); err != nil {
			t.Fatal(err)
		}
		list = append(list, sent)
	}
	return list
}

func annotations(n int) (list []Annotation) {
	for i := range n {
		list = append(list, Annotation{Path: fmt.Sprintf("f%d.go", i), StartLine: i + 1, EndLine: i + 1, Level: "failure", Message: "m"})
	}
	return list
}

func TestBatches(t *testing.T) {
	tests := []struct {
		name           string
		n              int
		create, update []int // number of annotations in each request
	}{
		{"none", 0, []int{0}, []int{0}},
		{"one", 1, []int{1}, []int{1}},
		{"a full batch", 50, []int{50}, []int{50}},
		{"one more", 51, []int{50, 1}, []int{50, 1}},
		{"three", 149, []int{50, 50, 49}, []int{50, 50, 49}},
		{"more than are sent", 700, []int{50, 50, 50, 50, 50, 50, 50, 50, 50, 50}, []int{50, 50, 50, 50, 50, 50, 50, 50, 50, 50}},
	}
	for _, test := range tests {
		run := CheckRun{Name: "fumehood", HeadSHA: sha, Status: "completed", Conclusion: "failure", Summary: "s", Annotations: annotations(test.n)}
		t.Run(test.name, func(t *testing.T) {
			s := play(t, say(201, `{"id":4}`), say(200, `{"id":4}`))
			c, _ := client(t, s.URL)
			if id, err := c.CreateCheckRun(context.Background(), run); id != 4 || err != nil {
				t.Fatalf("got %d, %v", id, err)
			}
			checkBatches(t, s, http.MethodPost, test.create)
			s = play(t, say(200, `{"id":4}`))
			c, _ = client(t, s.URL)
			if err := c.UpdateCheckRun(context.Background(), 4, run); err != nil {
				t.Fatal(err)
			}
			checkBatches(t, s, http.MethodPatch, test.update)
		})
	}
}

func checkBatches(t *testing.T, s *script, first string, want []int) {
	t.Helper()
	var got []int
	next := 0
	for i, sent := range sentChecks(t, s) {
		got = append(got, len(sent.Output.Annotations))
		if method := s.requests()[i].Method; i == 0 && method != first || i > 0 && method != http.MethodPatch {
			t.Errorf("request %d is a %s", i, method)
		}
		if sent.Name != "fumehood" || sent.Conclusion != "failure" || (sent.HeadSHA == sha) != (s.requests()[i].Method == http.MethodPost) {
			t.Errorf("request %d says %+v", i, sent)
		}
		for _, a := range sent.Output.Annotations {
			if a["path"] != fmt.Sprintf("f%d.go", next) {
				t.Fatalf("annotation %d is on %v", next, a["path"])
			}
			next++
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// GitHub appends annotations: a batch that may have arrived must not be sent again.
func TestLostBatch(t *testing.T) {
	run := CheckRun{Name: "fumehood", HeadSHA: sha, Annotations: annotations(120)}
	s := play(t, say(201, `{"id":4}`), hangUp)
	c, _ := client(t, s.URL)
	id, err := c.CreateCheckRun(context.Background(), run)
	wantError(t, err, Uncertain, "github.unavailable")
	if id != 4 || len(s.requests()) != 2 {
		t.Errorf("got the id %d after %d requests", id, len(s.requests()))
	}
	s = play(t, hangUp)
	c, _ = client(t, s.URL)
	id, err = c.CreateCheckRun(context.Background(), run)
	wantError(t, err, Uncertain, "github.unavailable")
	if id != 0 || len(s.requests()) != 1 {
		t.Errorf("got the id %d after %d requests", id, len(s.requests()))
	}
	run.Annotations = nil
	s = play(t, hangUp, say(200, `{"id":4}`))
	c, _ = client(t, s.URL)
	if err := c.UpdateCheckRun(context.Background(), 4, run); err != nil || len(s.requests()) != 2 {
		t.Errorf("got %v after %d requests", err, len(s.requests()))
	}
}

func TestCheckRunFits(t *testing.T) {
	s := play(t, say(201, `{"id":4}`))
	c, _ := client(t, s.URL)
	long := strings.Repeat("€", 40000)
	_, err := c.CreateCheckRun(context.Background(), CheckRun{
		Name: "fumehood", HeadSHA: sha, Status: "completed", Conclusion: "neutral", Title: long, Summary: long, Text: long,
		Annotations: []Annotation{
			{Path: "a.go", StartLine: 0, EndLine: -3, Level: "catastrophe", Title: long, Message: long},
			{StartLine: 1, EndLine: 1, Level: "failure", Message: "nowhere"},
			{Path: "b.go", StartLine: 7, EndLine: 9, Level: "warning", Message: "m"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := sentChecks(t, s)[0].Output
	for name, text := range map[string]string{"title": out.Title, "summary": out.Summary, "text": out.Text} {
		limit := 65535
		if name == "title" {
			limit = 255
		}
		if len(text) > limit || len(text) < limit-4 || !utf8.ValidString(text) || !strings.HasSuffix(text, "€…") {
			t.Errorf("the %s has %d bytes", name, len(text))
		}
	}
	if len(out.Annotations) != 2 {
		t.Fatalf("sent %d annotations", len(out.Annotations))
	}
	a, b := out.Annotations[0], out.Annotations[1]
	if a["start_line"] != 1.0 || a["end_line"] != 1.0 || a["annotation_level"] != "notice" || len(a["message"].(string)) > maxAnnotation {
		t.Errorf("sent %v", a)
	}
	want := map[string]any{"path": "b.go", "start_line": 7.0, "end_line": 9.0, "annotation_level": "warning", "message": "m"}
	if diff := cmp.Diff(want, b); diff != "" {
		t.Error(diff)
	}
}
