// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// uploadAction is the upload action of action.yml, with its commit.
func uploadAction(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`uses: (actions/upload-artifact@[0-9a-f]{40})`).FindSubmatch(data)
	if name == nil {
		t.Fatal("action.yml uploads nothing")
	}
	return string(name[1])
}

// stub replaces actions/upload-artifact, whose newest version is not supported by
// act's artifact server: it has the same inputs and makes the same three requests.
func stub(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("testdata/upload-artifact")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}
