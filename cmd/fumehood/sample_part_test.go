// SPDX-License-Identifier: Apache-2.0

//go:build linux && !nightly

package main

const whole = false
