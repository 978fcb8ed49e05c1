// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	gh "github.com/google/go-github/v62/github"
)

// GitHub's limits on check runs. Its "characters" are counted as bytes, of which
// there are at least as many.
const (
	maxBatch      = 50    // annotations in one request
	maxCheckText  = 65535 // of a summary or a text
	maxCheckTitle = 255
	maxAnnotation = 64 << 10
	// maxAnnotations is this package's limit: ten requests.
	maxAnnotations = 500
)

// An Annotation is a message about lines of a file.
type Annotation struct {
	Path      string // in the repository; without one the annotation is left out
	StartLine int    // from 1
	EndLine   int    // at least StartLine
	Level     string // "notice", "warning" or "failure"; anything else is a notice
	Title     string
	Message   string
}

// A CheckRun is a verdict on one commit. Status is "queued", "in_progress" or
// "completed". Conclusion is set if and only if Status is "completed", to
// "success", "failure", "neutral", "cancelled", "skipped", "timed_out" or
// "action_required". Texts longer than GitHub accepts are truncated.
type CheckRun struct {
	Name        string
	HeadSHA     string
	Status      string
	Conclusion  string
	Title       string
	Summary     string // Markdown
	Text        string // Markdown
	DetailsURL  string
	ExternalID  string
	Actions     []CheckAction // at most 3; GitHub shows them as buttons
	Annotations []Annotation  // the first 500 are sent; GitHub appends them to the existing ones
}

// A CheckAction is a button on a check run. GitHub sends its Identifier to the app that made the
// check run, and to no app with a workflow's own token. Label and Identifier have at most 20
// characters, Description at most 40.
type CheckAction struct{ Label, Description, Identifier string }

// A KnownCheckRun is a check run as the API describes it. Its texts are those of the app that
// made it, and untrusted if that is not known.
type KnownCheckRun struct {
	ID         int64
	Name       string
	HeadSHA    string
	ExternalID string
	App        string // the app's login, "" if it is not known
}

// CheckRun reads a check run.
func (c *Client) CheckRun(ctx context.Context, id int64) (KnownCheckRun, error) {
	return requestWithRetry(ctx, c, readCheck, func(ctx context.Context) (KnownCheckRun, error) {
		run, _, err := c.gh.Checks.GetCheckRun(ctx, c.owner, c.name, id)
		if err != nil {
			return KnownCheckRun{}, err
		}
		if run.GetID() != id || run.GetHeadSHA() == "" {
			return KnownCheckRun{}, malformedError("requested check run %d, got %d of commit %q", id, run.GetID(),
				run.GetHeadSHA())
		}
		known := KnownCheckRun{ID: id, Name: run.GetName(), HeadSHA: run.GetHeadSHA(), ExternalID: run.GetExternalID()}
		if slug := run.GetApp().GetSlug(); slug != "" {
			known.App = slug + "[bot]"
		}
		return known, nil
	})
}

// CreateCheckRun makes a check run and adds its annotations, in batches. If it returns
// an id and an error, the check run with that id exists but lacks some annotations.
func (c *Client) CreateCheckRun(ctx context.Context, run CheckRun) (id int64, err error) {
	if e := run.validate(); e != nil {
		return 0, e.toStopError(createCheck)
	}
	batches := run.annotationBatches()
	output := run.batchOutput(batches[0])
	id, err = requestWithRetry(ctx, c, createCheck, func(ctx context.Context) (int64, error) {
		return checkID(c.gh.Checks.CreateCheckRun(ctx, c.owner, c.name, gh.CreateCheckRunOptions{
			Name: run.Name, HeadSHA: run.HeadSHA, Status: nonEmptyPointer(run.Status),
			Conclusion: nonEmptyPointer(run.Conclusion),
			DetailsURL: nonEmptyPointer(run.DetailsURL), ExternalID: nonEmptyPointer(run.ExternalID), Output: output,
			Actions: run.ghActions(),
		}))
	})
	if err != nil {
		return 0, err
	}
	return id, c.addBatches(ctx, id, run, batches[1:])
}

// UpdateCheckRun replaces the texts and status of a check run and adds annotations
// to it. HeadSHA is not sent: a check run never changes its commit.
func (c *Client) UpdateCheckRun(ctx context.Context, id int64, run CheckRun) error {
	if e := run.validate(); e != nil {
		return e.toStopError(updateCheck)
	}
	batches := run.annotationBatches()
	if len(batches[0]) > 0 {
		return c.addBatches(ctx, id, run, batches)
	}
	return c.patchCheck(ctx, updateCheck, id, run, nil)
}

func (c *Client) addBatches(ctx context.Context, id int64, run CheckRun, batches [][]Annotation) error {
	for _, batch := range batches {
		if err := c.patchCheck(ctx, addAnnotations, id, run, batch); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) patchCheck(ctx context.Context, op operation, id int64, run CheckRun, batch []Annotation) error {
	_, err := requestWithRetry(ctx, c, op, func(ctx context.Context) (int64, error) {
		return checkID(c.gh.Checks.UpdateCheckRun(ctx, c.owner, c.name, id, gh.UpdateCheckRunOptions{
			Name: run.Name, Status: nonEmptyPointer(run.Status), Conclusion: nonEmptyPointer(run.Conclusion),
			DetailsURL: nonEmptyPointer(run.DetailsURL), ExternalID: nonEmptyPointer(run.ExternalID),
			Output: run.batchOutput(batch), Actions: run.ghActions(),
		}))
	})
	return err
}

func checkID(run *gh.CheckRun, _ *gh.Response, err error) (int64, error) {
	if err == nil && run.GetID() <= 0 {
		err = malformedError("a check run without an id")
	}
	return run.GetID(), err
}

func (r CheckRun) ghActions() (list []*gh.CheckRunAction) {
	for _, a := range r.Actions {
		list = append(list, &gh.CheckRunAction{Label: a.Label, Description: a.Description, Identifier: a.Identifier})
	}
	return list
}

// validate returns an error for what GitHub would refuse, before anything is sent.
func (r CheckRun) validate() *Error {
	message := ""
	switch {
	case r.Name == "":
		message = "a check run requires a name"
	case (r.Status == "completed") != (r.Conclusion != ""):
		message = "a check run requires a conclusion if and only if it is completed"
	default:
		return nil
	}
	return &Error{Kind: Invalid, Message: message, unsent: true}
}

// annotationBatches splits the annotations. There is always a first batch, which may be empty.
func (r CheckRun) annotationBatches() [][]Annotation {
	rest := slices.DeleteFunc(slices.Clone(r.Annotations), func(a Annotation) bool { return a.Path == "" })
	rest = rest[:min(len(rest), maxAnnotations)]
	first := rest[:min(len(rest), maxBatch)]
	batches := [][]Annotation{first}
	for rest = rest[len(first):]; len(rest) > 0; rest = rest[min(len(rest), maxBatch):] {
		batches = append(batches, rest[:min(len(rest), maxBatch)])
	}
	return batches
}

func (r CheckRun) batchOutput(batch []Annotation) *gh.CheckRunOutput {
	if r.Title == "" && r.Summary == "" && r.Text == "" && len(batch) == 0 {
		return nil
	}
	title := r.Title
	if title == "" {
		title = r.Name // GitHub requires a title
	}
	out := &gh.CheckRunOutput{
		Title: gh.String(shortenText(title, maxCheckTitle)), Summary: gh.String(shortenText(r.Summary, maxCheckText)),
		Text: nonEmptyPointer(shortenText(r.Text, maxCheckText)),
	}
	for _, a := range batch {
		out.Annotations = append(out.Annotations, a.ghAnnotation())
	}
	return out
}

func (a Annotation) ghAnnotation() *gh.CheckRunAnnotation {
	level := a.Level
	if level != "warning" && level != "failure" {
		level = "notice"
	}
	start := max(a.StartLine, 1)
	return &gh.CheckRunAnnotation{
		Path: &a.Path, StartLine: &start, EndLine: gh.Int(max(a.EndLine, start)), AnnotationLevel: &level,
		Title:   nonEmptyPointer(shortenText(a.Title, maxCheckTitle)),
		Message: gh.String(shortenText(a.Message, maxAnnotation)),
	}
}

func nonEmptyPointer(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// shortenText shortens s to at most max bytes, on a character boundary, and ends it with "…".
func shortenText(s string, max int) string {
	const sign = "…"
	if len(s) <= max {
		return s
	}
	end := max - len(sign)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.TrimRight(s[:end], "\n") + sign
}
