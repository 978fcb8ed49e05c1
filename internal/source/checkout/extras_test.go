// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/sample"
)

// another is a second repository on the origin's server.
func (o *origin) another(name string) *origin {
	o.t.Helper()
	other := &origin{t: o.t, root: o.root, dir: filepath.Join(o.root, "octocat", name+".git"), digits: o.digits}
	if err := writeBare(other.dir, o.digits); err != nil {
		o.t.Fatal(err)
	}
	return other
}

func modulesFile(name, path, url string) string {
	return fmt.Sprintf("[submodule %q]\n\tpath = %s\n\turl = %s\n", name, path, url)
}

// added writes a commit with its extras.
func added(t *testing.T, s *Store, head string, want Extras) (Tree, string) {
	t.Helper()
	if err := s.Fetch(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tree")
	tree, err := s.Write(t.Context(), head, dir)
	if err != nil {
		t.Fatal(err)
	}
	if tree, err = s.AddExtras(t.Context(), tree, dir, want); err != nil {
		t.Fatal(err)
	}
	return tree, dir
}

// Submodules, nested ones included, are files at their pinned commits. Their servers see no
// token, and git in the workspace reports nothing as changed.
func TestSubmodules(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	sub, deep := o.another("sub"), o.another("deep")
	inner := deep.commit("deep", deep.tree("100644 z.txt", deep.blob("deep\n")))
	pinned := sub.commit("sub", sub.tree("100644 .gitmodules", sub.blob(modulesFile("deep", "vendor", "../deep.git")), "100755 run.sh", sub.blob("echo\n"), "160000 vendor", inner))
	moved := sub.commit("later", sub.tree("100644 run.sh", sub.blob("later\n")), pinned)
	sub.put("refs/heads/main", moved+"\n")
	server := serve(t, o.root)
	server.token = "ghs_secret"
	server.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/octocat/hello") {
			return false
		}
		server.pass(w, r) // public
		return true
	})
	host := strings.TrimSuffix(server.url, "/octocat/hello.git")
	head := o.commit("head", o.tree("100644 .gitmodules", o.blob(modulesFile("lib/sub", "lib/sub", host+"/octocat/sub")), "100644 a.txt", o.blob("a\n"), "40000 lib", o.tree("160000 sub", pinned)))
	s := open(t, Source{URL: server.url, Token: "ghs_secret"}, Limits{})
	tree, dir := added(t, s, head, Extras{Submodules: true})
	got := files(t, dir)
	for path, want := range map[string]string{"a.txt": "a\n", "lib/sub/run.sh": "echo\n", "lib/sub/vendor/z.txt": "deep\n"} {
		if got[path] != want {
			t.Errorf("%s: %q", path, got[path])
		}
	}
	if len(tree.Left) != 0 || tree.Files != 5 {
		t.Errorf("%+v", tree)
	}
	for _, request := range server.requests() {
		if !strings.Contains(request, "/octocat/hello") && !strings.HasSuffix(request, "auth=") {
			t.Errorf("a submodule's server was sent a credential: %s", request)
		}
	}
	if err := s.WriteRepository(t.Context(), dir, head, "", Branches{}); err != nil {
		t.Fatal(err)
	}
	if status := inside(t, dir, "status", "--porcelain"); status != "" {
		t.Errorf("status: %s", status)
	}
}

// THREATS 16: a hostile .gitmodules leads to no other server and to no other protocol, and is
// named. Nothing but the repository itself is requested.
func TestHostileSubmodules(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	pinned := o.commit("x", o.tree("100644 f", o.blob("x")))
	server := serve(t, o.root)
	host := strings.TrimSuffix(server.url, "/octocat/hello.git")
	cases := map[string]struct{ modules, why string }{
		"another host":         {modulesFile("m", "m", "https://evil.example/x"), "its URL is not http"},
		"another port":         {modulesFile("m", "m", "http://127.0.0.1:1/octocat/hello"), "another server"},
		"the host as a user":   {modulesFile("m", "m", strings.Replace(host, "//", "//evil@", 1)+"/octocat/hello"), "refused"},
		"file":                 {modulesFile("m", "m", "file:///etc"), "its URL is not http"},
		"a path":               {modulesFile("m", "m", "/etc"), "its URL is not http"},
		"ext":                  {modulesFile("m", "m", "ext::sh -c touch% x"), "refused"},
		"ssh":                  {modulesFile("m", "m", "git@github.com:octocat/hello"), "refused"},
		"an option":            {modulesFile("m", "m", "-u./x"), "refused"},
		"an upload pack":       {modulesFile("m", "m", "--upload-pack=x"), "refused"},
		"a query":              {modulesFile("m", "m", host+"/octocat/hello?x=y"), "refused"},
		"dots in a URL":        {modulesFile("m", "m", host+"/octocat/../octocat/hello"), "refused"},
		"encoded":              {modulesFile("m", "m", host+"/octocat%2fhello"), "refused"},
		"a relative top":       {modulesFile("m", "m", "../../../.."), "refused"},
		"a newline":            {modulesFile("m", "m", `"`+host+`/octocat/hello\nx"`), "its URL is not http"},
		"name with dots":       {modulesFile("../../hooks", "m", server.url), "its name"},
		"name of an option":    {modulesFile("-u", "m", server.url), "its name"},
		"name of git":          {modulesFile("x/.git", "m", server.url), "its name"},
		"no name":              {"[submodule]\n\tpath = m\n\turl = " + server.url + "\n", "its name"},
		"another path":         {modulesFile("m", "../m", server.url), "does not name it"},
		"two paths":            {modulesFile("m", "m", server.url) + "\tpath = n\n", "one path and one url"},
		"two urls":             {modulesFile("m", "m", server.url) + "\turl = " + server.url + "\n", "one path and one url"},
		"named twice":          {modulesFile("m", "m", server.url) + modulesFile("n", "m", server.url), "twice"},
		"not git's syntax":     {modulesFile("m", "m", server.url) + "[[\n", "cannot be read"},
		"too large":            {modulesFile("m", "m", server.url) + strings.Repeat("#", maxModulesFile), "cannot be read"},
		"nothing":              {"", "does not name it"},
		"a commit that is not": {modulesFile("m", "m", server.url), "not fetched"},
	}
	for name, c := range cases {
		if name == "too large" || name == "a commit that is not" {
			continue // not by what the file says
		}
		s := open(t, Source{URL: server.url}, Limits{})
		if got := s.remote.parseModules(c.modules).placeOf("m").why; !strings.Contains(got, c.why) {
			t.Errorf("%s, without git's checks: %q", name, got)
		}
	}
	for _, name := range sample.EveryNthKey(t, cases, 6, 13) {
		t.Run(name, func(t *testing.T) {
			c, id := cases[name], pinned
			if name == "a commit that is not" {
				id = strings.Repeat("12", 20)
			}
			head := o.commit("head", o.tree("100644 .gitmodules", o.blob(c.modules), "160000 m", id))
			s := open(t, Source{URL: server.url}, Limits{})
			before := len(server.requests())
			if err := s.Fetch(t.Context(), head); err != nil { // git's own checks refuse some, and then nothing runs
				wantCode(t, err, CodeTree)
				return
			}
			tree, dir := added(t, s, head, Extras{Submodules: true})
			if len(tree.Left) != 1 || tree.Left[0].Path != "m" || !strings.Contains(tree.Left[0].Detail, c.why) || files(t, dir)["m"] != "/" {
				t.Errorf("%+v", tree.Left)
			}
			if log := server.requests()[before:]; slices.ContainsFunc(log, func(line string) bool { return !strings.Contains(line, "/octocat/hello.git") }) {
				t.Errorf("requests: %q", log)
			}
		})
	}
}

// A .gitmodules that is a link, and a parent that is one, lead nowhere.
func TestLinkedSubmodules(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	pinned := o.commit("x", o.tree("100644 f", o.blob("x")))
	server := serve(t, o.root)
	linked := o.commit("head", o.tree("120000 .gitmodules", o.blob("modules"), "160000 m", pinned, "100644 modules", o.blob(modulesFile("m", "m", server.url))))
	wantCode(t, open(t, Source{URL: server.url}, Limits{}).Fetch(t.Context(), linked), CodeTree) // by git's own checks
	folder := o.commit("head", o.tree("40000 .gitmodules", o.tree("100644 f", o.blob("x")), "160000 m", pinned))
	wantCode(t, open(t, Source{URL: server.url}, Limits{}).Fetch(t.Context(), folder), CodeTree)
	parent := o.commit("head", o.tree("100644 .gitmodules", o.blob(modulesFile("m", "a/m", server.url)), "120000 a", o.blob("b"), "40000 b", o.tree("160000 m", pinned)))
	tree, dir := added(t, open(t, Source{URL: server.url}, Limits{}), parent, Extras{Submodules: true})
	if want := []Left{{"b/m", Submodule, ".gitmodules does not name it"}}; !cmp.Equal(want, tree.Left) || files(t, dir)["b/m"] != "/" {
		t.Errorf("%+v", tree.Left)
	}
}

// Depth, number and size of submodules are bounded; what is beyond is named.
func TestSubmoduleBounds(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	server := serve(t, o.root)
	nested := o.commit("0", o.tree("100644 f", o.blob("x")))
	for range maxNesting + 1 {
		nested = o.commit("n", o.tree("100644 .gitmodules", o.blob(modulesFile("m", "m", server.url)), "160000 m", nested))
	}
	tree, _ := added(t, open(t, Source{URL: server.url}, Limits{}), nested, Extras{Submodules: true})
	if want := []Left{{strings.Repeat("m/", maxNesting) + "m", Submodule, "nested more than 3 deep"}}; !cmp.Equal(want, tree.Left) {
		t.Errorf("%+v", tree.Left)
	}

	small := o.commit("s", o.tree("100644 f", o.blob(strings.Repeat("x", 600))))
	modules, entries := "", []string{}
	for i := range 3 {
		modules += modulesFile(fmt.Sprint("m", i), fmt.Sprint("m", i), server.url)
		entries = append(entries, fmt.Sprint("160000 m", i), small)
	}
	head := o.commit("many", o.tree(append([]string{"100644 .gitmodules", o.blob(modules)}, entries...)...))
	tree, dir := added(t, open(t, Source{URL: server.url}, Limits{Bytes: 1500}), head, Extras{Submodules: true})
	if len(tree.Left) != 1 && len(tree.Left) != 2 || !strings.Contains(tree.Left[0].Detail, "more than") || tree.Bytes > 1500 {
		t.Errorf("%+v", tree)
	}
	if got := files(t, dir); got[tree.Left[0].Path] != "/" {
		t.Errorf("a refused submodule is not empty: %v", got)
	}
}

func TestTooManySubmodules(t *testing.T) {
	t.Parallel()
	x := extras{room: Limits{}.withDefaults(), modules: maxModules}
	tree, err := x.writeSubmodule(t.Context(), nil, submodulePlace{url: "http://127.0.0.1:1/x"}, Left{Path: "m", Why: Submodule}, nil, 0)
	if err != nil || tree.Left[0].Detail != "more than 50 submodules" {
		t.Errorf("%+v, %v", tree, err)
	}
}

// lfsServer answers the batch API of octocat/hello for what it has, and the downloads.
func lfsServer(t *testing.T, server *gitServer, has map[string]string, href func(oid string) string) {
	t.Helper()
	server.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if oid, found := strings.CutPrefix(r.URL.Path, "/lfs/"); found {
			if r.Header.Get("X-Ticket") != "t" || r.Header.Get("Authorization") != "" {
				w.WriteHeader(http.StatusForbidden)
			}
			io.WriteString(w, has[oid])
			return true
		}
		if r.URL.Path != "/octocat/hello.git/info/lfs/objects/batch" {
			return false
		}
		var asked struct {
			Operation string
			Objects   []struct {
				OID  string
				Size int64
			}
		}
		if _, password, _ := r.BasicAuth(); password != "ghs_secret" || json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Operation != "download" {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		var objects []any
		for _, o := range asked.Objects {
			object := map[string]any{"oid": o.OID, "size": o.Size}
			if _, there := has[o.OID]; there {
				object["actions"] = map[string]any{"download": lfsAction{href(o.OID), map[string]string{"X-Ticket": "t"}}}
			}
			objects = append(objects, object)
		}
		json.NewEncoder(w).Encode(map[string]any{"objects": objects})
		return true
	})
}

func pointerTo(content string) (oid, pointer string) {
	oid = fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	return oid, fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(content))
}

// Large files are what their pointers say, or stay pointers, with the reason.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	server := serve(t, o.root)
	host := strings.TrimSuffix(server.url, "/octocat/hello.git")
	good, goodPointer := pointerTo("large\n")
	_, missing := pointerTo("missing")
	forged, forgedPointer := pointerTo("forged")
	away, awayPointer := pointerTo("away")
	_, huge := pointerTo(strings.Repeat("x", 5000))
	lfsServer(t, server, map[string]string{good: "large\n", forged: "FORGED", away: "away"}, func(oid string) string {
		if oid == away {
			return "http://127.0.0.2:9/x"
		}
		return host + "/lfs/" + oid
	})
	head := o.commit("head", o.tree("100644 .lfsconfig", o.blob("[lfs]\n\turl = http://127.0.0.1:1/\n"), "100644 away", o.blob(awayPointer), "100644 forged", o.blob(forgedPointer),
		"100755 good", o.blob(goodPointer), "100644 huge", o.blob(huge), "100644 missing", o.blob(missing), "100644 odd", o.blob(goodPointer+"ext-0-x sha256:00\n")))
	s := open(t, Source{URL: server.url, Token: "ghs_secret"}, Limits{File: 4000})
	tree, dir := added(t, s, head, Extras{LFS: true})
	want := []Left{
		{"away", LargeFile, "the LFS server names an address that is not https"}, {"forged", LargeFile, "what was downloaded does not match the pointer's size and hash"},
		{"huge", LargeFile, "its 5000 bytes are more than the checkout's limit"}, {"missing", LargeFile, "the LFS server does not have it"}, {"odd", LargeFile, "the pointer has an unsupported form"},
	}
	if diff := cmp.Diff(want, tree.Left); diff != "" {
		t.Error(diff)
	}
	got := files(t, dir)
	if got["good"] != "large\n" || got["forged"] != forgedPointer || got["missing"] != missing {
		t.Errorf("%q", got)
	}
	if err := s.WriteRepository(t.Context(), dir, head, "", Branches{}); err != nil {
		t.Fatal(err)
	}
	if status := inside(t, dir, "status", "--porcelain"); status != "" {
		t.Errorf("status: %s", status)
	}
}

// A server without LFS, or one that redirects, gives no file and gets no second request.
func TestNoLargeFiles(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	server := serve(t, o.root)
	_, pointer := pointerTo("x")
	head := o.commit("head", o.tree("100644 a", o.blob(pointer)))
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"no LFS": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		},
		"not JSON":    func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") },
		"one of none": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"objects":[]}`) },
	} {
		server.answer(func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/lfs/") {
				answer(w, r)
				return true
			}
			return false
		})
		tree, dir := added(t, open(t, Source{URL: server.url}, Limits{}), head, Extras{LFS: true})
		if len(tree.Left) != 1 || !strings.Contains(tree.Left[0].Detail, "LFS server") || files(t, dir)["a"] != pointer {
			t.Errorf("%s: %+v", name, tree.Left)
		}
	}
}
