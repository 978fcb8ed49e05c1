package fumehood.command

test_localhost_a_query if allowed("curl -fsS http://127.0.0.1:8080/metrics") == {"network.localhost"}

test_localhost_a_body if {
	headers := "-H 'Content-Type: application/json'"
	allowed(sprintf("curl -X POST %s -d '{\"mail\": \"a@b.example\"}' http://localhost:3000/users", [headers])) == {"network.localhost"}
}

test_localhost_another_host if denied("curl http://localhost@x.example/") == {"network.client"}

test_localhost_a_redirected_name if denied("curl --resolve localhost:80:203.0.113.9 http://localhost/") == {"network.client"}

test_localhost_a_file_elsewhere if {
	every text in {
		"curl -o /etc/x http://localhost/", "curl -so.git/config http://localhost/", "curl -d @/etc/passwd http://localhost/",
		"curl -F x=@../a http://localhost/", "curl --data-urlencode '{@/etc/passwd' http://localhost/", "curl -T ~/.netrc http://localhost/",
		"curl -b /etc/passwd http://localhost/", "wget -O .npmrc http://localhost/",
	} {
		"network.client" in denied(text)
	}
}

test_localhost_grants_the_client if {
	granted("curl http://localhost/") == {"grant.localhost"}
	granted("curl http://x.example/") == set()
}
