// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
)

func (s *Server) getRepository(c *call) reply { return reply{body: s.repositoryShape(c.repo)} }

func (s *Server) getContent(c *call) reply {
	files := c.repo.listFiles(cmp.Or(c.r.URL.Query().Get("ref"), c.repo.defaultBranch()))
	name := strings.Trim(c.params["path"], "/")
	if data, ok := files[name]; ok {
		if strings.Contains(c.r.Header.Get("Accept"), "raw") {
			return reply{raw: data, header: http.Header{"Content-Type": {"application/vnd.github.raw+json; charset=utf-8"}}}
		}
		v := s.entryShape(c.repo, name, "file", len(data))
		v["encoding"], v["content"] = "base64", base64.StdEncoding.EncodeToString(data)
		return reply{body: v}
	}
	entries := map[string]any{}
	for full, data := range files {
		rest, inside := strings.CutPrefix(full, name+"/")
		if !inside {
			continue
		}
		child, _, nested := strings.Cut(rest, "/")
		if nested {
			entries[child] = s.entryShape(c.repo, name+"/"+child, "dir", 0)
		} else {
			entries[child] = s.entryShape(c.repo, full, "file", len(data))
		}
	}
	if len(entries) == 0 {
		return notFound
	}
	list := []any{}
	for _, child := range slices.Sorted(maps.Keys(entries)) {
		list = append(list, entries[child])
	}
	return reply{body: list}
}

func (s *Server) entryShape(r *repository, name, kind string, size int) obj {
	return obj{"type": kind, "name": path.Base(name), "path": name, "size": size, "sha": CommitID(name),
		"url": s.apiURL(r, "/contents/%s", name), "_links": obj{"self": s.apiURL(r, "/contents/%s", name), "git": nil, "html": nil}}
}

func (s *Server) getCommit(c *call) reply {
	sha := c.repo.resolveCommit(c.params["ref"])
	if !c.repo.hasCommit(sha) {
		return errorReply(http.StatusUnprocessableEntity, "No commit found for SHA: "+sha)
	}
	return reply{body: s.commitShape(c.repo, sha)}
}

func (s *Server) commitShape(r *repository, sha string) obj {
	return obj{"sha": sha, "url": s.apiURL(r, "/commits/%s", sha), "html_url": s.pageURL(r, "/commit/%s", sha),
		"parents": []any{},
		"commit":  obj{"message": "Update the README", "tree": obj{"sha": CommitID("tree of " + sha), "url": s.apiURL(r, "/git/trees/%s", sha)}}}
}

func (s *Server) getBranch(c *call) reply {
	sha := c.repo.commitOfRef("heads/" + c.params["branch"])
	if sha == "" {
		return errorReply(http.StatusNotFound, "Branch not found")
	}
	return reply{body: obj{"name": c.params["branch"], "protected": false, "commit": s.commitShape(c.repo, sha)}}
}

func (s *Server) getRef(c *call) reply {
	sha := c.repo.commitOfRef(c.params["ref"])
	if sha == "" {
		return notFound
	}
	return reply{body: obj{"ref": "refs/" + c.params["ref"], "url": s.apiURL(c.repo, "/git/refs/%s", c.params["ref"]),
		"object": obj{"type": "commit", "sha": sha, "url": s.apiURL(c.repo, "/git/commits/%s", sha)}}}
}

// getPermission answers for every user that the server knows. In a public repository
// everyone may read. An app's bot has a role ("none" unless Permit gave it one). The
// few bots whose login does not end in "[bot]", such as Copilot, are not users.
func (s *Server) getPermission(c *call) reply {
	login := c.params["username"]
	if c.token.Scopes != "" && !canWrite(s.roleOf(c.repo, c.token.Login)) {
		return errorReply(http.StatusForbidden, "Must have push access to view collaborator permission.")
	}
	u, known := s.users[strings.ToLower(login)]
	if !known || u.Type == "Bot" && !strings.HasSuffix(u.Login, "[bot]") {
		return errorReply(http.StatusNotFound, fmt.Sprintf("%s is not a user", login))
	}
	role := s.roleOf(c.repo, login)
	permission := role
	switch role {
	case "maintain":
		permission = "write"
	case "triage":
		permission = "read"
	}
	user := s.userShape(login)
	user["role_name"] = role
	return reply{body: obj{"permission": permission, "role_name": role, "user": user}}
}

func (s *Server) roleOf(r *repository, login string) string {
	owner, _, _ := strings.Cut(r.Name, "/")
	everybody := "none"
	if !r.Private {
		everybody = "read"
	}
	if strings.EqualFold(owner, login) {
		everybody = "admin"
	}
	return cmp.Or(r.roles[strings.ToLower(login)], everybody)
}

func (s *Server) getUser(c *call) reply {
	if c.token.isApp() {
		return errorReply(http.StatusForbidden, "Resource not accessible by integration")
	}
	v := s.userShape(c.token.Login)
	v["user_view_type"] = "public"
	return reply{body: v}
}

func (s *Server) getRateLimit(c *call) reply {
	rate := obj{"limit": s.options.Quota, "remaining": max(0, s.options.Quota-c.token.used),
		"used": c.token.used, "reset": c.token.resetTime().Unix()}
	return reply{body: obj{"rate": rate, "resources": obj{"core": rate, "search": rate}}}
}

func (s *Server) getRoot(*call) reply { return reply{body: obj{}} }
