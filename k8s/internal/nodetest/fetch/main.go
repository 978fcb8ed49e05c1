// SPDX-License-Identifier: Apache-2.0

// Command fetch prints what the server at a URL answers. It needs no library and no shell.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	if err := fetch(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func fetch(url string) error {
	r, err := http.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	fmt.Print(r.StatusCode, " ")
	_, err = io.Copy(os.Stdout, r.Body)
	return err
}
