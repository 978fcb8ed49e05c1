// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/internal/kit/text"
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

// A runAnswer is what a command did, or why it did not run. Clients get it as text, once: of a result with a
// structured form, large clients give their models nothing else, images included.
type runAnswer struct {
	ID         string
	Effect     string
	Approval   string // who answered what policy asked
	Reasons    []reason
	Status     string
	ExitCode   *int
	Signal     string
	Limit      string
	Detail     string
	WallMS     int64
	Stdout     string
	Stderr     string
	Results    []string // what code showed, and the value of its last expression
	Exception  string
	FullOutput []string // resources
	Outputs    []file
	Notes      []string
}

// A reason is why a command did not run, and what to do.
type reason struct {
	Rule         string
	Message      string
	Instead      string
	Alternatives []string // commands that policy allows
}

// A file is one exported file.
type file struct {
	Path    string
	Bytes   int64
	Refused string
}

func shortenMessage(s string) string { return text.Inline(s, maxMessage) }

// reasonsOf returns the reasons that took effect.
func reasonsOf(r proposal.Record) (list []reason) {
	for _, x := range r.Decision.Reasons {
		if x.Observed || len(list) == maxReasons {
			continue
		}
		y := reason{Rule: shortenMessage(x.Rule), Message: shortenMessage(x.Message),
			Instead: shortenMessage(x.Suggestion)}
		for _, a := range x.Alternatives {
			y.Alternatives = append(y.Alternatives, shortenMessage(a))
		}
		list = append(list, y)
	}
	return list
}

// ranOf returns the structured form of r, and remembers where the whole of its output is. used says that
// the sandbox may have had files when r began.
func (s *session) ranOf(r proposal.Record, used bool) runAnswer {
	x := runAnswer{ID: r.Proposal.ID, Effect: r.Decision.Effect.String(), Notes: s.setup.takeFailures()}
	if r.ClientApproval != nil {
		x.Approval = "by the " + shortenMessage(r.ClientApproval.Client)
	}
	if r.Decision.Effect != proposal.Allow && !r.Runnable() {
		x.Reasons = reasonsOf(r)
	}
	if r.Result != nil {
		s.addResult(&x, r, used)
	}
	return x
}

func (s *session) addResult(x *runAnswer, r proposal.Record, used bool) {
	result := r.Result
	x.Status, x.Signal, x.Limit, x.Detail, x.WallMS = result.Status.String(), result.Signal,
		shortenMessage(result.Limit), shortenMessage(result.Detail), result.WallMS
	if result.Status == proposal.Exited {
		x.ExitCode = &result.ExitCode
	}
	x.Stdout = s.excerptStream(x, "stdout", result.Stdout, maxStdout)
	x.Stderr = s.excerptStream(x, "stderr", result.Stderr, maxStderr)
	x.Results = shownTexts(result.Displays)
	if e := result.Exception; e != nil {
		words := cmp.Or(e.Traceback, e.Name+": "+e.Value)
		x.Exception = text.Excerpt([]byte(words), nil, int64(len(words)), maxStderr).Text
	}
	for _, o := range result.Outputs {
		x.Outputs = append(x.Outputs, file{shortenMessage(o.Path), o.Bytes, shortenMessage(o.Refused)})
	}
	s.markUsed()
	if used && result.NewSandbox {
		x.Notes = append(x.Notes, "this command began in a new sandbox: files written before it, installed dependencies included, are lost; end_session begins again with them")
	}
	x.Notes = append(x.Notes, refusedPrograms(result.Observations)...)
	if r.Cause != nil {
		x.Notes = append(x.Notes, "could not run: "+shortenMessage(r.Cause.Reason))
	}
}

// maxRefused is how many refused programs an answer names.
const maxRefused = 5

// refusedPrograms names the programs that a command tried to start and policy refused.
func refusedPrograms(o *proposal.Observations) (notes []string) {
	if o == nil {
		return nil
	}
	for _, p := range o.Programs {
		if p.Refused > 0 && len(notes) < maxRefused {
			notes = append(notes, fmt.Sprintf("policy refused the program %s: %s", shortenMessage(p.Name),
				shortenMessage(p.Rule)))
		}
	}
	return notes
}

// excerptStream returns what to show of a stream, and adds its resource to x if that is not all.
func (s *session) excerptStream(x *runAnswer, name string, o proposal.Stream, max int) string {
	if o.Withheld != "" {
		x.Notes = append(x.Notes, name+" is withheld: "+shortenMessage(o.Withheld))
		return ""
	}
	b := text.Excerpt(o.Head, o.Tail, o.Bytes, max)
	if b.Omitted > 0 && o.File != "" {
		x.FullOutput = append(x.FullOutput, s.keepOutput(x.ID+"."+name, o))
	}
	if len(o.Redacted) > 0 {
		x.Notes = append(x.Notes, "secrets in "+name+" are redacted")
	}
	return b.Text
}

// String returns the answer for a model that reads text.
func (x runAnswer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", x.ID, x.describeOutcome())
	if x.Approval != "" {
		fmt.Fprintf(&b, "approved %s\n", x.Approval)
	}
	for _, r := range x.Reasons {
		b.WriteString(r.String())
	}
	for _, s := range []struct{ name, text string }{{"stdout", x.Stdout}, {"stderr", x.Stderr}} {
		if s.text != "" {
			fmt.Fprintf(&b, "%s:\n%s", s.name, fenceLines(s.text))
		}
	}
	for _, value := range x.Results {
		fmt.Fprintf(&b, "result:\n%s", fenceLines(value))
	}
	if x.Exception != "" {
		fmt.Fprintf(&b, "exception:\n%s", fenceLines(x.Exception))
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

func (x runAnswer) describeOutcome() string {
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

// fenceLines puts a fence around lines that they cannot close.
func fenceLines(lines string) string {
	fence := text.Fence(lines)
	if !strings.HasSuffix(lines, "\n") {
		lines += "\n"
	}
	return fence + "\n" + lines + fence + "\n"
}

// toolResult returns a tool's result: text, and what else a model can see.
func toolResult(words string, more ...mcp.Content) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: append([]mcp.Content{&mcp.TextContent{Text: strings.TrimSuffix(words, "\n")}},
		more...)}, nil, nil
}

// clientError returns an error for the client: its code, its message and its hint.
func clientError(err error) error {
	f := proposal.FailureOf(err)
	words := fmt.Sprintf("fumehood: %s: %s", f.Code, shortenMessage(f.Message))
	if f.Hint != "" {
		words += "; hint: " + shortenMessage(f.Hint)
	}
	if !strings.HasPrefix(f.Code, "mcp.") {
		words += "; if it repeats, call end_session, which begins again"
	}
	return errors.New(words)
}

// shownImages returns the images that r's code showed, of at most maxImage bytes together. Each is also a file of
// at most maxContent bytes, because some clients give their models no images.
func (s *session) shownImages(r proposal.Record) (list []mcp.Content) {
	if r.Result == nil {
		return nil
	}
	left, count := maxImage, 0
	for _, d := range r.Result.Displays {
		for _, mime := range []string{"image/png", "image/jpeg"} {
			data, err := base64.StdEncoding.DecodeString(d.Forms[mime])
			if err != nil || len(data) == 0 {
				continue
			}
			count++
			words := fmt.Sprintf("%s, %s", mime, text.Size(int64(len(data))))
			if path := s.writeImage(fmt.Sprintf("%s~%d.%s", r.Proposal.ID, count, path.Base(mime)), data); path != "" {
				words += ": " + path
			}
			if len(data) > left {
				list = append(list, &mcp.TextContent{Text: words + ", too large to show"})
				break
			}
			left -= len(data)
			list = append(list, &mcp.TextContent{Text: words}, &mcp.ImageContent{MIMEType: mime, Data: data})
			break
		}
	}
	return list
}

// writeImage writes an image beside the files that the session has copied, and returns its path, or "" if it
// cannot. Ids of proposals have no tilde: the name is no output's.
func (s *session) writeImage(name string, data []byte) string {
	dir := s.Artifacts()
	if dir == "" || len(data) > maxContent {
		return ""
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return ""
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return ""
	}
	return f.Name()
}

// textForms are the forms of a display that a model reads, the best first.
var textForms = []string{"text/markdown", "text/plain", "application/json", "text/html"}

// shownTexts returns what r's code showed as text, together of at most maxStdout displayed units.
func shownTexts(displays []proposal.Display) (list []string) {
	left := maxStdout
	for _, d := range displays {
		for _, mime := range textForms {
			form := d.Forms[mime]
			if form == "" {
				continue
			}
			if left <= 0 {
				return append(list, fmt.Sprintf("and %d more", len(displays)-len(list)))
			}
			e := text.Excerpt([]byte(form), nil, int64(len(form)), left)
			left -= len(e.Text)
			list = append(list, e.Text)
			break
		}
	}
	return list
}

func isImage(mime string) bool { return mime == "image/png" || mime == "image/jpeg" }

// decodeContent returns the content of a file that a client writes.
func decodeContent(content, encoding string) ([]byte, error) {
	switch encoding {
	case "":
		return []byte(content), nil
	case "base64":
		data, err := base64.StdEncoding.DecodeString(content)
		if err != nil {
			return nil, invalidArguments("content: not base64")
		}
		return data, nil
	}
	return nil, invalidArguments(`encoding: must be "base64" or left out`)
}
