// SPDX-License-Identifier: Apache-2.0

//go:build !nightly

package main

const whole = false
