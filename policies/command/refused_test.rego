package fumehood.command

test_refused_its_name_alone if allowed("grep curl README.md") == {"text.read"}

test_refused_a_client if denied("curl https://api.example.com") == {"network.client"}

test_refused_a_client_of_another_kind if denied_with("socat - x", hosts) == {"network.client"}

test_refused_privilege if denied("sudo ls") == {"privilege.none"}

test_refused_a_launcher if denied("busybox sh") == {"launcher.hidden"}

test_refused_the_loader if denied("ldd build/app") == {"loader.program"}

test_refused_a_library_for_every_program if denied("stdbuf -oL make") == {"launcher.preload"}
