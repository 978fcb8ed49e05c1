// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/review"
)

// A postedComment is one of our comments.
type postedComment struct {
	github.ReviewComment
	key, head, state string
	pending          bool
}

// marker is the first line of our comments: whether they are about findings or, with their source,
// about what linters report; what they are about, the head that they were last
// written for, what they say about it, and whether their thread could not be turned.
var marker = pattern.New(`^<!-- fumehood:(finding|lint [0-9a-f]{16}) v1 ([0-9a-f]{32}) ([0-9a-f]{40}|[0-9a-f]{64}) (verified|gone|older)( pending)? -->$`)

// states are what a comment can say. A verdict without one does not change a comment: it shows
// nothing.
var states = map[review.Verdict]string{review.Verified: "verified", review.NotReproduced: "gone",
	review.PreExisting: "older"}

// kindOf is the kind of the markers of d.
func kindOf(d review.Document) string {
	if d.Lints != "" {
		return "lint " + d.Lints
	}
	return "finding"
}

// formatComment renders a comment. now says where its lines are now, if that has changed.
func formatComment(d review.Document, r review.Result, pending bool, now string) string {
	state := states[r.Verdict]
	if pending {
		state += " pending"
	}
	return fmt.Sprintf("<!-- fumehood:%s v1 %s %s %s -->\n%s%s", kindOf(d), r.ClaimKey(), d.Head, state, now,
		d.RenderRemark(r))
}

// listOwnComments reads our comments.
func (v *reviewUpdate) listOwnComments(ctx context.Context) error {
	all, err := v.Client.ReviewComments(ctx, v.PR)
	if err != nil {
		return err
	}
	v.ours, v.others = map[string][]postedComment{}, map[string]bool{}
	for _, c := range all {
		line, _, _ := strings.Cut(strings.ReplaceAll(c.Body, "\r\n", "\n"), "\n")
		m := marker.FindStringSubmatch(line)
		switch {
		case m == nil || !v.isOurs(c.Author):
		case m[1] == kindOf(v.doc):
			v.ours[m[2]] = append(v.ours[m[2]], postedComment{c, m[2], m[3], m[4], m[5] != ""})
		case m[4] == states[review.Verified]:
			v.others[m[2]] = true
		}
	}
	return nil
}

func (v *reviewUpdate) isOurs(a github.Author) bool {
	if v.Author.ID != 0 {
		return a.ID == v.Author.ID
	}
	return a.Login == v.Author.Login && a.Type == v.Author.Type
}

// rereadWhenSettled waits until GitHub has executed what was sent, and reads our comments again.
func (v *reviewUpdate) rereadWhenSettled(ctx context.Context) error {
	if err := v.Sleep(ctx, v.Settle); err != nil {
		return err
	}
	return v.listOwnComments(ctx)
}

// deleteDuplicates deletes all but the first comment on a finding: two jobs have created one each, or GitHub
// has created a review that it did not confirm in time.
func (v *reviewUpdate) deleteDuplicates(ctx context.Context) (err error) {
	for key, all := range v.ours {
		for _, c := range all[1:] {
			if failed := v.Client.DeleteReviewComment(ctx, c.ID); failed != nil &&
				github.KindOf(failed) != github.NotFound {
				err = errors.Join(err, failed)
			}
		}
		v.ours[key] = all[:1]
	}
	return err
}

// updateComments writes to our comments what d shows now. One that was deleted meanwhile stays deleted. A
// thread is turned before its comment: a job that was killed between the two does both again.
func (v *reviewUpdate) updateComments(ctx context.Context) (err error) {
	for _, r := range slices.Concat(v.doc.Results, v.listUnreported()) {
		if all := v.ours[r.ClaimKey()]; len(all) > 0 && v.differsFrom(all[0], r) {
			err = errors.Join(err, v.rewriteComment(ctx, &all[0], r))
		}
	}
	return errors.Join(err, v.threads.failed)
}

// listUnreported returns what linters have reported before and do not report any more, if all of them
// ran to their end.
func (v *reviewUpdate) listUnreported() (list []review.Result) {
	if v.doc.Lints == "" || !v.doc.Reviewed {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(v.ours)) {
		if !slices.ContainsFunc(v.doc.Results, func(r review.Result) bool { return r.ClaimKey() == key }) {
			list = append(list, review.UnreportedResult(key))
		}
	}
	return list
}

// rewriteComment makes a comment say what r shows. Its marker says whether its thread is left to the next
// run.
func (v *reviewUpdate) rewriteComment(ctx context.Context, c *postedComment, r review.Result) error {
	pending := !v.syncThreadState(ctx, *c, states[r.Verdict])
	err := v.Client.UpdateReviewComment(ctx, c.ID, formatComment(v.doc, r, pending, v.describeMove(*c, r)))
	switch {
	case err == nil:
		v.out.Updated++
		c.state, c.head, c.pending = states[r.Verdict], v.doc.Head, pending // a finding that is there twice
	case github.KindOf(err) == github.NotFound:
		return nil
	}
	return err
}

// differsFrom reports whether a comment says something else than r. What it says about an earlier head
// stays if it is still true and still on its lines.
func (v *reviewUpdate) differsFrom(c postedComment, r review.Result) bool {
	state := states[r.Verdict]
	return state != "" && (c.state != state || c.pending ||
		state == states[review.Verified] && c.Line == 0 && c.head != v.doc.Head)
}

// describeMove says where the lines of an outdated comment are. A path is shown as code.
func (v *reviewUpdate) describeMove(c postedComment, r review.Result) string {
	if c.Line != 0 || r.Verdict != review.Verified {
		return ""
	}
	return fmt.Sprintf("Now at %s.\n\n", r.CodePlace())
}

// listOpen lists the comments on verified findings that v's document does not mention, except for those whose
// threads are resolved. If threads cannot be read, all are open.
func (v *reviewUpdate) listOpen(ctx context.Context) (list []review.OpenFinding) {
	if v.doc.Lints != "" {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(v.ours)) {
		c := v.ours[key][0]
		if c.state != states[review.Verified] ||
			slices.ContainsFunc(v.doc.Results, func(r review.Result) bool { return r.ClaimKey() == key }) {
			continue
		}
		if v.threads.byComment == nil && v.threads.failed == nil {
			v.stopThreads(v.readThreads(ctx))
		}
		if !v.threads.byComment[c.ID].Resolved {
			list = append(list, review.OpenFinding{Path: c.Path, Line: c.Line, URL: c.URL, Since: c.head})
		}
	}
	return list
}
