// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/google/go-cmp/cmp"
)

// A releaseHost is the part of GitHub that publishes: tags by their commits, and one
// release. The real gh reaches it as a proxy for its host github.localhost.
type releaseHost struct {
	t       *testing.T
	tags    map[string]string
	release map[string]any
	assets  []string
}

func (h *releaseHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	text, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(text, &body)
	path := strings.TrimPrefix(r.URL.Path, "/repos/fumehood/fumehood")
	tag := path[strings.LastIndex(path, "/")+1:]
	switch r.Method + " " + strings.TrimSuffix(path, tag) {
	case "POST /": // graphql: does the tag exist, or which release is a draft?
		found := map[string]any{"ref": map[string]any{"id": "R1"}}
		if strings.Contains(string(text), "release(") {
			found = map[string]any{"release": map[string]any{"databaseId": 1, "isDraft": true}}
		}
		answer(w, 200, map[string]any{"data": map[string]any{"repository": found}})
	case "GET /commits/tags/":
		answer(w, 200, map[string]any{"sha": h.tags[tag]})
	case "GET /git/matching-refs/tags/":
		var refs []map[string]any
		for name := range h.tags {
			if strings.HasPrefix(name, tag) {
				refs = append(refs, map[string]any{"ref": "refs/tags/" + name})
			}
		}
		answer(w, 200, refs)
	case "GET /git/ref/tags/":
		if h.tags[tag] == "" {
			answer(w, 404, map[string]any{"message": "Not Found"})
			return
		}
		answer(w, 200, map[string]any{"ref": "refs/tags/" + tag})
	case "PATCH /git/refs/tags/":
		if h.tags[tag] == "" || body["force"] != true {
			answer(w, 422, map[string]any{"message": "Update is not a fast forward"})
			return
		}
		h.tags[tag] = body["sha"].(string)
		answer(w, 200, body)
	case "POST /git/":
		h.tags[strings.TrimPrefix(body["ref"].(string), "refs/tags/")] = body["sha"].(string)
		answer(w, 201, body)
	case "POST /upload/":
		h.assets = append(h.assets, r.URL.Query().Get("name"))
		answer(w, 201, map[string]any{})
	case "GET /releases/tags/": // finds no drafts
		answer(w, 404, map[string]any{"message": "Not Found"})
	case "GET /releases/", "PATCH /releases/":
		for key, value := range body {
			h.release[key] = value
		}
		answer(w, 200, h.release)
	default:
		h.t.Errorf("unexpected request: %s %s", r.Method, r.URL)
		answer(w, 500, nil)
	}
}

// create makes the release; its path has no name at the end.
func (h *releaseHost) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.HandleFunc("POST /repos/fumehood/fumehood/releases", func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&h.release); err != nil {
			h.t.Error(err)
		}
		api := "http://api.github.localhost/repos/fumehood/fumehood"
		h.release["id"], h.release["url"], h.release["upload_url"] = 1, api+"/releases/1", api+"/upload/x{?name,label}"
		answer(w, 201, h.release)
	})
	return mux
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// runStep runs a step of release.yml as a runner does, with the real gh.
func (h *releaseHost) runStep(job, name, version, dir string) (string, bool) {
	h.t.Helper()
	if _, err := exec.LookPath("gh"); err != nil {
		h.t.Fatalf("%v; .ci/run installs it", err)
	}
	server := httptest.NewServer(h.handler())
	defer server.Close()
	var w workflow
	readYAML(h.t, "../../.github/workflows/release.yml", &w)
	steps := w.Jobs[job].Steps
	at := slices.IndexFunc(steps, func(s workflowStep) bool { return s.Name == name })
	if at < 0 {
		h.t.Fatalf("no step %q", name)
	}
	cmd := exec.CommandContext(h.t.Context(), "bash", "-e", "-c", steps[at].Run)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.t.TempDir(), "HTTP_PROXY=" + server.URL, "GH_HOST=github.localhost", "GH_TOKEN=" + jobtest.JobToken,
		"GH_REPO=fumehood/fumehood", "VERSION=" + version, "GITHUB_SHA=new", "RUNNER_TEMP=" + dir}
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// The tag v1 is moved to the newest release of version 1, and by nothing else.
func TestE2EReleaseMovesTheTag(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version string
		others  []string
		want    string // commit of the major version's tag
	}{
		"first":                 {"v1.0.0", nil, "new"},
		"next":                  {"v1.10.0", []string{"v1", "v1.9.0", "v1.2.0"}, "new"},
		"fix of an old version": {"v1.2.4", []string{"v1", "v1.10.0", "v1.2.3"}, "old"},
		"pre-release":           {"v1.1.0-rc.1", []string{"v1", "v1.0.0"}, "old"},
		"after a pre-release":   {"v1.1.0", []string{"v1", "v1.1.0-rc.9", "v1.2.0-rc.1"}, "new"},
		"next major version":    {"v2.0.0", []string{"v1", "v1.9.0"}, "new"},
		"a name like a version": {"v1.0.0", []string{"v1", "v1.0.0.9", "v1.x"}, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &releaseHost{t: t, tags: map[string]string{c.version: "new"}}
			for _, tag := range c.others {
				h.tags[tag] = "old"
			}
			out, ok := h.runStep("major", "Move the tag of the major version", c.version, t.TempDir())
			if major := c.version[:2]; !ok || h.tags[major] != c.want {
				t.Errorf("%s is at %q, want %q\n%s", major, h.tags[major], c.want, out)
			}
			if c.version[:2] == "v2" && h.tags["v1"] != "old" {
				t.Error("v2.0.0 moves v1")
			}
		})
	}
}

// The release has the notes of its version and all files, and is published at the end. If
// the tag has moved, nothing is published.
func TestE2EReleasePublishes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustWrite := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "release"), 0o755); err != nil {
		t.Fatal(err)
	}
	files := []string{"a.tar.gz", "a.cdx.json", "release.env"}
	for _, name := range files {
		mustWrite("release/"+name, "content")
	}
	mustWrite("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\nnot this\n\n## 1.0.0 - 2026-12-01\n\n### Added\n\n- this\n\n## 1.0.0-rc.1\n\nnor this\n")
	h := &releaseHost{t: t, tags: map[string]string{"v1.0.0": "new", "v1.0.1": "new", "v1.0.0-rc.1": "moved"}}
	if out, ok := h.runStep("build", "Read the release notes", "v1.0.0", dir); !ok {
		t.Fatal(out)
	}
	if out, ok := h.runStep("publish", "Publish the release", "v1.0.0", dir); !ok {
		t.Fatal(out)
	}
	if diff := cmp.Diff("\n### Added\n\n- this\n\n", h.release["body"]); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	slices.Sort(files)
	slices.Sort(h.assets)
	if diff := cmp.Diff(files, h.assets); diff != "" || h.release["draft"] != false || h.release["tag_name"] != "v1.0.0" || h.release["prerelease"] != false {
		t.Errorf("%v, files (-want +got):\n%s", h.release, diff)
	}
	if out, ok := h.runStep("build", "Read the release notes", "v1.0.1", dir); ok {
		t.Errorf("a version without notes is released\n%s", out)
	}
	h.release = nil
	if out, ok := h.runStep("publish", "Publish the release", "v1.0.0-rc.1", dir); ok || h.release != nil {
		t.Errorf("a tag that moved is released\n%s", out)
	}
}
