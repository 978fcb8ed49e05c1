// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"slices"
	"strings"
	"time"
)

// A Comment is a comment on a pull request or an issue.
type Comment struct {
	ID               int64
	Number           int // of the pull request or issue
	Author           string
	Body             string
	Created, Updated time.Time
	Edits            int // number of updates by requests
}

// A Reaction is an emoji on a comment.
type Reaction struct {
	ID      int64
	Author  string
	Content string
	Created time.Time
	comment int64
}

// AddComment adds a comment as if its author had written it on the web page, and
// returns its id.
func (s *Server) AddComment(number int, author, body string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addComment(number, author, body).ID
}

func (s *Server) addComment(number int, author, body string) *Comment {
	now := s.now()
	c := &Comment{ID: s.nextID(), Number: number, Author: s.userOf(author).Login, Body: body, Created: now,
		Updated: now}
	s.home.comments = append(s.home.comments, c)
	return c
}

// EditComment changes a comment's text as if on the web page.
func (s *Server) EditComment(id int64, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.home.comments {
		if c.ID == id {
			c.Body, c.Updated = body, s.now()
		}
	}
}

// RemoveComment deletes a comment as if on the web page.
func (s *Server) RemoveComment(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.home.removeComment(id)
}

func (r *repository) removeComment(id int64) {
	r.comments = slices.DeleteFunc(r.comments, func(c *Comment) bool { return c.ID == id })
	r.reactions = slices.DeleteFunc(r.reactions, func(x *Reaction) bool { return x.comment == id })
}

// Comments returns the comments on a pull request or issue, oldest first.
func (s *Server) Comments(number int) []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Comment
	for _, c := range s.home.comments {
		if c.Number == number {
			list = append(list, *c)
		}
	}
	return list
}

// CommentsBy returns the Comments of one author.
func (s *Server) CommentsBy(number int, author string) []Comment {
	return slices.DeleteFunc(s.Comments(number), func(c Comment) bool { return !strings.EqualFold(c.Author, author) })
}

// Reactions returns the reactions to a comment, oldest first.
func (s *Server) Reactions(comment int64) []Reaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Reaction
	for _, r := range s.home.reactions {
		if r.comment == comment {
			list = append(list, *r)
		}
	}
	return list
}
