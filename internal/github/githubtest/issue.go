// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

// maxBody is the maximum length of a comment. GitHub counts characters; this fake
// counts UTF-16 units, the strictest reading that is not about bytes.
const maxBody = 65536

// findIssue reports whether a number is a pull request, an issue or unused.
func (r *repository) findIssue(number int64) (pr *PR, exists bool) {
	pr = r.prs[int(number)]
	_, issue := r.issues[int(number)]
	return pr, pr != nil || issue
}

func (c *call) findComment() *Comment {
	id := c.pathNumber("comment_id")
	for _, comment := range c.repo.comments {
		if comment.ID == id {
			return comment
		}
	}
	return nil
}

// bodyOf reads and checks the only field of a comment.
func bodyOf(data []byte) (string, *reply) {
	var in struct{ Body string }
	if json.Unmarshal(data, &in) != nil {
		r := errorReply(http.StatusBadRequest, "Problems parsing JSON")
		return "", &r
	}
	if strings.TrimSpace(in.Body) == "" {
		r := invalidFieldReply("IssueComment", "data", "unprocessable", "Body cannot be blank")
		return "", &r
	}
	if tooLong(in.Body) {
		r := invalidFieldReply("IssueComment", "data", "unprocessable",
			"Body is too long (maximum is 65536 characters)")
		return "", &r
	}
	return in.Body, nil
}

func tooLong(body string) bool { return len(utf16.Encode([]rune(body))) > maxBody }

// refuseLocked is the same 403 as a missing right, with another message.
func refuseLocked(what string) reply {
	r := errorReply(http.StatusForbidden, "Unable to create "+what+" because issue is locked.")
	r.body.(obj)["documentation_url"] = "https://docs.github.com/articles/locking-conversations/"
	return r
}

func (s *Server) createComment(c *call) reply {
	number := c.pathNumber("issue_number")
	pr, exists := c.repo.findIssue(number)
	if !exists {
		return notFound
	}
	if pr != nil && pr.Locked {
		return refuseLocked("comment")
	}
	body, bad := bodyOf(c.body)
	if bad != nil {
		return *bad
	}
	comment := s.addComment(int(number), c.token.Login, body)
	shape := s.commentShape(c.repo, comment)
	return reply{status: http.StatusCreated, body: shape, header: http.Header{"Location": {shape["url"].(string)}}}
}

func (s *Server) listComments(c *call) reply {
	number := c.pathNumber("issue_number")
	if _, exists := c.repo.findIssue(number); !exists {
		return notFound
	}
	since, _ := time.Parse(time.RFC3339, c.r.URL.Query().Get("since"))
	var list []any
	for _, comment := range c.repo.comments {
		if comment.Number == int(number) && !comment.Updated.Before(since) {
			list = append(list, s.commentShape(c.repo, comment))
		}
	}
	return reply{list: list, listed: true}
}

func (s *Server) getComment(c *call) reply {
	if comment := c.findComment(); comment != nil {
		return reply{body: s.commentShape(c.repo, comment)}
	}
	return notFound
}

func (s *Server) updateComment(c *call) reply {
	comment := c.findComment()
	if comment == nil {
		return notFound
	}
	body, bad := bodyOf(c.body)
	if bad != nil {
		return *bad
	}
	comment.Body, comment.Updated = body, s.now()
	comment.Edits++
	return reply{body: s.commentShape(c.repo, comment)}
}

func (s *Server) deleteComment(c *call) reply {
	comment := c.findComment()
	if comment == nil {
		return notFound
	}
	c.repo.removeComment(comment.ID)
	return reply{status: http.StatusNoContent}
}

func (s *Server) getIssue(c *call) reply {
	number := c.pathNumber("issue_number")
	pr, exists := c.repo.findIssue(number)
	if !exists {
		return notFound
	}
	v := obj{"number": number, "id": number + 1_000, "state": "open", "title": c.repo.issues[int(number)],
		"user": s.userShape("octocat"), "labels": []any{}, "comments": s.countComments(c.repo, int(number)),
		"url": s.apiURL(c.repo, "/issues/%d", number), "html_url": s.pageURL(c.repo, "/issues/%d", number)}
	if pr != nil {
		v["state"], v["title"], v["locked"], v["user"] = pr.State, pr.Title, pr.Locked, s.userShape(pr.Author)
		v["labels"], v["html_url"] = labelShapes(pr.Labels), s.pageURL(c.repo, "/pull/%d", number)
		v["pull_request"] = obj{"url": s.apiURL(c.repo, "/pulls/%d", number),
			"html_url": s.pageURL(c.repo, "/pull/%d", number),
			"diff_url": s.pageURL(c.repo, "/pull/%d.diff", number), "patch_url": s.pageURL(c.repo, "/pull/%d.patch", number)}
	}
	return reply{body: v}
}

func (s *Server) addLabels(c *call) reply {
	var in struct{ Labels []string }
	pr, _ := c.repo.findIssue(c.pathNumber("issue_number"))
	if pr == nil {
		return notFound
	}
	if json.Unmarshal(c.body, &in) != nil {
		return errorReply(http.StatusBadRequest, "Problems parsing JSON")
	}
	for _, l := range in.Labels {
		if !slices.Contains(pr.Labels, l) {
			pr.Labels = append(pr.Labels, l)
		}
	}
	return reply{body: labelShapes(pr.Labels)}
}

func (s *Server) createReaction(c *call) reply {
	var in struct{ Content string }
	comment := c.findComment()
	if comment == nil {
		return notFound
	}
	if json.Unmarshal(c.body, &in) != nil {
		return errorReply(http.StatusBadRequest, "Problems parsing JSON")
	}
	if pr := c.repo.prs[comment.Number]; pr != nil && pr.Locked {
		return refuseLocked("reaction")
	}
	for _, x := range c.repo.reactions {
		if x.comment == comment.ID && x.Content == in.Content && x.Author == c.token.Login {
			return reply{body: s.reactionShape(x)}
		}
	}
	x := &Reaction{ID: s.nextID(), Author: c.token.Login, Content: in.Content, Created: s.now(), comment: comment.ID}
	c.repo.reactions = append(c.repo.reactions, x)
	return reply{status: http.StatusCreated, body: s.reactionShape(x)}
}

func (s *Server) listReactions(c *call) reply {
	comment := c.findComment()
	if comment == nil {
		return notFound
	}
	content := c.r.URL.Query().Get("content")
	var list []any
	for _, x := range c.repo.reactions {
		if x.comment == comment.ID && (content == "" || content == x.Content) {
			list = append(list, s.reactionShape(x))
		}
	}
	return reply{list: list, listed: true}
}

func (s *Server) deleteReaction(c *call) reply {
	comment, id := c.findComment(), c.pathNumber("reaction_id")
	for i, x := range c.repo.reactions {
		if comment != nil && x.ID == id && x.comment == comment.ID {
			c.repo.reactions = slices.Delete(c.repo.reactions, i, i+1)
			return reply{status: http.StatusNoContent}
		}
	}
	return notFound
}
