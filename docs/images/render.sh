#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Renders the pictures of comments from the goldens that the tests of internal/evidence/report and
# internal/github/comment compare, as GitHub shows Markdown, and notes the digests of the goldens. Needs cmark-gfm,
# Chromium and a font with emoji (fonts-noto-color-emoji).
set -euo pipefail
cd "$(dirname "$0")"
page=$(mktemp -d)
trap 'rm -rf "$page"' EXIT

# render NAME GOLDEN HEIGHT writes NAME.png.
render() {
	{
		cat <<'HTML'
<!doctype html><meta charset="utf-8"><style>
body { font: 14px/1.5 "Noto Sans", "DejaVu Sans", Helvetica, Arial, sans-serif; color: #1f2328; margin: 16px; width: 880px }
main { border: 1px solid #d1d9e0; border-radius: 6px; padding: 16px }
h2 { border-bottom: 1px solid #d1d9e0; padding-bottom: .3em; font-size: 1.4em; margin-top: 0 }
table { border-collapse: collapse } td, th { border: 1px solid #d1d9e0; padding: 5px 12px; text-align: left; vertical-align: top }
tr:nth-child(2n) { background: #f6f8fa }
code { background: #818b981f; border-radius: 6px; padding: .15em .35em; font: 85% "DejaVu Sans Mono", monospace }
pre { background: #f6f8fa; padding: 12px; border-radius: 6px } pre code { background: none; padding: 0 }
</style><main>
HTML
		cmark-gfm --unsafe -e table "$2"
	} >"$page/comment.html"
	chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update \
		--disable-sync --hide-scrollbars --user-data-dir="$page/profile" --window-size="930,$3" --screenshot="$PWD/$1.png" "file://$page/comment.html" 2>/dev/null
	sha256sum "$2" >>goldens.sha256
}

rm -f goldens.sha256
render comment ../../testdata/report/mixed.md 760
render two_jobs ../../internal/github/comment/testdata/two_jobs.md 290
render failed_before ../../testdata/report/failed_before.md 670
render toolchain ../../testdata/report/missing_toolchain.md 360
render nothing_proposed ../../internal/github/comment/testdata/nothing_proposed.md 290
render bot ../../internal/github/comment/testdata/bot_beside_ci.md 290
