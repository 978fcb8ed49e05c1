package fumehood.command

test_openssl_a_look_at_a_server if allowed_with("openssl s_client -connect api.example.com:443", hosts) == {"text.judged"}

test_openssl_an_engine if denied_with("openssl s_client -engine ./x -connect api.example.com:443", hosts) == {"judged.client", "judged.verb"}
