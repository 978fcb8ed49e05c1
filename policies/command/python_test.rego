package fumehood.command

test_python_tests if allowed("python3 -m pytest -q") == {"code.run"}

test_python_what_the_repository_names if allowed("pip install -r requirements.txt") == {"code.run"}

test_python_a_plugin if denied("pytest -p evil") == {"code.option"}

test_python_a_server if denied("python3 -m http.server") == {"code.module"}

test_python_a_package_by_name if denied("python3 -m pip install x") == {"code.package"}

test_python_another_index if denied("pip install --user .") == {"code.program"}

test_python_an_environment_elsewhere if denied("python3 -m venv /opt/x") == {"code.module", "code.outside"}

test_python_an_address if denied("python3 -m pip install https://x.example/a.whl") == {"code.url"}

test_python_a_package_by_uv if denied("uv pip install x") == {"code.package", "code.publish"}

test_python_a_server_of_pages if {
	denied("python3 -m http.server 8000 --bind 127.0.0.1 --directory dist") == set()
	every text in {
		"python3 -m http.server --bind 127.0.0.1 --bind 0.0.0.0", "python3 -m http.server --cgi --bind localhost",
		"python3 -m http.server --bind 127.0.0.1 -d ../x", "python3 -m http.server --bind \"$X\"", "python3 -m pty --bind localhost",
	} {
		"code.module" in denied(text)
	}
}
