// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mcpserver

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The maximum size of an answer's parts, in displayed units. What is left out is in the
// resource that the answer names.
const (
	maxStdout  = 6000
	maxStderr  = 3000
	maxMessage = 600
	maxReasons = 4
	maxImage   = 1 << 20 // bytes of all images of one answer
)

// A ran is the structured form of what a command did, or why it did not run.
type ran struct {
	ID         string   `json:"id"`
	Effect     string   `json:"effect"`
	Approval   string   `json:"approval,omitempty"` // who answered what policy asked
	Reasons    []reason `json:"reasons,omitempty"`
	Status     string   `json:"status,omitempty"`
	ExitCode   *int     `json:"exit_code,omitempty"`
	Signal     string   `json:"signal,omitempty"`
	Limit      string   `json:"limit,omitempty"`
	Detail     string   `json:"detail,omitempty"`
	WallMS     int64    `json:"wall_ms,omitempty"`
	Stdout     string   `json:"stdout,omitempty"`
	Stderr     string   `json:"stderr,omitempty"`
	FullOutput []string `json:"full_output,omitempty"` // resources
	Outputs    []file   `json:"outputs,omitempty"`
	Notes      []string `json:"notes,omitempty"`
}

// A reason is why a command did not run, and what to do.
type reason struct {
	Rule         string   `json:"rule"`
	Message      string   `json:"message"`
	Instead      string   `json:"instead,omitempty"`
	Alternatives []string `json:"alternatives,omitempty"` // commands that policy allows
	Retry        string   `json:"retry,omitempty"`
}

// A file is one exported file.
type file struct {
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes,omitempty"`
	Refused string `json:"refused,omitempty"`
}

func short(s string) string { return text.Inline(s, maxMessage) }

// reasonsOf returns the reasons that took effect.
func reasonsOf(r proposal.Record) (list []reason) {
	for _, x := range r.Decision.Reasons {
		if x.Observed || len(list) == maxReasons {
			continue
		}
		y := reason{Rule: short(x.Rule), Message: short(x.Message), Instead: short(x.Suggestion), Retry: string(x.Retry)}
		for _, a := range x.Alternatives {
			y.Alternatives = append(y.Alternatives, short(a))
		}
		list = append(list, y)
	}
	return list
}

// ranOf returns the structured form of r, and remembers where the whole of its output is.
func (s *session) ranOf(r proposal.Record) ran {
	x := ran{ID: r.Proposal.ID, Effect: r.Decision.Effect.String(), Notes: s.setup.take()}
	if r.ClientApproval != nil {
		x.Approval = "by the " + short(r.ClientApproval.Client)
	}
	if r.Decision.Effect != proposal.Allow && !r.Runnable() {
		x.Reasons = reasonsOf(r)
	}
	if r.Result != nil {
		s.addResult(&x, r)
	}
	return x
}

func (s *session) addResult(x *ran, r proposal.Record) {
	result := r.Result
	x.Status, x.Signal, x.Limit, x.Detail, x.WallMS = result.Status.String(), result.Signal, short(result.Limit), short(result.Detail), result.WallMS
	if result.Status == proposal.Exited {
		x.ExitCode = &result.ExitCode
	}
	x.Stdout = s.stream(x, "stdout", result.Stdout, maxStdout)
	x.Stderr = s.stream(x, "stderr", result.Stderr, maxStderr)
	for _, o := range result.Outputs {
		x.Outputs = append(x.Outputs, file{short(o.Path), o.Bytes, short(o.Refused)})
	}
	if s.used() && result.NewSandbox {
		x.Notes = append(x.Notes, "this command began in a new sandbox: files written before it, installed dependencies included, are lost; end_session begins again with them")
	}
	if r.Cause != nil {
		x.Notes = append(x.Notes, "could not run: "+short(r.Cause.Reason))
	}
}

// stream returns what to show of a stream, and adds its resource to x if that is not all.
func (s *session) stream(x *ran, name string, o proposal.Stream, max int) string {
	if o.Withheld != "" {
		x.Notes = append(x.Notes, name+" is withheld: "+short(o.Withheld))
		return ""
	}
	b := text.Excerpt(o.Head, o.Tail, o.Bytes, max)
	if b.Omitted > 0 && o.File != "" {
		x.FullOutput = append(x.FullOutput, s.keep(x.ID+"."+name, o))
	}
	if len(o.Redacted) > 0 {
		x.Notes = append(x.Notes, "secrets in "+name+" are redacted")
	}
	return b.Text
}

// String returns the answer for a model that reads text.
func (x ran) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", x.ID, x.outcome())
	for _, r := range x.Reasons {
		b.WriteString(r.String())
	}
	for _, s := range []struct{ name, text string }{{"stdout", x.Stdout}, {"stderr", x.Stderr}} {
		if s.text != "" {
			fmt.Fprintf(&b, "%s:\n%s", s.name, fenced(s.text))
		}
	}
	for _, uri := range x.FullOutput {
		fmt.Fprintf(&b, "full output: %s\n", uri)
	}
	for _, o := range x.Outputs {
		fmt.Fprintf(&b, "output %s\n", o)
	}
	for _, note := range x.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	return b.String()
}

func (x ran) outcome() string {
	var s string
	switch {
	case x.Status == "" && x.Effect == "ask":
		return "not run: it needs an approval"
	case x.Status == "":
		return "not run: policy denied it"
	case x.ExitCode != nil:
		s = fmt.Sprintf("exit code %d", *x.ExitCode)
	case x.Signal != "":
		s = "killed by " + x.Signal
	default:
		s = x.Status
	}
	for _, more := range []string{x.Limit, x.Detail} {
		if more != "" {
			s += ", " + more
		}
	}
	return fmt.Sprintf("%s, %d ms", s, x.WallMS)
}

func (r reason) String() string {
	s := fmt.Sprintf("%s: %s\n", r.Rule, r.Message)
	if r.Instead != "" {
		s += "instead: " + r.Instead + "\n"
	}
	for _, a := range r.Alternatives {
		s += "allowed: " + a + "\n"
	}
	return s
}

func (f file) String() string {
	if f.Refused != "" {
		return f.Path + ": refused: " + f.Refused
	}
	return fmt.Sprintf("%s, %s", f.Path, text.Size(f.Bytes))
}

// fenced puts a fence around lines that they cannot close.
func fenced(lines string) string {
	fence := text.Fence(lines)
	if !strings.HasSuffix(lines, "\n") {
		lines += "\n"
	}
	return fence + "\n" + lines + fence + "\n"
}

// result returns a tool's result: text for models that read it, out for programs.
func result(words string, out any, more ...mcp.Content) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: append([]mcp.Content{&mcp.TextContent{Text: strings.TrimSuffix(words, "\n")}}, more...)}, out, nil
}

// failed returns an error for the client: its code, its message and its hint.
func failed(err error) error {
	f := proposal.FailureOf(err)
	words := fmt.Sprintf("fumehood: %s: %s", f.Code, short(f.Message))
	if f.Hint != "" {
		words += "; hint: " + short(f.Hint)
	}
	if !strings.HasPrefix(f.Code, "mcp.") {
		words += "; if it repeats, call end_session, which begins again"
	}
	return errors.New(words)
}

// shown returns what a client can show of displays: images as such, text in a fence.
func shown(displays []Display) (list []mcp.Content) {
	left := maxImage
	for _, d := range displays {
		switch {
		case len(d.Data) > left:
			list = append(list, &mcp.TextContent{Text: fmt.Sprintf("%s of %s: too large to show", short(d.MIME), text.Size(int64(len(d.Data))))})
		case isImage(d.MIME):
			left -= len(d.Data)
			list = append(list, &mcp.ImageContent{MIMEType: d.MIME, Data: d.Data})
		case utf8.Valid(d.Data):
			list = append(list, &mcp.TextContent{Text: short(d.MIME) + ":\n" + fenced(text.Excerpt(d.Data, nil, int64(len(d.Data)), maxStdout).Text)})
		}
	}
	return list
}

func isImage(mime string) bool { return mime == "image/png" || mime == "image/jpeg" }

// decoded returns the content of a file that a client writes.
func decoded(content, encoding string) ([]byte, error) {
	switch encoding {
	case "":
		return []byte(content), nil
	case "base64":
		data, err := base64.StdEncoding.DecodeString(content)
		if err != nil {
			return nil, invalid("content: not base64")
		}
		return data, nil
	}
	return nil, invalid(`encoding: must be "base64" or left out`)
}
