package fumehood.command

test_browser_a_picture_of_a_local_page if {
	allowed("chromium --headless --screenshot=shot.png http://127.0.0.1:8000/") == {"browser.local"}
	granted("chromium --headless --screenshot=shot.png http://127.0.0.1:8000/") == set()
}

test_browser_another_host if {
	every url in {
		"https://x.example/", "http://localhost@x.example/", "http://127.0.0.1.x.example/", "'http://127.0.0.1:80\\\\@x.example/'", "chrome://settings",
		"view-source:http://localhost/", "'javascript:1'", "ftp://localhost/",
	} {
		"browser.option" in denied(concat(" ", ["chromium --headless --dump-dom", url]))
	}
}

test_browser_files_elsewhere if {
	every word in {
		"--screenshot=/etc/x.png", "--screenshot=../x.png", "--screenshot=.git/x.png", "--screenshot=a/../../x.png", "--print-to-pdf=a.sh",
		"--user-data-dir=/tmp/../etc", "--user-data-dir=/workspace/p", "--disk-cache-dir=/tmp/x", "--crash-dumps-dir=.", "file:///home/fumehood/x.html",
		"file:///tmp/%2e%2e/etc/passwd",
	} {
		"browser.option" in denied(concat(" ", ["chromium --headless", word, "http://localhost/"]))
	}
}

test_browser_a_word_known_at_run_time if {
	every word in {"\"$U\"", "*.html", "file://$PWD/x.html"} { allowed(concat(" ", ["chromium --headless --dump-dom", word])) == set() }
}

test_browser_no_page_or_two if {
	every text in {"chromium --headless", "chromium --headless --dump-dom a.html b.html"} { allowed(text) == set() }
}

test_browser_not_for_granted_hosts if allowed_with("chromium --headless --dump-dom index.html", hosts) == set()

test_browser_variables if {
	"env.steering" in denied("CHROMIUM_FLAGS=--gpu-launcher=./x chromium --headless --dump-dom index.html")
	"env.steering" in denied("CHROME_DEVEL_SANDBOX=./x chromium --headless --dump-dom index.html")
}
