// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"testing"
)

var pin = "@sha256:" + strings.Repeat("0a", 32)

func TestSpecs(t *testing.T) {
	tests := []struct{ spec, kind, shown, place, code string }{
		{"policy", KindFolder, "policy", "policy", ""},
		{"./git:x", KindFolder, "./git:x", "./git:x", ""},
		{"/home/someone/policy", KindFolder, "policy", "/home/someone/policy", ""},
		{"a@sha256:x", KindFolder, "a@sha256:x", "a@sha256:x", ""},
		{"git:main:policy/", KindGit, "git:main:policy/", "policy", ""},
		{"git:v1~2:.", KindGit, "git:v1~2:.", "", ""},
		{"base:.github/fumehood", KindBase, "base:.github/fumehood", ".github/fumehood", ""},
		{"p.tar.gz", KindBundle, "p.tar.gz", "p.tar.gz", ""},
		{"/srv/p.tgz" + pin, KindBundle, "p.tgz", "/srv/p.tgz", ""},
		{"https://h.example/p.tar.gz?token=secret" + pin, KindHTTPS, "https://h.example/p.tar.gz", "https://h.example/p.tar.gz?token=secret", ""},
		{"http://127.0.0.1:80/p" + pin, KindHTTPS, "http://127.0.0.1:80/p", "http://127.0.0.1:80/p", ""},
		{"oci://r.example:5000/acme/policy" + pin, KindOCI, "oci://r.example:5000/acme/policy", "r.example:5000/acme/policy", ""},
		{"github:acme/policy@main", KindGitHub, "github:acme/policy@main", "acme/policy", ""},
		{"github:Acme/pol.icy/a/b.tgz@heads/v1", KindGitHub, "github:Acme/pol.icy/a/b.tgz@heads/v1", "Acme/pol.icy", ""},

		{"github:acme/policy", "", "", "", CodeSource},
		{"github:acme@main", "", "", "", CodeSource},
		{"github:acme/policy/rules@main", "", "", "", CodeSource},
		{"github:acme/../p.tar.gz@main", "", "", "", CodeSource},
		{"github:acme/policy/../p.tar.gz@main", "", "", "", CodeSource},
		{"github:acme/policy/p.tar.gz@a/../b", "", "", "", CodeSource},
		{"github:acme/policy/p.tar.gz@-x", "", "", "", CodeSource},
		{"github:acme/policy?x/p.tar.gz@main", "", "", "", CodeSource},
		{"", "", "", "", CodeSource},
		{"a\nb", "", "", "", CodeSource},
		{strings.Repeat("a", maxSpec+1), "", "", "", CodeSource},
		{"git:main", "", "", "", CodeSource},
		{"git::policy", "", "", "", CodeSource},
		{"git:--upload-pack=x:policy", "", "", "", CodeSource},
		{"git:main:", "", "", "", CodeSource},
		{"git:main:/etc", "", "", "", CodeSource},
		{"git:main:a/../../b", "", "", "", CodeSource},
		{`git:main:a\b`, "", "", "", CodeSource},
		{"base:", "", "", "", CodeSource},
		{"base:..", "", "", "", CodeSource},
		{"p.tar.gz@sha256:0A", "", "", "", CodeDigest},
		{"https://h.example/p.tar.gz", "", "", "", CodeDigest},
		{"https://h.example/p.tar.gz@sha256:" + strings.Repeat("0A", 32), "", "", "", CodeDigest},
		{"http://h.example/p.tar.gz" + pin, "", "", "", CodeSource},
		{"http://127.0.0.1.evil.example/p" + pin, "", "", "", CodeSource},
		{"https://user:secret@h.example/p" + pin, "", "", "", CodeSource},
		{"https:///p" + pin, "", "", "", CodeSource},
		{"oci://r.example/acme/policy:latest", "", "", "", CodeSource},
		{"oci://r.example/acme/policy", "", "", "", CodeDigest},
		{"oci:r.example/acme/policy" + pin, "", "", "", CodeSource},
		{"oci://r.example/acme/../policy" + pin, "", "", "", CodeSource},
	}
	for _, tt := range tests {
		t.Run(tt.spec[:min(len(tt.spec), 60)], func(t *testing.T) {
			p, err := parseSpec(tt.spec)
			wantCode(t, err, tt.code, "")
			if p.kind != tt.kind || p.shown != tt.shown || p.place != tt.place {
				t.Errorf("got %+v", p)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes a secret: %v", err)
			}
		})
	}
}

func TestRevisions(t *testing.T) {
	tests := []struct{ revision, minimum, code string }{
		{"", "", ""}, {"anything", "", ""}, {"14", "14", ""}, {"15", "14", ""}, {"9", "14", CodeRevision}, {"014", "14", ""}, {"100", "99", ""},
		{"", "1", CodeRevision}, {"v15", "14", CodeRevision}, {"14.1", "14", CodeRevision}, {"-1", "1", CodeRevision}, {"0x20", "14", CodeRevision}, {"１５", "14", CodeRevision},
		{"99999999999999999999999999999", "18446744073709551616", ""},
		{"2026-11-21T15:00:00Z", "2026-11-21T15:00:00Z", ""}, {"2026-11-21T16:00:00+02:00", "2026-11-21T15:00:00Z", CodeRevision},
		{"2026-11-21T15:00:00.5Z", "2026-11-21T15:00:00Z", ""}, {"2026-11-21", "2026-11-20", CodeRevision},
		{"14", "2026-11-21T15:00:00Z", CodeRevision}, {"2026-11-21T15:00:00Z", "14", CodeRevision},
	}
	for _, tt := range tests {
		wantCode(t, refuseOlder("bundle", tt.revision, tt.minimum), tt.code, "")
	}
}
