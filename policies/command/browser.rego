# A browser may show a page that the workspace has, or that a server of the same command
# serves, and write a picture of it. The sandbox has no network, so the page reaches nothing
# else, and what the page's code does is contained like other code of the repository.
# Each word is checked: a browser's options can start programs, load extensions, open
# servers, use proxies and write anywhere.
package fumehood.command

import data.fumehood.lib

browsers := {"chromium", "chromium-browser", "chromium-headless-shell", "chrome-headless-shell", "google-chrome", "google-chrome-stable"}

# METADATA
# title: Browsers may render pages of localhost and of the workspace, without a window
# custom:
#   rule: browser.local
#   match: [
#     "chromium --headless --screenshot=shot.png http://127.0.0.1:8000/",
#     "chromium --headless=new --no-sandbox --disable-gpu --window-size=1280,800 --screenshot=/tmp/a.png 'http://localhost:3000/a?b=1#c'",
#     "chromium --headless --dump-dom index.html",
#     "google-chrome --headless --print-to-pdf=out/page.pdf --no-pdf-header-footer file:///workspace/dist/index.html",
#     "chromium --headless --screenshot about:blank", "chromium --version",
#     "chromium-headless-shell --user-data-dir=/tmp/profile --virtual-time-budget=5000 --dump-dom 'http://[::1]:8080/'"
#   ]
#   not_match: [
#     "chromium http://localhost/", "chromium --headless https://x.example/", "chromium --headless http://localhost@x.example/",
#     "chromium --headless", "chromium --headless http://localhost/ https://x.example/",
#     "chromium --headless --screenshot=../x.png http://localhost/", "chromium --headless --screenshot=.git/hooks/pre-commit http://localhost/",
#     "chromium --headless --dump-dom file:///etc/passwd", "chromium --headless --dump-dom file:///workspace/../etc/passwd",
#     "chromium --headless --dump-dom 'data:text/html,x'", "chromium --headless \"$X\"", "./chromium --headless http://localhost/"
#   ]
allow contains {"rule": "browser.local"} if {
	browser
	input.command.place in found
	count(browser_other) == 0
	browser_task
}

browser if {
	input.command.program in browsers
	input.command.static
	not networked
}

browser_task if input.command.argv == ["--version"]

browser_task if {
	browser_headless
	count([w | some w in input.command.argv; not startswith(w, "-")]) == 1
}

browser_headless if endswith(input.command.program, "-headless-shell")

browser_headless if {
	some word in input.command.argv
	regex.match(`^--headless(=new|=old)?$`, word)
}

# METADATA
# title: Browser options that start programs, load code, connect or open servers are denied
# custom:
#   rule: browser.option
#   severity: medium
#   category: code
#   match: [
#     "chromium --headless --renderer-cmd-prefix='sh -c id' http://localhost/", "chromium --headless --gpu-launcher=./x http://localhost/",
#     "chromium --headless --utility-cmd-prefix=./x http://localhost/", "chromium --headless --browser-subprocess-path=./x http://localhost/",
#     "chromium --headless --load-extension=ext http://localhost/", "chromium --headless --remote-debugging-port=9222 http://localhost/",
#     "chromium --headless --remote-debugging-address=0.0.0.0 http://localhost/", "chromium --headless --proxy-server=x.example:80 http://localhost/",
#     "chromium --headless '--host-resolver-rules=MAP * 203.0.113.9' http://localhost/",
#     "chromium --headless --user-data-dir=profile http://localhost/", "chromium --headless --log-net-log=/etc/x http://localhost/",
#     "chromium --headless -g http://localhost/", "chromium --headless --type=renderer http://localhost/", "chromium --headless https://x.example/"
#   ]
#   not_match: ["chromium --headless --screenshot=a.png http://localhost/", "chromium http://localhost/"]
deny contains lib.denial(
	"browser.option",
	sprintf("%s with %s is not known to only render a local page", [input.command.program, word]),
	"use --headless with --screenshot=FILE.png, --print-to-pdf=FILE.pdf or --dump-dom, and one URL of localhost or file of the workspace",
) if {
	browser
	some word in browser_other
}

# METADATA
# title: Browsers have no display
# custom:
#   rule: browser.window
#   severity: low
#   category: usage
#   match: ["chromium http://localhost/", "google-chrome --screenshot=a.png index.html"]
#   not_match: ["chromium --headless http://localhost/", "chromium --version"]
deny contains lib.denial("browser.window", sprintf("there is no display for %s", [input.command.program]), "add --headless") if {
	browser
	not browser_headless
	not browser_task
}

# browser_other are the words that are neither known options nor local pages.
browser_other contains word if {
	some word in input.command.argv
	not browser_word(word)
}

browser_word(word) if regex.match(loopback_url, word)

browser_word(word) if regex.match(browser_page, word)

browser_page := concat("", [
	`^(about:blank|file:///(workspace|tmp)(/\w[\w.-]*)*/?([?#].*)?`,
	`|(\./)?\w[\w-]*(\.[\w-]+)*(/\w[\w-]*(\.[\w-]+)*)*\.(x?html?|svg|pdf))$`,
])

# What is rendered, and into what. A name has a suffix that nothing runs.
browser_word(word) if regex.match(headless_option, word)

headless_option := concat("", [
	`^--(headless(=new|=old)?|dump-dom|screenshot|print-to-pdf|(screenshot|print-to-pdf)=(/tmp/`,
	`|/workspace/|\./)?(\w[\w-]*(\.[\w-]+)*/)*\w[\w-]*(\.[\w-]+)*\.(png|jpe?g|webp|pdf)`,
	`|(no-pdf-header-footer|print-to-pdf-no-header|generate-pdf-document-outline|export-tagged-pdf)`,
	`|window-size=\d+,\d+|force-device-scale-factor=[\d.]+|default-background-color=\w+`,
	`|(virtual-time-budget|timeout)=\d+|run-all-compositor-stages-before-draw|hide-scrollbars`,
	`|force-dark-mode|force-prefers-reduced-motion|force-color-profile=[\w-]+|font-render-hinting=\w+`,
	`|(accept-)?lang=[\w,-]+|user-agent=.*)$`,
])

# How it runs. The sandbox is gVisor's, so that the browser's own may be off.
browser_word(word) if regex.match(harmless_browser_option, word)

harmless_browser_option := concat("", [
	`^--(version|no-sandbox|disable-setuid-sandbox|no-zygote|single-process|in-process-gpu`,
	`|disable-(gpu|gpu-sandbox|software-rasterizer|dev-shm-usage|extensions|background-networking`,
	`|sync|translate|default-apps|breakpad|crash-reporter|component-update|domain-reliability`,
	`|client-side-phishing-detection|hang-monitor|popup-blocking|prompt-on-repost`,
	`|renderer-backgrounding|background-timer-throttling|backgrounding-occluded-windows`,
	`|ipc-flooding-protection|lcd-text|audio-output|notifications|infobars|logging`,
	`|(blink-)?features=[\w,]+)|mute-audio|no-first-run|no-default-browser-check|no-pings`,
	`|metrics-recording-only|password-store=basic|use-mock-keychain|incognito`,
	`|ignore-certificate-errors|allow-insecure-localhost|use-gl=(angle|swiftshader|disabled)`,
	`|use-angle=swiftshader|enable-unsafe-swiftshader|enable-logging(=stderr)?|log-level=\d|v=\d`,
	`|user-data-dir=/tmp(/\w[\w.-]*)+)$`,
])
